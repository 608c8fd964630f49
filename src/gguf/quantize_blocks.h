#pragma once

// Encoders of single blocks: `block` holds as many values as the type of `out` has, all of them finite. quantize()
// (format.h) is the entry.

#include "gguf/blocks.h"
#include "gguf/quantize_fit.h"

namespace tw::gguf {

void encode_block(const Normalized& block, BlockQ4_0& out);
void encode_block(const Normalized& block, BlockQ4_1& out);
void encode_block(const Normalized& block, BlockQ5_0& out);
void encode_block(const Normalized& block, BlockQ5_1& out);
void encode_block(const Normalized& block, BlockQ8_0& out);
void encode_block(const Normalized& block, BlockIQ4_NL& out);
void encode_block(const Normalized& block, BlockMXFP4& out);
void encode_block(const Normalized& block, BlockNVFP4& out);
void encode_block(const Normalized& block, BlockQ2_K& out);
void encode_block(const Normalized& block, BlockQ3_K& out);
void encode_block(const Normalized& block, BlockQ4_K& out);
void encode_block(const Normalized& block, BlockQ5_K& out);
void encode_block(const Normalized& block, BlockQ6_K& out);
void encode_block(const Normalized& block, BlockQ8_K& out);
void encode_block(const Normalized& block, BlockIQ4_XS& out);
void encode_block(const Normalized& block, BlockTQ1_0& out);
void encode_block(const Normalized& block, BlockTQ2_0& out);

template <class Block>
concept Encodable = requires(const Normalized& block, Block& out) {
  encode_block(block, out);
};

}  // namespace tw::gguf
