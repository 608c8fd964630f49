#pragma once

// A quantized product of one activation row: a whole panel, segment after segment, as fast as its weights come from
// memory. The sums and the terms of a block are those of SegmentTile (product_tile.h), so the order is the same.

#include "lane/cpu/product_tile.h"

namespace tw::lane::cpu {

// How far ahead of the block at work its panel's weights are asked for. One block's arithmetic fills the processor's
// window before its loads reach far enough ahead to keep the memory busy.
inline constexpr uint32_t kFetchAhead = 1024;

// Asks for `bytes` from `at` on, some lines of which may lie past the matrix: nothing is read.
template <uint32_t bytes>
TW_INLINE inline void fetch_lines(const std::byte* at) {
#pragma GCC unroll 16
  for (uint32_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + line);
}

template <class S, class Source, int kWords>
struct RowPanel {
  using V = typename S::V;
  using Tile = SegmentTile<S, Source, kWords, 1>;

  // The chain `a` by block `b` of the row, the `index`-th of `run`.
  TW_SIMD V add_block(V a, const Source& source, uint32_t run, uint32_t index, const TileInput& x, uint32_t b) {
    const auto block = source.block(run, index);
    fetch_lines<Source::kBlockBytes>(block.words + kFetchAhead);
    typename Tile::Sums sums;
    Tile::block_sums(block, x, b, sums);
    return Tile::add_term(a, block, x, 0, b, sums, block.scale(), Tile::neg_min_of(block));
  }

  // The sums of the 16 outputs over all `blocks` blocks to total[16].
  [[gnu::noinline]] static void run(const std::byte* panel, uint64_t blocks, TileInput x, float* total) {
    constexpr uint32_t kRunBlocks = Source::kBlocks;
    constexpr uint32_t kSegmentRuns = kSegmentBlocks / kRunBlocks;
    V sum = S::zero();
    for (uint64_t begin = 0; begin < blocks; begin += kSegmentBlocks) {
      const uint64_t left = (blocks - begin) / kRunBlocks;
      const auto runs = static_cast<uint32_t>(left < kSegmentRuns ? left : kSegmentRuns);
      const Source source{panel + begin / kRunBlocks * Source::kBytes};
      const TileInput from = x.at(0, begin);
      V a = S::zero();
      for (uint32_t r = 0; r < runs; ++r)
        for (uint32_t i = 0; i < kRunBlocks; ++i) a = add_block(a, source, r, i, from, r * kRunBlocks + i);
      sum = S::add(sum, a);
    }
    S::store(total, sum);
  }
};

}  // namespace tw::lane::cpu
