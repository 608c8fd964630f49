// What the IR says of values and faults, one sentence a test, on tiles of 4 x 4.

#include "spatial/evaluate/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/expect_good.h"
#include "spatial/builder.h"
#include "spatial/testing.h"

namespace tw::spatial::evaluate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::NanSensitiveDoubleEq;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Target toy() {
  Target target = spatial::testing::toy_target({4, 4}, 8);
  target.precisions.insert(Precision::I64);
  return target;
}

using Body = std::function<Expr(GenericStage&, BufferId)>;
// Columns of the input, the precisions, the space: a page of three tiles in, one of three out.
struct OneStage {
  Precision in = Precision::F32;
  Precision out = Precision::F32;
  std::vector<Iter> space;
  uint64_t out_rows = 4;
};

// y = body(x) in one stage; x is 1 x 12.
Program one_stage(const OneStage& shape, const Body& body) {
  Builder b(toy(), is_integer(shape.out) ? Precision::I32 : Precision::F32);
  const TensorId x = b.tensor("x", TensorRole::Input, 1, 12, shape.in, GivenInit{});
  const TensorId y = b.tensor("y", TensorRole::Output, shape.out_rows, 12, shape.out);
  const BufferId in = b.buffer("in", 3, shape.in), out = b.buffer("out", 3, shape.out);
  b.load("load", x, {}, in);
  GenericStage stage = b.compute("stage", shape.space);
  Expr value = body(stage, in);
  stage.write(out, std::move(value));
  b.store("store", out, y, {});
  return good(std::move(b).finish({.name = "one_stage", .items = one_item(3), .claim = approx("a test")}));
}

template <class Value>
Run run_on(const Program& program, Memory& memory, std::vector<Value> x) {
  x.resize(program.tensors[0].size());
  EXPECT_TRUE(memory.set(program.tensors[0], std::span<const Value>(x)).ok());
  return good(evaluate(program, memory));
}

// Row `row` of y's first columns.
std::vector<double> row_of(const Memory& memory, uint64_t row, size_t count) {
  const std::vector<double> all = *memory.reals("y");
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * 12);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

std::vector<double> results(const OneStage& shape, const Body& body, std::vector<double> x, size_t count) {
  const Program program = one_stage(shape, body);
  Memory memory(program.tile);
  const Run run = run_on(program, memory, std::move(x));
  EXPECT_FALSE(run.fault) << to_text(*run.fault);
  return run.fault ? std::vector<double>{} : row_of(memory, 0, count);
}

std::string fault_of(const OneStage& shape, const Body& body, std::vector<int64_t> x) {
  const Program program = one_stage(shape, body);
  Memory memory(program.tile);
  const Run run = run_on(program, memory, std::move(x));
  return run.fault ? to_text(*run.fault) : "none";
}

const Body kCopy = [](GenericStage& stage, BufferId in) { return stage.read(in, at(0)); };

// ---- values ----

TEST(Landing, AColumnFoldFillsItsRowAndARowFoldItsColumn) {
  const Body matrix = [](GenericStage& stage, BufferId in) { return stage.read(in, map3(0, 4, 1)); };
  const std::vector<double> x{1, 2, 3, 4, 10, 20, 30, 40};
  const Program across = one_stage({.space = {rows(2), reduce_cols(4)}}, matrix);
  Memory memory(across.tile);
  ASSERT_FALSE(run_on(across, memory, x).fault);
  EXPECT_EQ(row_of(memory, 0, 12), std::vector<double>(12, 10));
  EXPECT_EQ(row_of(memory, 1, 12), std::vector<double>(12, 100));
  EXPECT_EQ(row_of(memory, 2, 12), std::vector<double>(12, 0));  // points that the space has not
  const Program down = one_stage({.space = {reduce_rows(2), cols(4)}}, matrix);
  ASSERT_FALSE(run_on(down, memory, x).fault);
  for (uint64_t row = 0; row < 4; ++row) EXPECT_THAT(row_of(memory, row, 5), ElementsAre(11, 22, 33, 44, 0));
}

