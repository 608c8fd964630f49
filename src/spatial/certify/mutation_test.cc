// From valid programs, broken ones: each is to be rejected by the check whose claim it breaks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "spatial/certify/certify.h"
#include "spatial/certify/recheck.h"
#include "spatial/certify/testing.h"
#include "spatial/evaluate/evaluate.h"
#include "spatial/validate.h"

namespace tw::spatial {
namespace {

Stage& stage(Program& program, std::string_view name) {
  const auto at =
      std::find_if(program.stages.begin(), program.stages.end(), [&](const Stage& s) { return s.name == name; });
  TW_CHECK(at != program.stages.end(), "there is no stage {}", name);
  return *at;
}
Buffer& buffer(Program& program, std::string_view name) {
  const auto at =
      std::find_if(program.buffers.begin(), program.buffers.end(), [&](const Buffer& b) { return b.name == name; });
  TW_CHECK(at != program.buffers.end(), "there is no buffer {}", name);
  return *at;
}
AccessPattern& pattern(Program& program, std::string_view name) {
  Stage& s = stage(program, name);
  if (auto* load = std::get_if<Load>(&s.kind)) return load->pattern;
  return std::get<Store>(s.kind).pattern;
}
Generic& generic(Program& program, std::string_view name) {
  return std::get<Generic>(std::get<Compute>(stage(program, name).kind).op);
}

struct Mutation {
  std::string_view name;
  std::function<Result<Program>()> valid;
  std::function<void(Program&, Target&)> breaks;
  std::string_view check;  // the one that must reject it
  std::string_view says;   // part of what it says
  // What happens when it runs with `given` in every integer input: a kind of fault, "refused", or nothing.
  std::string_view runs_into = {};
  int64_t given = 1;
  // What follows from the values of data alone, which the small checker does not work out.
  bool by_value = false;
};

Result<Program> add() { return testing::flat_add(testing::toy_square(), 7); }
Result<Program> chunks() { return testing::chunked_add(testing::toy_square(), 3, 4); }
Result<Program> fold() { return testing::row_sum_fold(testing::toy_square(), 5, false); }
Result<Program> counted() { return testing::checked_fold(testing::toy_square(), 4); }
Result<Program> gather() { return testing::tile_gather(testing::toy_square(), 100); }
Result<Program> product() { return testing::streamed_product(testing::toy_square(), 3, 2, 4); }
Result<Program> update() { return testing::row_update(testing::toy_square(), 6, 3); }
Result<Program> states() { return testing::state_chunks(testing::toy_square(), 2, 3); }
Result<Program> results() { return testing::two_results(testing::toy_square(), 13); }
Result<Program> joined() { return testing::join(testing::toy_square(), 4); }
Result<Program> elements() { return testing::element_gather(testing::toy_square(), 3, 5); }

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> all{
      // ---- tokens ----
      {"a page too few: the row is not loaded again for each sub-block", chunks,
       [](Program& p, Target&) { pattern(p, "load_row").origin.steps.clear(); }, "rates",
       "load_row pushes 1 pages an item, 4 are popped", "page_missing"},
      {"a page too few: the second sub-block finds none", chunks,
       [](Program& p, Target&) { pattern(p, "load_row").origin.steps.clear(); }, "liveness",
       "waits for a page that nothing pushes before it (sub-block 1", "page_missing"},
      {"a page too many: what is loaded for each block is read once", product,
       [](Program& p, Target&) {
         stage(p, "round").ins[0] = stage(p, "product").ins[0];
         p.edges = derive_edges(p);
       },
       "readers", "is written and never read", "page_overrun"},
      {"a store once an item of what each sub-block makes", chunks,
       [](Program& p, Target&) { pattern(p, "store_y").origin.steps.pop_back(); }, "rates",
       "add pushes 4 pages an item, 1 are popped", "page_overrun"},
      {"a carried page that is not taken after the blocks", fold,
       [](Program& p, Target&) {
         Stage& last = stage(p, "last");
         last.ins.clear();
         generic(p, "last") = {flat(1), {}, Expr(0.0)};
         p.edges = derive_edges(p);
       },
       "rates", "never taken after its blocks"},
      {"depth one less than a carry needs", fold, [](Program& p, Target&) { buffer(p, "run_sum").depth = 1; },
       "liveness", "pushes page 2 into room for 1", "page_overrun"},
      {"stages out of order: a page is read before it is written", add,
       [](Program& p, Target&) {
         std::swap(p.stages[1], p.stages[2]);
         p.edges = derive_edges(p);
       },
       "liveness", "waits for a page that nothing pushes before it", "page_missing"},
      // ---- readers ----
      {"a second reader pops the result", add,
       [](Program& p, Target&) {
         Stage twice = stage(p, "store_c");
         twice.name = "store_again";
         p.stages.push_back(twice);
       },
       "readers", "is read by 2 stages", "write_conflict"},
      {"a second reader of an index page", gather,
       [](Program& p, Target&) {
         stage(p, "copy_row").ins[0] = stage(p, "row_index").outs[0];
         p.edges = derive_edges(p);
       },
       "readers", "is read by 2 stages", "page_left"},
      {"a stored page that no stage writes", add,
       [](Program& p, Target&) {
         p.stages.erase(p.stages.begin() + 2);
         p.edges = derive_edges(p);
       },
       "readers", "reads a page that no stage writes", "page_missing"},
      {"a second writer", results, [](Program& p, Target&) { stage(p, "multiply").outs = stage(p, "add").outs; },
       "readers", "has 2 writers", "page_missing"},
      // ---- resources ----
      {"one byte over local memory", add, [](Program& p, Target& t) { t.local_bytes = footprint(p) - 1; },
       "local memory", "1 more than the 383"},
      {"a computed page one tile wider than the accumulator", add, [](Program&, Target& t) { t.accumulator_tiles = 1; },
       "accumulator", "1 more than the 1"},
      {"a function that the target lacks", gather,
       [](Program&, Target& t) { t.capabilities.erase(Capability::IndirectTiles); }, "capabilities",
       "needs indirect_tiles"},
      {"a precision that the target lacks", add, [](Program&, Target& t) { t.precisions.erase(Precision::Bf16); },
       "capabilities", "is bf16"},
      {"an accumulator that the target lacks", add, [](Program&, Target& t) { t.precisions.erase(Precision::F32); },
       "capabilities", "accumulates in f32"},
      {"an operand of a product that the target does not multiply", product,
       [](Program&, Target& t) { t.matmul_operands.erase(Precision::Bf16); }, "capabilities",
       "multiplies tiles of bf16"},
      {"another target's tile", add,
       [](Program&, Target& t) {
         t.tile = {8, 8};
       },
       "capabilities", "4x4 tiles, not for"},
      // ---- the algebra and folds ----
      {"a product of pages of another size", product,
       [](Program& p, Target&) { std::get<MatmulTiles>(std::get<Compute>(stage(p, "product").kind).op).inner = 8; },
       "algebra", "the page has 1 tiles, expected 2", "refused"},
      {"the wrong level: the result is taken inside the fold", fold,
       [](Program& p, Target&) { stage(p, "store_sum").level = FoldLevel::Body; }, "folds", "", "page_missing"},
      {"the wrong level: an epilogue stage reads a block's page", product,
       [](Program& p, Target&) { stage(p, "product").level = FoldLevel::Epilogue; }, "folds", "outside the body",
       "page_overrun"},
      {"a count admitted for a block more than the plan has", counted,
       [](Program& p, Target&) { p.work.k_trip->high += 1; }, "folds", "makes 1 to 5 blocks, the plan has 4",
       "refused"},
      {"a count admitted otherwise than its guard does", counted, [](Program& p, Target&) { p.work.k_trip->high -= 1; },
       "folds", "is admitted from 1 to 16 where it is checked, the count of blocks from 1 to 15", "trip_range", 16,
       true},
      // ---- addresses ----
      {"an address one tile past the end", chunks, [](Program& p, Target&) { pattern(p, "load_x").origin.base = 1; },
       "addresses", "reaches tiles 9 to 12, 1 past the last of the 12 of x", "tile_address"},
      {"a store one tile past the end", results,
       [](Program& p, Target&) { pattern(p, "store_product").origin.base = 1; }, "addresses",
       "1 past the last of the 4", "tile_address"},
      {"an index bound one too wide", gather,
       [](Program& p, Target&) { pattern(p, "gather_row").origin.indirect->high += 1; }, "addresses",
       "1 past the last of the 100 of table", "tile_address", 101},
      {"a block of a fold past the end", product,
       [](Program& p, Target&) { pattern(p, "load_w").origin.steps[1].stride += 1; }, "addresses", "past the last",
       "tile_address"},
      // ---- coverage ----
      {"stores that overlap: the item's step is gone", results,
       [](Program& p, Target&) { pattern(p, "store_sum").origin.steps[0].stride = 0; }, "coverage",
       "tile 0 at (0, 0) is stored by item 0 too", "write_conflict"},
      {"stores of a second result that overlap", results,
       [](Program& p, Target&) { pattern(p, "store_product").origin.steps[0].stride = 0; }, "coverage",
       "is stored by item 0 too", "write_conflict"},
      {"a rectangle removed", results, [](Program& p, Target&) { p.work.items.pop_back(); }, "coverage",
       "3 of its 4 tiles are"},
      {"a rectangle doubled", results, [](Program& p, Target&) { p.work.items[1].out = p.work.items[0].out; },
       "coverage", "tile 0 at (0, 0) is owned by item 0 too"},
      {"a rectangle shifted out", results, [](Program& p, Target&) { p.work.items[3].out.col += 1; }, "coverage",
       "item 3 owns 1 x 1 tiles at (0, 4) of 1 x 4"},
      {"rectangles exchanged: items store what others own", results,
       [](Program& p, Target&) { std::swap(p.work.items[1].out, p.work.items[2].out); }, "coverage",
       "which it does not own"},
      {"a sub-block that is not stored", chunks,
       [](Program& p, Target&) { pattern(p, "store_y").origin.steps[1].stride = 0; }, "coverage", "is stored by item 0",
       "write_conflict"},
      {"two items store one tile of a state", states,
       [](Program& p, Target&) { pattern(p, "store_state").origin.steps[0].stride = 2; }, "coverage",
       "tile 2 at (2, 0) is stored by item 0 too", "stale_read"},
      {"equal tiles when each index is at its low bound",
       [] { return testing::scattered_rows(testing::toy_square(), 3); }, [](Program&, Target&) {}, "coverage",
       "tile 0 at (0, 0) is stored by item 0 too, each index at its low bound"},
      {"an output stored once a block, and data counts the blocks", counted,
       [](Program& p, Target&) {
         // The pages of the blocks are copied out as well.
         p.tensors.push_back({"copy", TensorRole::Output, 1, p.tensors[0].cols, p.tensors[0].dtype, ExternalInit{}});
         p.buffers.push_back(buffer(p, "in_x"));
         p.buffers.back().name = "copied";
         const BufferId from = stage(p, "load_x").outs[0], to{static_cast<uint32_t>(p.buffers.size() - 1)};
         const TensorId copy{static_cast<uint32_t>(p.tensors.size() - 1)};
         const AccessPattern where = pattern(p, "load_x");
         p.stages.push_back({"copy", Compute{Generic{flat(4), {at(0)}, arg(0)}}, {from}, {to}});
         p.stages.push_back({"store_copy", Store{copy, where}, {to}, {}});
         p.edges = derive_edges(p);
       },
       "coverage", "stores an output once a block, and the number of blocks is data"},
      // ---- the order of state ----
      {"a stale read: another item's tile", states,
       [](Program& p, Target&) { pattern(p, "load_state").origin.base = 1; }, "state order",
       "which store_state of item 1 writes", "stale_read"},
      {"a stale read: what the sub-block before wrote", states,
       [](Program& p, Target&) { pattern(p, "store_state").origin.base = 1; }, "state order", "in sub-block 1",
       "stale_read"},
      {"a read that the write does not wait for", states,
       [](Program& p, Target&) {
         const BufferId in_x = stage(p, "load_x").outs[0];
         stage(p, "add").ins[0] = in_x;
         p.edges = derive_edges(p);
       },
       "state order", "which store_state writes without waiting for it", "page_overrun"},
      {"a gather and a scatter at different rows", update,
       [](Program& p, Target&) { generic(p, "row_scatter").body = arg(0) - Expr(2.0); }, "state order",
       "scatter_state writes 0 to 17 in the same section", "", 3},
      {"a scatter that does not wait for the gather", update,
       [](Program& p, Target&) {
         generic(p, "more") = {flat(4), {}, Expr(1.0)};
         stage(p, "more").ins.clear();
       },
       "state order", "does not wait for it", "page_left"},
      {"a stale read: the row that the sub-block before scattered", update,
       [](Program& p, Target&) {
         p.work.plan.per_site_n = 2;
         for (const auto* name : {"load_row_gather", "load_row_scatter", "gather_state", "scatter_state"})
           pattern(p, name).origin.steps.push_back({LoopVar::SubW, 0});
       },
       "state order", "in sub-block 1, block 0, which scatter_state writes in sub-block 0", "stale_read"},
      // ---- element maps ----
      {"a map one element past its page", add, [](Program& p, Target&) { generic(p, "add").ins[0] = at(26); }, "reads",
       "reads elements 26 to 32 of a page of 32", "page_offset"},
      {"a band one column too wide", joined,
       [](Program& p, Target&) {
         std::vector<Node> nodes(generic(p, "join").body.nodes().begin(), generic(p, "join").body.nodes().end());
         std::get<SelectNode>(nodes.back()).cond.bound -= 1;
         generic(p, "join").body = Expr(nodes);
       },
       "reads", "operand 1 reads elements -1 to 3 of a page of 16", "page_offset"},
      {"a guard that admits more than the page", elements,
       [](Program& p, Target&) {
         // The one element at the offset itself, with a bound one past the page of four tiles.
         Generic& g = generic(p, "gather");
         g.ins[1] = fixed(0).plus(0, 1, 65);
         generic(p, "row_offset").body = arg(0) * Expr(32.0);
       },
       "reads", "of a page of 64 at indices", "page_offset", 3, true},
      {"more parallel rows than a tile has", add, [](Program& p, Target&) { generic(p, "add").iters[0].extent = 5; },
       "reads", "has 5 parallel rows, a tile has 4", "refused"},
      // ---- indices ----
      {"an index page too narrow for its bound", gather,
       [](Program& p, Target&) { pattern(p, "gather_row").origin.indirect->high = 128; }, "indices",
       "admits indices up to 128, 1 more than the 127 of an i8"},
      {"an offset that wraps", elements,
       [](Program& p, Target&) { generic(p, "row_offset").body = arg(0) * Expr(64.0); }, "indices",
       "makes indices of 0 to 128, an i8 holds -128 to 127", "overflow", 3, true},
      // ---- structure ----
      {"an operand that nothing reads", add, [](Program& p, Target&) { generic(p, "add").body = arg(0); }, "structure",
       "operand 1 is never read"},
      {"an edge that does not follow from the stages", add, [](Program& p, Target&) { p.edges.pop_back(); },
       "structure", "edge 2 is missing"},
      {"a page of another size than the block", add, [](Program& p, Target&) { buffer(p, "in_a").page_tiles = 1; },
       "structure", "the page has 1", "refused"},
  };
  return all;
}

TEST(Mutation, EachIsRejectedByItsCheck) {
  for (const Mutation& mutation : mutations()) {
    SCOPED_TRACE(std::string(mutation.name));
    Result<Program> section = mutation.valid();
    ASSERT_TRUE(section.ok()) << to_text(section.refusal());
    Program program = std::move(*section);
    Target target = testing::toy_square();
    mutation.breaks(program, target);
    const std::vector<CheckFailure> failures = run_check(mutation.check, program, target);
    std::string all;
    for (const CheckFailure& failure : failures) all += to_text(program, failure) + "\n";
    EXPECT_THAT(all, ::testing::HasSubstr(std::string(mutation.says)));
    EXPECT_FALSE(failures.empty());
    EXPECT_FALSE(certify(program, target).ok());
  }
}

// ---- what the evaluator makes of them ----

std::string outcome(const Program& program, int64_t given) {
  evaluate::Memory memory(program.tile);
  for (const Tensor& tensor : program.tensors) {
    if (!std::holds_alternative<GivenInit>(tensor.init)) continue;
    const Result<void> set = is_integer(tensor.dtype) ? memory.set(tensor, std::vector<int64_t>(tensor.size(), given))
                                                      : memory.set(tensor, std::vector<double>(tensor.size(), 1.0));
    TW_CHECK(set.ok(), "{}", to_text(set.refusal()));
  }
  const Result<evaluate::Run> run = evaluate::evaluate(program, memory);
  if (!run) return "refused";
  return run->fault ? std::string(name(run->fault->kind)) : std::string();
}

TEST(Mutation, TheEvaluatorSeesWhatItCan) {
  size_t faults = 0;
  for (const Mutation& mutation : mutations()) {
    SCOPED_TRACE(std::string(mutation.name));
    Program program = *mutation.valid();
    Target target = testing::toy_square();
    const bool valid = certify(program, target).ok();
    if (valid) {
      EXPECT_EQ(outcome(program, 1), "");
    }
    mutation.breaks(program, target);
    EXPECT_EQ(outcome(program, mutation.given), mutation.runs_into);
    faults += mutation.runs_into.empty() ? 0 : 1;
  }
  EXPECT_GE(faults, 15U);
}

// The evidence of the valid program does not pass for the broken one, even when the fingerprint is forged.
TEST(Mutation, AForgedCertificateIsRejected) {
  for (const Mutation& mutation : mutations()) {
    Result<Program> section = mutation.valid();
    ASSERT_TRUE(section.ok());
    Program program = std::move(*section);
    Target target = testing::toy_square();
    const Certificate sound = certify(program, target).certificate;
    mutation.breaks(program, target);
    if (!validate(program).empty()) continue;  // what the small checker relies on
    Certificate forged = certify(program, target).certificate;
    forged.checks = {kCertificateChecks.begin(), kCertificateChecks.end()};
    if (mutation.by_value) continue;
    EXPECT_FALSE(recheck(program, target, forged).empty()) << mutation.name;
    Certificate old = sound;
    old.fingerprint = forged.fingerprint;
    EXPECT_FALSE(recheck(program, target, old).empty()) << mutation.name;
  }
}

}  // namespace
}  // namespace tw::spatial
