#pragma once

// A quantized product of one or two activation rows: whole panels, segment after segment, as fast as their weights come
// from memory. Order of every sum: CC(16 blocks), the terms as docs/numerics.md gives them ("Products"). Integer sums
// are exact, so their order is free.
//
// Several panels advance side by side, block by block: a core reads four places of memory at once a third faster than
// one, since the processor's own prefetching starts anew at every page and then has others to go on with.

#include "lane/cpu/product_source.h"
#include "lane/cpu/product_term.h"

namespace tw::lane::cpu {

// How far ahead of the block at work the weights of one panel are asked for: far, since a block's arithmetic fills the
// processor's window before its loads reach far enough ahead to keep the memory busy.
constexpr uint32_t kFetchAhead = 1024;
// With several panels side by side, how many blocks of theirs before its turn a block is asked for. A core has some 24
// misses under way at a time: more are waited for, and the loads at work wait with them.
constexpr int kFetchBlocks = 3;

// Asks for `bytes` from `at` on, some lines of which may lie past the matrix: nothing is read.
template <uint32_t bytes>
TW_INLINE inline void fetch_lines(const std::byte* at) {
#pragma GCC unroll 16
  for (uint32_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + line);
}

template <class S, class Source, int kWords, int kRows, int kPanels>
struct RowPanels {
  using V = typename S::V;
  using I = typename S::I;
  using B = typename S::B;
  using Block = typename Source::Block;
  static constexpr Term kTerm = Source::kTerm;
  static constexpr bool kHalves = has_halves(kTerm);
  static constexpr int kSums = kHalves ? 2 : 1;
  static constexpr int kSecond = kSums - 1;
  static constexpr bool kSignedCodes = Source::kMax == 0;
  // Signed codes are raised by 128 where unsigned ones are cheaper. What codes exceed integers by is taken off the sum.
  static constexpr bool kRaise = kSignedCodes && (kWords == 2 || S::kSignedByOffset);
  static constexpr int kExcess = kRaise ? 128 : Source::kOffset;
  // Of one step of pair(); steps whose sums fit 16 bits together.
  static constexpr int kStepSum = (kHalves ? 2 : 4) * 127 * Source::kMax;
  static constexpr int kFlush = steps_in_16_bits(4, kStepSum);
  static constexpr bool kPairs = kWords == 1 && !kSignedCodes && S::kPairSums && kStepSum <= 32767;

  struct Sums {
    I s[kRows][kSums];
  };

  // The place of block b of row r.
  TW_SIMD uint64_t block_at(const TileInput& x, int r, uint32_t b) {
    return static_cast<uint64_t>(r) * (x.pitch / kBlock) + b;
  }
  // The sum over block b of row r's integers; half 0 or 1 of it where the term has halves.
  TW_SIMD int32_t sum_of(const TileInput& x, int r, uint32_t b, int half) {
    const uint64_t at = block_at(x, r, b);
    if constexpr (kHalves) return half == 0 ? x.half_sums[at] : x.sum<kWords>(at) - x.half_sums[at];
    return x.sum<kWords>(at);
  }

