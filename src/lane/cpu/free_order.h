#pragma once

// Twins of the main kernels that sum in whatever order is fast on AVX2, over the same packed weights, caches and
// memories: what the order that docs/numerics.md fixes costs is measured against them. Right to rounding, and no more.
// Only for a translation unit compiled for AVX2.

#include <immintrin.h>

#include "base/math_contract.h"
#include "lane/cpu/kernel_cases.h"
#include "lane/cpu/simd_avx2.h"

namespace tw::lane::cpu::free_order {

using S = Avx2;

inline int32_t word(const int8_t* p) {
  int32_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}

// The integer sums of a block of 32 values of 16 outputs.
inline S::I block_q8(const std::byte* words, const int8_t* x, int32_t) {
  S::I sums = S::izero();
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) sums = S::dot4_signed(sums, S::bload(words + 64 * g), S::bset4(word(x + 4 * g)));
  return sums;
}
inline S::I block_q4(const std::byte* words, const int8_t* x, int32_t sum) {
  const S::B nibbles = S::bset1(15);
  S::B pairs = S::bset1(0);
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const S::B both = S::bload(words + 64 * g);
    const S::B low = S::bpairs(S::band(both, nibbles), S::bset4(word(x + 4 * g)));
    const S::B high = S::bpairs(S::band(S::bshr16<4>(both), nibbles), S::bset4(word(x + 16 + 4 * g)));
    pairs = S::badd16(pairs, S::badd16(low, high));
  }
  return S::idot_pairs(S::iset(-8 * sum), pairs);
}

// kRows rows by the panels of Q8_0 or Q4_0: one sum for all of the inputs, with one row two, of every other block each.
template <int kRows, S::I (*kBlockSums)(const std::byte*, const int8_t*, int32_t), uint32_t kRunBytes>
void product_rows(const cases::Product& p, uint64_t first_row, float* y) {
  const uint64_t blocks = p.k / kBlock;
  constexpr int kChains = kRows == 1 ? 2 : 1;
  for (uint64_t panel = 0; panel < p.n / kPanel; ++panel) {
    const std::byte* run = p.part.w.data + panel * p.part.w.panel_bytes();
    S::V sums[kRows][kChains];
#pragma GCC unroll 4
    for (auto& row : sums)
      for (S::V& sum : row) sum = S::zero();
    for (uint64_t b = 0; b < blocks; b += kChains) {
#pragma GCC unroll 2
      for (int c = 0; c < kChains; ++c, run += kRunBytes) {
        const S::V scale = S::load_f16(reinterpret_cast<const uint16_t*>(run));
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const uint64_t at = (first_row + static_cast<uint64_t>(r)) * blocks + b + static_cast<uint64_t>(c);
          const QuantView& x = p.args.quant;
          const S::I integers = kBlockSums(run + 2 * kPanel, x.high + at * kBlock, x.sum_high[at]);
          sums[r][c] = S::fma(S::mul(scale, S::set(x.scale[at])), S::to_float(integers), sums[r][c]);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kChains == 2) sums[r][0] = S::add(sums[r][0], sums[r][1]);
      S::store(y + (first_row + static_cast<uint64_t>(r)) * p.n + panel * kPanel, sums[r][0]);
    }
  }
}

template <S::I (*kBlockSums)(const std::byte*, const int8_t*, int32_t), uint32_t kRunBytes>
void product(const cases::Product& p, float* y) {
  uint64_t r = 0;
  for (; r + 4 <= p.rows; r += 4) product_rows<4, kBlockSums, kRunBytes>(p, r, y);
  for (; r < p.rows; ++r) product_rows<1, kBlockSums, kRunBytes>(p, r, y);
}
inline void product_q8(const cases::Product& p, float* y) { product<block_q8, run_shape(Layout::Q8_0).bytes()>(p, y); }
inline void product_q4(const cases::Product& p, float* y) { product<block_q4, run_shape(Layout::Q4_0).bytes()>(p, y); }