TEST(Numbers, AStageRoundsItsResultOnce) {
  const OneStage half{.in = Precision::F32, .out = Precision::Bf16, .space = flat(1)};
  const Body twice = [](GenericStage& stage, BufferId in) { return stage.read(in, at(0)) + Expr(1.0) - Expr(256.0); };
  EXPECT_THAT(results(half, twice, {256.5}, 1), ElementsAre(1.5));  // 257.5 is not rounded on the way
  EXPECT_THAT(results(half, kCopy, {257.5}, 1), ElementsAre(258));
}

TEST(Numbers, NodesAreRoundedToTheAccumulator) {
  const Body lost = [](GenericStage& stage, BufferId in) {
    return stage.read(in, at(0)) + Expr(1.0) - Expr(16777216.0);
  };
  EXPECT_THAT(results({.space = flat(1)}, lost, {16777216}, 1), ElementsAre(0));
}

TEST(Numbers, MinAndMaxOfANanAreTheOtherOne) {
  const Body most = [](GenericStage& stage, BufferId in) { return max(stage.read(in, at(0)), stage.read(in, at(1))); };
  EXPECT_THAT(results({.space = flat(3)}, most, {kNan, 1, kNan, kNan}, 3),
              ElementsAre(1, 1, NanSensitiveDoubleEq(kNan)));
  const OneStage pool{.space = {rows(1), reduce_cols(4, Pool::Max)}};
  EXPECT_THAT(results(pool, kCopy, {kNan, -3, kNan, -5}, 1), ElementsAre(-3));
}

TEST(Numbers, ASumTakesItsFirstTermAsItIs) {
  const std::vector<double> sum = results({.space = {rows(1), reduce_cols(2)}}, kCopy, {-0.0, -0.0}, 1);
  EXPECT_TRUE(std::signbit(sum[0]));
}

TEST(ArgMax, IsThePlainScan) {
  const OneStage scan{.in = Precision::F32, .out = Precision::I32, .space = {rows(1), reduce_cols(4, Pool::ArgMax)}};
  const auto position = [&](std::vector<double> x) { return results(scan, kCopy, std::move(x), 1)[0]; };
  EXPECT_EQ(position({1, 5, 5, 2}), 1);        // ties: the lowest
  EXPECT_EQ(position({kNan, 5, 6, 7}), 0);     // nothing is greater than a NaN in front
  EXPECT_EQ(position({1, kNan, 2, kNan}), 2);  // one elsewhere never wins
  EXPECT_EQ(position({-kInfinity, -kInfinity, -kInfinity, -kInfinity}), 0);
  EXPECT_EQ(position({-2e30, -1e30, -3e30, -1e30}), 1);
}

TEST(Select, ReadsNothingInTheBranchThatIsNotTaken) {
  const Body band = [](GenericStage& stage, BufferId in) {
    const Expr far = stage.read(in, at(44)), near = stage.read(in, at(-4));
    return select(less(Axis::Col, 4), far, near);
  };
  EXPECT_THAT(results({.space = flat(8)}, band, {1, 2, 3, 4}, 8), ElementsAre(0, 0, 0, 0, 1, 2, 3, 4));
}

TEST(Select, ComparesWithOperandsBelowZero) {
  const OneStage integers{.in = Precision::I32, .out = Precision::I32, .space = flat(3)};
  const Body body = [](GenericStage& stage, BufferId in) {
    const uint32_t bound = stage.operand(in, at(0));
    return select(less_than_operand(Axis::Col, bound), 1.0, select(at_least_operand(Axis::Col, bound), 2.0, 3.0));
  };
  const Program program = one_stage(integers, body);
  Memory memory(program.tile);
  ASSERT_FALSE(run_on(program, memory, std::vector<int64_t>{-5, 2, 2}).fault);
  EXPECT_THAT(row_of(memory, 0, 3), ElementsAre(2, 1, 2));
}

