#include "model/step_writer.h"

#include <fmt/format.h>

#include <utility>

namespace tw::model {

using graph::kNoTensor;
using graph::TensorId;

std::string SequenceWriter::own_name(std::string_view name) const {
  return index_ ? fmt::format("{}_s{}", name, *index_) : std::string(name);
}

TensorId SequenceWriter::rows(std::string_view name, TensorId x) {
  if (!index_) return x;
  return add(name, graph::RowGather{.row = *index_ + 1}, {x});
}

TensorId SequenceWriter::add(std::string_view name, graph::OpSpec spec, std::vector<TensorId> operands) {
  return step_->builder_.add(own_name(name), spec, std::move(operands), index_);
}

TensorId SequenceWriter::state(std::string_view name, uint32_t rows, uint32_t cols) {
  std::string full = own_name(name);
  if (const auto found = step_->declared_.find(full); found != step_->declared_.end()) {
    const graph::Tensor& state = step_->builder_.at(found->second);
    TW_CHECK(state.rows == rows && state.cols == cols, "state {} of {} x {} is read as {} x {}", full, state.rows,
             state.cols, rows, cols);
    return found->second;
  }
  const TensorId id = step_->builder_.state(full, rows, cols, index_);
  step_->declared_.emplace(std::move(full), id);
  return id;
}

void SequenceWriter::set_cache(TensorId cache, TensorId rows) { step_->builder_.set_rows(cache, rows, position_); }

StepWriter::StepWriter(const Weights& weights, std::string name, graph::Form form, uint32_t context)
    : weights_(&weights),
      form_(form),
      context_(context),
      builder_(std::move(name), form),
      tokens_(builder_.param("tokens", form.rows)) {
  builder_.io().tokens = tokens_;
  if (form.kind != graph::Form::Kind::Batch) {
    sequences_.push_back(SequenceWriter(*this, std::nullopt, builder_.param("position", 1)));
    return;
  }
  for (uint32_t b = 0; b < form.rows; ++b)
    sequences_.push_back(SequenceWriter(*this, b, builder_.param(fmt::format("position_s{}", b), 1)));
}

TensorId StepWriter::constant(std::string_view name) {
  if (const auto found = declared_.find(name); found != declared_.end()) return found->second;
  const auto extent = weights_->extents.find(name);
  TW_CHECK(extent != weights_->extents.end(), "constant {} was not placed", name);
  const TensorId id = builder_.constant(std::string(name), extent->second.rows, extent->second.cols);
  declared_.emplace(name, id);
  return id;
}

TensorId StepWriter::optional(std::string_view name) { return has(name) ? constant(name) : kNoTensor; }

TensorId StepWriter::add(std::string_view name, graph::OpSpec spec, std::vector<TensorId> operands) {
  return builder_.add(std::string(name), spec, std::move(operands));
}

TensorId StepWriter::product(std::string_view name, TensorId x, std::string_view stem) {
  const TensorId w = constant(fmt::format("{}.weight", stem));
  const TensorId bias = optional(fmt::format("{}.bias", stem));
  if (bias == kNoTensor) return add(name, graph::Matmul{}, {x, w});
  const TensorId plain = add(fmt::format("{}_product", name), graph::Matmul{}, {x, w});
  return add(name, graph::RowBroadcast{.op = graph::Arithmetic::Add}, {plain, bias});
}

TensorId StepWriter::rms_norm(std::string_view name, TensorId x, std::string_view weight, float eps) {
  return add(name, graph::RowNorm{.eps = eps}, {x, constant(weight)});
}

TensorId StepWriter::scale(std::string_view name, TensorId x, float factor) {
  return factor == 1 ? x : add(name, graph::Scale{factor}, {x});
}

TensorId StepWriter::elementwise(std::string_view name, graph::Arithmetic op, TensorId a, TensorId b) {
  return add(name, graph::Elementwise{op}, {a, b});
}

TensorId StepWriter::activate(std::string_view name, graph::ActivationKind kind, TensorId x) {
  return add(name, graph::Activate{kind}, {x});
}

TensorId StepWriter::each_sequence(std::string_view name, uint32_t width,
                                   const std::function<TensorId(SequenceWriter&)>& body) {
  if (form_.kind != graph::Form::Kind::Batch) return body(sequences_.front());
  const TensorId table = builder_.table(std::string(name), form_.rows, width);
  for (SequenceWriter& sequence : sequences_) builder_.set_row_at(table, body(sequence), *sequence.index_ + 1);
  return table;
}

void StepWriter::finish_with_head(TensorId h, const Head& head) {
  using Kind = graph::Form::Kind;
  const bool last_only = form_.kind == Kind::Chunk && !form_.all_logits && form_.rows > 1;
  if (last_only) h = add("result_row", graph::RowGather{.row = form_.rows}, {h});
  const bool capped = head.softcap > 0;
  const TensorId normed = rms_norm("result_norm", h, head.norm, head.eps);
  const TensorId plain = product(capped || head.scale != 1 ? "logits_plain" : "logits", normed, head.stem);
  const TensorId scaled = scale(capped ? "logits_scaled" : "logits", plain, head.scale);
  const TensorId logits = capped ? add("logits", graph::Softcap{head.softcap}, {scaled}) : scaled;
  for (SequenceWriter& sequence : sequences_) {
    const TensorId own = sequence.rows("logits", logits);
    const TensorId next = sequence.add("next", graph::ArgMax{}, {own});
    builder_.io().sequences.push_back({sequence.position(), own, next});
  }
}

}  // namespace tw::model
