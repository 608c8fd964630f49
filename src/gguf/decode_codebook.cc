// Runs of the formats whose integers are entries of a grid, with signs or an offset.

#include "base/half.h"
#include "gguf/block_fields.h"
#include "gguf/codebooks.h"
#include "gguf/decode.h"

namespace tw::gguf {
namespace {

// d is a binary16 number times a power of two, exact in binary32.
void set_scales(IntRun& out, float d, uint32_t first, uint32_t second) {
  out.d[0] = out.d[1] = d;
  out.sc[0] = static_cast<int32_t>(2 * first + 1);
  out.sc[1] = static_cast<int32_t>(2 * second + 1);
  out.dmin = 0.0f;
  out.m[0] = out.m[1] = 0;
}

constexpr uint64_t kEachByte = 0x0101010101010101;

// Eight positive bytes, the first lowest, with byte j negated when bit j of `signs` is set.
uint64_t negate_bytes(uint64_t bytes, uint8_t signs) {
  const uint64_t own_bit = (signs * kEachByte) & 0x8040201008040201;
  const uint64_t ones = ((own_bit + 0x7f * kEachByte) >> 7) & kEachByte;
  // -x = ~x + 1, which carries out of no byte as x is not 0.
  return (bytes ^ (ones * 0xff)) + ones;
}

void put_signed(int8_t* q, const std::array<int8_t, 8>& entry, uint8_t signs) {
  const uint64_t bytes = negate_bytes(std::bit_cast<uint64_t>(entry), signs);
  std::memcpy(q, &bytes, sizeof bytes);
}

void put_signed(int8_t* q, const std::array<int8_t, 4>& first, const std::array<int8_t, 4>& second, uint8_t signs) {
  const uint64_t both = std::bit_cast<uint32_t>(first) | static_cast<uint64_t>(std::bit_cast<uint32_t>(second)) << 32;
  const uint64_t bytes = negate_bytes(both, signs);
  std::memcpy(q, &bytes, sizeof bytes);
}

void put_offset(int8_t* q, const std::array<int8_t, 8>& entry, int delta) {
  for (size_t j = 0; j < 8; ++j) q[j] = static_cast<int8_t>(8 * entry[j] + delta);
}

}  // namespace

void decode_run(const BlockIQ2_XXS& block, uint32_t run, IntRun& out) {
  const uint8_t* indices = block.qs + 8 * run;
  const uint32_t signs = load_u32(indices + 4);
  set_scales(out, f16_to_f32(block.d) * 0.125f, signs >> 28, signs >> 28);
  for (uint32_t g = 0; g < 4; ++g) put_signed(out.q + 8 * g, kIq2XxsGrid[indices[g]], expand_signs(signs >> (7 * g)));
}

void decode_run(const BlockIQ2_XS& block, uint32_t run, IntRun& out) {
  set_scales(out, f16_to_f32(block.d) * 0.125f, block.scales[run] & 15u, block.scales[run] >> 4);
  for (uint32_t g = 0; g < 4; ++g) {
    const uint32_t code = block.qs[4 * run + g];
    put_signed(out.q + 8 * g, kIq2XsGrid[code & 511], expand_signs(code >> 9));
  }
}

void decode_run(const BlockIQ2_S& block, uint32_t run, IntRun& out) {
  set_scales(out, f16_to_f32(block.d) * 0.125f, block.scales[run] & 15u, block.scales[run] >> 4);
  for (uint32_t g = 0; g < 4; ++g) {
    const uint32_t index = block.qs[4 * run + g] | ((block.qh[run] >> (2 * g)) & 3u) << 8;
    put_signed(out.q + 8 * g, kIq2SGrid[index], block.signs[4 * run + g]);
  }
}

void decode_run(const BlockIQ3_XXS& block, uint32_t run, IntRun& out) {
  const uint8_t* indices = block.qs + 8 * run;
  const uint32_t signs = load_u32(block.scales_and_signs + 4 * run);
  set_scales(out, f16_to_f32(block.d) * 0.25f, signs >> 28, signs >> 28);
  for (uint32_t g = 0; g < 4; ++g) {
    const uint8_t eight = expand_signs(signs >> (7 * g));
    put_signed(out.q + 8 * g, kIq3XxsGrid[indices[2 * g]], kIq3XxsGrid[indices[2 * g + 1]], eight);
  }
}

void decode_run(const BlockIQ3_S& block, uint32_t run, IntRun& out) {
  const uint32_t scale = (block.scales[run / 2] >> (4 * (run % 2))) & 15u;
  set_scales(out, f16_to_f32(block.d), scale, scale);
  const auto entry = [&](uint32_t k) -> const std::array<int8_t, 4>& {
    return kIq3SGrid[block.qs[8 * run + k] | ((block.qh[run] >> k) & 1u) << 8];
  };
  for (uint32_t g = 0; g < 4; ++g) put_signed(out.q + 8 * g, entry(2 * g), entry(2 * g + 1), block.signs[4 * run + g]);
}

void decode_run(const BlockIQ1_S& block, uint32_t run, IntRun& out) {
  const uint32_t high = block.qh[run];
  set_scales(out, f16_to_f32(block.d) * 0.125f, (high >> 12) & 7u, (high >> 12) & 7u);
  for (uint32_t g = 0; g < 4; ++g) {
    const uint32_t index = block.qs[4 * run + g] | ((high >> (3 * g)) & 7u) << 8;
    put_offset(out.q + 8 * g, kIq1Grid[index], high & 0x8000u ? -1 : 1);
  }
}

void decode_run(const BlockIQ1_M& block, uint32_t run, IntRun& out) {
  uint32_t d = 0;
  for (uint32_t w = 0; w < 4; ++w) d |= static_cast<uint32_t>(block.scales[w] >> 12) << (4 * w);
  const uint32_t pair = static_cast<uint32_t>(block.scales[run / 2] >> (6 * (run % 2)));
  set_scales(out, f16_to_f32(static_cast<uint16_t>(d)) * 0.125f, pair & 7u, (pair >> 3) & 7u);
  for (uint32_t g = 0; g < 4; ++g) {
    const uint32_t nibble = (block.qh[2 * run + g / 2] >> (4 * (g % 2))) & 15u;
    const uint32_t index = block.qs[4 * run + g] | (nibble & 7u) << 8;
    put_offset(out.q + 8 * g, kIq1Grid[index], nibble & 8u ? -1 : 1);
  }
}

}  // namespace tw::gguf
