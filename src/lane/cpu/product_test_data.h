#pragma once

// Weights and activations for the tests of products.

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gguf/block_test_data.h"
#include "lane/cpu/moe.h"
#include "lane/cpu/pack.h"
#include "lane/cpu/product.h"

namespace tw::lane::cpu {

// AVX-512 on emulated intrinsics (product_emulated_test.cc).
void product_emulated_avx512(const ProductArgs& args, Range range, std::byte* scratch);
void glu_emulated_avx512(const GluArgs& args, Range range, std::byte* scratch);
extern const MoeKernels kMoeEmulatedAvx512;

// TestMemory storage whose bytes past the end are watched by the sanitizers.
class TestMemory {
 public:
  explicit TestMemory(size_t bytes)
      : data_(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64))) {}
  [[nodiscard]] std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

// `count` rows of `k` values. Blocks of random bytes whose values are finite; where the format has a quantizer, every
// second row is quantized from bell-shaped values instead.
class TestRows {
 public:
  TestRows(gguf::Format format, uint64_t count, uint64_t k, uint64_t seed) {
    const gguf::FormatInfo& info = gguf::info(format);
    const uint64_t blocks = k / info.block;
    gguf::TestRandom random(seed);
    bytes_.resize(count * blocks * info.block_bytes);
    for (uint64_t b = 0; b < count * blocks; ++b) {
      std::byte* block = bytes_.data() + b * info.block_bytes;
      std::vector<float> values(info.block);
      if (info.quantizes && b / blocks % 2 == 1) {
        for (float& value : values) value = static_cast<float>(random.bell());
        gguf::quantize(format, values.data(), block, values.size());
      } else {
        do {
          for (uint32_t i = 0; i < info.block_bytes; ++i) block[i] = static_cast<std::byte>(random.next() >> 56);
          gguf::dequantize(format, block, values.data(), values.size());
        } while (!modest(values));
      }
    }
    rows_.format = format;
    rows_.data = bytes_.data();
    rows_.row_bytes = blocks * info.block_bytes;
    rows_.row_values = k;
    rows_.count = count;
  }
  TestRows(const TestRows&) = delete;
  TestRows& operator=(const TestRows&) = delete;
  [[nodiscard]] graph::Rows& rows() { return rows_; }

 private:
  static bool modest(const std::vector<float>& values) {
    for (const float value : values)
      if (!(std::abs(value) < 1e4F)) return false;
    return true;
  }
  std::vector<std::byte> bytes_;
  graph::Rows rows_;
};

// Rows of plain values and their quantized form, made by hand so that every word and every extreme occurs.
class TestInput {
 public:
  TestInput(uint64_t rows, uint64_t k, int words, uint64_t seed)
      : plain_(rows * k), storage_(quant_bytes(rows * quant_padded(k), words == 0 ? 1 : words)) {
    gguf::TestRandom random(seed);
    for (float& x : plain_) x = static_cast<float>(random.bell());
    if (words == 0 || k % kBlock != 0) return;
    quant_ = quant_view(storage_.data(), rows * k, words);
    for (uint64_t b = 0; b < rows * k / kBlock; ++b) {
      quant_.scale[b] = static_cast<float>(random.uniform() * 0.01);
      const uint64_t kind = random.next() % 8;  // 0: all at one extreme, 1: extremes of either sign
      const int sign = random.next() % 2 == 0 ? 1 : -1;
      int32_t high_sum = 0, low_sum = 0, half_sum = 0;
      for (uint64_t i = b * kBlock; i < (b + 1) * kBlock; ++i) {
        const int limit = words == 1 ? 127 : 32512;
        int value = static_cast<int>(random.next() % (2 * static_cast<uint64_t>(limit) + 1)) - limit;
        if (kind == 0) value = sign * limit;
        if (kind == 1) value = random.next() % 2 == 0 ? limit : -limit;
        const int high = words == 1 ? value : (value + 128) >> 8;
        quant_.high[i] = static_cast<int8_t>(high);
        quant_.wide[i] = static_cast<int16_t>(value);
        high_sum += high;
        if (i % kBlock < kBlock / 2) half_sum += value;
        if (words == 1) continue;
        quant_.low[i] = static_cast<int8_t>(value - 256 * high);
        low_sum += value - 256 * high;
      }
      quant_.sum_high[b] = high_sum;
      quant_.sum_half[b] = half_sum;
      if (words == 2) quant_.sum_low[b] = low_sum;
    }
  }
  [[nodiscard]] const float* plain() const { return plain_.data(); }
  [[nodiscard]] const QuantView& quant() const { return quant_; }

 private:
  std::vector<float> plain_;
  TestMemory storage_;
  QuantView quant_;
};

}  // namespace tw::lane::cpu
