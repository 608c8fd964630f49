#include "spatial/lower/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/round.h"
#include "spatial/builder.h"
#include "spatial/lower/lower.h"
#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

// Tiles of the result, tile columns of x, tile rows of w.
struct Sizes {
  explicit Sizes(const OpView& op)
      : m(op[0].rows),
        k(op[0].cols),
        n(op[1].cols),
        m_t(ceil_div(m, op.target.tile.rows)),
        n_t(ceil_div(n, op.target.tile.cols)),
        x_t(ceil_div(k, op.target.tile.cols)),
        w_t(ceil_div(k, op.target.tile.rows)),
        unit(std::lcm(uint64_t{op.target.tile.rows}, uint64_t{op.target.tile.cols})),
        unit_x(unit / op.target.tile.cols),
        unit_w(unit / op.target.tile.rows),
        units(std::min(x_t / unit_x, w_t / unit_w)) {}

  uint64_t m, k, n;
  uint64_t m_t, n_t, x_t, w_t;
  uint64_t unit;            // elements
  uint64_t unit_x, unit_w;  // tiles of it
  uint64_t units;           // that both operands have all tiles of, whether the last is full or not

  // Elements after the units: none where tiles are square.
  [[nodiscard]] uint64_t rest() const { return k > units * unit ? k - units * unit : 0; }
};

struct ProductPrecisions {
  Precision x, w, y, accumulator;
};
Result<ProductPrecisions> product_precisions(const OpView& op) {
  TW_TRY(const Precision x, element_of(op, op[0]));
  TW_TRY(const Precision w, element_of(op, op[1]));
  TW_TRY(const Precision y, element_of(op, op.result));
  TW_TRY(const Precision accumulator, accumulator_for(op.target, y, op.subject()));
  return ProductPrecisions{x, w, y, accumulator};
}

bool multiplies(const Target& target, const ProductPrecisions& p) {
  return target.matmul_operands.contains(p.x) && target.matmul_operands.contains(p.w);
}

// One section while it is built.
class ProductBuild {
 public:
  ProductBuild(const OpView& op, const ProductPrecisions& precisions, const ProductBlocks& blocks)
      : op_(op), sizes_(op), blocks_(blocks), p_(precisions), b_(op.target, precisions.accumulator) {
    TW_CHECK(blocks.m > 0 && blocks.n > 0 && blocks.units > 0 && sizes_.m_t % blocks.m == 0 &&
                 sizes_.n_t % blocks.n == 0 && sizes_.units % blocks.units == 0,
             "product {}x{}x{} in blocks of {}x{}x{}", sizes_.m, sizes_.k, sizes_.n, blocks.m, blocks.n, blocks.units);
    x_ = declare(op[0], p_.x);
    w_ = op[1].name == op[0].name ? x_ : declare(op[1], p_.w);
    y_ = b_.tensor(op.result.name, TensorRole::Output, sizes_.m, sizes_.n, p_.y);
  }

  Result<Program> tiles() && {
    if (sizes_.units > 0) {
      const auto [x, w] = load_block();
      const bool rounds = sizes_.rest() > 0 || p_.y != p_.accumulator;
      sum_ = rounds ? b_.scratch("sum", page_tiles(), 1) : out();
      b_.matmul("product",
                {static_cast<uint32_t>(blocks_.m), static_cast<uint32_t>(blocks_.n),
                 static_cast<uint32_t>(blocks_.units * sizes_.unit)},
                x, w, *sum_);
    }
    finish_sum();
    return close(fmt::format("matmul_{}x{}x{}", sizes_.m, sizes_.k, sizes_.n));
  }

  Result<Program> loops() && {
    if (sizes_.units > 0) {
      sum_ = b_.scratch("sum", page_tiles());
      b_.level(FoldLevel::Prologue);
      b_.compute("zero", space()).write(*sum_, 0.0);
      b_.level(FoldLevel::Body);
      const auto [x, w] = load_block();
      contract("product", x, w, sizes_.unit, *sum_);
    }
    finish_sum();
    return close(fmt::format("matmul_loops_{}x{}x{}", sizes_.m, sizes_.k, sizes_.n));
  }

 private:
  TensorId declare(const OpTensor& t, Precision dtype) {
    return b_.tensor(t.name, t.read_role(), t.rows, t.cols, dtype, init_of(t.fill, t.size()));
  }
  [[nodiscard]] uint64_t page_tiles() const { return blocks_.m * blocks_.n; }
  [[nodiscard]] uint64_t columns() const { return page_tiles() * op_.target.tile.cols; }
  [[nodiscard]] std::vector<Iter> space() const { return {rows(op_.target.tile.rows), cols(columns())}; }
  BufferId out() {
    if (!out_) out_ = b_.buffer("out", page_tiles(), p_.y);
    return *out_;
  }