TEST(Memory, PaddingStaysZeroWhenAWholePageIsStored) {
  const Program program = one_stage({.space = {rows(4), cols(12)}, .out_rows = 2},
                                    [](GenericStage& stage, BufferId in) { return stage.read(in, at(0)) + Expr(1.0); });
  Memory memory(program.tile);
  ASSERT_FALSE(run_on(program, memory, std::vector<double>{}).fault);
  const Stored& y = *memory.find("y");
  EXPECT_EQ(memory.code(y, 1, 11)[3], std::byte{0x3f});
  for (uint64_t col = 0; col < 12; ++col)
    for (const std::byte code : memory.code(y, 2, col)) EXPECT_EQ(code, std::byte{0});
}

TEST(Pages, NothingReadyReadsWhatNoStageWrote) {
  for (const Result<Program>& program :
       {spatial::testing::flat_add(toy(), 7), spatial::testing::row_sum_fold(toy(), 5, false)}) {
    ASSERT_TRUE(program.ok());
    Memory plain(program->tile);
    for (const Tensor& tensor : program->tensors) {
      if (tensor.result()) continue;
      ASSERT_TRUE(plain.set(tensor, std::vector<double>(tensor.size(), 1.25)).ok());
    }
    Memory poisoned = plain;
    ASSERT_FALSE(good(evaluate(*program, plain)).fault);
    ASSERT_FALSE(good(evaluate(*program, poisoned, {.poison_unwritten = true})).fault);
    const std::string& result = program->at(*program->result()).name;
    EXPECT_EQ(*plain.reals(result), *poisoned.reals(result));
  }
}

// ---- faults of values ----

const OneStage kIntegers{.in = Precision::I32, .out = Precision::I32, .space = flat(3)};

TEST(Faults, AnIndexOutsideItsTableIsNamed) {
  const Body gather = [](GenericStage& stage, BufferId in) {
    const uint32_t index = stage.operand(in, at(0));
    return stage.read(in, fixed(0).plus(index, 1, 12));
  };
  EXPECT_EQ(fault_of(kIntegers, gather, {0, 5, 11}), "none");
  EXPECT_EQ(fault_of(kIntegers, gather, {0, 12, -1}),
            "section one_stage, stage stage, item 0: an index in in is 12, admitted are 0 to 11");
  EXPECT_THAT(fault_of(kIntegers, gather, {0, 1, -1}), HasSubstr("is -1, admitted are 0 to 11"));
}

TEST(Faults, AGuardMovesNothingAndChecks) {
  const Body guard = [](GenericStage& stage, BufferId in) { return stage.guarded(in, 5) + stage.read(in, at(1)); };
  EXPECT_EQ(fault_of(kIntegers, guard, {4, 9}), "none");
  EXPECT_THAT(fault_of(kIntegers, guard, {5, 9}), HasSubstr("is 5, admitted are 0 to 4"));
  const Body untaken = [](GenericStage& stage, BufferId in) {
    const Expr checked = stage.guarded(in, 5);
    return select(at_least(Axis::Col, 3), checked, 0.0);
  };
  EXPECT_EQ(fault_of(kIntegers, untaken, {5}), "none");
}

TEST(Faults, AMapThatLeavesItsPageSaysWhere) {
  const Body far = [](GenericStage& stage, BufferId in) { return stage.read(in, at(46)); };
  EXPECT_THAT(fault_of(kIntegers, far, {}), HasSubstr("reads offset 48 of page in, which has 0 to 47"));
  const Body before = [](GenericStage& stage, BufferId in) { return stage.read(in, at(-1)); };
  EXPECT_THAT(fault_of(kIntegers, before, {}), HasSubstr("reads offset -1 of page in"));
}

