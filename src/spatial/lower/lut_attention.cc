#include "spatial/lower/lut_attention.h"

#include <fmt/format.h>

#include "spatial/lower/attention_parts.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/lower.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

class LutAttention {
 public:
  LutAttention(const graph::LutAttention& op, const OpView& view, AttentionShape shape, Precision element,
               Precision accumulator)
      : op_(op), view_(view), shape_(std::move(shape)), element_(element) {
    const uint64_t n = shape_.heads * shape_.positions;
    scores_ = {.name = view.result.name + "__scores", .cols = n, .integer = true, .dtype = accumulator};
    weights_ = {
        .name = view.result.name + "__weights", .cols = n, .integer = true, .dtype = view[kLutTable].stored(element)};
  }

  Result<std::vector<Program>> sections() {
    std::vector<Program> made;
    for (const auto make : {&LutAttention::scores, &LutAttention::weights, &LutAttention::context}) {
      Result<Program> section = paged(view_.target, [&](uint32_t pages) { return (this->*make)(pages); });
      TW_TRY(made.emplace_back(), about(within(std::move(section), view_.target), view_.subject()));
    }
    return made;
  }

 private:
  [[nodiscard]] std::string name(std::string_view section) const {
    return fmt::format("lut_attn_{}x{}_{}", shape_.heads, shape_.positions, section);
  }
  [[nodiscard]] int64_t positions() const { return as_int(shape_.positions); }
  [[nodiscard]] Result<FlatBuild> open(const OpTensor& result) const {
    return FlatBuild::open(OpView{view_.target, {}, result}, element_);
  }
  static FlatBuild::InputOptions deep(uint32_t pages) { return {.precision = {}, .depth = pages}; }
  // One number on the accumulation path.
  static BufferId number(FlatBuild& build, const std::string& name) { return build.scratch(name, 1, 1); }

  Result<Program> scores(uint32_t pages) {
    TW_TRY(FlatBuild build, open(scores_));
    const BufferId q = build.input(view_[kQuery], deep(pages)), k = build.input(view_[kKeys], deep(pages));
    const int64_t width = as_int(shape_.key_width), row = as_int(shape_.key_row());
    PointwiseStage stage("lut_scores");
    stage.sum_rows(shape_.key_width);
    std::vector<Band> bands;
    for (uint64_t h = 0; h < shape_.heads; ++h) {
      const Expr query = stage.read(q, map3(as_int(h) * width, 1, 0));
      const Expr key = stage.read(k, map3(as_int(shape_.kv_head(h)) * width - as_int(h) * positions() * row, 1, row));
      bands.push_back({as_int(h + 1) * positions(), query * key});
    }
    stage.body(banded(bands));
    return std::move(build).pointwise(std::move(stage), scores_.cols, name("scores"), exact());
  }

  // Of each head, the first column past its attended positions: head * positions + P. The largest of them is `most`.
  struct Limits {
    BufferId count{}, thresholds{};
    uint64_t most = 0;
  };
  Result<std::optional<Limits>> limits(FlatBuild& build) {
    if (!shape_.named()) return std::optional<Limits>{};
    Limits made{.most = shape_.heads * shape_.positions};
    const OpTensor& position = view_[kLutPosition];
    const uint64_t space = index_space(made.most + shape_.positions, 1, position.fill);
    TW_TRY(const Precision dtype, index_precision(view_.target, space, view_.subject()));
    Builder& b = build.builder();
    const BufferId page = build.input(position, {.precision = position.stored(dtype), .depth = 1});
    made.count = checked_count(b, page, dtype, shape_.last_position());
    made.thresholds = b.scratch("thresholds", view_.target.tiles(shape_.heads), dtype, 1);
    GenericStage stage = b.compute("thresholds", flat(shape_.heads));
    const Expr count = stage.read(made.count, fixed(0));
    std::vector<Band> bands;
    for (uint64_t h = 0; h < shape_.heads; ++h)
      bands.push_back({as_int(h + 1), count + static_cast<double>(h * shape_.positions)});
    stage.write(made.thresholds, banded(bands));
    return std::optional(made);
  }

  // The largest score of a head. A position that is not attended stands for the first, which always is: no number has
  // to be below all scores.
  BufferId row_max(FlatBuild& build, BufferId scores, uint64_t head, const std::optional<Limits>& limits) {
    const std::string name = fmt::format("row_max_{}", head);
    const BufferId most = number(build, name);
    const int64_t first = as_int(head) * positions();
    GenericStage stage = build.builder().compute(name, {rows(1), reduce_cols(shape_.positions, Pool::Max)});
    Expr score = stage.read(scores, at(first));
    if (limits) {
      const uint32_t count = stage.operand(limits->count, fixed(0));
      score = select(less_than_operand(Axis::Col, count), std::move(score), stage.read(scores, fixed(first)));
    }
    stage.write(most, std::move(score));
    return most;
  }

