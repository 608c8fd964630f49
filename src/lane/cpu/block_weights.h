#pragma once

// A segment of a panel of quantized weights, unpacked for many rows (block_unpack.h).

#include <cstdint>

#include "lane/cpu/pack_layout.h"

namespace tw::lane::cpu {

// words: [block][step][16]. sub: s0 and s1 as integers where the halves' sums are taken apart; of Small (s, s) in 16
// bits each, and excess (kExcess s0, kExcess s1).
struct alignas(64) BlockWeights {
  int32_t words[kSegmentBlocks * 16 * kPanel];
  float scale[kSegmentBlocks][kPanel];
  float scale1[kSegmentBlocks][kPanel];
  float neg_min[kSegmentBlocks][kPanel];
  int32_t sub[kSegmentBlocks][2][kPanel];
  int32_t excess[kSegmentBlocks][kPanel];
  int32_t sub_min[kSegmentBlocks][2][kPanel];
  float chains[8][kPanel];  // of the rows of a tile
  int32_t code_excess;      // what codes exceed integers by
};

}  // namespace tw::lane::cpu
