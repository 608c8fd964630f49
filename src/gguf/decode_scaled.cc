// Runs of the formats whose integers are numbers or a level table: a scale, sometimes a minimum.

#include "base/half.h"
#include "gguf/block_fields.h"
#include "gguf/codebooks.h"
#include "gguf/decode.h"

namespace tw::gguf {
namespace {

void set_scale(IntRun& out, float d, int32_t sc = 1) {
  out.d[0] = out.d[1] = d;
  out.sc[0] = out.sc[1] = sc;
  out.dmin = 0.0f;
  out.m[0] = out.m[1] = 0;
}

void set_half_scales(IntRun& out, float d, int32_t first, int32_t second) {
  set_scale(out, d, first);
  out.sc[1] = second;
}

void set_scale_min(IntRun& out, float d, int32_t sc, float dmin, int32_t m) {
  set_scale(out, d, sc);
  out.dmin = dmin;
  out.m[0] = out.m[1] = m;
}

// Sixteen bytes of nibbles: low ones are values 0..15, high ones 16..31.
template <class Map>
void unpack_nibbles(const uint8_t* qs, IntRun& out, Map map) {
  for (uint32_t j = 0; j < 16; ++j) {
    out.q[j] = static_cast<int8_t>(map(qs[j] & 15, j));
    out.q[j + 16] = static_cast<int8_t>(map(qs[j] >> 4, j + 16));
  }
}

// The two-bit fields of run `run` of a super-block.
const uint8_t* crumbs(const uint8_t* qs, uint32_t run) { return qs + 32 * (run / 4); }
uint32_t crumb_shift(uint32_t run) { return 2 * (run % 4); }

}  // namespace

void decode_run(const BlockQ4_0& block, uint32_t, IntRun& out) {
  set_scale(out, f16_to_f32(block.d));
  unpack_nibbles(block.qs, out, [](int nibble, uint32_t) { return nibble - 8; });
}

void decode_run(const BlockQ4_1& block, uint32_t, IntRun& out) {
  set_scale_min(out, f16_to_f32(block.d), 1, f16_to_f32(block.m), -1);
  unpack_nibbles(block.qs, out, [](int nibble, uint32_t) { return nibble; });
}

void decode_run(const BlockQ5_0& block, uint32_t, IntRun& out) {
  set_scale(out, f16_to_f32(block.d));
  const uint32_t high = load_u32(block.qh);
  unpack_nibbles(block.qs, out, [=](int nibble, uint32_t i) { return (nibble | ((high >> i & 1) << 4)) - 16; });
}

void decode_run(const BlockQ5_1& block, uint32_t, IntRun& out) {
  set_scale_min(out, f16_to_f32(block.d), 1, f16_to_f32(block.m), -1);
  const uint32_t high = load_u32(block.qh);
  unpack_nibbles(block.qs, out, [=](int nibble, uint32_t i) { return nibble | ((high >> i & 1) << 4); });
}

void decode_run(const BlockQ8_0& block, uint32_t, IntRun& out) {
  set_scale(out, f16_to_f32(block.d));
  std::memcpy(out.q, block.qs, 32);
}

void decode_run(const BlockQ8_K& block, uint32_t run, IntRun& out) {
  set_scale(out, block.d);
  std::memcpy(out.q, block.qs + 32 * run, 32);
}

void decode_run(const BlockIQ4_NL& block, uint32_t, IntRun& out) {
  set_scale(out, f16_to_f32(block.d));
  unpack_nibbles(block.qs, out, [](int nibble, uint32_t) { return kIq4Levels[nibble]; });
}

void decode_run(const BlockIQ4_XS& block, uint32_t run, IntRun& out) {
  const int32_t low = (block.scales_l[run / 2] >> (4 * (run % 2))) & 15;
  const int32_t high = (block.scales_h >> (2 * run)) & 3;
  set_scale(out, f16_to_f32(block.d), (low | high << 4) - 32);
  unpack_nibbles(block.qs + 16 * run, out, [](int nibble, uint32_t) { return kIq4Levels[nibble]; });
}

void decode_run(const BlockMXFP4& block, uint32_t, IntRun& out) {
  set_scale(out, e8m0_half(block.e));
  unpack_nibbles(block.qs, out, [](int nibble, uint32_t) { return kFp4Levels[nibble]; });
}

void decode_run(const BlockNVFP4& block, uint32_t run, IntRun& out) {
  set_scale(out, 0.0f);
  for (uint32_t h = 0; h < 2; ++h) {
    out.d[h] = ue4m3_half(block.d[2 * run + h]);
    const uint8_t* qs = block.qs + 8 * (2 * run + h);
    for (uint32_t j = 0; j < 8; ++j) {
      out.q[16 * h + j] = kFp4Levels[qs[j] & 15];
      out.q[16 * h + j + 8] = kFp4Levels[qs[j] >> 4];
    }
  }
}

void decode_run(const BlockQ2_K& block, uint32_t run, IntRun& out) {
  const uint8_t* scales = block.scales + 2 * run;
  set_half_scales(out, f16_to_f32(block.d), scales[0] & 15, scales[1] & 15);
  out.dmin = f16_to_f32(block.dmin);
  out.m[0] = scales[0] >> 4;
  out.m[1] = scales[1] >> 4;
  for (uint32_t j = 0; j < 32; ++j) out.q[j] = static_cast<int8_t>((crumbs(block.qs, run)[j] >> crumb_shift(run)) & 3);
}

void decode_run(const BlockQ3_K& block, uint32_t run, IntRun& out) {
  const auto scale = [&](uint32_t s) { return static_cast<int32_t>(scale_q3_k(block.scales, s)) - 32; };
  set_half_scales(out, f16_to_f32(block.d), scale(2 * run), scale(2 * run + 1));
  for (uint32_t j = 0; j < 32; ++j) {
    const int low = (crumbs(block.qs, run)[j] >> crumb_shift(run)) & 3;
    const int high = (block.hmask[j] >> run) & 1;
    out.q[j] = static_cast<int8_t>(low + 4 * high - 4);
  }
}

void decode_run(const BlockQ4_K& block, uint32_t run, IntRun& out) {
  const ScaleMin sm = scale_min_k(block.scales, run);
  set_scale_min(out, f16_to_f32(block.d), sm.scale, f16_to_f32(block.dmin), sm.min);
  const uint8_t* qs = block.qs + 32 * (run / 2);
  for (uint32_t j = 0; j < 32; ++j) out.q[j] = static_cast<int8_t>((qs[j] >> (4 * (run % 2))) & 15);
}

void decode_run(const BlockQ5_K& block, uint32_t run, IntRun& out) {
  const ScaleMin sm = scale_min_k(block.scales, run);
  set_scale_min(out, f16_to_f32(block.d), sm.scale, f16_to_f32(block.dmin), sm.min);
  const uint8_t* qs = block.qs + 32 * (run / 2);
  for (uint32_t j = 0; j < 32; ++j) {
    const int low = (qs[j] >> (4 * (run % 2))) & 15;
    const int high = (block.qh[j] >> run) & 1;
    out.q[j] = static_cast<int8_t>(low | high << 4);
  }
}

void decode_run(const BlockQ6_K& block, uint32_t run, IntRun& out) {
  set_half_scales(out, f16_to_f32(block.d), block.scales[2 * run], block.scales[2 * run + 1]);
  const uint8_t* ql = block.ql + 64 * (run / 4) + 32 * (run % 2);
  const uint32_t shift = run % 4 < 2 ? 0 : 4;
  for (uint32_t j = 0; j < 32; ++j) {
    const int low = (ql[j] >> shift) & 15;
    const int high = (crumbs(block.qh, run)[j] >> crumb_shift(run)) & 3;
    out.q[j] = static_cast<int8_t>((low | high << 4) - 32);
  }
}

void decode_run(const BlockTQ2_0& block, uint32_t run, IntRun& out) {
  set_scale(out, f16_to_f32(block.d));
  for (uint32_t j = 0; j < 32; ++j)
    out.q[j] = static_cast<int8_t>(((crumbs(block.qs, run)[j] >> crumb_shift(run)) & 3) - 1);
}

void decode_run(const BlockTQ1_0& block, uint32_t run, IntRun& out) {
  static constexpr uint32_t kPowers[] = {1, 3, 9, 27, 81};
  const auto trit = [](uint8_t byte, uint32_t k) {
    return static_cast<int8_t>((((byte * kPowers[k]) & 255u) * 3u >> 8) - 1u);
  };
  set_scale(out, f16_to_f32(block.d));
  for (uint32_t j = 0; j < 32; ++j) {
    const uint32_t i = 32 * run + j;
    if (i < 160)
      out.q[j] = trit(block.qs[j], run);
    else if (i < 240)
      out.q[j] = trit(block.qs[32 + i % 16], (i - 160) / 16);
    else
      out.q[j] = trit(block.qh[i % 4], (i - 240) / 4);
  }
}

}  // namespace tw::gguf