// One row by f32 weights: four sums an output.
inline void product_f32(const cases::Product& p, float* y) {
  for (uint64_t panel = 0; panel < p.n / kPanel; ++panel) {
    const auto* w = reinterpret_cast<const float*>(p.part.w.data + panel * p.part.w.panel_bytes());
    const float* x = p.x.get();
    S::V sums[4] = {S::zero(), S::zero(), S::zero(), S::zero()};
    for (uint64_t t = 0; t < p.k; t += 4, w += 4 * kPanel) {
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c)
        sums[c] = S::fma(S::load(w + c * 16), S::set(x[t + static_cast<uint64_t>(c)]), sums[c]);
    }
    S::store(y + panel * kPanel, S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3])));
  }
}

inline float square_sum(const float* x, uint64_t n) {
  S::V sums[4] = {S::zero(), S::zero(), S::zero(), S::zero()};
  for (uint64_t i = 0; i < n; i += 64) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const S::V v = S::load(x + i + 16 * static_cast<uint64_t>(c));
      sums[c] = S::fma(v, v, sums[c]);
    }
  }
  return S::tree(S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3])));
}

// cols a multiple of 64.
inline void norm(const cases::RowNorm& p, float* y) {
  for (uint64_t row = 0; row < p.args.rows; ++row) {
    const float* x = p.args.x + row * p.args.cols;
    const float r = math::rsq(square_sum(x, p.args.cols) / static_cast<float>(p.args.cols) + p.args.eps);
    for (uint64_t i = 0; i < p.args.cols; i += 16) {
      const S::V v = S::mul(S::mul(S::load(x + i), S::set(r)), S::load(p.args.weight + i));
      S::store(y + row * p.args.cols + i, v);
    }
  }
}

// One row, kHeads query heads a key/value head: a running softmax over blocks of 16 positions. length a multiple of 16.
template <int kHeads>
void attention(const cases::Attention& p, float* y) {
  const AttentionArgs& a = p.args;
  constexpr uint64_t kMostWidth = 256;
  for (uint64_t head = 0; head < a.kv_heads; ++head) {
    const float* q = a.q + head * kHeads * a.hd;
    const auto* keys = static_cast<const uint16_t*>(a.k.data) + head * a.k.head_stride;
    const auto* values = static_cast<const uint16_t*>(a.v.data) + head * a.v.head_stride;
    alignas(64) float out[kHeads][kMostWidth] = {};
    float most[kHeads], total[kHeads];
    for (int h = 0; h < kHeads; ++h) most[h] = -1e30f, total[h] = 0;
    for (uint64_t at = 0; at < a.length; at += 16, keys += 16 * a.hd, values += 16 * a.vd) {
      S::V scores[kHeads][2];
#pragma GCC unroll 4
      for (auto& score : scores) score[0] = score[1] = S::zero();
      for (uint64_t e = 0; e < a.hd; e += 2) {
#pragma GCC unroll 2
        for (int c = 0; c < 2; ++c) {
          const uint64_t own = e + static_cast<uint64_t>(c);
          const S::V k = S::load_f16(keys + own * 16);
#pragma GCC unroll 4
          for (int h = 0; h < kHeads; ++h)
            scores[h][c] = S::fma(k, S::set(q[static_cast<uint64_t>(h) * a.hd + own]), scores[h][c]);
        }
      }
      alignas(64) float weights[kHeads][16];
      float factor[kHeads];
      for (int h = 0; h < kHeads; ++h) {
        const S::V s = S::mul(S::add(scores[h][0], scores[h][1]), S::set(a.scale));
        const __m256 eight = _mm256_max_ps(s.a, s.b);
        __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        four = _mm_max_ps(four, _mm_movehl_ps(four, four));
        const float now = math::max(most[h], _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four))));
        factor[h] = now == most[h] ? 1.0f : math::exp(most[h] - now);
        most[h] = now;
        const S::V w = math::exp<S>(S::sub(s, S::set(now)));
        total[h] = total[h] * factor[h] + S::tree(w);
        S::store(weights[h], w);
      }
      for (uint64_t e = 0; e < a.vd; e += 16) {
        S::V sums[kHeads][2];
#pragma GCC unroll 4
        for (int h = 0; h < kHeads; ++h) {
          sums[h][0] = S::mul(S::load(out[h] + e), S::set(factor[h]));
          sums[h][1] = S::zero();
        }
#pragma GCC unroll 16
        for (int j = 0; j < 16; ++j) {
          const S::V v = S::load_f16(values + static_cast<uint64_t>(j) * a.vd + e);
#pragma GCC unroll 4
          for (int h = 0; h < kHeads; ++h) sums[h][j % 2] = S::fma(S::set(weights[h][j]), v, sums[h][j % 2]);
        }
#pragma GCC unroll 4
        for (int h = 0; h < kHeads; ++h) S::store(out[h] + e, S::add(sums[h][0], sums[h][1]));
      }
    }
    for (int h = 0; h < kHeads; ++h) {
      float* to = y + (head * kHeads + static_cast<uint64_t>(h)) * a.vd;
      const S::V by = S::set(1.0f / total[h]);
      for (uint64_t e = 0; e < a.vd; e += 16) S::store(to + e, S::mul(S::load(out[h] + e), by));
    }
  }
}

