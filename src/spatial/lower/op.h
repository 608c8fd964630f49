#pragma once

// What the lowering of one op sees: its operands and its result as names, extents and fills; and what it gives: the
// sections that compute the result, and why in this form.
//
// Layout. A tensor of `rows` x `cols` is declared flat (1 x rows*cols) by flat forms and dense (rows x cols) by those
// that work on tiles of rows. Where a producer and a reader differ, agree_layouts() (compose.h) puts a relayout between
// them. Only a table that is written in place cannot be relaid: `dense` says how it lies.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "spatial/fill.h"
#include "spatial/program.h"
#include "spatial/target.h"

namespace tw::spatial::lower {

struct OpTensor {
  std::string name;
  uint64_t rows = 1;
  uint64_t cols = 1;
  Fill fill = UnknownFill{};
  bool integer = false;
  bool constant = false;           // a weight or a table that no section writes: declared Param
  bool dense = false;              // a table or cache that lies dense
  std::optional<Precision> dtype;  // what it is stored as; absent: what the lowering would choose

  [[nodiscard]] uint64_t size() const { return rows * cols; }
  [[nodiscard]] TensorRole read_role() const { return constant ? TensorRole::Param : TensorRole::Input; }
  [[nodiscard]] Precision stored(Precision otherwise) const { return dtype.value_or(otherwise); }
};

// Operands in the order of the op's declarations (graph/op.h). Of an op that works in place the result is its table.
struct OpView {
  const Target& target;
  std::vector<std::optional<OpTensor>> operands;
  OpTensor result;

  [[nodiscard]] bool has(size_t operand) const { return operand < operands.size() && operands[operand].has_value(); }
  [[nodiscard]] const OpTensor& operator[](size_t operand) const {
    TW_CHECK(has(operand), "operand {} of {} is absent", operand, result.name);
    return *operands[operand];
  }
  // What refusals are about.
  [[nodiscard]] std::string_view subject() const { return result.name; }
};

// Every section is complete by itself and valid. `form` is a form's name in docs/spatial-lowering.md, `why` the
// condition that chose it, in numbers ("20 tiles exceed a page of 8").
struct Lowered {
  std::vector<Program> sections;
  std::string form;
  std::string why;
};

// The precision that elementwise arithmetic of the tensor's kind is stored in: E or Z.
Result<Precision> element_of(const OpView& op, const OpTensor& tensor);

// "20 tiles exceed a page of 8", "5 tiles fit a page of 8".
std::string over_a_page(const Target& target, uint64_t tiles);
std::string within_a_page(const Target& target, uint64_t tiles);

// "<what> in <precision>", or exact when `exactly`.
NumericsClaim claim(bool exactly, std::string_view what, Precision precision);

// Of what only moves values from one precision to another: exact when none is lost on the way.
NumericsClaim moved(std::string_view what, Precision from, Precision to);

}  // namespace tw::spatial::lower
