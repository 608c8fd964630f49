#pragma once

// What the forms of a row write have in common.

#include <string>

#include "graph/op.h"
#include "spatial/lower/index.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower {

struct SetRowsParts {
  RowIndex row;                       // the first that is written
  Precision table = Precision::F32;   // of integers: holds what the table and the source do
  Precision source = Precision::F32;  // else as the table
  Precision accumulator = Precision::F32;
  std::string name;
  NumericsClaim claim;  // exact unless reals are rounded to the table's precision
};
Result<SetRowsParts> set_rows_parts(const graph::SetRows& spec, const OpView& op);

}  // namespace tw::spatial::lower
