#pragma once

// A MatmulTiles stage: sums that are kept in the accumulator from block to block.

#include <optional>
#include <variant>
#include <vector>

#include "spatial/evaluate/nest.h"

namespace tw::spatial::evaluate {

template <class Lanes>
class Product {
 public:
  // Requires a MatmulTiles stage of a valid program.
  Product(const Program& program, const Stage& stage);

  void start();  // zero sums
  std::optional<StageFault> add_block(const std::byte* a, const std::byte* b);
  // The sums, rounded, as the page.
  std::optional<StageFault> finish(std::byte* out);

 private:
  using Value = typename Lanes::Value;
  // A page of rows x cols tiles, row by row, as one packed matrix.
  void unpack(Precision dtype, uint64_t tile_rows, uint64_t tile_cols, const std::byte* page,
              std::vector<Value>& matrix) const;
  Trouble multiply();

  Lanes lanes_;
  TileShape tile_;
  MatmulTiles shape_;
  Precision a_dtype_, b_dtype_, out_dtype_;
  BufferId out_page_;
  std::vector<Value> a_, b_, sums_;  // packed
};

using AnyProduct = std::variant<Product<Singles>, Product<Doubles>, Product<Integers>>;
AnyProduct compile_product(const Program& program, const Stage& stage);

}  // namespace tw::spatial::evaluate
