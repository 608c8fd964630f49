#pragma once

// Random weights, written straight as blocks of a format: quants are random bits, scales are set so that the values
// have a given standard deviation and mean zero. Much faster than quantizing, and every block is a valid one.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "gguf/format.h"

namespace tw::model {

// Counter-based: word i of a stream is splitmix64's finalizer of stream + (i + 1) * 0x9e3779b97f4a7c15, and the stream
// of a tensor is the finalizer of seed xor FNV-1a(name). So a tensor depends on the seed and its name alone.
class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view name);
  uint64_t next();
  // Uniform in [-1, 1), a multiple of 2^-23.
  float uniform();
  void fill(std::span<std::byte> bytes);

 private:
  uint64_t stream_;
  uint64_t counter_ = 0;
};

// Whether fill_blocks takes the format.
bool can_fill(gguf::Format format);
// Requires can_fill and whole blocks.
void fill_blocks(gguf::Format format, float deviation, RandomStream& random, std::span<std::byte> blocks);

}  // namespace tw::model
