#include "spatial/lower/head_matmul.h"

#include <fmt/format.h>

#include "spatial/lower/flat_build.h"
#include "spatial/lower/lower.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

struct Extents {
  uint64_t rows = 0;
  uint64_t heads = 0;
  uint64_t in = 0;   // of a head
  uint64_t out = 0;  // of a head
};

Result<Extents> extents_of(const graph::HeadMatmul& op, const OpView& view) {
  const OpTensor &x = view[0], &w = view[1];
  const auto no = [&](std::string reason) {
    return refuse(RefusalKind::Unsupported, view.subject(), std::move(reason), "Give every head an equal share.");
  };
  if (op.heads == 0 || w.rows % op.heads != 0 || (!op.shared && x.cols % op.heads != 0))
    return no(fmt::format("multiplies {} columns by {} rows of weights in {} heads", x.cols, w.rows, op.heads));
  const uint64_t in = op.shared ? x.cols : x.cols / op.heads, share = w.rows / op.heads;
  const Extents e{x.rows, op.heads, in, op.rows_out ? share : w.cols};
  if ((op.rows_out ? w.cols : share) != in)
    return no(fmt::format("multiplies heads of {} values by weights of {} inputs", in, op.rows_out ? w.cols : share));
  if (e.rows * e.in * e.out == 0) return no(fmt::format("multiplies {} values a head into {}", e.in, e.out));
  return e;
}

std::string product_name(const Extents& e) {
  return fmt::format("head_matmul_{}x{}x{}x{}", e.rows, e.heads, e.in, e.out);
}

bool multiplies_whole_tiles(const Extents& e, const Target& target) {
  return target.whole(e.in) && target.whole(e.out);
}

Result<void> check_tiles(const Extents& e, const OpView& view) {
  const Target& target = view.target;
  if (!target.tile.square())
    return refuse(RefusalKind::Unsupported, view.subject(),
                  fmt::format("reads the rows of weight tiles along the columns of x, the tiles of target {} are {}x{}",
                              target.name, target.tile.rows, target.tile.cols),
                  "Use the flat form, or a target with square tiles.");
  if (!multiplies_whole_tiles(e, target))
    return refuse(RefusalKind::Unsupported, view.subject(),
                  fmt::format("multiplies {} inputs into {} outputs a head, not whole tiles of {}", e.in, e.out,
                              target.tile.cols),
                  "Use the flat form, or heads of whole tiles.");
  return {};
}

// What the forms in tiles share: the tensors, and the weights of output tile x of head y as a page of in_t tiles.
class Tiled {
 public:
  Tiled(const graph::HeadMatmul& op, const OpView& view, const Extents& e, Precision precision, Precision accumulator)
      : op_(op),
        view_(view),
        e_(e),
        precision_(precision),
        in_t_(view.target.tiles(e.in)),
        out_t_(view.target.tiles(e.out)),
        b_(view.target, accumulator) {}

  Result<Program> one_row(uint32_t pages) && {
    const OpTensor& x = view_[0];
    const TensorId in = b_.tensor(x.name, x.read_role(), 1, x.size(), precision_, init_of(x.fill, x.size()));
    const TensorId w = weights(in);
    const TensorId result = b_.tensor(view_.result.name, TensorRole::Output, 1, e_.heads * e_.out, stored());
    const BufferId in_x = b_.buffer("in_x", in_t_, precision_, pages);
    b_.load("load_x", in, {.steps = x_steps()}, in_x);
    const BufferId in_w = load_weights(w, {}, pages), out = b_.buffer("out", 1, stored(), pages);
    if (op_.rows_out) {
      dot_columns(1, in_x, in_w, out);
    } else {
      dot_rows(in_x, in_w, out);
    }
    b_.store("store_" + view_.result.name, out, result, {.steps = {item_y(out_t_), item_x(1)}});
    return std::move(b_).finish(
        {.name = product_name(e_) + "_tiled", .items = grouped_items(e_.heads, out_t_, 1), .claim = claim_of()});
  }

