#include "spatial/any_program.h"

#include <limits>

#include "spatial/names.h"

namespace tw::spatial::testing {
namespace {

class Maker {
 public:
  explicit Maker(std::mt19937& random) : random_(random) {}

  Program program() {
    Program p;
    p.name = name();
    p.target = name();
    p.tile = {pick32(), pick32()};
    p.accumulator = precision();
    p.claim = {coin(), coin() ? "" : name()};
    for (uint64_t i = below(5); i-- > 0;) p.tensors.push_back(tensor());
    for (uint64_t i = below(5); i-- > 0;)
      p.buffers.push_back({name(), number(), pick32(), precision(), any<BufferKind>()});
    for (uint64_t i = below(6); i-- > 0;) p.stages.push_back(stage());
    if (coin()) p.edges = derive_edges(p);
    for (uint64_t i = coin() ? below(3) : 0; i-- > 0;)
      p.edges.push_back({StageId{pick32()}, BufferId{pick32()}, StageId{pick32()}});
    for (uint64_t i = below(4); i-- > 0;)
      p.work.items.push_back({number(), number(), {number(), number(), number(), number()}});
    p.work.plan = {number(), number(), number(), number(), number(), number(), number(), number()};
    p.work.k_tiles = number();
    if (coin()) p.work.k_trip = Trip{tensor_id(), number(), integer(), integer(), integer(), number()};
    return p;
  }

  Expr expr(int nodes, uint32_t operands) {
    if (nodes <= 1) return coin() ? arg(operands ? static_cast<uint32_t>(below(operands)) : 0) : Expr(real());
    const int left = 1 + static_cast<int>(below(static_cast<uint64_t>(nodes)));
    switch (below(9)) {
      case 0: return exp(expr(nodes - 1, operands));
      case 1: return silu(expr(nodes - 1, operands));
      case 2: return rsqrt(expr(nodes - 1, operands), number(), 1 + below(9));
      case 3: return shr(expr(nodes - 1, operands), static_cast<uint32_t>(below(64)));
      case 4: return floor_div(expr(left, operands), expr(nodes - left, operands));
      case 5: return max(expr(left, operands), expr(nodes - left, operands));
      case 6: return expr(left, operands) - expr(nodes - left, operands);
      default: {
        const Pred pred{any<Axis>(), coin(), coin(), coin() ? static_cast<int64_t>(below(9)) : 0};
        return select(pred, expr(left, operands), expr(nodes - left, operands));
      }
    }
  }

 private:
  uint64_t below(uint64_t end) { return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_); }
  bool coin() { return below(2) == 0; }
  uint64_t number() {
    constexpr uint64_t kOdd[] = {0, 1, std::numeric_limits<uint64_t>::max(), uint64_t{1} << 63};
    return coin() ? below(100) : kOdd[below(4)];
  }
  uint32_t pick32() { return coin() ? static_cast<uint32_t>(below(5)) : static_cast<uint32_t>(number()); }
  int64_t integer() {
    const uint64_t size = coin() ? below(100) : number();
    return static_cast<int64_t>(coin() ? size : 0 - size);  // -2^63 has no opposite
  }
  double real() {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double kOdd[] = {0.0, -0.0,   1e-320, -1.0e30, kInf, -kInf, std::numeric_limits<double>::quiet_NaN(),
                               0.1, 1.0 / 3};
    return coin() ? kOdd[below(9)] : std::uniform_real_distribution<double>(-1e6, 1e6)(random_);
  }
  // Few, so that they repeat; and the kinds that must be quoted.
  std::string name() {
    const std::string names[] = {"x",         "in_x", "@3",   "",      "a b",     "quote\"d",
                                 "line\nend", "x",    "load", "row:4", "\xc3\xa9"};
    return names[below(11)];
  }
  Precision precision() { return static_cast<Precision>(below(kPrecisions)); }
  template <class E>
  E any() {
    return static_cast<E>(below(kEnumNames<E>.size()));
  }
  BufferId buffer_id() { return BufferId{pick32()}; }
  TensorId tensor_id() { return TensorId{pick32()}; }

  Init init() {
    switch (below(9)) {
      case 0: return ZeroInit{};
      case 1: return RealInit{real()};
      case 2: return IntegerInit{integer()};
      case 3: return GivenInit{};
      case 4: return integer_values({integer(), integer(), integer()});
      case 5: return real_values({real(), real()});
      case 6: return IntegerValues{};
      case 7: return RealValues{};
      default: return ExternalInit{};
    }
  }
  Tensor tensor() { return {name(), any<TensorRole>(), number(), number(), precision(), init()}; }

  AccessPattern pattern() {
    AccessPattern p{{number(), {}, {}}, number(), number(), number(), number()};
    for (uint64_t i = below(4); i-- > 0;) p.origin.steps.push_back({any<LoopVar>(), number()});
    if (coin()) p.origin.indirect = IndirectTile{buffer_id(), number(), number(), integer(), integer()};
    return p;
  }
  Generic generic() {
    Generic g;
    for (uint64_t i = below(4); i-- > 0;) {
      g.iters.push_back({any<Axis>(), number(), {}});
      if (coin()) g.iters.back().reduce = any<Pool>();
    }
    for (uint64_t i = below(4); i-- > 0;) {
      g.ins.push_back({integer(), {integer(), coin() ? integer() : 0, integer()}, {}});
      if (coin()) g.ins.back().indirect = IndirectTerm{pick32(), integer(), number()};
    }
    g.body = expr(1 + static_cast<int>(below(12)), 4);
    return g;
  }
  Stage stage() {
    Stage s;
    s.name = name();
    s.level = any<FoldLevel>();
    for (uint64_t i = below(4); i-- > 0;) s.ins.push_back(buffer_id());
    for (uint64_t i = below(3); i-- > 0;) s.outs.push_back(buffer_id());
    switch (below(4)) {
      case 0: s.kind = Load{tensor_id(), pattern()}; break;
      case 1: s.kind = Store{tensor_id(), pattern()}; break;
      case 2: s.kind = Compute{MatmulTiles{pick32(), pick32(), pick32()}}; break;
      default: s.kind = Compute{generic()};
    }
    return s;
  }

  std::mt19937& random_;
};

}  // namespace

Program any_program(std::mt19937& random) { return Maker(random).program(); }
Expr any_expr(std::mt19937& random, int nodes, uint32_t operands) { return Maker(random).expr(nodes, operands); }

}  // namespace tw::spatial::testing
