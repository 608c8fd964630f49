#include "spatial/lower/flash.h"

#include <fmt/format.h>

#include "base/round.h"
#include "spatial/lower/attention_parts.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// The fold while it is written.
class Writer {
 public:
  Writer(const FlashFold& fold, uint32_t pages, Precision element, Precision accumulator)
      : fold_(fold), shape_(fold.shape), pages_(pages), element_(element), b_(fold.target, accumulator) {}

  Result<Program> write() {
    TW_TRY_VOID(choose_index());
    declare();
    prologue();
    body();
    epilogue();
    return finish();
  }

 private:
  [[nodiscard]] uint64_t tile() const { return fold_.target.tile.rows; }
  [[nodiscard]] int64_t width() const { return as_int(tile()); }
  [[nodiscard]] uint64_t key_tiles() const { return shape_.key_width / tile(); }
  [[nodiscard]] uint64_t value_tiles() const { return shape_.value_width / tile(); }
  [[nodiscard]] uint64_t part_tiles() const { return fold_.target.block_of(value_tiles()); }  // of a value page
  [[nodiscard]] uint64_t parts() const { return value_tiles() / part_tiles(); }
  [[nodiscard]] uint64_t blocks() const { return (shape_.positions + tile() - 1) / tile(); }
  [[nodiscard]] uint64_t per_row() const { return fold_.grouped ? 1 : shape_.heads; }  // items of a query tile
  [[nodiscard]] uint64_t query_tiles() const {
    return fold_.grouped ? shape_.kv_heads : (shape_.rows + tile() - 1) / tile();
  }
  [[nodiscard]] uint64_t query_rows() const { return fold_.grouped ? shape_.kv_heads * tile() : shape_.rows; }
  [[nodiscard]] uint64_t items() const { return query_tiles() * per_row(); }
  [[nodiscard]] bool masked() const { return shape_.limited() || shape_.positions % tile() != 0; }
  [[nodiscard]] bool counted() const { return masked() && blocks() > 1; }
  // Rows of a tile attend a different number of positions each.
  [[nodiscard]] bool rows_differ() const {
    return shape_.bound != AttentionShape::Bound::Absent && shape_.rows > 1 && !fold_.grouped;
  }
  [[nodiscard]] std::string part_name(std::string_view name, uint64_t part) const {
    return parts() > 1 ? fmt::format("{}{}", name, part) : std::string(name);
  }

  Result<void> choose_index();
  void declare();
  BufferId load_param(const std::string& name, TensorId tensor, Precision dtype, std::vector<Step> steps);

  void prologue();
  void row_limit();
  void init_max();
  void body();
  void load_block();
  void limits();
  void scores();
  void weigh();
  void fold_carries();
  BufferId last_sum();
  void epilogue();
  Result<Program> finish();
  [[nodiscard]] std::vector<WorkItem> work_items() const;

  [[nodiscard]] std::vector<Iter> tile_rows(uint64_t columns) const { return {rows(tile()), cols(columns)}; }
  // `value` at the positions that the row attends, `otherwise` at the others.
  Expr live(GenericStage& stage, Expr value, double otherwise);

  const FlashFold& fold_;
  const AttentionShape& shape_;
  uint32_t pages_;
  Precision element_;
  Precision index_ = Precision::I32;
  Builder b_;

  TensorId query_{}, keys_{}, values_{}, result_{};
  BufferId in_q_{}, scaler_{}, row_limit_{}, block_start_{};
  BufferId run_max_{}, run_sum_{}, rescale_{}, new_max_{}, block_sum_{};
  BufferId in_k_{}, scores_{}, probs_{};
  BufferId limit_{}, floor_{};  // of the block, in its own columns
  std::vector<BufferId> in_v_, run_out_, block_out_;
  std::optional<TensorId> position_;
};

Result<void> Writer::choose_index() {
  if (!masked()) return {};
  const uint64_t reach = blocks() * tile() + query_tiles() * tile();
  const uint64_t space =
      std::max(reach + shape_.window.size,
               shape_.named() ? index_space(shape_.cached + 1, 1, fold_.position->fill) : uint64_t{0});
  TW_TRY(index_, index_precision(fold_.target, space, fold_.result.name));
  return {};
}

