#include "model/weights.h"

#include <fmt/format.h>

#include <numeric>

namespace tw::model {

namespace {

Extent matrix_extent(const graph::Rows& rows) {
  return {static_cast<uint32_t>(rows.row_values), static_cast<uint32_t>(rows.count)};
}

Extent table_extent(const graph::Rows& rows) {
  return {static_cast<uint32_t>(rows.count), static_cast<uint32_t>(rows.row_values)};
}

}  // namespace

std::vector<uint32_t> ascending(uint32_t first, uint32_t count) {
  std::vector<uint32_t> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

Placer::Placer(const gguf::Checkpoint& checkpoint)
    : checkpoint_(std::make_shared<const gguf::Checkpoint>(checkpoint)) {}

void Placer::refuse_later(Refusal refusal) {
  if (!refusal_) refusal_ = std::move(refusal);
}

Result<Weights> Placer::take() && {
  if (refusal_) return std::move(*refusal_);
  return std::move(weights_);
}

std::string Placer::subject(std::string_view tensor) const {
  return fmt::format("{}: tensor {}", checkpoint_->label(), tensor);
}

const gguf::TensorInfo& Placer::info(std::string_view tensor) const {
  const gguf::TensorInfo* found = checkpoint_->find_tensor(tensor);
  TW_CHECK(found != nullptr, "tensor {} is placed but was not checked", tensor);
  return *found;
}

void Placer::place(const std::string& name, Extent extent, graph::Constant constant) {
  const bool fresh = weights_.constants.emplace(name, std::move(constant)).second;
  TW_CHECK(fresh, "constant {} is placed twice", name);
  weights_.extents.emplace(name, extent);
}

graph::Rows Placer::rows_of(const gguf::TensorInfo& tensor, RowRange range) const {
  TW_CHECK(range.first + range.count <= tensor.rows(), "rows {} to {} of {}, which has {}", range.first,
           range.first + range.count, tensor.name, tensor.rows());
  graph::Rows rows;
  rows.format = tensor.format;
  rows.row_bytes = tensor.row_bytes();
  rows.row_values = tensor.row_length();
  rows.count = range.count;
  rows.data = checkpoint_->bytes(tensor).data() + range.first * rows.row_bytes;
  rows.owner = checkpoint_;
  return rows;
}

void Placer::matrix(const std::string& name, std::string_view tensor) {
  matrix(name, tensor, RowRange{0, info(tensor).rows()});
}

void Placer::matrix(const std::string& name, std::string_view tensor, RowRange range) {
  graph::Rows rows = rows_of(info(tensor), range);
  const Extent extent = matrix_extent(rows);
  place(name, extent, std::move(rows));
}

void Placer::matrix(const std::string& name, std::string_view tensor, std::vector<uint32_t> order) {
  graph::Rows rows = rows_of(info(tensor), RowRange{0, info(tensor).rows()});
  rows.count = order.size();
  rows.order = std::move(order);
  const Extent extent = matrix_extent(rows);
  place(name, extent, std::move(rows));
}

void Placer::table(const std::string& name, std::string_view tensor) {
  graph::Rows rows = rows_of(info(tensor), RowRange{0, info(tensor).rows()});
  const Extent extent = table_extent(rows);
  place(name, extent, std::move(rows));
}

void Placer::table(const std::string& name, std::string_view tensor, std::vector<uint32_t> order) {
  graph::Rows rows = rows_of(info(tensor), RowRange{0, info(tensor).rows()});
  rows.count = order.size();
  rows.order = std::move(order);
  const Extent extent = table_extent(rows);
  place(name, extent, std::move(rows));
}

std::vector<float> Placer::widened(std::string_view tensor) const {
  const gguf::TensorInfo& found = info(tensor);
  std::vector<float> out(found.values());
  gguf::dequantize(found.format, checkpoint_->bytes(found).data(), out.data(), out.size());
  return out;
}

void Placer::vector(const std::string& name, std::string_view tensor) {
  std::vector<float> out = widened(tensor);
  const Extent extent{1, static_cast<uint32_t>(out.size())};
  values(name, extent, std::move(out));
}

void Placer::vector(const std::string& name, std::string_view tensor, const std::vector<uint32_t>& order) {
  const std::vector<float> all = widened(tensor);
  std::vector<float> out;
  out.reserve(order.size());
  for (const uint32_t from : order) out.push_back(all[from]);
  values(name, {1, static_cast<uint32_t>(order.size())}, std::move(out));
}

void Placer::matrix_values(const std::string& name, std::string_view tensor, const std::vector<uint32_t>& order) {
  const std::vector<float> all = widened(tensor);
  const uint64_t k = info(tensor).row_length();
  const size_t n = order.size();
  std::vector<float> out(k * n);
  for (size_t column = 0; column < n; ++column)
    for (uint64_t t = 0; t < k; ++t) out[t * n + column] = all[order[column] * k + t];
  values(name, {static_cast<uint32_t>(k), static_cast<uint32_t>(n)}, std::move(out));
}

void Placer::transposed(const std::string& name, std::string_view tensor, RowRange range) {
  matrix_values(name, tensor, ascending(static_cast<uint32_t>(range.first), static_cast<uint32_t>(range.count)));
}

void Placer::values(const std::string& name, Extent extent, std::vector<float> values) {
  TW_CHECK(values.size() == uint64_t{extent.rows} * extent.cols, "{} values for {} x {} of {}", values.size(),
           extent.rows, extent.cols, name);
  place(name, extent, graph::Values{std::make_shared<const std::vector<float>>(std::move(values)), nullptr});
}

}  // namespace tw::model
