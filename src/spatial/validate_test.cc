#include "spatial/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "spatial/testing.h"

namespace tw::spatial {
namespace {

Generic& generic(Program& p, size_t stage) { return std::get<Generic>(std::get<Compute>(p.stages[stage].kind).op); }
AccessPattern& pattern(Program& p, size_t stage) {
  Stage& s = p.stages[stage];
  if (auto* load = std::get_if<Load>(&s.kind)) return load->pattern;
  return std::get<Store>(s.kind).pattern;
}

std::set<std::string> codes(const Program& program) {
  std::set<std::string> found;
  for (const Finding& finding : validate(program)) found.insert(std::string(finding.code));
  return found;
}

// What is broken in a good program, and the one code that must be found for it (others may be too).
struct Mutant {
  std::string_view code;
  std::string_view what;
  enum class From { Add, Fold, Gather, Product } from;
  std::function<void(Program&)> damage;
};

Program valid_program(Mutant::From from) {
  switch (from) {
    case Mutant::From::Add: return *testing::flat_add(testing::toy_square(), 7);
    case Mutant::From::Fold: return *testing::row_sum_fold(testing::toy_square(), 5, true);
    case Mutant::From::Gather: return *testing::tile_gather(testing::toy_square(), 5);
    case Mutant::From::Product: return *testing::streamed_product(testing::toy_square(), 2, 2, 3);
  }
  return {};
}

using F = Mutant::From;

// add:     load_a load_b add store_c.         buffers in_a in_b out
// fold:    init load_x block_sum fold_sum last store_sum.  buffers in_x out block_sum run_sum
// gather:  load_i row_index gather_row copy_row store_y.   buffers in_i row_index in_row out
// product: load_a load_w product round store_y.            buffers in_a in_w sum out
const Mutant kMutants[] = {
    {"S1", "no name", F::Add, [](Program& p) { p.name.clear(); }},
    {"S1", "one name twice", F::Add, [](Program& p) { p.tensors[1].name = "a"; }},
    {"S1", "a result before its input", F::Add,
     [](Program& p) {
       p.tensors[2].name = "a";
       std::swap(p.tensors[0].role, p.tensors[2].role);
     }},
    {"S1", "two stages of one name", F::Add, [](Program& p) { p.stages[1].name = "load_a"; }},
    {"S2", "no rows", F::Add, [](Program& p) { p.tensors[0].rows = 0; }},
    {"S2", "no depth", F::Add, [](Program& p) { p.buffers[0].depth = 0; }},
    {"S2", "an extent of nothing", F::Add, [](Program& p) { generic(p, 2).iters[1].extent = 0; }},
    {"S2", "more elements than there are", F::Add,
     [](Program& p) { p.tensors[0].rows = p.tensors[0].cols = uint64_t{1} << 33; }},
    {"S2", "a plan without blocks", F::Add, [](Program& p) { p.work.plan.num_blocks = 0; }},
    {"S3", "a buffer that is not there", F::Add, [](Program& p) { p.stages[2].ins[0] = BufferId{9}; }},
    {"S3", "a tensor that is not there", F::Add,
     [](Program& p) { std::get<Load>(p.stages[0].kind).tensor = TensorId{9}; }},
    {"S4", "a load without a page", F::Add, [](Program& p) { p.stages[0].outs.clear(); }},
    {"S4", "a store that does not read its index", F::Gather,
     [](Program& p) { pattern(p, 4).origin.indirect = IndirectTile{}; }},
    {"S4", "a product of three", F::Product, [](Program& p) { p.stages[2].ins.push_back(BufferId{0}); }},
    {"S5", "too few values", F::Add,
     [](Program& p) {
       p.tensors[0].init = real_values({1, 2});
     }},
    {"S5", "reals for integers", F::Gather, [](Program& p) { p.tensors[1].init = RealInit{1}; }},
    {"S5", "a value beyond the precision", F::Gather, [](Program& p) { p.tensors[1].init = IntegerInit{128}; }},
    {"S6", "a block of another size", F::Add, [](Program& p) { pattern(p, 0).block_w = 1; }},
    {"S7", "a load that converts", F::Add, [](Program& p) { p.tensors[0].dtype = Precision::F32; }},
    {"S8", "a store to an input", F::Add,
     [](Program& p) { p.tensors[2].role = TensorRole::Input, p.tensors[1].role = TensorRole::State; }},
    {"S8", "a load of an output", F::Add, [](Program& p) { p.tensors[0].role = TensorRole::Output; }},
    {"S9", "a variable twice", F::Add,
     [](Program& p) {
       pattern(p, 0).origin.steps = {item_x(1), item_x(0)};
     }},
    {"S9", "an address that comes round to the first tile", F::Add,
     [](Program& p) {
       pattern(p, 0).origin.steps = {item_x(uint64_t{1} << 32)};
       p.work.items[0].x = uint64_t{1} << 32;
     }},
    {"S9", "an index that may be negative", F::Gather, [](Program& p) { pattern(p, 2).origin.indirect->low = -1; }},
    {"S9", "an index of reals", F::Gather, [](Program& p) { p.buffers[1].dtype = Precision::F32; }},
    {"S10", "an axis twice", F::Add, [](Program& p) { generic(p, 2).iters[0].axis = Axis::Col; }},
    {"S10", "columns and rows reduced", F::Fold, [](Program& p) { generic(p, 2).iters[0].reduce = Pool::Sum; }},
    {"S10", "k in parallel", F::Add, [](Program& p) { generic(p, 2).iters[0].axis = Axis::K; }},
    {"S11", "more rows than a tile", F::Add, [](Program& p) { generic(p, 2).iters[0].extent = 5; }},
    {"S11", "more columns than the page", F::Add, [](Program& p) { generic(p, 2).iters[1].extent = 9; }},
    {"S12", "a term on an axis that is not there", F::Add, [](Program& p) { generic(p, 2).ins[0].coef[2] = 1; }},
    {"S12", "an offset that wraps", F::Add, [](Program& p) { generic(p, 2).ins[0].base = int64_t{1} << 62; }},
    {"S12", "an index by an operand that is not there", F::Add,
     [](Program& p) {
       generic(p, 2).ins[0].indirect = IndirectTerm{7, 1, 4};
     }},
    {"S12", "an index of reals", F::Add,
     [](Program& p) {
       generic(p, 2).ins[0].indirect = IndirectTerm{1, 1, 4};
     }},
    {"S12", "indices in a circle", F::Gather,
     [](Program& p) {
       generic(p, 1).ins[0].indirect = IndirectTerm{0, 1, 4};
     }},
    {"S13", "no body", F::Add, [](Program& p) { generic(p, 2).body = {}; }},
    {"S13", "an operand that is not there", F::Add, [](Program& p) { generic(p, 2).body = arg(0) + arg(2); }},
    {"S13", "a bound of reals", F::Add,
     [](Program& p) { generic(p, 2).body = select(less_than_operand(Axis::Col, 1), arg(0), arg(1)); }},
    {"S13", "a select on an axis that is not there", F::Add,
     [](Program& p) { generic(p, 2).body = select(less(Axis::K, 1), arg(0), arg(1)); }},
    {"S14", "an operand that nothing reads", F::Add, [](Program& p) { generic(p, 2).body = arg(0); }},
    {"S15", "reals in an integer page", F::Gather, [](Program& p) { generic(p, 1).body = arg(0) * 0.5; }},
    {"S15", "a position as a real", F::Fold, [](Program& p) { generic(p, 2).iters[1].reduce = Pool::ArgMax; }},
    {"S15", "a real that is shifted", F::Add, [](Program& p) { generic(p, 2).body = shr(arg(0), 1) + arg(1); }},
    {"S16", "a product of other tiles", F::Product,
     [](Program& p) { std::get<MatmulTiles>(std::get<Compute>(p.stages[2].kind).op).inner = 8; }},
    {"S17", "a page that no stage writes", F::Add, [](Program& p) { p.stages.erase(p.stages.begin()); }},
    {"S17", "a page that is read before", F::Add, [](Program& p) { std::swap(p.stages[1], p.stages[2]); }},
    {"S18", "a page that nothing reads", F::Add, [](Program& p) { p.stages.pop_back(); }},
    {"S19", "a second reader of a computed page", F::Add,
     [](Program& p) { p.stages.push_back(p.stages[3]), p.stages[4].name = "again"; }},
    {"S19", "an index page that computes too", F::Gather,
     [](Program& p) {
       p.stages[3].ins[0] = BufferId{0}, p.stages[2].ins[0] = BufferId{0},
       pattern(p, 2).origin.indirect->index = BufferId{0};
     }},
    {"S20", "scratch that is stored", F::Add, [](Program& p) { p.buffers[2].kind = BufferKind::Scratch; }},
    {"S21", "a second writer", F::Add, [](Program& p) { p.stages[1].outs[0] = BufferId{0}; }},
    {"S21", "a carry of depth one", F::Fold, [](Program& p) { p.buffers[3].depth = 1; }},
    {"S21", "a carry that is not read by its update", F::Fold, [](Program& p) { p.stages[3].ins[0] = BufferId{2}; }},
    {"S22", "a prologue that reads the carry", F::Fold, [](Program& p) { p.stages[4].level = FoldLevel::Prologue; }},
    {"S22", "a body page that is read after", F::Fold, [](Program& p) { p.stages[4].ins[0] = BufferId{2}; }},
    {"S22", "a load of every block in the prologue", F::Fold,
     [](Program& p) { p.stages[1].level = FoldLevel::Prologue; }},
    {"S22", "a load of the body that names no block", F::Fold, [](Program& p) { pattern(p, 1).origin.steps.clear(); }},
    {"S22", "a product's page that is read in each block", F::Product,
     [](Program& p) { p.stages[3].level = FoldLevel::Body; }},
    {"S23", "fewer blocks than the count may be", F::Fold, [](Program& p) { p.work.plan.num_blocks = 4; }},
    {"S23", "a count that may be nothing", F::Fold, [](Program& p) { p.work.k_trip->low = 0; }},
    {"S23", "a count beyond its tensor", F::Fold, [](Program& p) { p.work.k_trip->elem = 1; }},
    {"S24", "an edge too few", F::Add, [](Program& p) { p.edges.pop_back(); }},
    {"S24", "an edge to another stage", F::Add, [](Program& p) { p.edges[0].consumer = StageId{3}; }},
    {"S25", "no items", F::Add, [](Program& p) { p.work.items.clear(); }},
    {"S25", "an item past the result", F::Add, [](Program& p) { p.work.items[0].out.col = 1; }},
    {"S25", "no result", F::Add, [](Program& p) { p.tensors[2].role = TensorRole::Param; }},
    {"S26", "an item too many", F::Add, [](Program& p) { p.work.items.push_back(p.work.items[0]); }},
    {"S26", "sub-blocks that do not divide", F::Add, [](Program& p) { p.work.plan.per_site_n = 3; }},
};

TEST(Validate, EveryMutantIsFoundByItsRule) {
  for (const Mutant& mutant : kMutants) {
    Program program = valid_program(mutant.from);
    ASSERT_TRUE(validate(program).empty());
    mutant.damage(program);
    EXPECT_TRUE(codes(program).contains(std::string(mutant.code)))
        << mutant.code << ", " << mutant.what << ": found " << ::testing::PrintToString(codes(program));
  }
}

TEST(Validate, EveryRuleHasAMutant) {
  std::set<std::string_view> tried;
  for (const Mutant& mutant : kMutants) tried.insert(mutant.code);
  for (const FindingCode& code : finding_codes())
    EXPECT_TRUE(tried.contains(code.code)) << code.code << " " << code.rule;
}

TEST(Validate, AnInputAndTheResultReplacingItShareAName) {
  Program program = valid_program(F::Add);
  program.tensors[2].name = "a";
  EXPECT_TRUE(validate(program).empty());
}

TEST(Validate, TheScalerOfAReductionNeedsNoUse) {
  Program program = valid_program(F::Fold);
  generic(program, 2).ins.push_back(fixed(0));
  program.stages[2].ins.push_back(BufferId{0});
  EXPECT_TRUE(validate(program).empty());
  generic(program, 2).ins.back() = at(0);
  EXPECT_EQ(codes(program), std::set<std::string>{"S14"});
}

TEST(Validate, AFindingSaysWhereItIs) {
  Program program = valid_program(F::Add);
  pattern(program, 0).block_w = 1;
  const std::vector<Finding> findings = validate(program);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(to_text(program, findings[0]), "S6 stage load_a (buffer in_a): moves 1 x 1 tiles, the page has 2");
  EXPECT_EQ(to_text(to_refusal(program, findings)),
            "c: section add_7 is ill-formed: S6 stage load_a (buffer in_a): moves 1 x 1 tiles, the page has 2");
}

TEST(CheckTarget, RefusesAnotherTarget) {
  const Program program = valid_program(F::Add);
  EXPECT_TRUE(check_target(program, testing::toy_square()).ok());
  EXPECT_EQ(check_target(program, testing::shipped_target("toy_tall")).refusal().kind, RefusalKind::Conflict);
  Target small = testing::toy_square();
  small.precisions.erase(Precision::Bf16);
  EXPECT_EQ(check_target(program, small).refusal().kind, RefusalKind::Missing);
  Target no_f32 = testing::toy_square();
  no_f32.precisions.erase(Precision::F32);
  EXPECT_THAT(check_target(program, no_f32).refusal().reason, ::testing::HasSubstr("accumulates in f32"));
  Target narrow = testing::toy_square();
  narrow.matmul_operands = {Precision::F32};
  EXPECT_THAT(check_target(valid_program(F::Product), narrow).refusal().reason,
              ::testing::HasSubstr("multiplies tiles of bf16"));
}

}  // namespace
}  // namespace tw::spatial
