// Random steps, fused and apart: the same bits of every output and of all carried state, whatever rules are held back,
// in every form, numerics and instruction set.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "fuse/rules.h"
#include "graph/evaluate.h"
#include "graph/testing.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/program.h"
#include "lane/cpu/quant.h"
#include "lane/cpu/shim.h"
#include "lane/print.h"
#include "plan/plan.h"

namespace tw::lane::cpu {
namespace {

constexpr int kSteps = 3;

plan::Knobs knobs_of(Numerics numerics) {
  plan::Knobs knobs;
  knobs.numerics = numerics;
  knobs.shim = &shim();
  knobs.quantized_bytes = [](uint64_t n, uint32_t words) -> uint64_t {
    return quant_bytes(n, static_cast<int>(words));
  };
  return knobs;
}

std::vector<std::byte> bytes_of(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

// Runs a few steps and gives the bits of all outputs and states.
Result<std::vector<std::byte>> run_step(const graph::testing::RandomGraph& made, const plan::Knobs& knobs, Isa isa,
                                        uint32_t threads, uint64_t seed) {
  TW_TRY(const Schedule schedule, plan::plan_step(made.graph, made.constants, knobs));
  Pool pool(threads);
  WeightStore weights(made.constants);
  TW_TRY_VOID(weights.prepare(schedule, pool));
  const auto sequences = static_cast<uint32_t>(made.graph.io.sequences.size());
  States states(sequences);
  TW_TRY_VOID(states.prepare(schedule));
  TW_TRY(const auto program, Program::compile(schedule, isa, weights, states, threads));
  std::vector<std::byte> out;
  const uint32_t rows_a_step = made.graph.form.kind == graph::Form::Kind::Chunk ? made.graph.form.rows : 1;
  for (int step = 0; step < kSteps; ++step) {
    const auto tokens =
        graph::testing::random_tokens(seed + static_cast<uint64_t>(step), made.vocabulary, made.graph.form.rows);
    std::copy(tokens.begin(), tokens.end(), program->tokens().begin());
    for (uint32_t s = 0; s < sequences; ++s) {
      program->position(s) = static_cast<int32_t>(static_cast<uint32_t>(step) * rows_a_step + 1 + (step == 0 ? 0 : s));
    }
    program->run(pool);
    for (uint32_t s = 0; s < sequences; ++s) {
      const auto logits = bytes_of(program->logits(s));
      out.insert(out.end(), logits.begin(), logits.end());
    }
  }
  for (uint32_t s = 0; s < sequences; ++s) {
    const auto state = states.bytes(s);
    out.insert(out.end(), state.begin(), state.end());
  }
  return out;
}

std::vector<graph::Form> forms() {
  std::vector<graph::Form> out{graph::Form{}};
  for (const uint32_t rows : {2U, 16U, 17U, 64U}) out.push_back({graph::Form::Kind::Chunk, rows});
  for (const uint32_t sequences : {2U, 5U}) out.push_back({graph::Form::Kind::Batch, sequences});
  return out;
}

// The logits of the first step in double precision, sequence by sequence.
std::vector<double> evaluated(const graph::testing::RandomGraph& made, uint64_t seed) {
  graph::Environment environment = graph::make_environment(made.constants);
  const auto tokens = graph::testing::random_tokens(seed, made.vocabulary, made.graph.form.rows);
  const std::vector<uint32_t> positions(made.graph.io.sequences.size(), 1);
  const auto set = graph::set_inputs(made.graph, environment, tokens, positions);
  EXPECT_TRUE(set) << to_text(set.refusal());
  const auto done = graph::evaluate(made.graph, environment);
  EXPECT_TRUE(done) << to_text(done.refusal());
  std::vector<double> out;
  for (const graph::SequenceIo& io : made.graph.io.sequences) {
    const std::vector<double>& logits = environment.at(made.graph.at(io.logits));
    out.insert(out.end(), logits.begin(), logits.end());
  }
  return out;
}

class RandomSteps : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomSteps, AreTheSameFusedAndApart) {
  const uint64_t seed = GetParam();
  std::mt19937_64 random(seed);
  for (const graph::Form& form : forms()) {
    graph::testing::RandomGraphOptions options;
    options.form = form;
    options.integers = false;
    const auto made = graph::testing::random_graph(seed, options);
    for (const Numerics numerics : {Numerics::Int8, Numerics::Precise}) {
      plan::Knobs knobs = knobs_of(numerics);
      const Isa isa = random() % 2 == 0 || !supported(Isa::Avx2) ? Isa::Scalar : Isa::Avx2;
      plan::Knobs apart = knobs;
      apart.shim = nullptr;
      const auto expected = run_step(made, apart, isa, 1, seed);
      ASSERT_TRUE(expected) << to_text(expected.refusal());
      for (int draw = 0; draw < 3; ++draw) {
        knobs.held.clear();
        for (const fuse::Holdable& rule : fuse::holdables()) {
          if (draw != 0 && random() % 3 == 0) knobs.held.emplace_back(rule.name);
        }
        const auto fused = run_step(made, knobs, isa, 1 + static_cast<uint32_t>(random() % 3), seed);
        ASSERT_TRUE(fused) << to_text(fused.refusal());
        EXPECT_TRUE(*fused == *expected) << graph::to_text(form) << " " << name(numerics) << " " << name(isa)
                                         << " draw " << draw;
      }
    }
  }
}

// Precise numerics against the definition of every op. Floats keep 24 bits and a step is a chain of some hundred
// roundings, so a ten-thousandth of the largest logit is room for them, and not for a wrong kernel.
TEST_P(RandomSteps, AreWhatTheEvaluatorSays) {
  constexpr double kTolerance = 1e-4;
  for (const graph::Form& form : forms()) {
    graph::testing::RandomGraphOptions options;
    options.form = form;
    options.integers = false;
    const auto made = graph::testing::random_graph(GetParam(), options);
    const std::vector<double> expected = evaluated(made, GetParam());
    for (const Isa isa : kIsas) {
      if (!supported(isa)) continue;
      const auto bytes = run_step(made, knobs_of(Numerics::Precise), isa, 2, GetParam());
      ASSERT_TRUE(bytes) << to_text(bytes.refusal());
      std::vector<float> logits(expected.size());
      std::memcpy(logits.data(), bytes->data(), logits.size() * sizeof(float));
      double largest = 0, error = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        const double off = std::abs(static_cast<double>(logits[i]) - expected[i]);
        error = std::max(error, std::isnan(off) ? 1e300 : off);
      }
      EXPECT_LE(error, kTolerance * largest) << graph::to_text(form) << " " << name(isa);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSteps, ::testing::Range<uint64_t>(0, 24));

}  // namespace
}  // namespace tw::lane::cpu
