#pragma once

// Encoders of single blocks: x holds the block's values, all finite. quantize() (format.h) is the entry.

#include <array>
#include <span>

#include "gguf/blocks.h"

namespace tw::gguf {

template <class Block>
using BlockValues = std::span<const double, Block::kValues>;

void encode_block(BlockValues<BlockQ4_0> x, BlockQ4_0& out);
void encode_block(BlockValues<BlockQ4_1> x, BlockQ4_1& out);
void encode_block(BlockValues<BlockQ5_0> x, BlockQ5_0& out);
void encode_block(BlockValues<BlockQ5_1> x, BlockQ5_1& out);
void encode_block(BlockValues<BlockQ8_0> x, BlockQ8_0& out);
void encode_block(BlockValues<BlockIQ4_NL> x, BlockIQ4_NL& out);
void encode_block(BlockValues<BlockMXFP4> x, BlockMXFP4& out);
void encode_block(BlockValues<BlockNVFP4> x, BlockNVFP4& out);
void encode_block(BlockValues<BlockQ2_K> x, BlockQ2_K& out);
void encode_block(BlockValues<BlockQ3_K> x, BlockQ3_K& out);
void encode_block(BlockValues<BlockQ4_K> x, BlockQ4_K& out);
void encode_block(BlockValues<BlockQ5_K> x, BlockQ5_K& out);
void encode_block(BlockValues<BlockQ6_K> x, BlockQ6_K& out);
void encode_block(BlockValues<BlockQ8_K> x, BlockQ8_K& out);
void encode_block(BlockValues<BlockIQ4_XS> x, BlockIQ4_XS& out);
void encode_block(BlockValues<BlockTQ1_0> x, BlockTQ1_0& out);
void encode_block(BlockValues<BlockTQ2_0> x, BlockTQ2_0& out);

template <class Block>
concept Encodable = requires(BlockValues<Block> x, Block& out) {
  encode_block(x, out);
};

}  // namespace tw::gguf
