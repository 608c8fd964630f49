#pragma once

// What the tests of products that are fused share: schedules whose forms differ in launches alone, and shapes to try.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/half.h"
#include "gguf/decode.h"
#include "lane/cpu/testing/apart.h"
#include "lane/cpu/testing/schedule_runner.h"

namespace tw::lane::cpu {

// One of every family of weight formats.
inline constexpr std::array kTestFormats{gguf::Format::F32,   gguf::Format::F16,    gguf::Format::BF16,
                                         gguf::Format::Q8_0,  gguf::Format::Q4_0,   gguf::Format::Q4_K,
                                         gguf::Format::Q6_K,  gguf::Format::IQ4_XS, gguf::Format::MXFP4,
                                         gguf::Format::TQ2_0, gguf::Format::NVFP4};
inline constexpr std::array kQuantizing{Numerics::Int8, Numerics::Int8x2};
inline constexpr std::array kTestNumerics{Numerics::Precise, Numerics::Int8, Numerics::Int8x2};

// Numbers for shapes, of a seed.
class Shapes {
 public:
  explicit Shapes(uint64_t seed) : random_(seed) {}
  template <size_t n>
  uint64_t one_of(const uint64_t (&values)[n]) {
    return values[random_.next() % n];
  }
  uint64_t rows() { return one_of({1, 1, 2, 15, 16, 17, 33}); }
  uint64_t outputs() { return one_of({1, 7, 15, 16, 17, 31, 33, 48, 100, 161}); }
  uint64_t blocks_of_outputs() { return one_of({32, 64, 96, 160}); }
  // An input width that the format takes.
  uint64_t inputs(gguf::Format format) {
    const uint64_t block = gguf::info(format).block;
    if (block == 1) return one_of({1, 3, 63, 65, 100, 256});
    if (block == 256) return one_of({256, 768});
    return one_of({64, 128, 576});
  }
  bool coin() { return random_.next() % 2 == 0; }
  uint64_t seed() { return random_.next() % 1000; }

 private:
  gguf::TestRandom random_;
};

inline bool reads_quantized(Numerics numerics, gguf::Format format) {
  return quantizes(numerics) && gguf::is_quantized(format);
}

// The buffers whose values must not differ.
struct Watched {
  std::vector<BufferId> plain, quantized;
};

// build(schedule, fused) makes the same buffers in the same order for both, and answers what to compare.
template <class Build>
void expect_as_apart(Numerics numerics, const Build& build) {
  testing::expect_fused_equals_apart([&](bool fused) {
    testing::Form form{TestSchedule(numerics)};
    const Watched watched = build(form.schedule, fused);
    form.plain = watched.plain, form.quantized = watched.quantized;
    return form;
  });
}

inline Dst own(BufferId id) {
  Dst dst;
  dst.buf = id;
  return dst;
}

inline float rounded(Dtype type, float value) {
  if (type == Dtype::F16) return f16_to_f32(f32_to_f16(value));
  if (type == Dtype::BF16) return bf16_to_f32(f32_to_bf16(value));
  return value;
}

// A table of `cols` wide rows with units of `width` values placed from row `first_row` (0-based) on as a Dst says.
inline std::vector<float> placed(std::vector<float> table, Dtype type, uint64_t first_row, uint64_t cols,
                                 std::optional<Part> unit, const std::vector<float>& values, uint64_t width) {
  const Part part = unit.value_or(Part{width, 0});
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t flat = i / width * part.pitch + part.offset + i % width;
    table.at(first_row * cols + flat) = rounded(type, values[i]);
  }
  return table;
}

}  // namespace tw::lane::cpu
