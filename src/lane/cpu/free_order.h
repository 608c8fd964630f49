#pragma once

// Twins of the main kernels that sum in whatever order is fast on AVX2: what the order that docs/numerics.md fixes
// costs is measured against them. A twin reads the same packed weights, caches and memories as its kernel, in the same
// turns and with the same prefetches, and has the kernel's own pieces where they fix no order. Right to rounding, and
// no more. Only for a translation unit compiled for AVX2.

#include <immintrin.h>

#include "base/math_contract.h"
#include "lane/cpu/attention_tiles.h"
#include "lane/cpu/delta_rows.h"
#include "lane/cpu/kernel_cases.h"
#include "lane/cpu/product_row.h"
#include "lane/cpu/simd_avx2.h"
#include "lane/cpu/streams.h"

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

// Rows by the panels of Q8_0 or Q4_0, four at a time: one sum for all of the inputs.
template <S::I (*kBlockSums)(const std::byte*, const int8_t*, int32_t), uint32_t kRunBytes>
void product_rows(const cases::Product& p, uint64_t first_row, float* y) {
  constexpr uint64_t kRows = 4;
  const uint64_t blocks = p.k / kBlock;
  for (uint64_t panel = 0; panel < p.n / kPanel; ++panel) {
    const std::byte* run = p.part.w.data + panel * p.part.w.panel_bytes();
    S::V sums[kRows];
#pragma GCC unroll 4
    for (S::V& sum : sums) sum = S::zero();
    for (uint64_t b = 0; b < blocks; ++b, run += kRunBytes) {
      const S::V scale = S::load_f16(reinterpret_cast<const uint16_t*>(run));
#pragma GCC unroll 4
      for (uint64_t r = 0; r < kRows; ++r) {
        const uint64_t at = (first_row + r) * blocks + b;
        const QuantView& x = p.args.quant;
        const S::I integers = kBlockSums(run + 2 * kPanel, x.high + at * kBlock, x.sum_high[at]);
        sums[r] = S::fma(S::mul(scale, S::set(x.scale[at])), S::to_float(integers), sums[r]);
      }
    }
    for (uint64_t r = 0; r < kRows; ++r) S::store(y + (first_row + r) * p.n + panel * kPanel, sums[r]);
  }
}

// rows a multiple of 4.
template <S::I (*kBlockSums)(const std::byte*, const int8_t*, int32_t), Layout L>
void product(const cases::Product& p, float* y) {
  for (uint64_t r = 0; r < p.rows; r += 4) product_rows<kBlockSums, run_shape(L).bytes()>(p, r, y);
}
inline void product_q8(const cases::Product& p, float* y) { product<block_q8, Layout::Q8_0>(p, y); }
inline void product_q4(const cases::Product& p, float* y) { product<block_q4, Layout::Q4_0>(p, y); }

// One row by kStreams panels side by side, as in product_row.h: one sum for all of the inputs.
template <class Source>
[[gnu::noinline]] void row_panels(const Source (&source)[kStreams], uint64_t runs, const TileInput& x,
                                  float* const* y) {
  using Panels = RowPanels<S, Source, 1, 1, kStreams>;
  S::V sums[kStreams][1];
#pragma GCC unroll 4
  for (auto& sum : sums) sum[0] = S::zero();
  for (uint32_t run = 0; run < runs; ++run)
    for (uint32_t i = 0; i < Source::kBlocks; ++i)
#pragma GCC unroll 4
      for (int p = 0; p < kStreams; ++p) {
        const uint32_t b = run * Source::kBlocks + i;
        asm volatile("");
        Panels::fetch(source, p, b);
        asm volatile("");
        Panels::add_block(sums[p], source[p], run, i, x, b);
      }
#pragma GCC unroll 4
  for (int p = 0; p < kStreams; ++p) S::store(y[p], sums[p][0]);
}
// n a multiple of kStreams panels.
template <Layout L>
void product_row(const cases::Product& p, float* y) {
  using Source = RunSource<S, L>;
  const Packed& w = p.part.w;
  const TileInput x = tile_input(p.args.quant, p.k);
  for_streams({0, p.n / kPanel}, kStreams, [&](const StreamItems& items) {
    Source source[kStreams];
    float* to[kStreams];
    for (int i = 0; i < kStreams; ++i) {
      source[i].at = w.data + items[i] * w.panel_bytes();
      to[i] = y + items[i] * kPanel;
    }
    row_panels(source, p.k / kBlock / Source::kBlocks, x, to);
  });
}

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

