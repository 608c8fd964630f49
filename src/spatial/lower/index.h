#pragma once

// Rows that an op names, from 1: by a literal, or by the item of an integer operand. A literal outside the table is
// refused here, an item when the program runs, whether or not anything would have been read or written with it.
//
// Arithmetic on an index is done at a precision that holds every intermediate; nothing of it rides the real datapath.

#include <cstdint>
#include <optional>
#include <string>

#include "spatial/builder.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

// Of sizes and places, which are below 2^63.
inline int64_t to_signed(uint64_t value) { return static_cast<int64_t>(value); }

// What a table of an op is stored as: of reals E; of integers Z, or wider where its fill says that it holds more.
Result<Precision> table_precision(const OpView& op, const OpTensor& table);

// The operand as it is declared: flat, or dense. Of one that stands for two operands, the one tensor.
TensorId declare_flat(Builder& builder, const OpTensor& operand, Precision dtype);
TensorId declare_dense(Builder& builder, const OpTensor& operand, Precision dtype);
// Its page in_NAME, loaded whole as a flat row, once.
BufferId load_flat(Builder& builder, const OpTensor& operand, Precision dtype);

// floor(x / by): a shift where that is one.
Expr floor_quotient(Expr x, uint64_t by);

// "32 columns are whole tiles", "20 columns are not whole tiles of 32": what chooses between tile and flat forms.
std::string whole_rows(const Target& target, uint64_t cols);

// One of the rows 1 .. admitted.
struct RowIndex {
  const OpTensor* named = nullptr;  // absent: the literal
  uint64_t literal = 1;
  uint64_t admitted = 1;

  [[nodiscard]] uint64_t first() const { return literal - 1; }
};
// The item of an index that is known while lowering: a constant whose fill says it.
std::optional<int64_t> literal_of(const OpTensor& index);
// By operand `operand` when that is there; one whose item is known is a literal. Refused when the literal is out of
// range: the section could only fail.
Result<RowIndex> row_index(const OpView& op, size_t operand, uint64_t literal, uint64_t admitted);

// The precision of arithmetic on an index operand whose intermediates stay below `span`, or come to the operand itself
// and one: nothing narrower than the operand is stored as.
Result<Precision> index_dtype(const OpView& op, const OpTensor& index, uint64_t span);

// The wider of two integers.
Precision wider(Precision a, Precision b);

// The stages that make rows of a loaded index. Every use has a page of its own: a movement pops the page it is
// addressed by.
class NamedRow {
 public:
  // Element 0 of the page. Arithmetic is at `dtype`, or as wide as the page.
  NamedRow(Builder& builder, BufferId page, Precision dtype, uint64_t admitted)
      : builder_(&builder), page_(page), dtype_(wider(dtype, builder.dtype(page))), admitted_(admitted) {}

  // v - 1 as the address of a movement, floor((v - 1) / per) * stride tiles on.
  IndirectTile address(const std::string& name, uint64_t stride, uint64_t per = 1);
  // (v - 1) mod the rows of a tile, as scratch. Something else must check the row.
  BufferId in_tile(const std::string& name);
  // (v - 1) * factor, and element 0 of `more` added, as scratch. The row is checked before it is multiplied.
  BufferId scaled(const std::string& name, uint64_t factor = 1, std::optional<BufferId> more = {});

 private:
  Builder* builder_;
  BufferId page_;
  Precision dtype_;
  uint64_t admitted_;
};
// Its operand loaded first. Requires a named row.
Result<NamedRow> named_row(Builder& builder, const OpView& op, const RowIndex& row, uint64_t span);

// ---- addresses ----

// Block x (the item's) of `block` tiles of a row of `row_tiles` tiles of a flat table, for the movement `what`.
Result<Block> row_block(Builder& builder, const OpView& op, const RowIndex& row, uint64_t row_tiles, uint64_t block);

// The window of a flat table that is loaded around `length` elements from element e on, wherever in a tile they start.
// Every window lies in the table, and the elements in their window.
struct RowWindow {
  uint64_t tiles = 1;      // of the window
  uint64_t last_tile = 0;  // the last that a window may start at
  uint64_t offsets = 1;    // how many there are of the first element in its window

  static RowWindow of(const Target& target, uint64_t elements, uint64_t length);
  // From the page that holds e: where the window starts, a page for one movement; and where in it e is, as scratch.
  [[nodiscard]] IndirectTile start(Builder& builder, const std::string& name, BufferId e) const;
  [[nodiscard]] BufferId offset(Builder& builder, const std::string& name, BufferId e) const;
};

}  // namespace tw::spatial::lower