  // The block's tiles of x (m tile rows) and w.
  std::pair<BufferId, BufferId> load_block() {
    const uint64_t x_cols = blocks_.units * sizes_.unit_x, w_rows = blocks_.units * sizes_.unit_w;
    const BufferId x = b_.buffer("in_x", blocks_.m * x_cols, p_.x, blocks_.pages);
    const BufferId w = b_.buffer("in_w", w_rows * blocks_.n, p_.w, blocks_.pages);
    b_.load("load_x", x_,
            {.steps = {item_y(blocks_.m * sizes_.x_t), k_block(x_cols)}, .height = blocks_.m, .stride_h = sizes_.x_t},
            x);
    b_.load("load_w", w_,
            {.steps = {item_x(blocks_.n), k_block(w_rows * sizes_.n_t)}, .height = w_rows, .stride_h = sizes_.n_t}, w);
    return {x, w};
  }

  // Adds `elements` products to the sum, if there is one yet: its first term is the sum so far.
  void contract(std::string name, BufferId x, BufferId w, uint64_t elements, BufferId to) {
    const auto tr = static_cast<int64_t>(op_.target.tile.rows);
    const int64_t first = sum_ ? 1 : 0, block = static_cast<int64_t>(columns());
    std::vector<Iter> iters = space();
    iters.push_back(reduce_k(elements + static_cast<uint64_t>(first)));
    GenericStage stage = b_.compute(std::move(name), std::move(iters));
    std::vector<Band> bands;
    if (sum_) bands.push_back({1, stage.read(*sum_, ident(b_.width(*sum_)))});
    const Expr left = stage.read(x, map3(-first, b_.width(x), 0, 1));
    // Tile row i of w lies beside the others in the plane.
    for (int64_t done = 0; done < static_cast<int64_t>(elements); done += tr) {
      const int64_t base = (done / tr) * block - (done + first) * b_.width(w);
      bands.push_back({done + tr + first, left * stage.read(w, map3(base, 0, 1, b_.width(w)))});
    }
    stage.write(to, banded(bands, Axis::K));
  }

  // The rest of the contraction, and the rounding to the result.
  void finish_sum() {
    b_.level(FoldLevel::Epilogue);
    if (const uint64_t rest = sizes_.rest(); rest > 0) {
      const uint64_t x_first = sizes_.units * sizes_.unit_x, w_first = sizes_.units * sizes_.unit_w;
      const BufferId x = b_.buffer("in_x_rest", sizes_.x_t - x_first, p_.x, blocks_.pages);
      const BufferId w = b_.buffer("in_w_rest", (sizes_.w_t - w_first) * blocks_.n, p_.w, blocks_.pages);
      b_.load("load_x_rest", x_, {.base = x_first, .steps = {item_y(sizes_.x_t)}}, x);
      b_.load("load_w_rest", w_,
              {.base = w_first * sizes_.n_t,
               .steps = {item_x(blocks_.n)},
               .height = sizes_.w_t - w_first,
               .stride_h = sizes_.n_t},
              w);
      contract("product_rest", x, w, rest, out());
    } else if (sum_ != out_) {
      GenericStage round = b_.compute("round", space());
      const Expr sum = round.read(*sum_, ident(b_.width(*sum_)));
      round.write(out(), sum);
    }
  }

  Result<Program> close(std::string name) {
    b_.store(
        "store_" + op_.result.name, out(), y_,
        {.steps = {item_y(blocks_.m * sizes_.n_t), item_x(blocks_.n)}, .height = blocks_.m, .stride_h = sizes_.n_t});
    Section section{.name = std::move(name), .items = items(), .claim = claim(is_integer(p_.y), "product", p_.y)};
    section.plan = BlockPlan{.per_site_m = blocks_.m,
                             .per_site_n = blocks_.n,
                             .grid_m = sizes_.m_t / blocks_.m,
                             .grid_n = sizes_.n_t / blocks_.n,
                             .num_blocks = std::max<uint64_t>(1, sizes_.units / blocks_.units),
                             .block_k = blocks_.units * sizes_.unit_x,
                             .block_m = blocks_.m,
                             .block_n = blocks_.n};
    section.k_tiles = sizes_.x_t;
    return std::move(b_).finish(std::move(section));
  }

  [[nodiscard]] std::vector<WorkItem> items() const {
    std::vector<WorkItem> all;
    all.reserve(sizes_.m_t / blocks_.m * (sizes_.n_t / blocks_.n));
    for (uint64_t i = 0; i < sizes_.m_t / blocks_.m; ++i)
      for (uint64_t j = 0; j < sizes_.n_t / blocks_.n; ++j)
        all.push_back({i, j, {i * blocks_.m, j * blocks_.n, blocks_.m, blocks_.n}});
    return all;
  }