// kVectors sums of 16 lanes each; the lane tree has two.
template <int kVectors>
float square_sum(const float* x, uint64_t n) {
  S::V sums[kVectors];
#pragma GCC unroll 4
  for (S::V& sum : sums) sum = S::zero();
  for (uint64_t i = 0; i < n; i += 16 * kVectors) {
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c) {
      const S::V v = S::load(x + i + 16 * static_cast<uint64_t>(c));
      sums[c] = S::fma(v, v, sums[c]);
    }
  }
  S::V all = sums[0];
  for (int c = 1; c < kVectors; ++c) all = S::add(all, sums[c]);
  return S::tree(all);
}

// cols a multiple of 16 kVectors.
template <int kVectors>
void norm(const cases::RowNorm& p, float* y) {
  for (uint64_t row = 0; row < p.args.rows; ++row) {
    const float* x = p.args.x + row * p.args.cols;
    const float r = math::rsq(square_sum<kVectors>(x, p.args.cols) / static_cast<float>(p.args.cols) + p.args.eps);
    for (uint64_t i = 0; i < p.args.cols; i += 16) {
      const S::V v = S::mul(S::mul(S::load(x + i), S::set(r)), S::load(p.args.weight + i));
      S::store(y + row * p.args.cols + i, v);
    }
  }
}

// One row, kHeads query heads a key/value head: a running softmax over chunks of kAttentionChunk positions, each score
// one sum (or one of sums of kSegment products), each result one sum over all positions. length a whole number of
// chunks, hd and vd of vectors.
template <int kHeads, uint64_t kSegment>
struct AttentionTwin {
  static constexpr uint64_t kMostWidth = 256;
  static constexpr int kWidth = tile_width<S>(kHeads);
  alignas(64) float scores[kHeads][kAttentionChunk];
  alignas(64) float out[kHeads][kMostWidth];
  float most[kHeads], total[kHeads], factor[kHeads];

  template <int W>
  void score(const AttentionArgs& a, const float* q, const uint16_t* keys, uint64_t block, const uint16_t* next) {
    const uint64_t stride = kPositionBlock * a.hd;
    const std::byte* fetch = reinterpret_cast<const std::byte*>(next + block * stride);
    keys += block * stride;
    for (uint64_t segment = 0; segment < a.hd; segment += kSegment) {
      S::V chain[kHeads][W];
#pragma GCC unroll 4
      for (auto& head : chain)
#pragma GCC unroll 4
        for (S::V& sum : head) sum = S::zero();
      const uint64_t end = least(a.hd, segment + kSegment);
      for (uint64_t e = segment; e < end; ++e, fetch += W * 32) {
        fetch_ahead<W * 32>(fetch);
        add_outer<S, kHeads, W>(
            chain, [&](int h) { return S::set(q[static_cast<uint64_t>(h) * a.hd + e]); },
            [&](int w) { return S::load_f16(keys + static_cast<uint64_t>(w) * stride + e * kPositionBlock); });
      }
#pragma GCC unroll 4
      for (int h = 0; h < kHeads; ++h)
#pragma GCC unroll 4
        for (int w = 0; w < W; ++w) {
          float* to = scores[h] + (block + static_cast<uint64_t>(w)) * 16;
          const S::V sum = segment == 0 ? chain[h][w] : S::add(S::load(to), chain[h][w]);
          S::store(to, end == a.hd ? S::mul(sum, S::set(a.scale)) : sum);
        }
    }
  }

