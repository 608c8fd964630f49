#include <fmt/format.h>

#include "base/round.h"
#include "spatial/lower/attention_flat.h"
#include "spatial/lower/attention_parts.h"
#include "spatial/lower/flash.h"
#include "spatial/lower/flat_build.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// The probabilities of one query head, as an item. Where its query, key and sink lie, and what its row adds to the
// position, comes as data: four numbers an item.
class HeadProbabilities {
 public:
  HeadProbabilities(const AttentionShape& shape, const OpView& op, Precision element, Precision accumulator,
                    uint32_t pages)
      : shape_(shape), op_(op), element_(element), pages_(pages), b_(op.target, accumulator) {}

  Result<Program> write(const std::string& result) {
    TW_TRY_VOID(choose_index());
    load();
    BufferId scores = dot();
    if (shape_.softcap > 0) scores = cap(scores);
    if (shape_.limited()) scores = mask(scores);
    softmax(scores);
    return finish(result);
  }

 private:
  enum Place : int64_t { kQueryAt, kKeyAt, kRow, kHead, kPlaces };

  Result<void> choose_index() {
    const uint64_t queries = shape_.query_heads() * shape_.key_width;
    const uint64_t reach = shape_.cached + shape_.rows + shape_.window.size;
    const uint64_t named = shape_.named() ? index_space(reach, 1, op_[kPosition].fill) : reach;
    // A row is added to a position; all places of a head share one table, whose bound is that of the largest.
    TW_TRY(index_, index_precision(op_.target, named + std::max(queries, shape_.key_row()), op_.subject()));
    return {};
  }

  BufferId load_flat(const OpTensor& operand, std::string_view name) {
    const Precision dtype = operand.stored(element_);
    const TensorId tensor = declare_operand(b_, operand, 1, operand.size(), dtype);
    const BufferId page = b_.buffer(fmt::format("in_{}", name), op_.target.tiles(operand.size()), dtype, pages_);
    b_.load(fmt::format("load_{}", name), tensor, {}, page);
    return page;
  }

  void load() {
    q_ = load_flat(op_[kQuery], "q");
    k_ = load_flat(op_[kKeys], "k");
    if (shape_.sinks) sinks_ = load_flat(op_[kSinks], "sinks");
    scaler_ = b_.buffer("in_scaler", 1, element_, pages_);
    b_.load("load_scaler", b_.ones(op_.result.name + "__at_scaler", element_), {}, scaler_);
    load_places();
    if (shape_.named()) position_ = load_position(b_, op_[kPosition], index_, shape_.last_position());
  }

  void load_places() {
    const uint64_t width = op_.target.tile.cols, per = ceil_div(kPlaces, width);
    std::vector<int64_t> values(shape_.query_heads() * per * width);
    for (uint64_t v = 0; v < shape_.query_heads(); ++v) {
      int64_t* at = values.data() + v * per * width;
      at[kQueryAt] = as_int(v * shape_.key_width);
      at[kKeyAt] = as_int(shape_.kv_head(v) * shape_.key_width);
      at[kRow] = as_int(v / shape_.heads);
      at[kHead] = as_int(v % shape_.heads);
    }
    const uint64_t columns = values.size();
    const TensorId table = b_.tensor(op_.result.name + "__head_places", TensorRole::Param, 1, columns, index_,
                                     integer_values(std::move(values)));
    places_ = b_.buffer("in_places", per, index_, pages_);
    b_.load("load_places", table, {.steps = {item_x(per)}}, places_);
  }

  BufferId dot() {
    const BufferId scores = columns("raw_scores");
    GenericStage stage = b_.compute("attn_scores", {reduce_rows(shape_.key_width), cols(shape_.positions)});
    const uint32_t query_at = stage.operand(places_, fixed(kQueryAt)), key_at = stage.operand(places_, fixed(kKeyAt));
    const Expr q = stage.read(q_, map3(0, 1, 0).plus(query_at, 1, shape_.query_heads() * shape_.key_width));
    const Expr k = stage.read(k_, map3(0, 1, as_int(shape_.key_row())).plus(key_at, 1, shape_.key_row()));
    stage.scaler(scaler_);
    stage.write(scores, q * k * shape_.scale);
    return scores;
  }