void Writer::declare() {
  query_ = declare_operand(b_, fold_.query, query_rows(), per_row() * shape_.key_width, fold_.query.stored(element_));
  keys_ = declare_operand(b_, fold_.keys, shape_.cached, shape_.key_row(), fold_.keys.stored(element_));
  values_ = declare_operand(b_, fold_.values, shape_.cached, shape_.value_row(), fold_.values.stored(element_));
  result_ = b_.tensor(fold_.result.name, TensorRole::Output, query_rows(), per_row() * shape_.value_width,
                      fold_.result.stored(element_));
}

BufferId Writer::load_param(const std::string& name, TensorId tensor, Precision dtype, std::vector<Step> steps) {
  const BufferId page = b_.buffer("in_" + name, 1, dtype, 1);
  b_.load("load_" + name, tensor, {.steps = std::move(steps)}, page);
  return page;
}

// ---- once an item ----

void Writer::prologue() {
  b_.level(FoldLevel::Prologue);
  scaler_ = load_param("scaler", b_.ones(fold_.result.name + "__flash_scaler", element_), element_, {});
  in_q_ = b_.buffer("in_q", key_tiles(), b_.program().at(query_).dtype, 1);
  b_.load("load_q", query_, {.steps = {item_y(key_tiles())}}, in_q_);
  if (masked()) row_limit();
  init_max();
  run_sum_ = b_.scratch("run_sum", 1);
  b_.compute("init_sum", tile_rows(tile())).write(run_sum_, shape_.sinks ? 1.0 : 0.0);
  for (uint64_t j = 0; j < parts(); ++j) {
    run_out_.push_back(b_.scratch(part_name("run_out", j), part_tiles()));
    b_.compute(part_name("init_out", j), tile_rows(part_tiles() * tile())).write(run_out_[j], 0.0);
  }
  if (!counted()) return;
  block_start_ = b_.scratch("block_start", 1, index_);
  b_.compute("init_start", flat(1)).write(block_start_, 0.0);
}

// Of each row, how many positions it attends. Rows below the last query row attend all that there are, so that they see
// something too.
void Writer::row_limit() {
  row_limit_ = b_.scratch("row_limit", 1, index_, 1);
  std::optional<BufferId> position;
  if (shape_.named()) {
    position = load_position(b_, *fold_.position, index_, shape_.last_position());
    position_ = declare_operand(b_, *fold_.position, 1, 1, index_);
  }
  if (!rows_differ()) {
    GenericStage limit = b_.compute("row_limit", tile_rows(1));
    const Expr count = position ? limit.read(*position, fixed(0)) : Expr(static_cast<double>(shape_.attended(0)));
    limit.write(row_limit_, count);
    return;
  }
  std::vector<int64_t> first_rows(items()), row_index(tile() * tile());
  for (uint64_t y = 0; y < items(); ++y) first_rows[y] = as_int(y / per_row() * tile());
  for (uint64_t e = 0; e < row_index.size(); ++e) row_index[e] = as_int(e / tile());
  const TensorId tile_rows_table = b_.scalar_table(fold_.result.name + "__flash_tile_rows", index_, first_rows);
  const TensorId row_index_table = b_.tensor(fold_.result.name + "__flash_row_index", TensorRole::Param, tile(), tile(),
                                             index_, integer_values(std::move(row_index)));
  const BufferId first = load_param("tile_rows", tile_rows_table, index_, {item_y(1)});
  const BufferId below = load_param("row_index", row_index_table, index_, {});
  GenericStage limit = b_.compute("row_limit", tile_rows(1));
  const Expr count = position ? limit.read(*position, fixed(0)) : Expr(static_cast<double>(shape_.position));
  const Expr row = limit.read(first, fixed(0)) + limit.read(below, row_of(width()));
  limit.write(row_limit_, min(count + row, static_cast<double>(shape_.positions)));
}

