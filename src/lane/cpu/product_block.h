#pragma once

// One segment (up to 16 blocks) of a quantized product for many activation rows and the 16 outputs of a panel: its
// weights are unpacked once, in the form that the dots want, and stay in the first-level cache while tiles of rows
// multiply them. Order of every sum: CC(16 blocks), the terms as docs/numerics.md gives them ("Products"); only exact
// integer sums are taken in another order than the one-row tile (product_tile.h).

#include "lane/cpu/block_unpack.h"
#include "lane/cpu/tile_input.h"

namespace tw::lane::cpu {

// One T for each of n rows, as members instead of an array, so that they stay in registers.
template <class T, int n>
struct RowsOf {
  T row;
  RowsOf<T, n - 1> rest;
};
template <class T>
struct RowsOf<T, 0> {};

// kRows rows by 16 outputs. Chains of a row are kept in memory between blocks: the integer sums take the registers.
template <class S, class F, int kRows>
struct BlockTile {
  using V = typename S::V;
  using I = typename S::I;
  using B = typename S::B;
  static constexpr int kPanelStep = static_cast<int>(kPanel);

  template <class T, int n>
  TW_SIMD void clear(RowsOf<T, n>& rows) {
    if constexpr (n > 0) {
      rows.row = S::izero();
      clear(rows.rest);
    }
  }

  // The words of every row, at a block.
  template <int n, class Word>
  TW_SIMD void point(RowsOf<const Word*, n>& rows, const Word* x, uint64_t pitch) {
    if constexpr (n > 0) {
      rows.row = x;
      asm("" : "+r"(rows.row));  // a pointer of its own: g++ would make the addresses of all steps beforehand
      point(rows.rest, x + pitch, pitch);
    }
  }

  // ---- steps: one vector of weights by the words of every row. Pinned, or g++ keeps all the products of a block
  // before it adds the first two ----

  template <int step, int n>
  TW_SIMD void wide_step(RowsOf<I, n>& sums, B weights, const RowsOf<const int16_t*, n>& x) {
    if constexpr (n > 0) {
      sums.row = S::dot2(sums.row, weights, S::bset4(load_word(x.row + 2 * step)));
      S::pin(sums.row);
      wide_step<step>(sums.rest, weights, x.rest);
    }
  }
  template <int step, int n>
  TW_SIMD void dots_step(RowsOf<I, n>& sums, B weights, const RowsOf<const int8_t*, n>& x) {
    if constexpr (n > 0) {
      sums.row = S::dot4(sums.row, weights, S::bset4(load_word(x.row + 4 * step)));
      S::pin(sums.row);
      dots_step<step>(sums.rest, weights, x.rest);
    }
  }
  template <int step, int n>
  TW_SIMD void small_step(RowsOf<B, n>& pairs, B weights, const RowsOf<const int8_t*, n>& x) {
    if constexpr (n > 0) {
      pairs.row = S::badd16(pairs.row, S::bpairs(weights, S::bset4(load_word(x.row + 4 * step))));
      S::pin(pairs.row);
      small_step<step>(pairs.rest, weights, x.rest);
    }
  }
  template <int n>
  TW_SIMD void flush(RowsOf<I, n>& sums, const RowsOf<B, n>& pairs, B factors) {
    if constexpr (n > 0) {
      sums.row = S::dot2(sums.row, pairs.row, factors);
      flush(sums.rest, pairs.rest, factors);
    }
  }

  // ---- the sums of a block: steps [from, to) ----