TEST(Faults, IntegersNeverWrap) {
  OneStage narrow = kIntegers;
  narrow.out = Precision::I8;
  EXPECT_EQ(fault_of(narrow, kCopy, {127, -128, 0}), "none");
  EXPECT_THAT(fault_of(narrow, kCopy, {127, -129, 300}), HasSubstr("leaves the range -128 to 127; it is -129"));
  OneStage wide = kIntegers;
  wide.in = wide.out = Precision::I64;
  const Body square = [](GenericStage& stage, BufferId in) {
    return min(stage.read(in, at(0)) * stage.read(in, at(0)), 1.0);
  };
  EXPECT_EQ(fault_of(wide, square, {int64_t{1} << 31}), "none");
  EXPECT_THAT(fault_of(wide, square, {int64_t{1} << 32}), HasSubstr("leaves the range -9223372036854775808"));
  const Body quotient = [](GenericStage& stage, BufferId in) {
    return floor_div(stage.read(in, at(0)), stage.read(in, at(1)));
  };
  EXPECT_THAT(fault_of(kIntegers, quotient, {7, 2, 0}), HasSubstr("divides an integer for page out by zero"));
}

TEST(Faults, TheFirstOneInTheOrderOfThePointsIsTold) {
  OneStage columns_first = kIntegers;
  columns_first.space = {cols(3), rows(2)};
  const Body narrow = [](GenericStage& stage, BufferId in) {
    const uint32_t index = stage.operand(in, map3(0, 3, 1));
    return stage.read(in, fixed(0).plus(index, 1, 12));
  };
  // Row 1 of column 0 comes before row 0 of column 1.
  EXPECT_THAT(fault_of(columns_first, narrow, {0, 20, 0, 30, 0, 0}), HasSubstr("is 30"));
}

// ---- faults of movement ----

TEST(Faults, ATileIndexOutsideItsBoundIsNamed) {
  const Program gather = good(spatial::testing::tile_gather(toy(), 5));
  const auto fault_at = [&](int64_t row) {
    Memory memory(gather.tile);
    EXPECT_TRUE(memory.set(gather.tensors[0], std::vector<double>(20, 1.0)).ok());
    EXPECT_TRUE(memory.set(gather.tensors[1], std::vector<int64_t>{row}).ok());
    const auto run = good(evaluate(gather, memory));
    return run.fault ? to_text(*run.fault) : "none";
  };
  EXPECT_EQ(fault_at(1), "none");
  EXPECT_EQ(fault_at(5), "none");
  EXPECT_THAT(fault_at(6),
              HasSubstr("stage gather_row, item 0: the tile index in row_index is 5, admitted are 0 to 4"));
  EXPECT_THAT(fault_at(0), HasSubstr("is -1, admitted are 0 to 4"));
}

// y = x, two items of a tile each, broken by `change` after it was built.
Fault broken_copy(TensorRole role, const std::function<void(Program&)>& change, ItemOrder order = ItemOrder::Listed) {
  Builder b(toy(), Precision::F32);
  const TensorId y = b.tensor("y", role, 1, 8, Precision::F32, GivenInit{});
  const TensorId x = b.tensor("x", TensorRole::Input, 1, 8, Precision::F32, GivenInit{});
  const BufferId in = b.buffer("in", 1, Precision::F32), out = b.buffer("out", 1, Precision::F32);
  b.load("load", x, {.steps = {item_x(1)}}, in);
  GenericStage copy = b.compute("copy", flat(4));
  const Expr value = copy.read(in, at(0));
  copy.write(out, value);
  b.store("store", out, y, {.steps = {item_x(1)}});
  Program program = good(std::move(b).finish({.name = "copy", .items = row_items(2, 1), .claim = exact()}));
  change(program);
  Memory memory(program.tile);
  for (const Tensor& tensor : program.tensors)
    if (tensor.role != TensorRole::Output && std::holds_alternative<GivenInit>(tensor.init)) {
      EXPECT_TRUE(memory.set(tensor, std::vector<double>(8, 2.0)).ok());
    }
  const auto run = good(evaluate(program, memory, {.order = order}));
  EXPECT_TRUE(run.fault.has_value());
  return run.fault.value_or(Fault{});
}

