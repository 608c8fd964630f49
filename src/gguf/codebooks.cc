#include "gguf/codebooks.h"

#include "gguf/codebook_codes.h"

namespace tw::gguf {
namespace {

template <size_t kWidth, size_t kEntries, size_t kLevels>
constexpr Grid<kEntries, kWidth> unpack(const std::array<uint16_t, kEntries>& codes,
                                        const std::array<int8_t, kLevels>& levels) {
  constexpr unsigned kBits = kWidth == 4 ? 3 : 2;
  Grid<kEntries, kWidth> grid{};
  for (size_t e = 0; e < kEntries; ++e)
    for (size_t j = 0; j < kWidth; ++j) grid[e][j] = levels[(codes[e] >> (kBits * j)) & ((1u << kBits) - 1u)];
  return grid;
}

constexpr std::array<int8_t, 3> kLevels2 = {8, 25, 43};
constexpr std::array<int8_t, 8> kLevels3Xxs = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<int8_t, 8> kLevels3S = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr std::array<int8_t, 3> kTernary = {-1, 0, 1};

}  // namespace

constexpr Grid<256, 8> kIq2XxsGrid = unpack<8>(kIq2XxsCodes, kLevels2);
constexpr Grid<512, 8> kIq2XsGrid = unpack<8>(kIq2XsCodes, kLevels2);
constexpr Grid<1024, 8> kIq2SGrid = unpack<8>(kIq2SCodes, kLevels2);
constexpr Grid<256, 4> kIq3XxsGrid = unpack<4>(kIq3XxsCodes, kLevels3Xxs);
constexpr Grid<512, 4> kIq3SGrid = unpack<4>(kIq3SCodes, kLevels3S);
constexpr Grid<2048, 8> kIq1Grid = unpack<8>(kIq1Codes, kTernary);

}  // namespace tw::gguf