// The sums of four vectors, side by side.
inline __m128 sums_of_four(const S::V (&v)[4]) {
  __m256 eight[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) eight[i] = _mm256_add_ps(v[i].a, v[i].b);
  const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(eight[0], eight[1]), _mm256_hadd_ps(eight[2], eight[3]));
  return _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
}

// Four memory rows at a time, one sum each. d a multiple of 16, one key head a value head.
inline void delta(const DeltaArgs& a) {
  const float scale = math::rsq(static_cast<float>(a.d));
  for (uint64_t head = 0; head < a.value_heads; ++head) {
    float* state = static_cast<float*>(a.state) + head * a.d * a.d;
    for (uint64_t r = 0; r < a.rows; ++r) {
      const uint64_t unit = r * a.value_heads + head;
      const float* q = a.q + unit * a.d;
      const float* k = a.k + unit * a.d;
      const float* v = a.v + unit * a.d;
      const S::V alpha = S::set(a.alpha[unit]);
      for (uint64_t i = 0; i < a.d; i += 4) {
        float* rows = state + i * a.d;
        S::V sums[4] = {S::zero(), S::zero(), S::zero(), S::zero()};
        for (uint64_t j = 0; j < a.d; j += 16) {
#pragma GCC unroll 4
          for (int n = 0; n < 4; ++n)
            sums[n] = S::fma(S::load(rows + static_cast<uint64_t>(n) * a.d + j), S::load(k + j), sums[n]);
        }
        const __m128 u = sums_of_four(sums);
        alignas(16) float change[4];
        const __m128 want = _mm_fnmadd_ps(_mm_set1_ps(a.alpha[unit]), u, _mm_loadu_ps(v + i));
        _mm_store_ps(change, _mm_mul_ps(_mm_set1_ps(a.beta[unit]), want));
#pragma GCC unroll 4
        for (S::V& sum : sums) sum = S::zero();
        for (uint64_t j = 0; j < a.d; j += 16) {
#pragma GCC unroll 4
          for (int n = 0; n < 4; ++n) {
            float* at = rows + static_cast<uint64_t>(n) * a.d + j;
            const S::V s = S::fma(S::set(change[n]), S::load(k + j), S::mul(alpha, S::load(at)));
            S::store(at, s);
            sums[n] = S::fma(s, S::load(q + j), sums[n]);
          }
        }
        _mm_storeu_ps(a.o + unit * a.d + i, _mm_mul_ps(sums_of_four(sums), _mm_set1_ps(scale)));
      }
    }
  }
}

}  // namespace tw::lane::cpu::free_order
