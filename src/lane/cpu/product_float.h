#pragma once

// Products by floating-point weights: CC(64) in f32, and the precise mode of every format: CC in f64.

#include "lane/cpu/block_weights.h"
#include "lane/cpu/product.h"
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

// One row by kStreams panels side by side (product_row.h says why), to total[p][16].
template <class S, Layout L>
[[gnu::noinline]] void float_streams(const std::byte* const* panels, uint64_t k, const float* x, float* total) {
  using V = typename S::V;
  V sum[kStreams];
#pragma GCC unroll 4
  for (V& v : sum) v = S::zero();
  for (uint64_t begin = 0; begin < k; begin += kFloatSegment) {
    const uint64_t end = k - begin < kFloatSegment ? k : begin + kFloatSegment;
    V a[kStreams];
#pragma GCC unroll 4
    for (V& v : a) v = S::zero();
    for (uint64_t t = begin; t < end; ++t) {
      const V value = S::set(x[t]);
#pragma GCC unroll 4
      for (int p = 0; p < kStreams; ++p) a[p] = S::fma(FloatWeights<S, L>::load(panels[p], t), value, a[p]);
    }
#pragma GCC unroll 4
    for (int p = 0; p < kStreams; ++p) sum[p] = S::add(sum[p], a[p]);
  }
#pragma GCC unroll 4
  for (int p = 0; p < kStreams; ++p) S::store(total + p * int{kPanel}, sum[p]);
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

// The same of blocks unpacked as 16-bit integers (BlockForm::Wide), whose halves' scales are apart.
template <class S>
void widen_blocks(const BlockWeights& w, Term term, uint32_t blocks, double* out) {
  const bool sub_scales = has_sub_scales(term), min = has_min(term), sub_mins = term == Term::HalvesMin;
  for (uint32_t b = 0; b < blocks; ++b)
    for (uint32_t half = 0; half < 2; ++half) {
      const float* scale = term == Term::TwoScales && half == 1 ? w.scale1[b] : w.scale[b];
      double d[kPanel], m[kPanel];
      for (uint32_t l = 0; l < kPanel; ++l) {
        d[l] = sub_scales ? double{scale[l]} * w.sub[b][half][l] : scale[l];
        m[l] = !min ? 0 : sub_mins ? double{w.neg_min[b][l]} * w.sub_min[b][half][l] : w.neg_min[b][l];
      }
      const int32_t* pairs = w.words + (b * 2 + half) * 8 * kPanel;
      for (uint32_t step = 0; step < 8; ++step, pairs += kPanel, out += 2 * kPanel)
        for (uint32_t l = 0; l < kPanel; ++l) {
          const double low = d[l] * static_cast<int16_t>(pairs[l]), high = d[l] * (pairs[l] >> 16);
          out[l] = min ? low + m[l] : low;
          out[kPanel + l] = min ? high + m[l] : high;
        }
    }
}

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