// With sinks a row starts as if it had seen one position of that score and weight 1 whose value is zero.
void Writer::init_max() {
  run_max_ = b_.scratch("run_max", 1);
  if (!fold_.sinks) {
    b_.compute("init_max", tile_rows(tile())).write(run_max_, kMasked);
    return;
  }
  const Precision dtype = fold_.sinks->stored(element_);
  const TensorId sinks = declare_operand(b_, *fold_.sinks, 1, items() * tile(), dtype);
  const BufferId page = load_param("sinks", sinks, dtype, {item_y(1)});
  GenericStage init = b_.compute("init_max", tile_rows(tile()));
  const Expr sink = init.read(page, row_of(1));
  init.write(run_max_, sink);
}

// ---- once a block ----

void Writer::body() {
  b_.level(FoldLevel::Body);
  load_block();
  limits();
  scores();
  weigh();
  fold_carries();
}

void Writer::load_block() {
  in_k_ = b_.buffer("in_k", key_tiles(), b_.program().at(keys_).dtype, pages_);
  b_.load("load_k", keys_, {.steps = {item_x(key_tiles()), k_block(shape_.kv_heads * key_tiles())}}, in_k_);
  for (uint64_t j = 0; j < parts(); ++j) {
    in_v_.push_back(b_.buffer(part_name("in_v", j), part_tiles(), b_.program().at(values_).dtype, pages_));
    b_.load(part_name("load_v", j), values_,
            {.base = j * part_tiles(), .steps = {item_x(value_tiles()), k_block(shape_.kv_heads * value_tiles())}},
            in_v_[j]);
  }
}

// The first masked column of each row and, of a window, the first that is not before it; both may lie outside the
// block.
void Writer::limits() {
  limit_ = row_limit_;
  if (counted()) {
    limit_ = b_.scratch("block_limit", 1, index_, 1);
    GenericStage limit = b_.compute("block_limit", tile_rows(1));
    const Expr row = limit.read(row_limit_, row_of(width())), start = limit.read(block_start_, fixed(0));
    limit.write(limit_, row - start);
  }
  if (!shape_.windowed()) return;
  floor_ = b_.scratch("block_floor", 1, index_, 1);
  const double size = shape_.window.size;
  GenericStage floor = b_.compute("block_floor", tile_rows(1));
  if (shape_.window.kind == graph::Window::Kind::Sliding) {
    const Expr limit = floor.read(limit_, row_of(width()));
    floor.write(floor_, limit - size);
    return;
  }
  Expr first = floor_div(floor.read(row_limit_, row_of(width())) - 1.0, size) * size;
  if (counted()) first = first - floor.read(block_start_, fixed(0));
  floor.write(floor_, first);
}

Expr Writer::live(GenericStage& stage, Expr value, double otherwise) {
  if (!masked()) return value;
  const uint32_t limit = stage.operand(limit_, row_of(width()));
  if (shape_.windowed()) {
    const uint32_t floor = stage.operand(floor_, row_of(width()));
    value = select(at_least_operand(Axis::Col, floor), std::move(value), otherwise);
  }
  return select(less_than_operand(Axis::Col, limit), std::move(value), otherwise);
}

void Writer::scores() {
  scores_ = b_.scratch("scores", 1, 1);
  const int64_t key = as_int(shape_.key_width);
  GenericStage dot = b_.compute("scores", {rows(tile()), cols(tile()), reduce_k(shape_.key_width)});
  const Expr q = dot.read(in_q_, map3(0, key, 0, 1)), k = dot.read(in_k_, map3(0, 0, key, 1));
  dot.write(scores_, q * k * shape_.scale);
  if (shape_.softcap <= 0) return;
  const BufferId capped = b_.scratch("capped_scores", 1, 1);
  GenericStage cap = b_.compute("score_cap", tile_rows(tile()));
  const Expr score = cap.read(scores_, ident(width()));
  cap.write(capped, soft_cap(score, shape_.softcap));
  scores_ = capped;
}

