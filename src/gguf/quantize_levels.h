#pragma once

// The sets of levels that a scaled value is rounded to, four values at a time. Every operation is one binary32 rounding
// a lane, so the result does not depend on the instruction set.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gguf/codebooks.h"

namespace tw::gguf {

using Float4 [[gnu::vector_size(16)]] = float;

inline Float4 load4(const float* values) {
  Float4 out;
  std::memcpy(&out, values, sizeof out);
  return out;
}

inline Float4 splat4(float value) { return Float4{value, value, value, value}; }

// Each set has, for t in units of the scale,
//   nearest(t)  the nearest level, as a number
//   code(t)     what the file stores for it, as a number
//   lowest, highest  the outermost levels
//   kStep       how far a search moves the level that the extreme value falls on

// Integers lowest..highest; a code is the level itself. Ties go to the even integer.
struct IntegerLevels {
  float lowest;
  float highest;
  static constexpr float kStep = 0.15f;

  [[nodiscard]] Float4 nearest(Float4 t) const {
    constexpr float kRound = 0x1.8p23f;  // adding it leaves no fraction bits
    t = t < lowest ? splat4(lowest) : t;
    t = t > highest ? splat4(highest) : t;
    return (t + kRound) - kRound;
  }
  [[nodiscard]] Float4 code(Float4 t) const { return nearest(t); }
};

// The levels of IQ4; a code is an index. A tie takes the lower level.
struct Iq4Levels {
  float lowest = kIq4Levels.front();
  float highest = kIq4Levels.back();
  static constexpr float kStep = 1.5f;

  [[nodiscard]] Float4 nearest(Float4 t) const {
    return climb(t, lowest, [](size_t k) { return static_cast<float>(kIq4Levels[k + 1] - kIq4Levels[k]); });
  }
  [[nodiscard]] Float4 code(Float4 t) const {
    return climb(t, 0.0f, [](size_t) { return 1.0f; });
  }

 private:
  // start + the rises of all levels whose lower middle t is above.
  template <class Rise>
  static Float4 climb(Float4 t, float start, Rise rise) {
    Float4 sum = splat4(start);
    for (size_t k = 0; k < 15; ++k) {
      const float middle = 0.5f * static_cast<float>(kIq4Levels[k] + kIq4Levels[k + 1]);
      sum += t > middle ? splat4(rise(k)) : splat4(0.0f);
    }
    return sum;
  }
};

// The doubled levels of E2M1: a sign and eight magnitudes. A tie takes the even code, as IEEE rounding does; what
// rounds to 0 has no sign.
struct Fp4Levels {
  [[nodiscard]] Float4 nearest(Float4 t) const {
    const Float4 magnitude = climb(t, [](size_t k) { return static_cast<float>(kFp4Levels[k + 1] - kFp4Levels[k]); });
    return t < 0.0f ? -magnitude : magnitude;
  }
  [[nodiscard]] Float4 code(Float4 t) const {
    const Float4 magnitude = climb(t, [](size_t) { return 1.0f; });
    return t < 0.0f && magnitude > 0.0f ? magnitude + 8.0f : magnitude;
  }

 private:
  template <class Rise>
  static Float4 climb(Float4 t, Rise rise) {
    const Float4 zero = splat4(0.0f);
    const Float4 magnitude = t < 0.0f ? -t : t;
    Float4 sum = zero;
    for (size_t k = 0; k < 7; ++k) {
      const float middle = 0.5f * static_cast<float>(kFp4Levels[k] + kFp4Levels[k + 1]);
      sum += (k % 2 == 0 ? magnitude > middle : magnitude >= middle) ? splat4(rise(k)) : zero;
    }
    return sum;
  }
};

}  // namespace tw::gguf
