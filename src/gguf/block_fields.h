#pragma once

// Bit fields that several block formats share, for decoding and encoding.

#include <bit>
#include <cstdint>
#include <cstring>

#include "gguf/blocks.h"

namespace tw::gguf {

inline uint32_t load_u32(const uint8_t* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

inline void store_u32(uint8_t* bytes, uint32_t word) { std::memcpy(bytes, &word, sizeof word); }

// 2^(e - 128): half of an E8M0 scale, for levels that are stored doubled. Subnormal for e < 2.
inline float e8m0_half(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? uint32_t{0x00200000} << e : static_cast<uint32_t>(e - 1) << 23);
}

// Half of a UE4M3 scale. The code 0x7f, which E4M3 leaves to NaN, is 0; the top bit is not part of the number.
inline float ue4m3_half(uint8_t code) {
  if (code == 0x7f) return 0.0f;
  const uint32_t exponent = (code >> 3) & 15u;
  const uint32_t mantissa = code & 7u;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return std::bit_cast<float>(((exponent + 119u) << 23) | (mantissa << 20));
}

struct ScaleMin {
  uint8_t scale;
  uint8_t min;
};

// The 6-bit scale and minimum of run 0..7 of Q4_K and Q5_K.
inline ScaleMin scale_min_k(const uint8_t scales[12], uint32_t run) {
  if (run < 4) return {static_cast<uint8_t>(scales[run] & 63), static_cast<uint8_t>(scales[run + 4] & 63)};
  const uint32_t low = scales[run + 4];
  return {static_cast<uint8_t>((low & 15u) | (scales[run - 4] >> 6 << 4)),
          static_cast<uint8_t>((low >> 4) | (scales[run] >> 6 << 4))};
}

// Requires `scales` zeroed before the first run, and scale and min below 64.
inline void store_scale_min_k(uint8_t scales[12], uint32_t run, ScaleMin value) {
  const auto put = [&](uint32_t byte, uint32_t bits) { scales[byte] = static_cast<uint8_t>(scales[byte] | bits); };
  if (run < 4) {
    put(run, value.scale);
    put(run + 4, value.min);
    return;
  }
  put(run + 4, (value.scale & 15u) | (value.min & 15u) << 4);
  put(run - 4, static_cast<uint32_t>(value.scale >> 4) << 6);
  put(run, static_cast<uint32_t>(value.min >> 4) << 6);
}

// The 6-bit scale 0..15 of Q3_K, as stored (32 more than its value).
inline uint32_t scale_q3_k(const uint8_t scales[12], uint32_t s) {
  const uint32_t low = (scales[s % 8] >> (4 * (s / 8))) & 15u;
  const uint32_t high = (scales[8 + s % 4] >> (2 * (s / 4))) & 3u;
  return low | high << 4;
}

// Requires `scales` zeroed before the first one, and value below 64.
inline void store_scale_q3_k(uint8_t scales[12], uint32_t s, uint32_t value) {
  scales[s % 8] = static_cast<uint8_t>(scales[s % 8] | (value & 15u) << (4 * (s / 8)));
  scales[8 + s % 4] = static_cast<uint8_t>(scales[8 + s % 4] | (value >> 4) << (2 * (s / 4)));
}

}  // namespace tw::gguf
