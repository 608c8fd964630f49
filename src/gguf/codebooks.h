#pragma once

// The tables of numbers that the codebook formats index. They are part of the file format.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tw::gguf {

// Levels of the 4-bit formats IQ4_NL and IQ4_XS.
inline constexpr std::array<int8_t, 16> kIq4Levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

// Twice the numbers of E2M1 (sign, 2 exponent bits, 1 mantissa bit), so that they are integers.
inline constexpr std::array<int8_t, 16> kFp4Levels = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

template <size_t kEntries, size_t kWidth>
using Grid = std::array<std::array<int8_t, kWidth>, kEntries>;

extern const Grid<256, 8> kIq2XxsGrid;  // of 8, 25, 43
extern const Grid<512, 8> kIq2XsGrid;   // of 8, 25, 43
extern const Grid<1024, 8> kIq2SGrid;   // of 8, 25, 43
extern const Grid<256, 4> kIq3XxsGrid;  // of 4, 12, 20, 28, 36, 44, 52, 62
extern const Grid<512, 4> kIq3SGrid;    // of 1, 3, ..., 15
extern const Grid<2048, 8> kIq1Grid;    // of -1, 0, 1

// The 8 signs of the sign code in the low 7 bits of `code`: bit j set when value j is negative. The eighth bit makes
// the number of set bits even.
constexpr uint8_t expand_signs(uint32_t code) {
  const uint32_t signs = code & 127u;
  return static_cast<uint8_t>(signs | (static_cast<uint32_t>(std::popcount(signs)) & 1u) << 7);
}

}  // namespace tw::gguf