  void weigh(int h) {
    S::V largest = S::load(scores[h]);
    for (uint64_t j = 16; j < kAttentionChunk; j += 16) largest = S::max(largest, S::load(scores[h] + j));
    const float now = math::max(most[h], S::most(largest));
    factor[h] = now == most[h] ? 1.0f : math::exp(most[h] - now);
    most[h] = now;
    S::V sums[2] = {S::zero(), S::zero()};
    for (uint64_t j = 0; j < kAttentionChunk; j += 32)
#pragma GCC unroll 2
      for (uint64_t half = 0; half < 2; ++half) {
        const S::V w = math::exp<S>(S::sub(S::load(scores[h] + j + 16 * half), S::set(now)));
        sums[half] = S::add(sums[half], w);
        S::store(scores[h] + j + 16 * half, w);
      }
    total[h] = total[h] * factor[h] + S::tree(S::add(sums[0], sums[1]));
  }

  template <int W>
  void add_values(const AttentionArgs& a, const uint16_t* values, uint64_t vector, const uint16_t* next) {
    const std::byte* fetch = reinterpret_cast<const std::byte*>(next + vector * 16 * kAttentionChunk);
    values += vector * 16;
    S::V sums[kHeads][W];
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h)
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w)
        sums[h][w] = S::mul(S::load(out[h] + (vector + static_cast<uint64_t>(w)) * 16), S::set(factor[h]));
    for (uint64_t j = 0; j < kAttentionChunk; ++j, values += a.vd, fetch += W * 32) {
      fetch_ahead<W * 32>(fetch);
      add_outer<S, kHeads, W>(
          sums, [&](int h) { return S::set(scores[h][j]); }, [&](int w) { return S::load_f16(values + w * 16); });
    }
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h)
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) S::store(out[h] + (vector + static_cast<uint64_t>(w)) * 16, sums[h][w]);
  }

  void run(const AttentionArgs& a, uint64_t kv_head, float* y) {
    const float* q = a.q + kv_head * kHeads * a.hd;
    const auto* keys = static_cast<const uint16_t*>(a.k.data) + kv_head * a.k.head_stride;
    const auto* values = static_cast<const uint16_t*>(a.v.data) + kv_head * a.v.head_stride;
    __builtin_memset(out, 0, sizeof out);
    for (int h = 0; h < kHeads; ++h) most[h] = -1e30f, total[h] = 0;
    for (uint64_t at = 0; at < a.length; at += kAttentionChunk) {
      const uint16_t* own = keys + at * a.hd;
      const uint16_t* next = at + kAttentionChunk < a.length ? own + kAttentionChunk * a.hd : values;
      each_width<kWidth>(0, kAttentionChunk / 16, [&](uint64_t block, auto width) {
        score<decltype(width)::kValue>(a, q, own, block, values + at * a.vd);
      });
      for (int h = 0; h < kHeads; ++h) weigh(h);
      each_width<kWidth>(0, a.vd / 16, [&](uint64_t vector, auto width) {
        add_values<decltype(width)::kValue>(a, values + at * a.vd, vector, next);
      });
    }
    for (int h = 0; h < kHeads; ++h, y += a.vd)
      for (uint64_t e = 0; e < a.vd; e += 16) S::store(y + e, S::mul(S::load(out[h] + e), S::set(1.0f / total[h])));
  }
};
template <int kHeads, uint64_t kSegment>
void attention(const cases::Attention& p, float* y) {
  AttentionTwin<kHeads, kSegment> twin;
  for (uint64_t head = 0; head < p.args.kv_heads; ++head) twin.run(p.args, head, y + head * kHeads * p.args.vd);
}

