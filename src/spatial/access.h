#pragma once

// Where movement and computation touch memory: tile addresses of loads and stores, element maps of compute stages. The
// two families of variables never mix: an address may follow the item, a map cannot.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "spatial/ids.h"

namespace tw::spatial {

// ---- tile addresses ----

enum class LoopVar : uint8_t {
  ItemY,  // coordinates of the work item
  ItemX,
  SubH,  // sub-block of the item's output
  SubW,
  KBlock,  // block of a fold
};
inline constexpr int kLoopVars = 5;

// A step of stride 0 moves nothing and still says how often the movement is issued.
struct Step {
  LoopVar var = LoopVar::ItemX;
  uint64_t stride = 0;
  bool operator==(const Step&) const = default;
};

// Adds floor(v / elems_per_tile) * tile_stride, v element 0 of the page at the head of `index`. v must be one of low to
// high. The movement is the page's one reader and pops it.
struct IndirectTile {
  BufferId index{};
  uint64_t tile_stride = 1;
  uint64_t elems_per_tile = 1;
  int64_t low = 0;
  int64_t high = 0;
  bool operator==(const IndirectTile&) const = default;
};

// base + sum of stride * variable (+ the indirect term): a linear tile number of the tensor's grid.
struct TileAddr {
  uint64_t base = 0;
  std::vector<Step> steps;
  std::optional<IndirectTile> indirect;

  [[nodiscard]] bool names(LoopVar var) const;
  bool operator==(const TileAddr&) const = default;
};

// Tile (y, x) of the block is at origin + y * stride_h + x * stride_w, and is tile y * block_w + x of the page.
struct AccessPattern {
  TileAddr origin;
  uint64_t block_h = 1;
  uint64_t block_w = 1;
  uint64_t stride_h = 0;
  uint64_t stride_w = 1;

  [[nodiscard]] uint64_t tiles() const { return block_h * block_w; }
  bool operator==(const AccessPattern&) const = default;
};

// The value of every loop variable, by LoopVar.
using LoopPoint = std::array<uint64_t, kLoopVars>;
// The address without its indirect term.
uint64_t affine_address(const TileAddr& addr, const LoopPoint& at);

// ---- element maps ----

enum class Axis : uint8_t { Row, Col, K };
inline constexpr int kAxes = 3;

// Adds stride * v, v the value that operand `operand` of the same stage has at the same point, read through its own
// map. v must be one of 0 to modulus - 1. A stride of 0 on the operand itself is a bounds check that moves nothing.
struct IndirectTerm {
  uint32_t operand = 0;
  int64_t stride = 0;
  uint64_t modulus = 1;
  bool operator==(const IndirectTerm&) const = default;
};

// base + row * r + col * c + k * k (+ the indirect term): a flat offset into the page as a plane of tile.rows rows. An
// absent term is a coefficient of 0: a broadcast.
struct ElemAccess {
  int64_t base = 0;
  std::array<int64_t, kAxes> coef{};  // by Axis
  std::optional<IndirectTerm> indirect;

  [[nodiscard]] int64_t of(Axis axis) const { return coef[static_cast<size_t>(axis)]; }
  // This map with an indirect term: + stride * (operand's value), which must be below modulus.
  [[nodiscard]] ElemAccess plus(uint32_t operand, int64_t stride, uint64_t modulus) const;
  // This map moved by a constant.
  [[nodiscard]] ElemAccess shifted(int64_t by) const;
  bool operator==(const ElemAccess&) const = default;
};

// ---- the recurring maps; W is the width of the page, page_tiles * tile.cols ----

constexpr ElemAccess map3(int64_t base, int64_t row, int64_t col, int64_t k = 0) { return {base, {row, col, k}, {}}; }
constexpr ElemAccess ident(int64_t width) { return map3(0, width, 1); }   // the whole page
constexpr ElemAccess at(int64_t base) { return map3(base, 0, 1); }        // a flat row, shifted
constexpr ElemAccess fixed(int64_t base) { return map3(base, 0, 0); }     // one element
constexpr ElemAccess row_of(int64_t width) { return map3(0, width, 0); }  // the first element of each row
constexpr ElemAccess col() { return map3(0, 0, 1); }                      // row 0, for every row

// The flat offset without the indirect term.
constexpr int64_t affine_offset(const ElemAccess& map, const std::array<int64_t, kAxes>& point) {
  return map.base + map.coef[0] * point[0] + map.coef[1] * point[1] + map.coef[2] * point[2];
}

}  // namespace tw::spatial
