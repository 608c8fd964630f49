#pragma once

// A segment of a panel whose rows lie in memory as in the file (Layout::Rows), unpacked for the kernels.

#include <cstdint>

#include "lane/cpu/pack_layout.h"

namespace tw::lane::cpu {

// Blocks [0, 16) of 16 outputs: signed bytes in the order of packed words, and what the term needs (product_source.h).
struct alignas(64) Decoded {
  int8_t codes[kSegmentBlocks][8][kPanel][4];
  float scale[kSegmentBlocks][kPanel];
  float scale1[kSegmentBlocks][kPanel];
  float neg_min[kSegmentBlocks][kPanel];
  int32_t sub[kSegmentBlocks][2][kPanel];
  int32_t sub_min[kSegmentBlocks][2][kPanel];
};

// Unpacks `blocks` blocks from block `first` on of panel `panel` (of all). Requires w.layout == Layout::Rows. Outputs
// past the last are zero.
void decode_rows(const Packed& w, uint64_t panel, uint64_t first, uint32_t blocks, Decoded& out);

}  // namespace tw::lane::cpu