  // Sub-blocks are the tile rows of x; every one loads the weights again.
  Result<Program> many_rows(uint32_t pages) && {
    const OpTensor& x = view_[0];
    const uint64_t rows_t = (e_.rows + tile() - 1) / tile(), result_t = e_.heads * out_t_;
    const TensorId in = b_.tensor(x.name, x.read_role(), x.rows, x.cols, precision_, init_of(x.fill, x.size()));
    const TensorId w = weights(in);
    const TensorId result = b_.tensor(view_.result.name, TensorRole::Output, e_.rows, e_.heads * e_.out, stored());
    const BufferId in_x = b_.buffer("in_x", in_t_, precision_, pages);
    std::vector<Step> steps = x_steps();
    steps.push_back(sub_h(view_.target.tiles(x.cols)));
    b_.load("load_x", in, {.steps = std::move(steps)}, in_x);
    const BufferId in_w = load_weights(w, {sub_h(0)}, pages), out = b_.buffer("out", 1, stored(), pages);
    if (op_.rows_out) {
      dot_columns(tile(), in_x, in_w, out);
    } else {
      b_.matmul("head_product", {.rows = 1, .cols = 1, .inner = static_cast<uint32_t>(e_.in)}, in_x, in_w, out);
    }
    b_.store("store_" + view_.result.name, out, result, {.steps = {item_y(out_t_), item_x(1), sub_h(result_t)}});
    std::vector<WorkItem> items = grouped_items(e_.heads, out_t_, 1);
    for (WorkItem& item : items) item.out.rows = rows_t;
    BlockPlan plan{.per_site_m = rows_t, .grid_n = result_t};
    return std::move(b_).finish(
        {.name = product_name(e_) + "_rows", .items = std::move(items), .claim = claim_of(), .plan = plan});
  }

 private:
  [[nodiscard]] uint64_t tile() const { return view_.target.tile.cols; }
  [[nodiscard]] Precision stored() const { return view_.result.stored(precision_); }
  [[nodiscard]] NumericsClaim claim_of() const { return claim(false, "per-head matmul", precision_); }
  [[nodiscard]] std::vector<Step> x_steps() const {
    return op_.shared ? std::vector<Step>{} : std::vector<Step>{item_y(in_t_)};
  }
  // x itself when it is both operands.
  TensorId weights(TensorId x) {
    const OpTensor& w = view_[1];
    if (w.name == view_[0].name) return x;
    return b_.tensor(w.name, w.read_role(), w.rows, w.cols, w.stored(precision_), init_of(w.fill, w.size()));
  }
  // Of rows_out a tile row of the head, whole; else a tile column.
  BufferId load_weights(TensorId w, std::vector<Step> steps, uint32_t pages) {
    const BufferId page = b_.buffer("in_w", in_t_, view_[1].stored(precision_), pages);
    steps.push_back(item_y(in_t_ * out_t_));
    steps.push_back(item_x(op_.rows_out ? in_t_ : 1));
    Block block{.steps = std::move(steps)};
    if (!op_.rows_out) {
      block.height = in_t_;
      block.stride_h = out_t_;
    }
    b_.load("load_w", w, std::move(block), page);
    return page;
  }

  // Outputs are rows of the weights: output c of row r is a dot of plane row r of x and plane row c of the page.
  void dot_columns(uint64_t of_rows, BufferId in_x, BufferId in_w, BufferId out) {
    GenericStage stage = b_.compute("head_dot", {rows(of_rows), cols(tile()), reduce_k(e_.in)});
    const Expr x = stage.read(in_x, map3(0, b_.width(in_x), 0, 1));
    const Expr w = stage.read(in_w, map3(0, 0, b_.width(in_w), 1));
    stage.write(out, x * w);
  }
  // Outputs are columns: input k * tile + r is plane row r of tile k. k before r keeps the order of the inputs.
  void dot_rows(BufferId in_x, BufferId in_w, BufferId out) {
    const std::string name = view_.result.name + "__hm_scaler";
    const BufferId ones = b_.buffer("in_hm_scaler", 1, precision_, 1);
    b_.load("load_hm_scaler", b_.ones(name, precision_), {}, ones);
    const auto step = static_cast<int64_t>(tile());
    GenericStage stage = b_.compute("head_dot", {reduce_k(in_t_), reduce_rows(tile()), cols(tile())});
    const Expr x = stage.read(in_x, map3(0, 1, 0, step));
    const Expr w = stage.read(in_w, map3(0, b_.width(in_w), 1, step));
    stage.scaler(ones);
    stage.write(out, x * w);
  }

