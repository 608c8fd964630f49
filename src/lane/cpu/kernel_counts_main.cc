// usage: tilewright_kernel_counts [CASE RUNS]
//
// Runs a main kernel at a fixed shape RUNS times and does nothing else after it is set up, so that an instruction
// counter sees the kernel in the difference of two counts (scripts/check_instructions.py). Without arguments it lists
// the cases.

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <string_view>

#include "lane/cpu/kernel_cases.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

template <class Case, class... Shape>
void repeat(uint64_t runs, Shape... shape) {
  Case it(shape...);
  for (uint64_t i = 0; i < runs; ++i) it.run();
}

template <Format kFormat, uint64_t kRows>
void product(uint64_t runs) {
  repeat<cases::Product>(runs, kFormat, uint64_t{64}, uint64_t{512}, kRows);
}

struct Counted {
  std::string_view name;
  void (*run)(uint64_t runs);
};
constexpr Counted kCases[] = {
    {"q8_0_row", product<Format::Q8_0, 1>},
    {"q4_0_row", product<Format::Q4_0, 1>},
    {"q4_k_row", product<Format::Q4_K, 1>},
    {"q6_k_row", product<Format::Q6_K, 1>},
    {"iq4_xs_row", product<Format::IQ4_XS, 1>},
    {"mxfp4_row", product<Format::MXFP4, 1>},
    {"f16_row", product<Format::F16, 1>},
    {"bf16_row", product<Format::BF16, 1>},
    {"q8_0_rows", product<Format::Q8_0, 32>},
    {"q4_0_rows", product<Format::Q4_0, 32>},
    {"q4_k_rows", product<Format::Q4_K, 32>},
    {"q6_k_rows", product<Format::Q6_K, 32>},
    {"iq4_xs_rows", product<Format::IQ4_XS, 32>},
    {"mxfp4_rows", product<Format::MXFP4, 32>},
    {"f16_rows", product<Format::F16, 32>},
    {"norm", [](uint64_t runs) { repeat<cases::RowNorm>(runs, 4, 1024); }},
    {"attention_row", [](uint64_t runs) { repeat<cases::Attention>(runs, 1, 4, 2, 128, 512); }},
    {"attention_rows", [](uint64_t runs) { repeat<cases::Attention>(runs, 32, 4, 2, 128, 256); }},
    {"delta_row", [](uint64_t runs) { repeat<cases::DeltaRule>(runs, 1, 4, 128); }},
    {"delta_rows", [](uint64_t runs) { repeat<cases::DeltaRule>(runs, 16, 4, 128); }},
};

int run(int count, char** arguments) {
  if (count == 1) {
    fmt::print("{}\n", name(best_isa()));
    for (const Counted& each : kCases) fmt::print("{}\n", each.name);
    return 0;
  }
  uint64_t runs = 0;
  if (count == 3) {
    const char* end = arguments[2] + std::strlen(arguments[2]);
    if (std::from_chars(arguments[2], end, runs).ptr != end) runs = 0;
  }
  for (const Counted& each : kCases) {
    if (count != 3 || runs == 0 || each.name != arguments[1]) continue;
    each.run(runs);
    return 0;
  }
  fmt::print(stderr, "usage: tilewright_kernel_counts [CASE RUNS]; without arguments it lists the cases\n");
  return 2;
}

}  // namespace
}  // namespace tw::lane::cpu

int main(int count, char** arguments) { return tw::lane::cpu::run(count, arguments); }