  BufferId cap(BufferId scores) {
    const BufferId capped = columns("capped_scores");
    GenericStage stage = b_.compute("attn_cap", flat(shape_.positions));
    const Expr score = stage.read(scores, at(0));
    stage.write(capped, soft_cap(score, shape_.softcap));
    return capped;
  }

  // How many positions the row attends, and the first that the window keeps.
  void limits() {
    limit_ = one("row_limit", index_);
    GenericStage limit = b_.compute("row_limit", flat(1));
    if (position_) {
      const Expr count = limit.read(*position_, fixed(0)), row = limit.read(places_, fixed(kRow));
      limit.write(limit_, count + row);
    } else if (shape_.bound == AttentionShape::Bound::Literal) {
      const Expr row = limit.read(places_, fixed(kRow));
      limit.write(limit_, row + static_cast<double>(shape_.position));
    } else {
      limit.write(limit_, static_cast<double>(shape_.cached));
    }
    if (!shape_.windowed()) return;
    floor_ = one("row_floor", index_);
    GenericStage floor = b_.compute("row_floor", flat(1));
    const Expr count = floor.read(limit_, fixed(0));
    const double size = shape_.window.size;
    const bool sliding = shape_.window.kind == graph::Window::Kind::Sliding;
    floor.write(floor_, sliding ? count - size : floor_div(count - 1.0, size) * size);
  }

  BufferId mask(BufferId scores) {
    limits();
    const BufferId masked = columns("scores");
    GenericStage stage = b_.compute("mask", flat(shape_.positions));
    Expr score = stage.read(scores, at(0));
    const uint32_t limit = stage.operand(limit_, fixed(0));
    if (shape_.windowed())
      score = select(at_least_operand(Axis::Col, stage.operand(floor_, fixed(0))), std::move(score), kMasked);
    stage.write(masked, select(less_than_operand(Axis::Col, limit), std::move(score), kMasked));
    return masked;
  }

  // The sink of the item's head.
  Expr sink(GenericStage& stage) {
    const uint32_t head = stage.operand(places_, fixed(kHead));
    return stage.read(*sinks_, fixed(0).plus(head, 1, shape_.heads));
  }

  void softmax(BufferId scores) {
    BufferId most = one("row_max", b_.accumulator());
    GenericStage max_of = b_.compute("row_max", {rows(1), reduce_cols(shape_.positions, Pool::Max)});
    const Expr score = max_of.read(scores, at(0));
    max_of.scaler(scaler_);
    max_of.write(most, score);
    if (sinks_) {
      const BufferId with_sink = one("row_max_sink", b_.accumulator());
      GenericStage larger = b_.compute("row_max_sink", flat(1));
      const Expr row = larger.read(most, fixed(0));
      larger.write(with_sink, max(row, sink(larger)));
      most = with_sink;
    }

    const BufferId expx = columns("expx");
    GenericStage centred = b_.compute("exp_centred", flat(shape_.positions));
    const Expr x = centred.read(scores, at(0)), m = centred.read(most, fixed(0));
    centred.write(expx, exp(x - m));

    BufferId sum = one("row_sum", b_.accumulator());
    GenericStage sum_of = b_.compute("row_sum", {rows(1), reduce_cols(shape_.positions)});
    const Expr term = sum_of.read(expx, at(0));
    sum_of.scaler(scaler_);
    sum_of.write(sum, term);
    if (sinks_) {
      const BufferId with_sink = one("row_sum_sink", b_.accumulator());
      GenericStage more = b_.compute("row_sum_sink", flat(1));
      const Expr row = more.read(sum, fixed(0)), top = more.read(most, fixed(0));
      more.write(with_sink, row + exp(sink(more) - top));
      sum = with_sink;
    }

    const BufferId inverse = one("row_inv", b_.accumulator());
    GenericStage recip_of = b_.compute("recip", flat(1));
    const Expr total = recip_of.read(sum, fixed(0));
    recip_of.write(inverse, recip(total));

    probs_ = b_.buffer("probs", tiles(), element_, pages_);
    GenericStage scale = b_.compute("scale", flat(tiles() * op_.target.tile.cols));
    const Expr e = scale.read(expx, at(0)), factor = scale.read(inverse, fixed(0));
    scale.write(probs_, select(less(Axis::Col, as_int(shape_.positions)), e * factor, 0.0));
  }