// The new maximum, what the old carries are worth against it, and the block's weights and sums.
void Writer::weigh() {
  const BufferId block_max = b_.scratch("block_max", 1, 1);
  GenericStage most = b_.compute("block_max", {rows(tile()), reduce_cols(tile(), Pool::Max)});
  Expr score = most.read(scores_, ident(width()));
  most.scaler(scaler_);
  score = live(most, std::move(score), kMasked);
  most.write(block_max, std::move(score));

  new_max_ = b_.scratch("new_max", 1, 1);
  GenericStage larger = b_.compute("new_max", {rows(tile()), reduce_cols(2, Pool::Max)});
  const Expr before = larger.read(run_max_, row_of(width())), here = larger.read(block_max, row_of(width()));
  larger.scaler(scaler_);
  larger.write(new_max_, select(less(Axis::Col, 1), before, here));

  rescale_ = b_.scratch("rescale", 1, 1);
  GenericStage rescale = b_.compute("rescale", tile_rows(1));
  const Expr old = rescale.read(run_max_, row_of(width())), now = rescale.read(new_max_, row_of(width()));
  rescale.write(rescale_, exp(old - now));

  probs_ = b_.scratch("probs", 1, 1);
  GenericStage weight = b_.compute("probs", tile_rows(tile()));
  const Expr s = weight.read(scores_, ident(width())), m = weight.read(new_max_, row_of(width()));
  Expr prob = live(weight, exp(s - m), 0.0);
  weight.write(probs_, std::move(prob));

  block_sum_ = b_.scratch("block_sum", 1, 1);
  GenericStage sum = b_.compute("block_sum", {rows(tile()), reduce_cols(tile())});
  const Expr p = sum.read(probs_, ident(width()));
  sum.scaler(scaler_);
  sum.write(block_sum_, p);

  for (uint64_t j = 0; j < parts(); ++j) {
    const uint64_t columns = part_tiles() * tile();
    block_out_.push_back(b_.scratch(part_name("block_out", j), part_tiles(), 1));
    GenericStage out = b_.compute(part_name("block_out", j), {rows(tile()), cols(columns), reduce_k(tile())});
    const Expr w = out.read(probs_, map3(0, width(), 0, 1)), v = out.read(in_v_[j], map3(0, 0, 1, as_int(columns)));
    out.write(block_out_[j], w * v);
  }
}

void Writer::fold_carries() {
  GenericStage sum = b_.compute("fold_sum", tile_rows(1));
  const Expr old_sum = sum.read(run_sum_, row_of(width())), worth = sum.read(rescale_, row_of(width()));
  const Expr more = sum.read(block_sum_, row_of(width()));
  sum.write(run_sum_, old_sum * worth + more);

  for (uint64_t j = 0; j < parts(); ++j) {
    const int64_t columns = as_int(part_tiles() * tile());
    GenericStage out = b_.compute(part_name("fold_out", j), tile_rows(part_tiles() * tile()));
    const Expr old = out.read(run_out_[j], ident(columns)), alpha = out.read(rescale_, row_of(width()));
    const Expr block = out.read(block_out_[j], ident(columns));
    out.write(run_out_[j], old * alpha + block);
  }

  // An update reads its carry, which is never the larger one.
  GenericStage most = b_.compute("fold_max", tile_rows(1));
  const Expr larger = most.read(new_max_, row_of(width())), before = most.read(run_max_, row_of(width()));
  most.write(run_max_, max(larger, before));

  if (!counted()) return;
  GenericStage next = b_.compute("next_start", flat(1));
  const Expr start = next.read(block_start_, fixed(0));
  next.write(block_start_, start + static_cast<double>(tile()));
}

// ---- after the last block ----

// The sum of each row; and the last page of every other carry, which has to be taken too: rows past the tile would be
// the maximum or the position.
BufferId Writer::last_sum() {
  const BufferId sum = b_.scratch("last_sum", 1, 1);
  GenericStage stage = b_.compute("last_sum", tile_rows(1));
  const Expr total = stage.read(run_sum_, row_of(width()));
  Expr rest = stage.read(run_max_, row_of(width()));
  if (counted()) rest = max(std::move(rest), stage.read(block_start_, fixed(0)));
  stage.write(sum, select(less(Axis::Row, width()), total, rest));
  return sum;
}

void Writer::epilogue() {
  b_.level(FoldLevel::Epilogue);
  const BufferId last = last_sum();
  for (uint64_t j = 0; j < parts(); ++j) {
    const int64_t columns = as_int(part_tiles() * tile());
    const BufferId out = b_.buffer(part_name("out", j), part_tiles(), b_.program().at(result_).dtype, pages_);
    GenericStage normalize = b_.compute(part_name("normalize", j), tile_rows(part_tiles() * tile()));
    const Expr sum = normalize.read(run_out_[j], ident(columns)), total = normalize.read(last, row_of(width()));
    normalize.write(out, sum * recip(total));
    b_.store(part_name("store_ctx", j), out, result_, {.base = j * part_tiles(), .steps = {item_y(value_tiles())}});
  }
}

