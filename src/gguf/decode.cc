#include "gguf/decode.h"

#include <array>
#include <cstring>

#include "base/check.h"

namespace tw::gguf {
namespace {

using DecodeRuns = void (*)(const std::byte* blocks, uint64_t first, std::span<IntRun> out);

template <class Block>
void decode_runs_of(const std::byte* blocks, uint64_t first, std::span<IntRun> out) {
  constexpr uint64_t kRuns = Block::kValues / 32;
  Block block;
  for (uint64_t r = 0; r < out.size(); ++r) {
    const uint64_t run = (first + r) % kRuns;
    if (r == 0 || run == 0) std::memcpy(&block, blocks + (first + r) / kRuns * sizeof(Block), sizeof(Block));
    decode_run(block, static_cast<uint32_t>(run), out[r]);
  }
}

template <class... Blocks>
constexpr std::array<DecodeRuns, kFormatCount> make_decoders(std::tuple<Blocks...>*) {
  std::array<DecodeRuns, kFormatCount> table{};
  ((table[static_cast<size_t>(Blocks::kFormat)] = decode_runs_of<Blocks>), ...);
  return table;
}

// By format; null for the formats that are no blocks.
constexpr std::array<DecodeRuns, kFormatCount> kDecoders = make_decoders(static_cast<BlockTypes*>(nullptr));

}  // namespace

bool is_quantized(Format format) { return kDecoders.at(static_cast<size_t>(format)) != nullptr; }

RunForm run_form(Format format) {
  TW_CHECK(is_quantized(format), "{} has no runs", name(format));
  switch (format) {
    case Format::Q4_1:
    case Format::Q5_1:
    case Format::Q4_K:
    case Format::Q5_K: return RunForm::ScaleMin;
    case Format::Q3_K:
    case Format::Q6_K:
    case Format::IQ2_XS:
    case Format::IQ2_S:
    case Format::IQ1_M: return RunForm::HalfScales;
    case Format::Q2_K: return RunForm::HalfScalesMin;
    case Format::NVFP4: return RunForm::HalfBases;
    default: return RunForm::Scale;
  }
}

void decode_runs(Format format, const std::byte* blocks, uint64_t first, std::span<IntRun> out) {
  TW_CHECK(is_quantized(format), "{} has no runs", name(format));
  kDecoders[static_cast<size_t>(format)](blocks, first, out);
}

}  // namespace tw::gguf
