#include "spatial/lower/norm.h"

#include <fmt/format.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/relayout.h"
#include "spatial/lower/unit_section.h"

namespace tw::spatial::lower {
namespace {

// The op on another shape of its tensors.
struct Reshaped {
  OpView op;
  Norm norm;
};

// x and the residual as matrices of one unit a row, and the result as one.
Reshaped as_units(const Norm& norm, const OpView& op, Precision result) {
  const uint64_t units = op[0].size() / norm.width;
  const auto matrix = [&](const OpTensor& from, const std::string& name) {
    OpTensor tensor = from;
    tensor.name = name;
    tensor.rows = units;
    tensor.cols = norm.width;
    return tensor;
  };
  Reshaped made{{op.target, op.operands, matrix(op.result, op.result.name + "__units")}, norm};
  made.op.result.dtype = result;
  OpTensor& x = *made.op.operands[0];
  x = matrix(x, op.result.name + "__x_units");
  x.constant = false;
  x.fill = UnknownFill{};
  if (norm.residual) {
    made.norm.residual = matrix(*norm.residual, op.result.name + "__residual_units");
    made.norm.residual->constant = false;
    made.norm.residual->fill = UnknownFill{};
  }
  return made;
}

Result<std::vector<Program>> whole_unit_sections(const Norm& norm, const OpView& op) {
  if (op.target.wide(norm.width)) return norm_streamed(norm, op, true);
  TW_TRY(Program section, norm_rows(norm, op));
  return std::vector<Program>{std::move(section)};
}

Result<Lowered> lower_whole_units(const Norm& norm, const OpView& op) {
  const bool dense = op[0].rows > 1;
  const uint64_t tiles = op.target.tiles(norm.width);
  if (op.target.wide(norm.width)) {
    TW_TRY(std::vector<Program> sections, norm_streamed(norm, op, dense));
    return Lowered{std::move(sections), dense ? "streamed rows" : "streamed",
                   "of a unit " + over_a_page(op.target, tiles)};
  }
  const std::string why = dense ? fmt::format("{} rows; of a unit {}", op[0].rows, within_a_page(op.target, tiles))
                                : fmt::format("{}; of a unit {}", over_a_page(op.target, op.target.tiles(op[0].size())),
                                              within_a_page(op.target, tiles));
  TW_TRY(Program section, dense ? norm_rows(norm, op) : norm_heads(norm, op));
  return Lowered{{std::move(section)}, dense ? "rows" : "heads", why};
}

}  // namespace

Result<std::vector<Program>> norm_streamed(const Norm& norm, const OpView& op, bool dense) {
  const UnitGrid grid =
      dense ? UnitGrid::dense(op[0], norm.width, op.target) : UnitGrid::flat(op[0], norm.width, op.target);
  const std::string mean = op.result.name + "__mean", scale = op.result.name + "__scale";
  std::vector<const OpTensor*> values{&op[0]};
  if (norm.residual) values.push_back(&*norm.residual);
  const auto count = static_cast<uint32_t>(values.size());
  Expr v = norm.residual ? arg(0) + arg(1) : arg(0);
  std::vector<std::string> numbers;
  std::vector<Program> sections;
  if (norm.centred) {
    TW_TRY(Program section, unit_fold(op, grid,
                                      {.program = fmt::format("{}_mean_{}", norm.name, grid.text()),
                                       .result = mean,
                                       .values = values,
                                       .numbers = {},
                                       .term = v,
                                       .finish = arg(0) * (1.0 / static_cast<double>(norm.width))}));
    sections.push_back(std::move(section));
    numbers.push_back(mean);
    v = v - arg(count);
  }
  TW_TRY(Program scales, unit_fold(op, grid,
                                   {.program = fmt::format("{}_scale_{}", norm.name, grid.text()),
                                    .result = scale,
                                    .values = values,
                                    .numbers = numbers,
                                    .term = v * v,
                                    .zero_is_neutral = !norm.centred,
                                    .finish = rsqrt(arg(0), norm.eps_nano, norm.over)}));
  sections.push_back(std::move(scales));
  numbers.push_back(scale);

  UnitMap map{.program = fmt::format("{}_rescale_{}", norm.name, grid.text()),
              .what = norm.what,
              .values = values,
              .numbers = numbers,
              .shared = {},
              .body = v * arg(count + static_cast<uint32_t>(numbers.size()) - 1)};
  uint32_t next = count + static_cast<uint32_t>(numbers.size());
  if (norm.weight) {
    map.shared.push_back(&*norm.weight);
    map.body = map.body * arg(next++);
  }
  if (norm.bias) {
    map.shared.push_back(&*norm.bias);
    map.body = map.body + arg(next);
  }
  TW_TRY(Program rescale, unit_map(op, grid, map));
  sections.push_back(std::move(rescale));
  return sections;
}

Result<std::vector<Program>> norm_narrow(const Norm& norm, const OpView& op) {
  TW_TRY(const Precision element, real_element(op.target, op.subject()));
  Reshaped made = as_units(norm, op, op.result.stored(element));
  // Sections choose by their result what a tensor without a precision is stored as; these two are made here.
  made.op.operands[0]->dtype = op[0].stored(element);
  if (norm.residual) made.norm.residual->dtype = norm.residual->stored(element);
  std::vector<Program> sections;
  const auto move = [&](const OpTensor& from, const OpTensor& to, bool to_dense) -> Result<void> {
    const OpTensor& shape = to_dense ? to : from;
    TW_TRY(Program section, relayout({.from = from.name,
                                      .to = to.name,
                                      .rows = shape.rows,
                                      .cols = shape.cols,
                                      .dtype = shape.stored(element),
                                      .to_dense = to_dense,
                                      .init = init_of(from.fill, from.size())},
                                     op.target));
    sections.push_back(std::move(section));
    return {};
  };
  TW_TRY_VOID(move(op[0], made.op[0], true));
  if (norm.residual) TW_TRY_VOID(move(*norm.residual, *made.norm.residual, true));
  TW_TRY(std::vector<Program> units, whole_unit_sections(made.norm, made.op));
  for (Program& section : units) sections.push_back(std::move(section));
  OpTensor units_result = made.op.result;
  units_result.fill = UnknownFill{};
  TW_TRY_VOID(move(units_result, op.result, false));
  return sections;
}

Result<Lowered> lower_norm(const Norm& norm, const OpView& op) {
  const uint64_t tiles = op.target.tiles(op[0].size());
  const bool whole = op.target.whole(norm.width) || norm.width == op[0].cols;
  const bool page = !op.target.wide(op[0].size());
  if (page && (op[0].rows == 1 || !whole)) {
    TW_TRY(Program section, norm_flat(norm, op));
    return Lowered{{std::move(section)}, "flat", within_a_page(op.target, tiles)};
  }
  if (whole) return lower_whole_units(norm, op);
  TW_TRY(std::vector<Program> sections, norm_narrow(norm, op));
  return Lowered{std::move(sections), "narrow units",
                 fmt::format("{}; units of {} are not whole tiles", over_a_page(op.target, tiles), norm.width)};
}

Result<Lowered> lower(const graph::RowNorm& op, const OpView& view) {
  TW_TRY(const Norm norm, norm_of(op, view));
  return lower_norm(norm, view);
}

Result<Lowered> lower(const graph::L2Norm& op, const OpView& view) {
  TW_TRY(const Norm norm, norm_of(op, view));
  return lower_norm(norm, view);
}

}  // namespace tw::spatial::lower
