#pragma once

// Blocks for tests.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gguf/format.h"

namespace tw::gguf {

// SplitMix64: the same numbers on every platform.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Mean 0 and variance 1, bell-shaped with bounded tails: a sum of uniforms.
  double bell() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  uint64_t state_;
};

// Blocks of uniformly random bytes: every bit pattern of every field, scales that are infinite or no numbers included.
inline std::vector<std::byte> random_blocks(Format format, uint64_t blocks, uint64_t seed) {
  TestRandom random(seed);
  std::vector<std::byte> bytes(blocks * info(format).block_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() >> 56);
  return bytes;
}

// FNV-1a of the binary32 patterns, all NaNs taken as one.
inline uint64_t fingerprint(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325;
  for (float value : values) {
    const uint32_t bits = std::isnan(value) ? 0x7fc00000u : std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (bits >> shift & 255u)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace tw::gguf
