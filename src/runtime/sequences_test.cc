// A batch's merged launches have the bits of the launches of each sequence, and each sequence the bits it has alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "graph/testing.h"
#include "lane/cpu/program.h"
#include "lane/cpu/quant.h"
#include "lane/cpu/shim.h"
#include "lane/verify.h"
#include "model/model.h"
#include "model/toy_files.h"
#include "plan/plan.h"

namespace tw::runtime {
namespace {

using graph::Form;
using lane::Numerics;
using lane::Schedule;
using lane::cpu::Isa;
using lane::cpu::Program;

struct Source {
  graph::StepGraph graph;
  const graph::Constants* constants = nullptr;
};

Schedule plan(const Source& source, Numerics numerics, bool merged, bool fused, lane::Dtype narrow) {
  tw::plan::Knobs knobs;
  knobs.numerics = numerics;
  knobs.cache = narrow;
  knobs.state = narrow == lane::Dtype::F32 ? lane::Dtype::F32 : lane::Dtype::BF16;
  knobs.quantized_bytes = [](uint64_t n, uint32_t words) { return lane::cpu::quant_bytes(n, static_cast<int>(words)); };
  knobs.shim = fused ? &lane::cpu::shim() : nullptr;
  if (!merged) knobs.held.emplace_back("sequences");
  auto schedule = tw::plan::plan_step(source.graph, *source.constants, knobs);
  EXPECT_TRUE(schedule.ok()) << to_text(schedule.refusal());
  for (const lane::Finding& finding : verify(*schedule))
    ADD_FAILURE() << source.graph.name << ": " << finding.code << ' ' << finding.about << ": " << finding.text;
  return std::move(*schedule);
}

struct Ran {
  std::vector<float> logits;  // of every step and sequence
  std::vector<int32_t> next;
  std::vector<std::vector<std::byte>> states;  // by slot
  bool operator==(const Ran& other) const {
    return logits.size() == other.logits.size() && next == other.next && states == other.states &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
};

// Some steps of a batch whose sequence b works on slots[b] and begins at a position of its own.
Ran run(const Source& source, const Schedule& schedule, const std::vector<uint32_t>& slots, uint32_t vocabulary,
        int steps, uint32_t threads, Isa isa) {
  const auto count = static_cast<uint32_t>(slots.size());
  lane::cpu::Pool pool(threads);
  lane::cpu::WeightStore weights(*source.constants);
  EXPECT_TRUE(weights.prepare(schedule, pool).ok());
  lane::cpu::States states(count + 1);
  EXPECT_TRUE(states.prepare(schedule).ok());
  auto program = Program::compile(schedule, isa, weights, states, threads);
  EXPECT_TRUE(program.ok()) << to_text(program.refusal());
  if (!program.ok()) return {};
  (*program)->bind(slots);
  Ran ran;
  for (int step = 0; step < steps; ++step) {
    const std::vector<int32_t> tokens = graph::testing::random_tokens(static_cast<uint64_t>(step), vocabulary, count);
    std::copy(tokens.begin(), tokens.end(), (*program)->tokens().begin());
    for (uint32_t b = 0; b < count; ++b) (*program)->position(b) = static_cast<int32_t>((b * 37) % 150) + 1 + step;
    (*program)->run(pool);
    for (uint32_t b = 0; b < count; ++b) {
      const auto logits = (*program)->logits(b);
      ran.logits.insert(ran.logits.end(), logits.begin(), logits.end());
      ran.next.push_back((*program)->next(b)[0]);
    }
  }
  for (uint32_t slot = 0; slot <= count; ++slot) ran.states.push_back(states.bytes(slot));
  return ran;
}

// Slots that are neither in order nor side by side.
std::vector<uint32_t> permuted(uint32_t count) {
  std::vector<uint32_t> slots(count);
  for (uint32_t b = 0; b < count; ++b) slots[b] = (b * 3 + 2) % (count + 1);
  if (std::set<uint32_t>(slots.begin(), slots.end()).size() == count) return slots;
  for (uint32_t b = 0; b < count; ++b) slots[b] = count - b;
  return slots;
}

void expect_same(const Source& source, Numerics numerics, bool fused, uint32_t vocabulary, uint32_t threads, Isa isa,
                 lane::Dtype narrow = lane::Dtype::F32) {
  const Schedule apart = plan(source, numerics, false, fused, narrow);
  const Schedule merged = plan(source, numerics, true, fused, narrow);
  const std::vector<uint32_t> slots = permuted(source.graph.form.rows);
  const Ran want = run(source, apart, slots, vocabulary, 3, 1, isa);
  const Ran got = run(source, merged, slots, vocabulary, 3, threads, isa);
  ASSERT_FALSE(want.logits.empty());
  EXPECT_TRUE(got == want) << source.graph.name << ", batch of " << slots.size();
}

constexpr uint32_t kBatches[] = {2, 3, 5, 8, 17, 33};

TEST(MergedSequences, RandomBatchesHaveTheBitsOfTheirSequencesApart) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const Form form{Form::Kind::Batch, kBatches[seed % std::size(kBatches)], false};
    graph::testing::RandomGraph random =
        graph::testing::random_graph(seed, {.form = form, .blocks = 5, .integers = false});
    const Source source{std::move(random.graph), &random.constants};
    for (const bool fused : {false, true}) {
      expect_same(source, Numerics::Precise, fused, random.vocabulary, 1 + static_cast<uint32_t>(seed % 3),
                  lane::cpu::best_isa());
    }
  }
}

// What sequences have for themselves is one launch where it was one a sequence, where everything between is fused.
void expect_merged(const Source& source) {
  auto apart = lane::census(plan(source, Numerics::Int8, false, true, lane::Dtype::F32));
  auto merged = lane::census(plan(source, Numerics::Int8, true, true, lane::Dtype::F32));
  const uint64_t sequences = source.graph.form.rows;
  for (const std::string kind : {"attention", "gates", "delta", "conv", "rope", "argmax"}) {
    // Heads that are normed after they rotate: the norm of each sequence is in its rotation's way.
    if (source.graph.name == "llama4" && kind == "rope") continue;
    EXPECT_EQ(merged[kind] * sequences, apart[kind]) << source.graph.name << ": " << kind;
  }
  EXPECT_LT(merged["set_row"] * sequences, apart["set_row"]) << source.graph.name << ": rows of tables are not set";
}

TEST(MergedSequences, EveryFamilysBatchHasTheBitsOfItsSequencesApart) {
  uint32_t which = 0;
  for (const std::string_view architecture : model::Model::known_architectures()) {
    const model::TemporaryModel file({.architecture = std::string(architecture), .format = "Q8_0"});
    const gguf::Checkpoint checkpoint = file.open();
    auto model = model::Model::load(checkpoint, {192});
    ASSERT_TRUE(model.ok()) << to_text(model.refusal());
    for (const uint32_t count : kBatches) {
      auto graph = model->step({Form::Kind::Batch, count, false});
      ASSERT_TRUE(graph.ok()) << to_text(graph.refusal());
      const Source source{std::move(*graph), &model->constants()};
      const bool fused = which % 3 != 0;
      const Numerics numerics = which % 3 == 0 ? Numerics::Precise : Numerics::Int8;
      const lane::Dtype narrow = which % 5 == 0 ? lane::Dtype::F16 : lane::Dtype::F32;
      const uint32_t threads = 1 + which % 3;
      const Isa isa = which % 7 == 0 ? Isa::Scalar : lane::cpu::best_isa();
      expect_same(source, numerics, fused, model->facts().vocabulary, threads, isa, narrow);
      if (count == 3) expect_merged(source);
      ++which;
    }
  }
}

}  // namespace
}  // namespace tw::runtime
