#pragma once

// Stages: what a site does for a work item. Loads fill pages from tensors, compute stages fill pages from pages, stores
// put pages into tensors. The compute algebra is closed: a loop nest with a scalar expression, or a tile product.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "spatial/access.h"
#include "spatial/expr.h"
#include "spatial/ids.h"

namespace tw::spatial {

// Sum: from the first term on, in the accumulator precision. Max: as max of two (a NaN gives way). ArgMax: the 0-based
// position, along the one reduced axis, of the first maximum: a scan from the first element, replaced only by a
// strictly greater one.
enum class Pool : uint8_t { Sum, Max, ArgMax };

struct Iter {
  Axis axis = Axis::Col;
  uint64_t extent = 1;
  std::optional<Pool> reduce;  // absent: parallel
  bool operator==(const Iter&) const = default;
};

// For every point of the parallel axes, in the order listed: the body at every point of the reduced axes, ascending in
// the order listed, folded by the pool. Operand i is buffer ins[i] of the stage read through ins[i]. Points that the
// space has not keep zero: a pushed page starts as zeros.
struct Generic {
  std::vector<Iter> iters;
  std::vector<ElemAccess> ins;
  Expr body;

  [[nodiscard]] const Iter* iter(Axis axis) const;
  [[nodiscard]] uint64_t extent(Axis axis) const;  // 1 when the axis is not iterated
  [[nodiscard]] bool reduces(Axis axis) const;
  [[nodiscard]] std::optional<Pool> pool() const;  // of its reduced axes, if there are any
  bool operator==(const Generic&) const = default;
};

// The iteration space alone decides where a result goes.
enum class Landing : uint8_t {
  Point,       // plane (r, c)
  AcrossRow,   // column fold: the value of row r in every column of plane row r of the page
  DownColumn,  // row fold: the value of column c in every row of column c
};
Landing landing(const Generic& generic);
// How the result page is addressed, over a page `width` elements wide: ident, row_of or col.
ElemAccess out_map(const Generic& generic, int64_t width);

// out (rows x cols tiles) += a * b over `inner` elements of the contraction; ins = {a, b}. The page of a has rows tile
// rows of inner / tile.cols tiles, that of b inner / tile.rows tile rows of cols tiles, each page row by row. Runs once
// a block of a fold, starts from zero, and pushes its page after the last block. Every output is one sum in ascending
// order of the contraction; each product and each sum is rounded to the accumulator precision.
struct MatmulTiles {
  uint32_t rows = 1;
  uint32_t cols = 1;
  uint32_t inner = 1;  // elements, whole tiles of both
  bool operator==(const MatmulTiles&) const = default;
};

using ComputeOp = std::variant<Generic, MatmulTiles>;

struct Load {
  TensorId tensor{};
  AccessPattern pattern;
  bool operator==(const Load&) const = default;
};
struct Compute {
  ComputeOp op;
  bool operator==(const Compute&) const = default;
};
struct Store {
  TensorId tensor{};
  AccessPattern pattern;
  bool operator==(const Store&) const = default;
};
using StageKind = std::variant<Load, Compute, Store>;

// When a stage runs: once before the blocks of a fold, once a block, once after them. A section without a fold is one
// block.
enum class FoldLevel : uint8_t { Prologue, Body, Epilogue };

// Load:    ins {} or {index page}; outs {page}.
// Compute: ins in operand order (a buffer may stand more than once, with different maps); outs {page}.
// Store:   ins {page} or {page, index page}; outs {}.
struct Stage {
  std::string name;
  StageKind kind;
  std::vector<BufferId> ins;
  std::vector<BufferId> outs;
  FoldLevel level = FoldLevel::Body;

  [[nodiscard]] const Load* load() const { return std::get_if<Load>(&kind); }
  [[nodiscard]] const Store* store() const { return std::get_if<Store>(&kind); }
  [[nodiscard]] const Compute* compute() const { return std::get_if<Compute>(&kind); }
  [[nodiscard]] const Generic* generic() const;
  [[nodiscard]] const MatmulTiles* matmul() const;
  // The tensor and pattern of a load or store, null for a compute stage.
  [[nodiscard]] const AccessPattern* pattern() const;
  [[nodiscard]] std::optional<TensorId> tensor() const;
  [[nodiscard]] bool reads(BufferId buffer) const;
  [[nodiscard]] bool writes(BufferId buffer) const;
  bool operator==(const Stage&) const = default;
};

}  // namespace tw::spatial