// The sums of four vectors, side by side.
inline __m128 sums_of_four(const S::V (&v)[4]) {
  __m256 eight[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) eight[i] = _mm256_add_ps(v[i].a, v[i].b);
  const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(eight[0], eight[1]), _mm256_hadd_ps(eight[2], eight[3]));
  return _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
}

// The sums by 32 columns and more, added up.
struct DeltaPair {
  S::V o, u;
};
// One memory row through a step, and on the way the dots of a row of the next block, as in delta_rows.h.
inline DeltaPair delta_step_of(float* state, const float* later, const DeltaRow& row, const DeltaRow& next,
                               float factor, uint64_t d) {
  const float *q = row.q, *k = row.k, *next_k = next.k;
  const S::V decay = S::set(row.alpha[0]), by = S::set(factor);
  S::V o[2] = {S::zero(), S::zero()}, u[2] = {S::zero(), S::zero()};
  for (uint64_t j = 0; j < d; j += 32)
#pragma GCC unroll 2
    for (uint64_t half = 0; half < 2; ++half) {
      const uint64_t at = j + 16 * half;
      const S::V s = S::fma(by, S::load(k + at), S::mul(decay, S::load(state + at)));
      S::store(state + at, s);
      o[half] = S::fma(s, S::load(q + at), o[half]);
      __builtin_prefetch(later + at + kDeltaRows * d);
      u[half] = S::fma(S::load(later + at), S::load(next_k + at), u[half]);
    }
  return {S::add(o[0], o[1]), S::add(u[0], u[1])};
}

// A block of kDeltaRows memory rows. u: of this block, then of the one at `later`.
[[gnu::noinline]] inline void delta_block_of(float* state, const float* later, const DeltaRow& row,
                                             const DeltaRow& next, uint64_t first, uint64_t d, float* u) {
  alignas(64) float change[kDeltaRows];
  const S::V want = S::fma(S::set(-row.alpha[0]), S::load(u), S::load(row.v + first));
  S::store(change, S::mul(S::set(*row.beta), want));
  const __m128 scale = _mm_set1_ps(math::rsq(static_cast<float>(d)));
  for (uint64_t i = 0; i < kDeltaRows; i += 4) {
    S::V o_sums[4], u_sums[4];
#pragma GCC unroll 4
    for (uint64_t n = 0; n < 4; ++n) {
      const uint64_t at = (i + n) * d;
      const DeltaPair sums = delta_step_of(state + at, later + at, row, next, change[i + n], d);
      o_sums[n] = sums.o, u_sums[n] = sums.u;
    }
    _mm_storeu_ps(row.o + first + i, _mm_mul_ps(sums_of_four(o_sums), scale));
    _mm_storeu_ps(u + i, sums_of_four(u_sums));
  }
}

// One row, one decay a head. d a multiple of 32.
inline void delta(const DeltaArgs& a) {
  float* state = static_cast<float*>(a.state);
  const uint64_t blocks = delta_update_items(a), block_values = kDeltaRows * a.d;
  const auto row_of = [&](uint64_t item) { return delta_row(a, 0, item * kDeltaRows / a.d); };
  alignas(64) float u[kDeltaRows];
  const DeltaRow begin = row_of(0);
  for (uint64_t i = 0; i < kDeltaRows; ++i) {
    S::V sum = S::zero();
    for (uint64_t j = 0; j < a.d; j += 16) sum = S::fma(S::load(state + i * a.d + j), S::load(begin.k + j), sum);
    u[i] = S::tree(sum);
  }
  for (uint64_t item = 0; item < blocks; ++item) {
    const uint64_t later = item + 1 < blocks ? item + 1 : item;  // the last one's dots are of no use
    delta_block_of(state + item * block_values, state + later * block_values, row_of(item), row_of(later),
                   item * kDeltaRows % a.d, a.d, u);
  }
}

}  // namespace tw::lane::cpu::free_order