  template <int from, int to>
  TW_SIMD void wide_steps(RowsOf<I, kRows>& sums, const int32_t* w, const RowsOf<const int16_t*, kRows>& x) {
    if constexpr (from < to) {
      wide_step<from>(sums, S::bload(w + from * kPanelStep), x);
      wide_steps<from + 1, to>(sums, w, x);
    }
  }
  template <int from, int to>
  TW_SIMD void dots_steps(RowsOf<I, kRows>& sums, const int32_t* w, const RowsOf<const int8_t*, kRows>& x) {
    if constexpr (from < to) {
      dots_step<from>(sums, S::bload(w + from * kPanelStep), x);
      dots_steps<from + 1, to>(sums, w, x);
    }
  }
  template <int from, int to>
  TW_SIMD void small_steps(RowsOf<B, kRows>& pairs, const int32_t* w, const RowsOf<const int8_t*, kRows>& x) {
    if constexpr (from < to) {
      small_step<from>(pairs, S::bload(w + from * kPanelStep), x);
      small_steps<from + 1, to>(pairs, w, x);
    }
  }
  template <int from>
  TW_SIMD void small_flushes(RowsOf<I, kRows>& sums, const BlockWeights& w, uint32_t b,
                             const RowsOf<const int8_t*, kRows>& x) {
    if constexpr (from < 8) {
      RowsOf<B, kRows> pairs;
      clear(pairs);
      small_steps<from, from + F::kFlush>(pairs, w.words + b * F::kBlockWords, x);
      if constexpr (F::kHalves)
        flush(sums, pairs, S::bload(w.sub[b][from / 4]));
      else
        flush(sums, pairs, S::bset4(0x00010001));
      small_flushes<from + F::kFlush>(sums, w, b, x);
    }
  }

  TW_SIMD void block_sums(const BlockWeights& weights, uint32_t b, const TileInput& x, RowsOf<I, kRows>& first,
                          RowsOf<I, kRows>& second) {
    const int32_t* w = weights.words + b * F::kBlockWords;
    RowsOf<const typename F::Word*, kRows> words;
    if constexpr (F::kForm == BlockForm::Wide) {
      point(words, x.wide + b * kBlock, x.pitch);
      wide_steps<0, F::kApart ? 8 : 16>(first, w, words);
      if constexpr (F::kApart) wide_steps<8, 16>(second, w, words);
    } else {
      point(words, x.high + b * kBlock, x.pitch);
      if constexpr (F::kForm == BlockForm::Small) {
        small_flushes<0>(first, weights, b, words);
      } else {
        dots_steps<0, F::kApart ? 4 : 8>(first, w, words);
        if constexpr (F::kApart) dots_steps<4, 8>(second, w, words);
      }
    }
  }

  // ---- the term of a block ----

