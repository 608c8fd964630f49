#include "spatial/evaluate/testing/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "base/check.h"
#include "spatial/builder.h"
#include "spatial/testing.h"

namespace tw::spatial::evaluate::testing {
namespace {

constexpr std::array kReals{Precision::Bf16, Precision::Bf16, Precision::F32,
                            Precision::F16,  Precision::Fx16, Precision::Fx32};
constexpr std::array kIntegers{Precision::I32, Precision::I64, Precision::I32, Precision::I16, Precision::I8};
constexpr uint64_t kIndices = 10;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t below(uint64_t n) { return engine_() % n; }
  uint64_t from(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool chance(uint64_t percent) { return below(100) < percent; }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// The points at which something is read: axis by axis from low to high.
struct Box {
  std::array<int64_t, kAxes> low{}, high{};
};

class Writer {
 public:
  Writer(TileShape tile, uint64_t seed)
      : random_(seed), builder_(target(tile), random_.chance(75) ? Precision::F32 : random_.pick(kReals)) {}

  Result<Program> write() {
    items_ = random_.from(1, 3);
    subs_ = random_.chance(25) ? random_.from(2, 3) : 1;
    blocks_ = random_.chance(40) ? random_.from(1, 4) : 0;
    if (blocks_ > 0) return fold();
    return chain();
  }

 private:
  static Target target(TileShape tile) {
    Target target = spatial::testing::toy_target(tile, 8);
    for (int p = 0; p < kPrecisions; ++p) target.precisions.insert(static_cast<Precision>(p));
    for (int c = 0; c < kCapabilities; ++c) target.capabilities.insert(static_cast<Capability>(c));
    return target;
  }

  // ---- sections ----

  Result<Program> chain() {
    load_some({});
    const uint64_t stages = random_.below(3);
    for (uint64_t i = 0; i < stages; ++i) compute_scratch();
    return finish({});
  }

  // Pages from before the blocks, a chain in each that ends in the update of a carry, and a stage after them.
  Result<Program> fold() {
    builder_.level(FoldLevel::Prologue);
    if (random_.chance(50)) load_some({});
    const Precision dtype = random_.chance(70) ? Precision::F32 : random_.pick(kReals);
    const BufferId run = builder_.scratch("run", random_.from(1, 3), dtype);
    builder_.compute("start", flat(1)).write(run, random_.chance(50) ? 0.0 : 1.5);
    builder_.level(FoldLevel::Body);
    load_some(k_block(1));
    if (random_.chance(50)) compute_scratch();
    pages_.push_back(run);
    compute("update", run, true);
    pages_.assign(1, run);
    unread_.assign(1, run);
    builder_.level(FoldLevel::Epilogue);
    return finish({});
  }

  // Tensors of `items x subs x blocks` pages, one tile row high or, as stacks of two, two.
  void load_some(std::optional<Step> block) {
    const uint64_t count = random_.from(1, 3);
    for (uint64_t i = 0; i < count; ++i) {
      const Precision dtype = random_.chance(70) ? random_.pick(kReals) : random_.pick(kIntegers);
      const uint64_t number = loads_++, height = random_.chance(20) ? 2 : 1;
      const uint64_t width = random_.from(1, 3);
      const uint64_t pages = items_ * subs_ * (block ? blocks_ : 1), tile_cols = builder_.target().tile.cols;
      const uint64_t grid_cols = width * pages, tile_rows = builder_.target().tile.rows;
      const uint64_t cols = grid_cols * tile_cols - random_.below(tile_cols);
      uint64_t rows = random_.chance(50) ? 1 : random_.from(1, tile_rows);
      if (height == 2) rows = tile_rows + random_.from(1, tile_rows);
      const TensorId tensor =
          builder_.tensor(fmt::format("x{}", number), TensorRole::Input, rows, cols, dtype, GivenInit{});
      const BufferId page = builder_.buffer(fmt::format("in{}", number), width * height, dtype);
      Block where{.height = height, .stride_h = height > 1 ? grid_cols : 0};
      where.steps = steps(width * (block ? blocks_ : 1));
      if (block) where.steps.push_back(k_block(width));
      builder_.load(fmt::format("load{}", number), tensor, where, page);
      pages_.push_back(page);
      unread_.push_back(page);
    }
  }

  [[nodiscard]] std::vector<Step> steps(uint64_t tiles) const {
    std::vector<Step> steps{item_x(subs_ * tiles)};
    if (subs_ > 1) steps.push_back(sub_w(tiles));
    return steps;
  }

  void compute_scratch() {
    const uint64_t number = scratches_++;
    const bool integer = random_.chance(35);
    const Precision dtype = integer ? random_.pick(kIntegers) : random_.pick(kReals);
    const BufferId page = builder_.scratch(fmt::format("mid{}", number), random_.from(1, 3), dtype);
    compute(fmt::format("stage{}", number), page, false);
    pages_.push_back(page);
    unread_.push_back(page);
  }

  Result<Program> finish(Section section) {
    const bool real =
        !std::all_of(unread_.begin(), unread_.end(), [&](BufferId page) { return is_integer(builder_.dtype(page)); });
    const Precision dtype = real ? random_.pick(kReals) : random_.pick(kIntegers);
    const uint64_t tiles = random_.from(1, 3), cols = builder_.target().tile.cols;
    const uint64_t grid = tiles * items_ * subs_;
    const BufferId out = builder_.buffer("out", tiles, dtype);
    const TensorId y = builder_.tensor("y", TensorRole::Output, random_.from(1, builder_.target().tile.rows),
                                       grid * cols - random_.below(cols), dtype);
    compute("last", out, true);
    builder_.store("store", out, y, {.steps = steps(tiles)});
    section.name = "random";
    section.items = row_items(grid, tiles * subs_);
    section.claim = approx("random");
    section.plan = BlockPlan{.per_site_n = tiles * subs_, .grid_n = items_, .block_n = tiles};
    if (blocks_ > 0) {
      section.plan->num_blocks = blocks_;
      if (random_.chance(50)) {
        const TensorId count = builder_.tensor("count", TensorRole::Input, 1, 3, Precision::I32, GivenInit{});
        section.trip = Trip{.tensor = count,
                            .elem = 2,
                            .low = random_.chance(50) ? 1 : 0,
                            .high = 9,
                            .bias = 1,
                            .per = (9 + blocks_) / blocks_};
        section.plan->num_blocks = section.trip->count(9);
        if (section.plan->num_blocks > blocks_) section.trip.reset(), section.plan->num_blocks = blocks_;
      }
    }
    return std::move(builder_).finish(std::move(section));
  }

  // ---- one stage ----

  std::vector<Iter> space(uint64_t width, bool to_integer) {
    const uint64_t tile_rows = builder_.target().tile.rows;
    const uint64_t r = random_.from(1, tile_rows), c = random_.chance(50) ? width : random_.from(1, width);
    const Pool pool = to_integer && random_.chance(40) ? Pool::ArgMax : random_.chance(60) ? Pool::Sum : Pool::Max;
    switch (random_.below(pool == Pool::ArgMax ? 8 : 10)) {
      case 0: return flat(c);
      case 1: return {rows(r), cols(c)};
      case 2: return {cols(c), rows(r)};
      case 3: return {cols(c)};
      case 4: return {rows(r), reduce_cols(random_.from(1, 40), pool)};
      case 5: return {reduce_rows(random_.from(1, 12), pool), cols(c)};
      case 6: return {rows(r), cols(c), reduce_k(random_.from(1, 12), pool)};
      case 7: return {rows(r), reduce_k(random_.from(1, 300), pool), cols(random_.from(1, std::min<uint64_t>(c, 3)))};
      case 8: return {reduce_rows(random_.from(1, 5), pool), cols(c), reduce_k(random_.from(1, 5), pool)};
      default: return {reduce_k(random_.from(1, 5), pool), reduce_rows(random_.from(1, 5), pool), cols(c)};
    }
  }

  // Writes a page from random operands; with all, from every page that nothing read so far too.
  void compute(std::string name, BufferId out, bool all) {
    const bool to_integer = is_integer(builder_.dtype(out));
    const std::vector<Iter> iters = space(static_cast<uint64_t>(builder_.width(out)), to_integer);
    Box box;
    axes_.clear();
    bool position = false;
    for (const Iter& iter : iters) {
      box.high[static_cast<size_t>(iter.axis)] = static_cast<int64_t>(iter.extent) - 1;
      axes_.push_back(iter.axis);
      position |= iter.reduce == Pool::ArgMax;
    }
    GenericStage stage = builder_.compute(std::move(name), iters);
    stage_ = &stage;
    operands_ = 0;
    integers_ = (to_integer && !position) || random_.chance(5);
    Expr body = tree(random_.from(1, 4), box);
    const std::vector<BufferId> waiting = unread_;
    if (all)
      for (const BufferId page : waiting) body = std::move(body) + leaf(page, box);
    if (integers_ && random_.chance(80)) body = min(max(std::move(body), -100.0), 100.0);
    stage.write(out, std::move(body));
  }

  Expr tree(uint64_t depth, const Box& box) {
    if (depth == 0 || random_.chance(15)) return random_.chance(80) ? operand(box) : constant();
    if (random_.chance(25)) return choice(depth, box);
    if (random_.chance(20))
      return integers_ ? shr(tree(depth - 1, box), static_cast<uint32_t>(random_.below(5)))
                       : function(tree(depth - 1, box));
    Expr left = tree(depth - 1, box);
    const Expr right = random_.chance(50) ? tree(depth - 1, box) : operand(box);
    switch (random_.below(8)) {
      case 0: return min(std::move(left), right);
      case 1: return max(std::move(left), right);
      case 2: return floor_div(std::move(left), random_.chance(80) ? Expr(3.0) : right);
      case 3:
      case 4: return std::move(left) - right;
      case 5: return std::move(left) * right;
      default: return std::move(left) + right;
    }
  }

  Expr function(Expr x) {
    switch (random_.below(6)) {
      case 0: return exp(std::move(x));
      case 1: return recip(std::move(x));
      case 2: return silu(std::move(x));
      case 3: return rsqrt(std::move(x), 1000, random_.from(1, 9));
      case 4: return ln(max(std::move(x), 0.125));
      default: return std::move(x) * Expr(0.3);
    }
  }

  Expr choice(uint64_t depth, const Box& box) {
    const Axis axis = random_.pick(axes_);
    const auto a = static_cast<size_t>(axis);
    std::vector<BufferId> bounds;
    for (const BufferId page : pages_)
      if (is_integer(builder_.dtype(page))) bounds.push_back(page);
    if (!bounds.empty() && random_.chance(40)) {
      const uint32_t bound = place(random_.pick(bounds), box);
      const Pred pred = random_.chance(50) ? less_than_operand(axis, bound) : at_least_operand(axis, bound);
      Expr then = tree(depth - 1, box);
      return select(pred, std::move(then), tree(depth - 1, box));
    }
    // Each side is laid out for its own points alone: elsewhere it may leave its page.
    const auto span = static_cast<uint64_t>(box.high[a] - box.low[a]) + 1;
    const int64_t cut = box.low[a] + static_cast<int64_t>(random_.below(span + 1));
    Box below = box, above = box;
    below.high[a] = std::max(cut - 1, box.low[a]);
    above.low[a] = std::min(cut, box.high[a]);
    if (random_.chance(50)) {
      Expr then = tree(depth - 1, below);
      return select(less(axis, cut), std::move(then), tree(depth - 1, above));
    }
    Expr then = tree(depth - 1, above);
    return select(at_least(axis, cut), std::move(then), tree(depth - 1, below));
  }

  Expr constant() {
    constexpr std::array kWhole{0.0, 1.0, -2.0, 7.0};
    constexpr std::array kAny{0.0, 1.0, -0.7, 3.25, -1e30};
    return integers_ ? Expr(random_.pick(kWhole)) : Expr(random_.pick(kAny));
  }

  Expr operand(const Box& box) {
    std::vector<BufferId> fit;
    for (const BufferId page : pages_)
      if (!integers_ || is_integer(builder_.dtype(page))) fit.push_back(page);
    return fit.empty() ? constant() : leaf(random_.pick(fit), box);
  }
  Expr leaf(BufferId page, const Box& box) { return arg(place(page, box)); }

  // An operand of the stage whose map stays in its page over the box, with few exceptions.
  uint32_t place(BufferId page, const Box& box) {
    unread_.erase(std::remove(unread_.begin(), unread_.end(), page), unread_.end());
    const int64_t width = builder_.width(page), size = width * builder_.target().tile.rows;
    ElemAccess map;
    int64_t low = 0, high = 0;
    const auto reach = [&](int64_t stride, int64_t first, int64_t last) {
      const int64_t a = stride * first, b = stride * last;
      if (high - low + std::abs(b - a) >= size) return false;
      low += std::min(a, b);
      high += std::max(a, b);
      return true;
    };
    for (const Axis axis : axes_) {
      const auto a = static_cast<size_t>(axis);
      const std::array<int64_t, 6> strides{0, 1, 1, width, -1, 3};
      const int64_t stride = axis == Axis::Col && random_.chance(60) ? 1 : random_.pick(strides);
      if (reach(stride, box.low[a], box.high[a])) map.coef[a] = stride;
    }
    if (random_.chance(15)) {
      std::vector<BufferId> loaded;
      for (const BufferId index : pages_)
        if (is_integer(builder_.dtype(index)) && builder_.program().at(index).kind == BufferKind::Fifo)
          loaded.push_back(index);
      const int64_t stride = random_.chance(70) ? 1 : -1;
      if (!loaded.empty() && reach(stride, 0, kIndices - 1))
        map = map.plus(place(random_.pick(loaded), box), stride, random_.chance(95) ? kIndices : kIndices - 1);
    }
    map.base = static_cast<int64_t>(random_.below(static_cast<uint64_t>(size - (high - low)))) - low;
    if (random_.below(1000) < 4) map.base += size / 2;
    if (is_integer(builder_.dtype(page)) && !map.indirect && random_.chance(5)) map = map.plus(operands_, 0, kIndices);
    ++operands_;
    return stage_->operand(page, map);
  }

  Random random_;
  Builder builder_;
  uint64_t items_ = 1, subs_ = 1, blocks_ = 0;
  uint64_t loads_ = 0, scratches_ = 0;
  std::vector<BufferId> pages_, unread_;
  std::vector<Axis> axes_;
  GenericStage* stage_ = nullptr;
  uint32_t operands_ = 0;
  bool integers_ = false;
};

}  // namespace

Program random_program(TileShape tile, uint64_t seed) {
  // A body may come out in another domain than was meant, which the builder refuses: then the next one.
  for (uint64_t attempt = 0; attempt < 200; ++attempt) {
    Result<Program> program = Writer(tile, seed * 1000 + attempt).write();
    if (program.ok()) return std::move(*program);
  }
  TW_CHECK(false, "no valid program for seed {}", seed);
}

void fill_inputs(const Program& program, Memory& memory, uint64_t seed) {
  Random random(seed);
  const bool ugly = random.chance(30);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kUgly{0.0, -0.0, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 3e38, 1e-40};
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::Output) continue;
    Result<void> done;
    if (is_integer(tensor.dtype)) {
      std::vector<int64_t> values(tensor.size());
      for (int64_t& value : values) value = static_cast<int64_t>(random.below(kIndices));
      done = memory.set(tensor, values);
    } else {
      std::vector<double> values(tensor.size());
      for (double& value : values) {
        value = (static_cast<double>(random.below(1U << 16)) - 32768) / 4096;
        if (ugly && random.chance(5)) value = random.pick(kUgly);
      }
      done = memory.set(tensor, values);
    }
    TW_CHECK(done.ok(), "{}", to_text(done.refusal()));
  }
}

}  // namespace tw::spatial::evaluate::testing