std::vector<WorkItem> Writer::work_items() const {
  std::vector<WorkItem> made;
  for (uint64_t y = 0; y < items(); ++y) {
    const uint64_t head = y % per_row();
    made.push_back(
        {y, fold_.grouped ? y : shape_.kv_head(head), TileRect{y / per_row(), head * value_tiles(), 1, value_tiles()}});
  }
  return made;
}

Result<Program> Writer::finish() {
  const std::string values = shape_.value_width == shape_.key_width ? "" : fmt::format("_v{}", shape_.value_width);
  Section section{
      .name = fmt::format("{}_flash_blocks_{}x{}{}_l{}_b{}", shape_.tag, items(), shape_.key_width, values,
                          shape_.positions, tile()),
      .items = work_items(),
      .claim = approx(fmt::format("attention in {}", name(element_))),
      .plan = BlockPlan{.per_site_n = value_tiles(),
                        .grid_m = query_tiles(),
                        .grid_n = per_row(),
                        .num_blocks = blocks(),
                        .block_n = value_tiles()},
      .k_tiles = blocks(),
  };
  if (position_ && counted())
    section.trip = Trip{.tensor = *position_,
                        .low = 1,
                        .high = as_int(shape_.last_position()),
                        .bias = as_int(shape_.rows) - 1,
                        .per = tile()};
  return about(std::move(b_).finish(std::move(section)), fold_.result.name);
}

}  // namespace

Result<Program> flash_fold(const FlashFold& fold, uint32_t pages) {
  TW_TRY(const Precision element, real_element(fold.target, fold.result.name));
  TW_TRY(const Precision accumulator, accumulator_for(fold.target, element, fold.result.name));
  return Writer(fold, pages, element, accumulator).write();
}

Result<void> check_flash(const AttentionShape& shape, const OpView& op) {
  const TileShape tile = op.target.tile;
  if (!tile.square())
    return refuse(
        RefusalKind::Unsupported, op.subject(),
        fmt::format("flash attention needs a square tile, target {} has {} x {}", op.target.name, tile.rows, tile.cols),
        "Choose a target with square tiles");
  if (!op.target.whole(shape.key_width) || !op.target.whole(shape.value_width))
    return refuse(
        RefusalKind::Unsupported, op.subject(),
        fmt::format("flash attention needs keys and values of whole tiles; they are {} and {} wide, a tile {}",
                    shape.key_width, shape.value_width, tile.cols));
  return {};
}

Result<Program> flash_sinks(FlashFold& fold, const OpView& op, uint64_t items, const SinkOf& sink_of) {
  const uint64_t width = op.target.tile.cols, n = items * width;
  TW_TRY(const Precision dtype, element_of(op, op[kSinks]));
  fold.sinks = OpTensor{.name = op.result.name + "__flash_sinks", .cols = n, .dtype = dtype};
  return spread_sinks(op, op[kSinks], fold.sinks->name, n, [&](uint64_t e) { return sink_of(e / width, e % width); });
}

Result<std::vector<Program>> flash_attention(const AttentionShape& shape, const OpView& op) {
  TW_TRY_VOID(check_flash(shape, op));
  FlashFold fold{op.target, shape, op[kQuery], op[kKeys], op[kValues], {}, {}, op.result};
  if (shape.named()) fold.position = op[kPosition];
  std::vector<Program> sections;
  if (shape.sinks) {
    const uint64_t tile = op.target.tile.rows, items = ceil_div(shape.rows, tile) * shape.heads;
    TW_TRY(sections.emplace_back(),
           flash_sinks(fold, op, items, [&](uint64_t item, uint64_t) { return std::optional(item % shape.heads); }));
  }
  Result<Program> section = paged(op.target, [&](uint32_t pages) { return flash_fold(fold, pages); });
  TW_TRY(sections.emplace_back(), about(within(std::move(section), op.target), op.subject()));
  return sections;
}

}  // namespace tw::spatial::lower
