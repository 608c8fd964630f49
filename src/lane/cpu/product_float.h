#pragma once

// Products by floating-point weights: CC(64) in f32, and the precise mode of every format: CC in f64.

#include "lane/cpu/product_source.h"
#include "lane/cpu/product_term.h"

namespace tw::lane::cpu {

// Values a strip: what is multiplied by all rows before the next weights are read. A whole number of segments.
inline constexpr uint32_t kFloatStrip = 4 * kFloatSegment;
inline constexpr uint32_t kRunStrip = kSegmentBlocks * kBlock;

template <class S, Layout L>
struct FloatWeights {
  static constexpr uint32_t kValueBytes = L == Layout::F32 ? 4 : 2;
  TW_SIMD typename S::V load(const std::byte* panel, uint64_t t) {
    const std::byte* at = panel + t * kPanel * kValueBytes;
    if constexpr (L == Layout::F32) return S::load(reinterpret_cast<const float*>(at));
    if constexpr (L == Layout::F16) return S::load_f16(reinterpret_cast<const uint16_t*>(at));
    if constexpr (L == Layout::BF16) return S::load_bf16(reinterpret_cast<const uint16_t*>(at));
  }
};

// kRows rows by a strip of 16 outputs; kChains whole segments advance side by side, to hide the latency of fma.
template <class S, Layout L, int kRows, int kChains>
struct FloatTile {
  using V = typename S::V;

  template <int kSegments>
  TW_SIMD void segments(const std::byte* w, uint32_t values, const float* x, uint64_t pitch, float* total) {
    V a[kSegments][kRows];
#pragma GCC unroll 4
    for (int c = 0; c < kSegments; ++c)
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) a[c][r] = S::zero();
    for (uint32_t t = 0; t < values; ++t)
#pragma GCC unroll 4
      for (int c = 0; c < kSegments; ++c) {
        const uint32_t at = static_cast<uint32_t>(c) * kFloatSegment + t;
        const V weight = FloatWeights<S, L>::load(w, at);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r)
          a[c][r] = S::fma(weight, S::set(x[static_cast<uint64_t>(r) * pitch + at]), a[c][r]);
      }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      V t = S::load(total + r * static_cast<int>(kPanel));
      for (int c = 0; c < kSegments; ++c) t = S::add(t, a[c][r]);
      S::store(total + r * static_cast<int>(kPanel), t);
    }
  }

  // total[r][16] += the strip's segments, in order.
  [[gnu::noinline]] static void run(const std::byte* w, uint32_t values, const float* x, uint64_t pitch, float* total) {
    uint32_t at = 0;
    for (; values - at >= kChains * kFloatSegment; at += kChains * kFloatSegment)
      segments<kChains>(w + at * kPanel * FloatWeights<S, L>::kValueBytes, kFloatSegment, x + at, pitch, total);
    for (; at < values; at += kFloatSegment) {
      const uint32_t left = values - at < kFloatSegment ? values - at : kFloatSegment;
      segments<1>(w + at * kPanel * FloatWeights<S, L>::kValueBytes, left, x + at, pitch, total);
    }
  }
};

template <class S, Layout L>
void float_strip(const std::byte* w, uint32_t values, const float* x, uint64_t pitch, uint64_t rows, float* total) {
  uint64_t r = 0;
  if constexpr (S::kProductRows == 4) {
    for (; rows - r >= 4; r += 4) FloatTile<S, L, 4, 1>::run(w, values, x + r * pitch, pitch, total + r * kPanel);
    for (; rows - r >= 2; r += 2) FloatTile<S, L, 2, 2>::run(w, values, x + r * pitch, pitch, total + r * kPanel);
  }
  for (; r < rows; ++r) FloatTile<S, L, 1, S::kProductRows>::run(w, values, x + r * pitch, pitch, total + r * kPanel);
}

// ---- precise ----

// Exact values of a strip, [values][16].
template <class S, Layout L>
void widen_floats(const std::byte* w, uint32_t values, double* out) {
  for (uint32_t t = 0; t < values; ++t, out += kPanel) {
    float lane[kPanel];
    S::store(lane, FloatWeights<S, L>::load(w, t));
    for (uint32_t l = 0; l < kPanel; ++l) out[l] = lane[l];
  }
}

template <class S, class Source>
struct Widen {
  using Block = typename Source::Block;

  template <int i>
  TW_SIMD void codes(const Block& block, uint8_t (*to)[kPanel][4]) {
    typename S::B u, v;
    block.template pair<i>(u, v);
    S::istore(reinterpret_cast<int32_t*>(to[i]), S::i_of(u));
    S::istore(reinterpret_cast<int32_t*>(to[i + 4]), S::i_of(v));
  }

  static void run(Source source, uint32_t blocks, double* out) {
    constexpr bool kSubScales = has_sub_scales(Source::kTerm);
    constexpr bool kMin = has_min(Source::kTerm);
    for (uint32_t b = 0; b < blocks; ++b) {
      const Block block = source.block(b);
      alignas(64) uint8_t bytes[8][kPanel][4];
      codes<0>(block, bytes);
      codes<1>(block, bytes);
      codes<2>(block, bytes);
      codes<3>(block, bytes);
      for (int half = 0; half < 2; ++half) {
        float scale[kPanel], neg_min[kPanel];
        int32_t sub[kPanel], sub_min[kPanel];
        S::store(scale, Source::kTerm == Term::TwoScales && half == 1 ? block.scale1() : block.scale());
        if constexpr (kMin) S::store(neg_min, block.neg_min());
        if constexpr (kSubScales) S::istore(sub, block.sub(half));
        if constexpr (Source::kTerm == Term::HalvesMin) S::istore(sub_min, block.sub_min(half));
        for (uint32_t l = 0; l < kPanel; ++l) {
          double d = scale[l];
          if constexpr (kSubScales) d *= sub[l];
          double m = 0;
          if constexpr (kMin) m = neg_min[l];
          if constexpr (Source::kTerm == Term::HalvesMin) m *= sub_min[l];
          for (uint32_t v = 0; v < 16; ++v) {
            const uint8_t code = bytes[static_cast<uint32_t>(half) * 4 + v / 4][l][v % 4];
            const int integer = Source::kMax == 0 ? static_cast<int8_t>(code) : code - Source::kOffset;
            double value = d * integer;
            if constexpr (kMin) value += m;
            out[((b * 2 + static_cast<uint32_t>(half)) * 16 + v) * kPanel + l] = value;
          }
        }
      }
    }
  }
};

// total[r][16] += the strip in f64, cut into segments of `segment` values.
template <class S>
void precise_strip(const double* w, uint32_t values, uint32_t segment, const float* x, uint64_t pitch, uint64_t rows,
                   double* total) {
  for (uint64_t r = 0; r < rows; ++r, x += pitch, total += kPanel)
    for (uint32_t begin = 0; begin < values; begin += segment) {
      const uint32_t end = values - begin < segment ? values : begin + segment;
      double a[kPanel] = {};
      for (uint32_t t = begin; t < end; ++t) {
        const double value = x[t];
        const double* weight = w + uint64_t{t} * kPanel;
        for (uint32_t l = 0; l < kPanel; ++l) a[l] = __builtin_fma(weight[l], value, a[l]);
      }
      for (uint32_t l = 0; l < kPanel; ++l) total[l] += a[l];
    }
}

}  // namespace tw::lane::cpu