  const OpView& op_;
  Sizes sizes_;
  ProductBlocks blocks_;
  ProductPrecisions p_;
  Builder b_;
  TensorId x_{}, w_{}, y_{};
  std::optional<BufferId> sum_, out_;
};

// ---- the choice ----

// What one site does for the whole product, in tiles multiplied and moved for one tile of the contraction. Few large
// items move less, many small ones keep all sites busy.
uint64_t cost(const Sizes& sizes, const Target& target, uint64_t m, uint64_t n) {
  const uint64_t items = (sizes.m_t / m) * (sizes.n_t / n);
  return ceil_div(items, target.sites()) * (m * n + m + n);
}

// The cheapest blocks of the result that fit a page; of equally cheap ones the larger.
ProductBlocks cheapest(const Sizes& sizes, const Target& target, uint64_t most_m) {
  const uint64_t page = target.accumulator_tiles;
  ProductBlocks best;
  uint64_t least = cost(sizes, target, 1, 1);
  for (uint64_t m = 1; m <= std::min(most_m, page); ++m) {
    if (sizes.m_t % m != 0) continue;
    for (uint64_t n = 1; n * m <= page; ++n) {
      if (sizes.n_t % n != 0) continue;
      const uint64_t here = cost(sizes, target, m, n);
      if (here > least || (here == least && m * n <= best.m * best.n)) continue;
      least = here;
      best = {.m = m, .n = n};
    }
  }
  return best;
}

// Blocks of the contraction: four or more where there are as many units, so that loads run ahead of products; as large
// as a site holds.
Result<Program> fit_tiles(const OpView& op, const Sizes& sizes, ProductBlocks blocks) {
  for (blocks.units = ceil_div(sizes.units, 4); blocks.units > 1; --blocks.units) {
    if (sizes.units % blocks.units != 0) continue;
    Result<Program> section = product_tiles(op, blocks);
    if (!section || fits(*section, op.target)) return section;
  }
  blocks.units = 1;
  return paged(op.target, [&](uint32_t pages) {
    blocks.pages = pages;
    return product_tiles(op, blocks);
  });
}

struct Chosen {
  Program section;
  std::string form, why;
};

Result<Chosen> choose(const OpView& op) {
  TW_TRY(const ProductPrecisions p, product_precisions(op));
  const Sizes sizes(op);
  const bool by_tiles = multiplies(op.target, p);
  const auto build = [&](const ProductBlocks& blocks) {
    if (by_tiles) return fit_tiles(op, sizes, blocks);
    return paged(op.target, [&](uint32_t pages) { return product_loops(op, blocks.n, pages); });
  };
  // What is left of a contraction, and loops over it, are of one tile row.
  ProductBlocks blocks = cheapest(sizes, op.target, by_tiles && sizes.rest() == 0 ? sizes.m_t : 1);
  Result<Program> section = build(blocks);
  if (section && !fits(*section, op.target)) section = within(build(blocks = {}), op.target);
  if (!section) return section.refusal();
  const BlockPlan& plan = section->work.plan;
  std::string why =
      by_tiles ? std::string()
               : fmt::format("target {} multiplies no tiles of {} by {}; ", op.target.name, name(p.x), name(p.w));
  why += fmt::format("{} tiles of the contraction in {} block{}, {} item{} of {} x {} tiles", sizes.x_t,
                     plan.num_blocks, plan.num_blocks == 1 ? "" : "s", section->work.items.size(),
                     section->work.items.size() == 1 ? "" : "s", blocks.m, blocks.n);
  return Chosen{std::move(*section), by_tiles ? "tiles" : "loops", std::move(why)};
}

}  // namespace

Result<Program> product_tiles(const OpView& op, const ProductBlocks& blocks) {
  TW_TRY(const ProductPrecisions p, product_precisions(op));
  return ProductBuild(op, p, blocks).tiles();
}

Result<Program> product_loops(const OpView& op, uint64_t n, uint32_t pages) {
  TW_TRY(const ProductPrecisions p, product_precisions(op));
  return ProductBuild(op, p, {.n = n, .pages = pages}).loops();
}

Result<Program> matmul_section(const OpView& op) {
  TW_TRY(Chosen chosen, choose(op));
  return std::move(chosen.section);
}

Result<Lowered> lower(const graph::Matmul&, const OpView& view) {
  TW_TRY(Chosen chosen, choose(view));
  return Lowered{{std::move(chosen.section)}, std::move(chosen.form), std::move(chosen.why)};
}

}  // namespace tw::spatial::lower
