#include "spatial/lower/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tw::spatial::lower {
namespace {

TensorId declare(Builder& builder, const OpTensor& operand, uint64_t rows, uint64_t cols, Precision dtype) {
  const std::vector<Tensor>& tensors = builder.program().tensors;
  for (uint32_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == operand.name && !tensors[i].result()) return TensorId{i};
  return builder.tensor(operand.name, operand.read_role(), rows, cols, dtype, init_of(operand.fill, operand.size()));
}

// min(floor(e / tw), last): the tile that the window around element e starts at.
Expr window_start(const Builder& builder, const RowWindow& window, const Expr& e) {
  return min(floor_quotient(e, builder.target().tile.cols), static_cast<double>(window.last_tile));
}

}  // namespace

Result<Precision> table_precision(const OpView& op, const OpTensor& table) {
  if (table.dtype || !table.integer) return element_of(op, table);
  TW_TRY(const Precision holds, index_precision(op.target, magnitude_of(table.fill), op.subject()));
  return wider(holds, op.target.integer_element.value_or(holds));
}

TensorId declare_flat(Builder& builder, const OpTensor& operand, Precision dtype) {
  return declare(builder, operand, 1, operand.size(), dtype);
}

TensorId declare_dense(Builder& builder, const OpTensor& operand, Precision dtype) {
  return declare(builder, operand, operand.rows, operand.cols, dtype);
}

BufferId load_flat(Builder& builder, const OpTensor& operand, Precision dtype) {
  const std::string name = "in_" + operand.name;
  const std::vector<Buffer>& buffers = builder.program().buffers;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].name == name) return BufferId{i};
  const TensorId tensor = declare_flat(builder, operand, dtype);
  const BufferId page =
      builder.buffer(name, builder.target().tiles(operand.size()), builder.program().at(tensor).dtype, 1);
  builder.load("load_" + operand.name, tensor, {}, page);
  return page;
}

Expr floor_quotient(Expr x, uint64_t by) {
  if (by == 1) return x;
  if (std::has_single_bit(by)) return shr(std::move(x), static_cast<uint32_t>(std::countr_zero(by)));
  return floor_div(std::move(x), static_cast<double>(by));
}

std::optional<int64_t> literal_of(const OpTensor& index) {
  if (!index.constant) return std::nullopt;
  const Init init = init_of(index.fill, index.size());
  if (std::holds_alternative<ZeroInit>(init)) return 0;
  if (const auto* value = std::get_if<IntegerInit>(&init)) return value->value;
  if (const auto* table = std::get_if<IntegerValues>(&init)) return table->values->front();
  return std::nullopt;
}

Result<RowIndex> row_index(const OpView& op, size_t operand, uint64_t literal, uint64_t admitted) {
  const std::optional<int64_t> known =
      op.has(operand) ? literal_of(op[operand]) : std::optional(static_cast<int64_t>(literal));
  if (!known) return RowIndex{&op[operand], 1, admitted};
  if (*known >= 1 && *known <= static_cast<int64_t>(admitted))
    return RowIndex{nullptr, static_cast<uint64_t>(*known), admitted};
  return refuse(RefusalKind::Malformed, op.subject(), fmt::format("names row {}, expected 1 to {}", *known, admitted),
                "Name a row of the table.");
}

Result<Precision> index_dtype(const OpView& op, const OpTensor& index, uint64_t span) {
  TW_TRY(const Precision dtype, index_precision(op.target, index_space(span, 1, index.fill), op.subject()));
  return wider(dtype, index.stored(dtype));
}

Precision wider(Precision a, Precision b) { return bytes_of(b) > bytes_of(a) ? b : a; }

std::string whole_rows(const Target& target, uint64_t cols) {
  if (target.whole(cols)) return fmt::format("{} columns are whole tiles", cols);
  return fmt::format("{} columns are not whole tiles of {}", cols, target.tile.cols);
}

// ---- rows ----

IndirectTile NamedRow::address(const std::string& name, uint64_t stride, uint64_t per) {
  const BufferId page = builder_->buffer(name, 1, dtype_, 1);
  GenericStage stage = builder_->compute(name, flat(1));
  const Expr value = stage.read(page_, fixed(0));
  stage.write(page, value - 1.0);
  return {page, stride, per, 0, static_cast<int64_t>(admitted_) - 1};
}

BufferId NamedRow::in_tile(const std::string& name) {
  const BufferId page = builder_->scratch(name, 1, dtype_, 1);
  const uint64_t rows = builder_->target().tile.rows;
  GenericStage stage = builder_->compute(name, flat(1));
  const Expr row = stage.read(page_, fixed(0)) - 1.0;
  stage.write(page, row - floor_quotient(row, rows) * static_cast<double>(rows));
  return page;
}

BufferId NamedRow::scaled(const std::string& name, uint64_t factor, std::optional<BufferId> more) {
  const BufferId biased = builder_->scratch(name + "_biased", 1, dtype_, 1),
                 page = builder_->scratch(name, 1, dtype_, 1);
  GenericStage minus = builder_->compute(name + "_biased", flat(1));
  const Expr value = minus.read(page_, fixed(0));
  minus.write(biased, value - 1.0);
  GenericStage stage = builder_->compute(name, flat(1));
  Expr row = stage.guarded(biased, admitted_);
  if (factor != 1) row = row * static_cast<double>(factor);
  if (more) row = row + stage.read(*more, fixed(0));
  stage.write(page, std::move(row));
  return page;
}

Result<NamedRow> named_row(Builder& builder, const OpView& op, const RowIndex& row, uint64_t span) {
  TW_TRY(const Precision dtype, index_dtype(op, *row.named, span));
  return NamedRow(builder, load_flat(builder, *row.named, row.named->stored(dtype)), dtype, row.admitted);
}

// ---- addresses ----

Result<Block> row_block(Builder& builder, const OpView& op, const RowIndex& row, uint64_t row_tiles, uint64_t block) {
  if (!row.named) return Block{.base = row.first() * row_tiles, .steps = {item_x(block)}};
  TW_TRY(NamedRow named, named_row(builder, op, row, row.admitted));
  return Block{.steps = {item_x(block)}, .indirect = named.address("row_index", row_tiles)};
}

RowWindow RowWindow::of(const Target& target, uint64_t elements, uint64_t length) {
  const uint64_t width = target.tile.cols, tiles = target.tiles(elements);
  RowWindow window;
  window.tiles = std::min(target.tiles(width - 1 + length), tiles);
  window.last_tile = tiles - window.tiles;
  window.offsets = window.tiles * width - length + 1;
  return window;
}

IndirectTile RowWindow::start(Builder& builder, const std::string& name, BufferId e) const {
  const BufferId page = builder.buffer(name, 1, builder.dtype(e), 1);
  GenericStage stage = builder.compute(name, flat(1));
  const Expr first = stage.read(e, fixed(0));
  stage.write(page, window_start(builder, *this, first));
  return {.index = page, .high = static_cast<int64_t>(last_tile)};
}

BufferId RowWindow::offset(Builder& builder, const std::string& name, BufferId e) const {
  const BufferId page = builder.scratch(name, 1, builder.dtype(e), 1);
  GenericStage stage = builder.compute(name, flat(1));
  const Expr first = stage.read(e, fixed(0));
  stage.write(page, first - window_start(builder, *this, first) * static_cast<double>(builder.target().tile.cols));
  return page;
}

}  // namespace tw::spatial::lower