  template <int i>
  TW_SIMD void step(const Block& block, const TileInput& x, uint32_t b, Sums& sums, B (&pairs)[kRows][kSums]) {
    B u, v;
    block.template pair<i>(u, v);
    if constexpr (kRaise) {
      u = S::bxor(u, S::bset1(0x80));
      v = S::bxor(v, S::bset1(0x80));
    }
    if constexpr (kWords == 2) {
      const B u01 = S::bwiden01(u), u23 = S::bwiden23(u), v01 = S::bwiden01(v), v23 = S::bwiden23(v);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const int16_t* q = x.wide + static_cast<uint64_t>(r) * x.pitch + b * kBlock + 4 * i;
        I& first = sums.s[r][0];
        first = S::dot2(first, u01, S::bset4(load_word(q)));
        first = S::dot2(first, u23, S::bset4(load_word(q + 2)));
        I& second = sums.s[r][kSecond];
        second = S::dot2(second, v01, S::bset4(load_word(q + 16)));
        second = S::dot2(second, v23, S::bset4(load_word(q + 18)));
      }
    } else {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const int8_t* q = x.high + static_cast<uint64_t>(r) * x.pitch + b * kBlock + 4 * i;
        const B xu = S::bset4(load_word(q)), xv = S::bset4(load_word(q + 16));
        I& first = sums.s[r][0];
        I& second = sums.s[r][kSecond];
        if constexpr (kPairs) {
          constexpr bool kFresh = i % kFlush == 0;
          constexpr bool kLast = i % kFlush == kFlush - 1;
          const B pu = S::bpairs(u, xu), pv = S::bpairs(v, xv);
          if constexpr (kHalves) {
            pairs[r][0] = kFresh ? pu : S::badd16(pairs[r][0], pu);
            pairs[r][kSecond] = kFresh ? pv : S::badd16(pairs[r][kSecond], pv);
          } else {
            pairs[r][0] = kFresh ? S::badd16(pu, pv) : S::badd16(pairs[r][0], S::badd16(pu, pv));
          }
          if constexpr (kLast) {
            first = S::idot_pairs(first, pairs[r][0]);
            if constexpr (kHalves) second = S::idot_pairs(second, pairs[r][kSecond]);
          }
        } else if constexpr (!kSignedCodes) {
          first = S::dot4_small(first, u, xu);
          second = S::dot4_small(second, v, xv);
        } else if constexpr (kRaise) {
          first = S::dot4(first, u, xu);
          second = S::dot4(second, v, xv);
        } else {
          first = S::dot4_signed(first, u, xu);
          second = S::dot4_signed(second, v, xv);
          S::pin(first);  // or g++ keeps the products of a block before it adds them, in memory
          S::pin(second);
        }
      }
    }
  }

  // S, or S0 and S1, of every row.
  TW_SIMD void block_sums(const Block& block, const TileInput& x, uint32_t b, Sums& sums) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
      for (int h = 0; h < kSums; ++h) sums.s[r][h] = kExcess == 0 ? S::izero() : S::iset(-kExcess * sum_of(x, r, b, h));
    B pairs[kRows][kSums];
    step<0>(block, x, b, sums, pairs);
    step<1>(block, x, b, sums, pairs);
    step<2>(block, x, b, sums, pairs);
    step<3>(block, x, b, sums, pairs);
  }

  // The chain `a` of row r and the term of block b.
  TW_SIMD V add_term(V a, const Block& block, const TileInput& x, int r, uint32_t b, const Sums& sums, V scale,
                     V neg_min) {
    return BlockTerm<S, kTerm, kWords>::template add<kHalves>(a, block, scale, neg_min, x, block_at(x, r, b),
                                                              sums.s[r][0], sums.s[r][kSums - 1]);
  }
  // -M of a block; what has none is not read.
  TW_SIMD V neg_min_of(const Block& block) {
    if constexpr (has_min(kTerm)) return block.neg_min();
    return S::zero();
  }

  // Asks for the weights that come after those of block `b` of panel p: of the same panel, or of the panel that has its
  // turn some blocks later. Headers of runs are taken for evenly spread over their blocks.
  TW_SIMD void fetch(const Source (&source)[kPanels], int p, uint32_t b) {
    constexpr uint32_t kBytes = Source::kBytes / Source::kBlocks;
    static_assert(Source::kBytes % Source::kBlocks == 0);
    if constexpr (kPanels == 1) return fetch_lines<kBytes>(source[p].at + b * kBytes + kFetchAhead);
    const int turn = p + kFetchBlocks;
    fetch_lines<kBytes>(source[turn % kPanels].at + (b + static_cast<uint32_t>(turn / kPanels)) * kBytes);
  }

  // The chains `a` of the rows by block `b`, the `index`-th of `run`.
  TW_SIMD void add_block(V (&a)[kRows], const Source& source, uint32_t run, uint32_t index, const TileInput& x,
                         uint32_t b) {
    const Block block = source.block(run, index);
    Sums sums;
    block_sums(block, x, b, sums);
    const V scale = block.scale(), neg_min = neg_min_of(block);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) a[r] = add_term(a[r], block, x, r, b, sums, scale, neg_min);
  }

  // The sums of the 16 outputs of panels[p] and row r over all `blocks` blocks to total[p][r][16].
  [[gnu::noinline]] static void run(const std::byte* const* panels, uint64_t blocks, const TileInput& x, float* total) {
    constexpr uint32_t kRunBlocks = Source::kBlocks;
    constexpr uint32_t kSegmentRuns = kSegmentBlocks / kRunBlocks;
    Source source[kPanels];
    V sum[kPanels][kRows];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      source[p].at = panels[p];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sum[p][r] = S::zero();
    }
    for (uint64_t begin = 0; begin < blocks; begin += kSegmentBlocks) {
      const uint64_t left = (blocks - begin) / kRunBlocks;
      const auto runs = static_cast<uint32_t>(left < kSegmentRuns ? left : kSegmentRuns);
      const TileInput from = x.at(0, begin);
      V a[kPanels][kRows];
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p)
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) a[p][r] = S::zero();
      for (uint32_t run_at = 0; run_at < runs; ++run_at)
        for (uint32_t i = 0; i < kRunBlocks; ++i)
#pragma GCC unroll 4
          for (int p = 0; p < kPanels; ++p) {
            const uint32_t b = run_at * kRunBlocks + i;
            // Apart, or g++ asks for what all panels need at once.
            asm volatile("");
            fetch(source, p, b);
            asm volatile("");
            add_block(a[p], source[p], run_at, i, from, b);
          }
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        source[p].at += kSegmentRuns * Source::kBytes;
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) sum[p][r] = S::add(sum[p][r], a[p][r]);
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p)
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r, total += kPanel) S::store(total, sum[p][r]);
  }
};

}  // namespace tw::lane::cpu
