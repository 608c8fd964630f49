#pragma once

// Places where a kernel's result may land: every form of Store, with what lies around it, so that a test sees what was
// written, and that nothing else was.

#include <cstring>
#include <vector>

#include "base/half.h"
#include "lane/cpu/store.h"

namespace tw::lane::cpu::testing {

enum class Landing {
  Rows,            // f32, unit after unit
  HalfRow,         // f16, from a row of a table on
  Parts,           // bf16, a part of every unit of the rows from one on
  KeyBlocks,       // f16, [head][block of 16 positions][width][16]
  ValueRows,       // f32, [head][position][width]
  Quantized,       // one word, nothing plain
  RowsAndTwoWords  // f32 and two words
};
inline constexpr Landing kPlainLandings[] = {Landing::Rows, Landing::HalfRow, Landing::Parts, Landing::KeyBlocks,
                                             Landing::ValueRows};
inline constexpr Landing kQuantizedLandings[] = {Landing::Quantized, Landing::RowsAndTwoWords};

// Room for `units` runs of `width` values, two units a row in the forms that have rows.
class Sink {
 public:
  Sink(Landing landing, uint64_t units, uint64_t width) {
    const uint64_t rows = kFirstRow + (units + 1) / 2;
    store_.unit_pitch = width;
    if (landing == Landing::Quantized || landing == Landing::RowsAndTwoWords) {
      words_ = landing == Landing::Quantized ? 1 : 2;
      quantized_values_ = units * width;
      quantized_ = std::vector<Line>((quant_bytes(quantized_values_, words_) + 63) / 64);
      std::memset(static_cast<void*>(quantized_.data()), 0x11, quantized_.size() * sizeof(Line));
      store_.quant = quant_view(quantized_[0].bytes, quantized_values_, words_);
      store_.words = words_;
    }
    if (landing == Landing::Rows || landing == Landing::RowsAndTwoWords) take(Dtype::F32, units * width);
    if (landing != Landing::Quantized && elements_ == 0) in_table(landing, rows, width);
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  [[nodiscard]] const Store& store() const { return store_; }

  // Everything that lies here, as floats.
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> all;
    for (uint64_t i = 0; i < elements_; ++i) {
      const auto* wide = reinterpret_cast<const float*>(plain_.data());
      const auto* narrow = reinterpret_cast<const uint16_t*>(plain_.data());
      all.push_back(store_.type == Dtype::F32   ? wide[i]
                    : store_.type == Dtype::F16 ? f16_to_f32(narrow[i])
                                                : bf16_to_f32(narrow[i]));
    }
    const QuantView& q = store_.quant;
    const uint64_t n = quantized_values_, blocks = n / kQuantBlock;
    all.insert(all.end(), q.scale, q.scale + blocks);
    all.insert(all.end(), q.high, q.high + n);
    all.insert(all.end(), q.sum_high, q.sum_high + blocks);
    all.insert(all.end(), q.sum_half, q.sum_half + blocks);
    all.insert(all.end(), q.wide, q.wide + n);
    if (words_ == 2) {
      all.insert(all.end(), q.low, q.low + n);
      all.insert(all.end(), q.sum_low, q.sum_low + blocks);
    }
    return all;
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static constexpr int32_t kPosition = 15;  // the rows cross the end of a block of 16
  static constexpr uint64_t kFirstRow = kPosition - 1;

  void in_table(Landing landing, uint64_t rows, uint64_t width) {
    store_.position = &kPosition;
    store_.row_pitch = 2 * width;
    store_.head_width = width;
    store_.head_stride = padded_positions(rows) * width;
    if (landing == Landing::Parts) {
      store_.unit_pitch = width + 5;
      store_.unit_offset = 2;
      store_.row_pitch = 2 * (width + 5);
      take(Dtype::BF16, rows * store_.row_pitch);
    } else if (landing == Landing::HalfRow) {
      take(Dtype::F16, rows * store_.row_pitch);
    } else {
      store_.form = landing == Landing::KeyBlocks ? Store::Form::KeyBlocks : Store::Form::ValueRows;
      take(landing == Landing::KeyBlocks ? Dtype::F16 : Dtype::F32, 2 * store_.head_stride);
    }
  }
  void take(Dtype type, uint64_t elements) {
    store_.type = type;
    elements_ = elements;
    plain_.assign(elements * bytes_of(type), std::byte{0x11});
    store_.data = plain_.data();
  }

  Store store_;
  std::vector<std::byte> plain_;
  std::vector<Line> quantized_;
  uint64_t elements_ = 0, quantized_values_ = 0;
  int words_ = 0;
};

}  // namespace tw::lane::cpu::testing