  const graph::HeadMatmul& op_;
  const OpView& view_;
  const Extents& e_;
  Precision precision_;
  uint64_t in_t_;
  uint64_t out_t_;
  Builder b_;
};

Result<Program> tiled(const graph::HeadMatmul& op, const OpView& view, bool one_row) {
  TW_TRY(const Extents e, extents_of(op, view));
  TW_TRY_VOID(check_tiles(e, view));
  TW_TRY(const Precision precision, element_of(view, view[0]));
  TW_TRY(const Precision accumulator, accumulator_for(view.target, precision, view.subject()));
  const auto build = [&](uint32_t pages) {
    Tiled form(op, view, e, precision, accumulator);
    return one_row ? std::move(form).one_row(pages) : std::move(form).many_rows(pages);
  };
  return within(paged(view.target, build), view.target);
}

// Unit u of x, its head's weights: input r and output c - u * out.
Expr unit_product(GenericStage& stage, const graph::HeadMatmul& op, const Extents& e, uint64_t unit, BufferId in_x,
                  BufferId in_w) {
  const auto in = static_cast<int64_t>(e.in), out = static_cast<int64_t>(e.out), u = static_cast<int64_t>(unit);
  const auto head = static_cast<int64_t>(unit % e.heads), row = static_cast<int64_t>(unit / e.heads);
  const Expr x = stage.read(in_x, map3((op.shared ? row : u) * in, 1, 0));
  const Expr w =
      stage.read(in_w, op.rows_out ? map3((head - u) * out * in, 1, in) : map3(head * in * out - u * out, out, 1));
  return x * w;
}

}  // namespace

Result<Program> head_matmul_flat(const graph::HeadMatmul& op, const OpView& view) {
  TW_TRY(const Extents e, extents_of(op, view));
  TW_TRY(const Precision precision, element_of(view, view[0]));
  const uint64_t units = e.rows * e.heads;
  const auto build = [&](uint32_t pages) -> Result<Program> {
    TW_TRY(FlatBuild made, FlatBuild::open(view, precision));
    const BufferId in_x = made.input(view[0], {.depth = pages}), in_w = made.input(view[1], {.depth = pages});
    const BufferId ones = made.ones(view.result.name + "__hm_scaler"), out = made.result_page(units * e.out);
    GenericStage stage = made.builder().compute("head_matmul", {reduce_rows(e.in), cols(units * e.out)});
    std::vector<Band> bands;
    for (uint64_t u = 0; u < units; ++u)
      bands.push_back({static_cast<int64_t>((u + 1) * e.out), unit_product(stage, op, e, u, in_x, in_w)});
    stage.scaler(ones);
    stage.write(out, banded(bands));
    return std::move(made).finish(product_name(e), claim(false, "per-head matmul", precision));
  };
  return within(paged(view.target, build), view.target);
}

Result<Program> head_matmul_tiled(const graph::HeadMatmul& op, const OpView& view) {
  if (view[0].rows != 1)
    return refuse(RefusalKind::Unsupported, view.subject(),
                  fmt::format("multiplies one row tile by tile, x has {}", view[0].rows), "Use the form for rows.");
  return tiled(op, view, true);
}

Result<Program> head_matmul_rows(const graph::HeadMatmul& op, const OpView& view) { return tiled(op, view, false); }

Result<Lowered> lower(const graph::HeadMatmul& op, const OpView& view) {
  TW_TRY(const Extents e, extents_of(op, view));
  const Target& target = view.target;
  const uint64_t n = e.rows * e.heads * e.out;
  if (target.tile.square() && multiplies_whole_tiles(e, target) && (e.rows == 1 || target.wide(n))) {
    TW_TRY(Program section, e.rows == 1 ? head_matmul_tiled(op, view) : head_matmul_rows(op, view));
    return Lowered{
        {std::move(section)}, e.rows == 1 ? "tiled" : "rows", fmt::format("{} and {} are whole tiles", e.in, e.out)};
  }
  TW_TRY(Program section, head_matmul_flat(op, view));
  return Lowered{{std::move(section)}, "flat", within_a_page(target, target.tiles(n))};
}

}  // namespace tw::spatial::lower