AccessPattern& pattern_of(Program& program, size_t stage) {
  StageKind& kind = program.stages[stage].kind;
  return std::holds_alternative<Load>(kind) ? std::get<Load>(kind).pattern : std::get<Store>(kind).pattern;
}

TEST(Faults, AnAddressPastTheGridIsNamed) {
  const Fault load = broken_copy(TensorRole::Output, [](Program& p) { pattern_of(p, 0).origin.base = 1; });
  EXPECT_EQ(to_text(load), "section copy, stage load, item 1: moves tile 2 of x, which has 0 to 1");
  const Fault wide = broken_copy(TensorRole::Output, [](Program& p) { p.work.items[1].x = uint64_t{1} << 40; });
  EXPECT_EQ(wide.kind, FaultKind::TileAddress);
}

TEST(Faults, TwoItemsMayNotStoreOneTile) {
  const auto overlap = [](Program& p) { pattern_of(p, 2).origin.steps.clear(); };
  EXPECT_EQ(broken_copy(TensorRole::Output, overlap).kind, FaultKind::WriteConflict);
  EXPECT_EQ(broken_copy(TensorRole::State, overlap).kind, FaultKind::WriteConflict);
}

TEST(Faults, StateThatOneItemReadsAndAnotherWritesIsStaleInEveryOrder) {
  // Item 1 reads what item 0 rewrites.
  const auto race = [](Program& p) {
    std::get<Load>(p.stages[0].kind).tensor = TensorId{0};
    pattern_of(p, 0).origin.steps.clear();
  };
  for (const ItemOrder order : {ItemOrder::Listed, ItemOrder::Reversed}) {
    const Fault fault = broken_copy(TensorRole::State, race, order);
    EXPECT_EQ(fault.kind, FaultKind::StaleRead);
    EXPECT_EQ(fault.subject, "y");
  }
}

TEST(Faults, WhatNobodyWroteCannotBeRead) {
  const Fault fault = broken_copy(TensorRole::Output, [](Program& p) { p.tensors[1].init = ExternalInit{}; });
  EXPECT_EQ(to_text(fault), "section copy, stage load, item 0: reads tile 0 of x, which nobody wrote");
}

TEST(Faults, QueuesShowWhatTheirRatesDoNotBalance) {
  // Sub-blocks that do not load again find no page; a page too many does not fit; one that is not popped is left.
  const auto subs = [](Program& p) {
    p.work.plan.per_site_n = 2;
    p.work.plan.block_n = 1;
  };
  const Fault missing = broken_copy(TensorRole::Output, subs);
  EXPECT_EQ(missing.kind, FaultKind::PageMissing);
  EXPECT_EQ(missing.subject, "in");
  EXPECT_EQ(missing.stage, "copy");
  const Fault left = broken_copy(TensorRole::Output, [](Program& p) {
    p.stages[1].ins[0] = p.stages[0].outs[0];
    Stage again = p.stages[0];
    again.name = "again";
    p.stages.push_back(again);
  });
  EXPECT_EQ(left.kind, FaultKind::PageLeft);
  const Fault overrun = broken_copy(TensorRole::Output, [](Program& p) {
    p.buffers[0].depth = 1;
    Stage again = p.stages[0];
    again.name = "again";
    p.stages.insert(p.stages.begin() + 1, again);
  });
  EXPECT_EQ(to_text(overrun), "section copy, stage again, item 0: pushes into in, which holds 1 pages already");
}

