#include "spatial/evaluate/product.h"

#include <algorithm>
#include <limits>

#include "spatial/evaluate/arithmetic.h"
#include "spatial/evaluate/codec.h"

namespace tw::spatial::evaluate {

template <class Lanes>
Product<Lanes>::Product(const Program& program, const Stage& stage)
    : lanes_(real_accumulator(program)),
      tile_(program.tile),
      shape_(*stage.matmul()),
      a_dtype_(program.at(stage.ins[0]).dtype),
      b_dtype_(program.at(stage.ins[1]).dtype),
      out_dtype_(program.at(stage.outs[0]).dtype),
      out_page_(stage.outs[0]) {
  const uint64_t rows = shape_.rows * uint64_t{tile_.rows}, cols = shape_.cols * uint64_t{tile_.cols};
  a_.resize(rows * shape_.inner);
  b_.resize(shape_.inner * cols);
  sums_.resize(rows * cols);
}

template <class Lanes>
void Product<Lanes>::start() {
  std::fill(sums_.begin(), sums_.end(), Value{});
}

template <class Lanes>
void Product<Lanes>::unpack(Precision dtype, uint64_t tile_rows, uint64_t tile_cols, const std::byte* page,
                            std::vector<Value>& matrix) const {
  // Tile (y, x) is tile y * tile_cols + x of the plane: a row of a tile row is a run of the plane's row.
  const uint64_t width = tile_rows * tile_cols * tile_.cols, run = tile_cols * tile_.cols;
  Value* to = matrix.data();
  for (uint64_t y = 0; y < tile_rows; ++y)
    for (uint64_t r = 0; r < tile_.rows; ++r, to += run)
      lanes_.load(dtype, page, static_cast<int64_t>(r * width + y * run), 1, to, run);
}

template <class Lanes>
std::optional<StageFault> Product<Lanes>::add_block(const std::byte* a, const std::byte* b) {
  unpack(a_dtype_, shape_.rows, shape_.inner / tile_.cols, a, a_);
  unpack(b_dtype_, shape_.inner / tile_.rows, shape_.cols, b, b_);
  if (multiply() == Trouble::None) return std::nullopt;
  return StageFault{FaultKind::Overflow, out_page_, 0, std::numeric_limits<int64_t>::min(),
                    std::numeric_limits<int64_t>::max()};
}

template <class Lanes>
Trouble Product<Lanes>::multiply() {
  const uint64_t rows = shape_.rows * uint64_t{tile_.rows}, cols = shape_.cols * uint64_t{tile_.cols};
  for (uint64_t i = 0; i < rows; ++i) {
    const Trouble trouble = lanes_.contract(a_.data() + i * shape_.inner, 1, b_.data(), static_cast<int64_t>(cols),
                                            sums_.data() + i * cols, shape_.inner, cols);
    if (trouble != Trouble::None) return trouble;
  }
  return Trouble::None;
}

template <class Lanes>
std::optional<StageFault> Product<Lanes>::finish(std::byte* out) {
  const uint64_t run = shape_.cols * uint64_t{tile_.cols}, width = shape_.rows * run;
  const uint64_t code = bytes_of(out_dtype_);
  const Value* from = sums_.data();
  for (uint64_t y = 0; y < shape_.rows; ++y)
    for (uint64_t r = 0; r < tile_.rows; ++r, from += run) {
      if (lanes_.store(out_dtype_, from, out + (r * width + y * run) * code, run)) continue;
      if constexpr (std::is_same_v<Lanes, Integers>) {
        const int64_t* value = std::find_if(from, from + run, [&](int64_t v) { return !holds(out_dtype_, v); });
        return StageFault{FaultKind::Overflow, out_page_, *value, -int_max(out_dtype_) - 1, int_max(out_dtype_)};
      }
    }
  return std::nullopt;
}

template class Product<Singles>;
template class Product<Doubles>;
template class Product<Integers>;

AnyProduct compile_product(const Program& program, const Stage& stage) {
  if (computes_integers(program, stage)) return Product<Integers>(program, stage);
  if (real_accumulator(program) == Precision::F32) return Product<Singles>(program, stage);
  return Product<Doubles>(program, stage);
}

}  // namespace tw::spatial::evaluate