  // What codes exceed integers by is taken off the sums.
  TW_SIMD I without_excess(I sum, int32_t x_sum) {
    if constexpr (F::kExcess == 0) return sum;
    return S::isub(sum, S::iset(F::kExcess * x_sum));
  }
  // The low halves of two integers.
  TW_SIMD int32_t pair_of(int32_t low, int32_t high) {
    return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffffU) | (static_cast<uint32_t>(high) << 16));
  }

  // s0 S0 + s1 S1 from S0 and S1, rounded once. With two words the sum can pass 32 bits: it is taken as 256 T_h + T_l,
  // T_h and T_l exact in f32, by one fma.
  TW_SIMD V weighted(I s0, I s1, I first, I second) {
    if constexpr (F::kWords == 1) return S::to_float(S::iadd(S::imul(s0, first), S::imul(s1, second)));
    const I byte = S::iset(255);
    const I high = S::iadd(S::imul(s0, S::template isar<8>(first)), S::imul(s1, S::template isar<8>(second)));
    const I low = S::iadd(S::imul(s0, S::iand(first, byte)), S::imul(s1, S::iand(second, byte)));
    return S::fma(S::set(256.0f), S::to_float(high), S::to_float(low));
  }

  // The chain a of one row by the term of block b; x from the row on, at block b.
  TW_SIMD V add_term(V a, const BlockWeights& w, uint32_t b, const TileInput& x, uint64_t at, I first, I second) {
    const V d = S::set(x.scale[at]);
    const V scale = S::mul(S::load(w.scale[b]), d);
    int32_t sum = 0, half = 0;
    if constexpr (F::kExcess != 0 || F::kMin) sum = x.sum_high[at];
    if constexpr (F::kWords == 2 && F::kMin) sum = 256 * sum + x.sum_low[at];
    if constexpr ((F::kExcess != 0 && F::kHalves) || F::kTerm == Term::HalvesMin) half = x.half_sums[at];
    if constexpr (F::kTerm == Term::TwoScales) {
      a = S::fma(scale, S::to_float(without_excess(first, half)), a);
      a = S::fma(S::mul(S::load(w.scale1[b]), d), S::to_float(without_excess(second, sum - half)), a);
    } else if constexpr (F::kApart) {
      const V both = weighted(S::iload(w.sub[b][0]), S::iload(w.sub[b][1]), without_excess(first, half),
                              without_excess(second, sum - half));
      a = S::fma(scale, both, a);
    } else if constexpr (F::kHalves && F::kExcess != 0) {
      const I excess = S::dot2(S::izero(), S::bload(w.excess[b]), S::bset4(pair_of(half, sum - half)));
      a = S::fma(scale, S::to_float(S::isub(first, excess)), a);
    } else {
      a = S::fma(scale, S::to_float(without_excess(first, sum)), a);
    }
    if constexpr (F::kTerm == Term::ScaleMin)
      a = S::fma(S::mul(S::load(w.neg_min[b]), d), S::to_float(S::iset(sum)), a);
    if constexpr (F::kTerm == Term::HalvesMin) {
      const I m = S::iadd(S::imul(S::iload(w.sub_min[b][0]), S::iset(half)),
                          S::imul(S::iload(w.sub_min[b][1]), S::iset(sum - half)));
      a = S::fma(S::mul(S::load(w.neg_min[b]), d), S::to_float(m), a);
    }
    return a;
  }

  template <int n>
  TW_SIMD void add_terms(float* chains, const BlockWeights& w, uint32_t b, const TileInput& x, uint64_t at,
                         const RowsOf<I, n>& first, const RowsOf<I, n>& second) {
    if constexpr (n > 0) {
      S::store(chains, add_term(S::load(chains), w, b, x, at, first.row, second.row));
      add_terms(chains + kPanel, w, b, x, at + x.pitch / kBlock, first.rest, second.rest);
    }
  }

  // Asks for block b of the rows of the next tile.
  template <int n>
  TW_SIMD void prefetch(const TileInput& x, uint32_t b, uint64_t row) {
    if constexpr (n > 0) {
      if constexpr (F::kForm == BlockForm::Wide)
        __builtin_prefetch(x.wide + row * x.pitch + b * kBlock);
      else
        __builtin_prefetch(x.high + row * x.pitch + b * kBlock);
      prefetch<n - 1>(x, b, row + 1);
    }
  }

  // total[r][16] += the segment's sum of row r.
  [[gnu::noinline]] static void run(const BlockWeights& w, uint32_t blocks, TileInput x, float* chains, float* total) {
    for (int r = 0; r < kRows; ++r) S::store(chains + r * kPanelStep, S::zero());
    for (uint32_t b = 0; b < blocks; ++b) {
      prefetch<kRows>(x, b, kRows);
      RowsOf<I, kRows> first, second;
      clear(first);
      clear(second);
      block_sums(w, b, x, first, second);
      asm("" : "+r"(chains));  // or g++ keeps the chains in registers that the sums need
      add_terms(chains, w, b, x, b, first, second);
    }
    for (int r = 0; r < kRows; ++r, total += kPanel)
      S::store(total, S::add(S::load(total), S::load(chains + r * kPanelStep)));
  }
};

// total[r][16] += the segment's sums of `rows` rows, in tiles of kRows, then of half as many.
template <class S, class F, int kRows>
void block_tiles(BlockWeights& w, uint32_t blocks, const TileInput& x, uint64_t rows, float* total) {
  uint64_t r = 0;
  for (; rows - r >= kRows; r += kRows)
    BlockTile<S, F, kRows>::run(w, blocks, x.at(r, 0), w.chains[0], total + r * kPanel);
  if constexpr (kRows > 1)
    if (r < rows) block_tiles<S, F, kRows / 2>(w, blocks, x.at(r, 0), rows - r, total + r * kPanel);
}

template <class S, class Source, int kWords>
void block_segment(Source source, uint32_t blocks, const TileInput& x, uint64_t rows, float* total, BlockWeights& w) {
  using F = BlockFormOf<S, Source, kWords>;
  UnpackBlocks<S, Source, F>::run(source, blocks, w);
  block_tiles<S, F, S::kBlockRows>(w, blocks, x, rows, total);
}

}  // namespace tw::lane::cpu