TEST(Faults, ACountOutsideItsRangeStopsBeforeAnythingRuns) {
  const Program fold = good(spatial::testing::row_sum_fold(toy(), 5, true));
  Memory memory(fold.tile);
  ASSERT_TRUE(memory.set(fold.tensors[0], std::vector<double>(20, 1.0)).ok());
  for (const int64_t count : {0, 21}) {
    ASSERT_TRUE(memory.set(fold.tensors[2], std::vector<int64_t>{count}).ok());
    const auto run = good(evaluate(fold, memory));
    ASSERT_TRUE(run.fault.has_value());
    EXPECT_EQ(run.fault->kind, FaultKind::TripRange);
    EXPECT_EQ(run.fault->value, count);
    EXPECT_EQ(run.tiles_loaded, 0U);
  }
  ASSERT_TRUE(memory.set(fold.tensors[2], std::vector<int64_t>{9}).ok());
  const auto run = good(evaluate(fold, memory));
  EXPECT_FALSE(run.fault);
  EXPECT_EQ(run.blocks, 3U);
  EXPECT_EQ(run.tiles_loaded, 3U);
  EXPECT_THAT(*memory.reals("sum"), ElementsAre(12));
}

// y = the two tiles of tile row i of x, which has five rows of eight.
Program row_of_tiles() {
  Builder b(toy(), Precision::F32);
  const TensorId x = b.tensor("x", TensorRole::Input, 5, 8, Precision::F32, GivenInit{});
  const TensorId i = b.tensor("i", TensorRole::Input, 1, 1, Precision::I32, GivenInit{});
  const TensorId y = b.tensor("y", TensorRole::Output, 4, 8, Precision::F32);
  const BufferId row = b.buffer("row", 1, Precision::I32);
  const BufferId in = b.buffer("in", 2, Precision::F32), out = b.buffer("out", 2, Precision::F32);
  b.load("load_i", i, {}, row);
  b.load("load", x, {.indirect = IndirectTile{.index = row, .tile_stride = 2, .high = 1}}, in);
  GenericStage copy = b.compute("copy", {rows(4), cols(8)});
  const Expr value = copy.read(in, ident(8));
  copy.write(out, value);
  b.store("store", out, y, {});
  return good(std::move(b).finish({.name = "row_of_tiles", .items = one_item(2), .claim = exact()}));
}

TEST(Evaluator, ALoadThatFaultsHalfwayLeavesNothingInThePageOfTheNextRun) {
  const Program program = row_of_tiles();
  Memory memory(program.tile);
  ASSERT_TRUE(memory.set(program.tensors[0], std::vector<double>(40, 7.0)).ok());
  ASSERT_TRUE(memory.set(program.tensors[1], std::vector<int64_t>{0}).ok());
  Result<Evaluator> evaluator = Evaluator::compile(program);
  ASSERT_TRUE(evaluator.ok());
  memory.find("x")->written[1] = false;
  const auto halfway = good(evaluator->run(memory));
  ASSERT_TRUE(halfway.fault.has_value());
  EXPECT_EQ(halfway.fault->kind, FaultKind::UnwrittenRead);
  ASSERT_TRUE(memory.set(program.tensors[1], std::vector<int64_t>{1}).ok());
  ASSERT_FALSE(good(evaluator->run(memory)).fault);
  std::vector<double> one_row(32, 0.0);  // tile row 1 of x has the fifth row alone
  std::fill_n(one_row.begin(), 8, 7.0);
  EXPECT_EQ(*memory.reals("y"), one_row);
}

TEST(Evaluator, RefusesWhatCannotRun) {
  Program program = good(spatial::testing::flat_add(toy(), 7));
  program.stages[0].outs[0] = BufferId{99};
  EXPECT_FALSE(Evaluator::compile(program).ok());
  Memory other({8, 4});
  EXPECT_FALSE(evaluate(good(spatial::testing::flat_add(toy(), 7)), other).ok());
}

}  // namespace
}  // namespace tw::spatial::evaluate
