#include "spatial/lower/attention_flat.h"

#include <fmt/format.h>

#include "spatial/lower/attention_parts.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/softmax.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// The scores of all query heads side by side: position j of query head v at column v * l + j.
class FlatScores {
 public:
  static Result<Program> write(const AttentionShape& shape, const OpView& op, const OpTensor& result, uint32_t pages) {
    TW_TRY(FlatBuild build, FlatBuild::open(OpView{op.target, {}, result}, *result.dtype));
    FlatScores scores(shape, op, std::move(build));
    TW_TRY_VOID(scores.choose_index());
    return std::move(scores).finish(pages);
  }

 private:
  FlatScores(const AttentionShape& shape, const OpView& op, FlatBuild build)
      : shape_(shape), op_(op), build_(std::move(build)) {}

  // Thresholds, floors and positions alike.
  Result<void> choose_index() {
    if (!shape_.named()) return {};
    const uint64_t reach = columns() + shape_.positions + shape_.window.size;
    TW_TRY(index_, index_precision(op_.target, index_space(reach, 1, op_[kPosition].fill), op_.subject()));
    return {};
  }

  Result<Program> finish(uint32_t pages) && {
    Builder& b = build_.builder();
    const bool masked = shape_.limited(), capped = shape_.softcap > 0;
    const BufferId out = build_.result_page(columns());
    BufferId scores = masked || capped ? build_.scratch("raw_scores", columns(), 1) : out;
    dot(scores, pages);
    if (capped) {
      const BufferId page = masked ? build_.scratch("capped_scores", columns(), 1) : out;
      GenericStage cap = b.compute("attn_cap", flat(columns()));
      const Expr score = cap.read(scores, at(0));
      cap.write(page, soft_cap(score, shape_.softcap));
      scores = page;
    }
    if (masked) mask(scores, out);
    return std::move(build_).finish(fmt::format("{}_scores_{}x{}", shape_.tag, shape_.query_heads(), shape_.positions),
                                    approx(fmt::format("attention scores in {}", name(build_.precision()))));
  }

  void dot(BufferId scores, uint32_t pages) {
    const BufferId q = build_.input(op_[kQuery], {.precision = {}, .depth = pages});
    const BufferId k = build_.input(op_[kKeys], {.precision = {}, .depth = pages});
    const BufferId scaler = build_.ones(op_.result.name + "__at_scaler");
    const int64_t width = as_int(shape_.key_width), row = as_int(shape_.key_row());
    GenericStage stage = build_.builder().compute("attn_scores", {reduce_rows(shape_.key_width), cols(columns())});
    std::vector<Band> bands;
    for (uint64_t v = 0; v < shape_.query_heads(); ++v) {
      const Expr query = stage.read(q, map3(as_int(v) * width, 1, 0));
      const Expr key = stage.read(k, map3(as_int(shape_.kv_head(v)) * width - first(v) * row, 1, row));
      bands.push_back({first(v + 1), query * key * shape_.scale});
    }
    stage.scaler(scaler);
    stage.write(scores, banded(bands));
  }

  // ---- what a row attends ----

  // Of each query head, the first column past its positions.
  void thresholds() {
    const OpTensor& position = op_[kPosition];
    Builder& b = build_.builder();
    const BufferId page = build_.input(position, {.precision = position.stored(index_), .depth = 1});
    const BufferId checked = checked_count(b, page, index_, shape_.last_position());
    limit_ = b.scratch("thresholds", op_.target.tiles(shape_.query_heads()), index_, 1);
    GenericStage stage = b.compute("thresholds", flat(shape_.query_heads()));
    const Expr count = stage.read(checked, fixed(0));
    std::vector<Band> bands;
    for (uint64_t v = 0; v < shape_.query_heads(); ++v) {
      const uint64_t before = v * shape_.positions + v / shape_.heads;
      bands.push_back({as_int(v + 1), count + static_cast<double>(before)});
    }
    stage.write(limit_, banded(bands));
  }

  // Of each query head, the first column that the window keeps, or one before the head's.
  void floors() {
    Builder& b = build_.builder();
    floor_ = b.scratch("floors", op_.target.tiles(shape_.query_heads()), index_, 1);
    GenericStage stage = b.compute("floors", flat(shape_.query_heads()));
    const Expr end = stage.read(limit_, at(0));
    const double size = shape_.window.size;
    std::vector<Band> bands;
    for (uint64_t v = 0; v < shape_.query_heads(); ++v) {
      const auto start = static_cast<double>(first(v));
      bands.push_back({as_int(v + 1), start + floor_div((end - start) - 1.0, size) * size});
    }
    const bool sliding = shape_.window.kind == graph::Window::Kind::Sliding;
    stage.write(floor_, sliding ? end - size : banded(bands));
  }