  Result<Program> finish(const std::string& result) {
    const uint64_t columns = shape_.query_heads() * tiles() * op_.target.tile.cols;
    const TensorId probs = b_.tensor(result, TensorRole::Output, 1, columns, element_);
    b_.store("store_probs", probs_, probs, {.steps = {item_x(tiles())}});
    return std::move(b_).finish(
        {.name = fmt::format("{}_head_probs_{}x{}", shape_.tag, shape_.query_heads(), shape_.positions),
         .items = row_items(shape_.query_heads() * tiles(), tiles()),
         .claim = approx(fmt::format("attention probabilities in {}", name(element_)))});
  }

  [[nodiscard]] uint64_t tiles() const { return op_.target.tiles(shape_.positions); }
  BufferId columns(const std::string& name) { return b_.scratch(name, tiles(), 1); }
  BufferId one(const std::string& name, Precision dtype) { return b_.scratch(name, 1, dtype, 1); }

  const AttentionShape& shape_;
  const OpView& op_;
  Precision element_;
  uint32_t pages_;
  Precision index_ = Precision::I32;
  Builder b_;
  BufferId q_{}, k_{}, scaler_{}, places_{}, limit_{}, floor_{}, probs_{};
  std::optional<BufferId> sinks_, position_;
};

}  // namespace

Result<Program> weighted_sum(const AttentionShape& shape, const OpView& op, const OpTensor& probabilities,
                             uint64_t stride) {
  const uint64_t n = shape.query_heads() * shape.value_width;
  TW_TRY(const Precision element, real_element(op.target, op.subject()));
  return paged(op.target, [&](uint32_t pages) -> Result<Program> {
    TW_TRY(FlatBuild build, FlatBuild::open(op, element));
    const BufferId p = build.input(probabilities, {.precision = {}, .depth = pages});
    const BufferId v = build.input(op[kValues], {.precision = {}, .depth = pages});
    const BufferId scaler = build.ones(op.result.name + "__wv_scaler");
    PointwiseStage stage("attn_weighted");
    stage.sum_rows(shape.positions, scaler);
    std::vector<Band> bands;
    for (uint64_t h = 0; h < shape.query_heads(); ++h) {
      const int64_t first = as_int(h * shape.value_width);
      const Expr weight = stage.read(p, map3(as_int(h * stride), 1, 0));
      const Expr value =
          stage.read(v, map3(as_int(shape.kv_head(h) * shape.value_width) - first, as_int(shape.value_row()), 1));
      bands.push_back({first + as_int(shape.value_width), weight * value});
    }
    stage.body(banded(bands));
    return std::move(build).pointwise(std::move(stage), n,
                                      fmt::format("{}_wv_{}x{}", shape.tag, shape.query_heads(), shape.value_width),
                                      approx(fmt::format("attention weighted sum in {}", name(element))));
  });
}

Result<std::vector<Program>> head_attention(const AttentionShape& shape, const OpView& op) {
  TW_TRY(const Precision element, real_element(op.target, op.subject()));
  TW_TRY(const Precision accumulator, accumulator_for(op.target, element, op.subject()));
  const uint64_t tiles = op.target.tiles(shape.positions), stride = tiles * op.target.tile.cols;
  if (op.target.wide(shape.positions)) {
    const Result<void> flash = check_flash(shape, op);
    return refuse(RefusalKind::TooLarge, op.subject(),
                  fmt::format("the {} scores of a query head take {}{}", shape.positions, over_a_page(op.target, tiles),
                              flash ? "" : "; " + flash.refusal().reason),
                  "Use a shorter cache, or a target with square tiles that divide the head width");
  }
  const OpTensor probs{.name = op.result.name + "__probs", .cols = shape.query_heads() * stride, .dtype = element};
  Result<Program> first = paged(op.target, [&](uint32_t pages) {
    return HeadProbabilities(shape, op, element, accumulator, pages).write(probs.name);
  });
  TW_TRY(Program probabilities, about(within(std::move(first), op.target), op.subject()));
  TW_TRY(Program sum, within(weighted_sum(shape, op, probs, stride), op.target));
  return std::vector<Program>{std::move(probabilities), std::move(sum)};
}

}  // namespace tw::spatial::lower
