#pragma once

// One segment (up to 16 blocks) of a quantized product for many activation rows and the 16 outputs of a panel: its
// weights are unpacked once, in the form that the dots want, and stay in the first-level cache while tiles of rows
// multiply them. Order of every sum: CC(16 blocks), the terms as docs/numerics.md gives them ("Products"); only exact
// integer sums are taken in another order than by one row (product_row.h).

#include "lane/cpu/block_unpack.h"
#include "lane/cpu/product_term.h"

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

  // The low halves of two integers.
  TW_SIMD int32_t pair_of(int32_t low, int32_t high) {
    return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffffU) | (static_cast<uint32_t>(high) << 16));
  }

  // What codes exceed integers by is taken off the sums of a block.
  TW_SIMD void take_excess(const BlockWeights& w, uint32_t b, const TileInput& x, uint64_t at, I& first, I& second) {
    const int32_t sum = x.sum<F::kWords>(at);
    if constexpr (!F::kHalves) {
      first = S::isub(first, S::iset(w.code_excess * sum));
      return;
    }
    const int32_t half = x.half_sums[at];
    if constexpr (F::kApart) {
      first = S::isub(first, S::iset(w.code_excess * half));
      second = S::isub(second, S::iset(w.code_excess * (sum - half)));
    } else {
      first = S::isub(first, S::dot2(S::izero(), S::bload(w.excess[b]), S::bset4(pair_of(half, sum - half))));
    }
  }

  // What the term of a block reads of its weights (product_term.h).
  struct TermWeights {
    const BlockWeights& w;
    uint32_t b;
    [[gnu::always_inline]] inline V scale1() const { return S::load(w.scale1[b]); }
    [[gnu::always_inline]] inline I sub(int half) const { return S::iload(w.sub[b][half]); }
    [[gnu::always_inline]] inline I sub_min(int half) const { return S::iload(w.sub_min[b][half]); }
  };

  // The chain a of one row by the term of block b, block `at` of x.
  TW_SIMD V add_term(V a, const BlockWeights& w, uint32_t b, const TileInput& x, uint64_t at, I first, I second) {
    if constexpr (F::kExcess) take_excess(w, b, x, at, first, second);
    V neg_min = S::zero();
    if constexpr (has_min(F::kTerm)) neg_min = S::load(w.neg_min[b]);
    return BlockTerm<S, F::kTerm, F::kWords>::template add<F::kApart>(a, TermWeights{w, b}, S::load(w.scale[b]),
                                                                      neg_min, x, at, first, second);
  }

  template <int n>
  TW_SIMD void add_terms(float* chains, const BlockWeights& w, uint32_t b, const TileInput& x, uint64_t at,
                         const RowsOf<I, n>& first, const RowsOf<I, n>& second) {
    if constexpr (n > 0) {
      S::store(chains, add_term(S::load(chains), w, b, x, at, first.row, second.row));
      add_terms(chains + kPanel, w, b, x, at + x.pitch / kBlock, first.rest, second.rest);
    }
  }

  // total[r][16] += the segment's sum of row r.
  [[gnu::noinline]] static void run(const BlockWeights& w, uint32_t blocks, TileInput x, float* chains, float* total) {
    for (int r = 0; r < kRows; ++r) S::store(chains + r * kPanelStep, S::zero());
    for (uint32_t b = 0; b < blocks; ++b) {
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

}  // namespace tw::lane::cpu