  // value(head) at the attended positions of each head, 0 at the others.
  template <class Value>
  Expr attended(PointwiseStage& stage, const std::optional<Limits>& limits, Value&& value) {
    std::vector<Band> bands;
    for (uint64_t h = 0; h < shape_.heads; ++h) {
      Expr body = value(h);
      if (limits) {
        const uint32_t end = stage.index(limits->thresholds, fixed(as_int(h)), limits->most);
        body = select(less_than_operand(Axis::Col, end), std::move(body), 0.0);
      }
      bands.push_back({as_int(h + 1) * positions(), std::move(body)});
    }
    return banded(bands);
  }

  Result<Program> weights(uint32_t pages) {
    TW_TRY(FlatBuild build, open(weights_));
    const BufferId scores = build.input(scores_, deep(pages)), table = build.input(view_[kLutTable], deep(pages));
    TW_TRY(const std::optional<Limits> limits, this->limits(build));
    const uint64_t entries = view_[kLutTable].size();

    PointwiseStage index("lut_index");
    const BufferId indices = build.columns("lut_index", weights_.cols);
    const Expr score = index.read(scores, at(0));
    index.body(attended(index, limits, [&](uint64_t h) {
      const Expr most = index.read(row_max(build, scores, h, limits), fixed(0));
      const Expr step = shr((most - score) * static_cast<double>(op_.multiplier), op_.shift);
      return min(max(step, 0.0), static_cast<double>(entries - 1));
    }));
    index.into(indices);

    PointwiseStage weight("lut_weight");
    const uint32_t at_entry = weight.local(indices);
    Expr entry = weight.read(table, fixed(0).plus(at_entry, 1, entries));
    weight.body(limits ? attended(weight, limits, [&](uint64_t) { return entry; }) : entry);
    return std::move(build).pointwise({std::move(index), std::move(weight)}, weights_.cols, name("weights"), exact());
  }

  // Neither sum is masked: what is not attended weighs 0.
  Result<Program> context(uint32_t pages) {
    TW_TRY(FlatBuild build, open(view_.result));
    const BufferId w = build.input(weights_, deep(pages)), v = build.input(view_[kValues], deep(pages));
    const uint64_t n = shape_.heads * shape_.value_width;
    const int64_t width = as_int(shape_.value_width), row = as_int(shape_.value_row());
    PointwiseStage numerator("num"), quotient("floor_div");
    const BufferId sums = build.columns("num", n);
    const Expr sum = arg(quotient.local(sums));
    std::vector<Band> products, quotients;
    for (uint64_t h = 0; h < shape_.heads; ++h) {
      const int64_t first = as_int(h) * width, end = first + width, weights_at = as_int(h) * positions();
      const Expr weight = numerator.read(w, map3(weights_at, 1, 0));
      const Expr value = numerator.read(v, map3(as_int(shape_.kv_head(h)) * width - first, row, 1));
      products.push_back({end, weight * value});

      const std::string name = fmt::format("den_{}", h);
      const BufferId total = number(build, name);
      GenericStage den = build.builder().compute(name, {rows(1), reduce_cols(shape_.positions)});
      const Expr term = den.read(w, at(weights_at));
      den.write(total, term);
      quotients.push_back({end, floor_div(sum, quotient.read(total, fixed(0)))});
    }
    numerator.sum_rows(shape_.positions);
    numerator.body(banded(products));
    numerator.into(sums);
    quotient.body(banded(quotients));
    return std::move(build).pointwise({std::move(numerator), std::move(quotient)}, n, name("context"), exact());
  }

  const graph::LutAttention& op_;
  const OpView& view_;
  AttentionShape shape_;
  Precision element_;
  OpTensor scores_, weights_;
};

}  // namespace

Result<std::vector<Program>> lut_attention(const graph::LutAttention& op, const OpView& view) {
  TW_TRY(AttentionShape shape, shape_of(op, view));
  if (view[kLutTable].size() == 0)
    return refuse(RefusalKind::Unsupported, view.subject(), "attention by a table of 0 weights");
  TW_TRY(const Precision element, integer_element(view.target, view.subject()));
  TW_TRY(const Precision accumulator, accumulator_for(view.target, element, view.subject()));
  return LutAttention(op, view, std::move(shape), element, accumulator).sections();
}

Result<Lowered> lower(const graph::LutAttention& op, const OpView& view) {
  TW_TRY(std::vector<Program> sections, lut_attention(op, view));
  const uint64_t tiles = view.target.tiles(sections[0].at(*sections[0].result()).cols);
  const bool wide = tiles > view.target.accumulator_tiles;
  return Lowered{std::move(sections), wide ? "integer, by columns" : "integer",
                 wide ? over_a_page(view.target, tiles) : within_a_page(view.target, tiles)};
}

}  // namespace tw::spatial::lower
