// Fused schedules of random graphs: every form, every numerics, any rules held back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>

#include "fuse/rules.h"
#include "graph/testing.h"
#include "lane/print.h"
#include "lane/verify.h"
#include "plan/explain.h"
#include "plan/plan.h"

namespace tw::plan {
namespace {

using graph::Form;

const fuse::AnyLaunch kAny;

Knobs knobs_of(lane::Numerics numerics) {
  Knobs knobs;
  knobs.numerics = numerics;
  knobs.shim = &kAny;
  knobs.quantized_bytes = [](uint64_t n, uint32_t words) { return n * (words + 1); };
  return knobs;
}

std::vector<Form> forms() {
  std::vector<Form> out{{Form::Kind::Decode, 1}};
  for (const uint32_t rows : {2U, 16U, 17U, 64U}) out.push_back({Form::Kind::Chunk, rows});
  for (const uint32_t sequences : {2U, 5U}) out.push_back({Form::Kind::Batch, sequences});
  return out;
}

// Every op is computed by exactly one launch (of those that random graphs have, none is computed in parts by several).
void expect_each_op_once(const lane::Schedule& schedule, const graph::StepGraph& graph) {
  std::vector<int> times(schedule.op_count, 0);
  for (const lane::Planned& planned : schedule.launches) {
    for (const graph::OpId op : planned.ops) ++times[graph::index(op)];
  }
  for (uint32_t op = 0; op < times.size(); ++op) {
    EXPECT_EQ(times[op], 1) << "op " << op << " " << op_text(graph, graph::OpId{op});
  }
}

class FusedSchedules : public ::testing::TestWithParam<uint64_t> {};

TEST_P(FusedSchedules, AreSoundWhateverIsHeldBack) {
  std::mt19937_64 random(GetParam());
  for (const Form& form : forms()) {
    graph::testing::RandomGraphOptions options;
    options.form = form;
    options.integers = false;
    const auto made = graph::testing::random_graph(GetParam(), options);
    for (const lane::Numerics numerics : {lane::Numerics::Precise, lane::Numerics::Int8}) {
      Knobs knobs = knobs_of(numerics);
      for (const fuse::Holdable& rule : fuse::holdables()) {
        if (random() % 4 == 0) knobs.held.emplace_back(rule.name);
      }
      const auto schedule = plan_step(made.graph, made.constants, knobs);
      ASSERT_TRUE(schedule) << to_text(schedule.refusal());
      for (const lane::Finding& finding : verify(*schedule)) {
        ADD_FAILURE() << graph::to_text(form) << " " << finding.code << " " << finding.about << ": " << finding.text
                      << "\n"
                      << print(*schedule);
        return;
      }
      expect_each_op_once(*schedule, made.graph);
      for (const std::string& held : knobs.held) EXPECT_EQ(times_fired(*schedule, held), 0U) << held;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FusedSchedules, ::testing::Range<uint64_t>(0, 40));

}  // namespace
}  // namespace tw::plan