  void mask(BufferId scores, BufferId out) {
    if (shape_.named()) thresholds();
    if (shape_.named() && shape_.windowed()) floors();
    GenericStage stage = build_.builder().compute("mask", flat(columns()));
    const Expr score = stage.read(scores, at(0));
    std::vector<Band> bands;
    for (uint64_t v = 0; v < shape_.query_heads(); ++v)
      bands.push_back({first(v + 1), shape_.named() ? kept_by_data(stage, score, v) : kept(score, v)});
    stage.write(out, banded(bands));
  }

  Expr kept_by_data(GenericStage& stage, Expr score, uint64_t v) const {
    if (shape_.windowed()) {
      const uint32_t floor = stage.operand(floor_, fixed(as_int(v)));
      score = select(at_least_operand(Axis::Col, floor), std::move(score), kMasked);
    }
    const uint32_t limit = stage.operand(limit_, fixed(as_int(v)));
    return select(less_than_operand(Axis::Col, limit), std::move(score), kMasked);
  }

  [[nodiscard]] Expr kept(Expr score, uint64_t v) const {
    const uint64_t count = shape_.attended(v / shape_.heads), left_out = shape_.left_out(count);
    if (left_out > 0) score = select(at_least(Axis::Col, first(v) + as_int(left_out)), std::move(score), kMasked);
    if (count < shape_.positions) score = select(less(Axis::Col, first(v) + as_int(count)), std::move(score), kMasked);
    return score;
  }

  [[nodiscard]] uint64_t columns() const { return shape_.query_heads() * shape_.positions; }
  [[nodiscard]] int64_t first(uint64_t v) const { return as_int(v * shape_.positions); }

  const AttentionShape& shape_;
  const OpView& op_;
  FlatBuild build_;
  Precision index_ = Precision::I32;
  BufferId limit_{}, floor_{};
};

}  // namespace

bool flat_applies(const AttentionShape& shape, const Target& target) {
  const uint64_t heads = shape.query_heads();
  return heads <= target.tile.rows && !target.wide(heads * shape.positions) && !target.wide(heads * shape.value_width);
}

Result<std::vector<Program>> flat_attention(const AttentionShape& shape, const OpView& op) {
  TW_TRY(const Precision element, real_element(op.target, op.subject()));
  const uint64_t heads = shape.query_heads();
  const OpTensor scores{.name = op.result.name + "__scores", .rows = heads, .cols = shape.positions, .dtype = element};
  const OpTensor probs{.name = op.result.name + "__probs", .rows = heads, .cols = shape.positions, .dtype = element};
  std::vector<Program> sections;
  const auto add = [&](Result<Program> section) -> Result<void> {
    TW_TRY(sections.emplace_back(), about(within(std::move(section), op.target), op.subject()));
    return {};
  };
  TW_TRY_VOID(add(paged(op.target, [&](uint32_t pages) { return FlatScores::write(shape, op, scores, pages); })));

  OpView softmax{op.target, {scores, std::nullopt}, probs};
  if (shape.sinks) {
    OpTensor sinks = op[kSinks];
    if (shape.rows > 1) {
      TW_TRY(const Precision dtype, element_of(op, sinks));
      const OpTensor spread{.name = op.result.name + "__sink_rows", .cols = heads, .dtype = dtype};
      TW_TRY_VOID(
          add(spread_sinks(op, sinks, spread.name, heads, [&](uint64_t v) { return std::optional(v % shape.heads); })));
      sinks = spread;
    }
    sinks.rows = heads;
    sinks.cols = 1;
    softmax.operands[1] = sinks;
  }
  Result<Program> weights = softmax_section(softmax, element);
  if (weights) weights->name = fmt::format("{}_softmax_{}x{}", shape.tag, heads, shape.positions);
  TW_TRY_VOID(add(std::move(weights)));
  TW_TRY_VOID(add(weighted_sum(shape, op, probs, shape.positions)));
  return sections;
}

}  // namespace tw::spatial::lower
