// Holding rules of fusion back changes the schedule and never a bit: logits and carried state of every form, for every
// rule, on a small model of every family and on the shipped model.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fuse/rules.h"
#include "model/toy_files.h"
#include "plan/explain.h"
#include "runtime/engine.h"

namespace tw::runtime {
namespace {

using graph::Form;

constexpr uint32_t kContext = 1400;
constexpr uint32_t kSlots = 7;

// Everything that a run leaves behind.
struct Step {
  std::vector<float> logits;
  std::vector<std::vector<std::byte>> states;  // of each slot

  void add(std::span<const float> row) { logits.insert(logits.end(), row.begin(), row.end()); }
  // Bit for bit.
  [[nodiscard]] bool same(const Step& other) const {
    return logits.size() == other.logits.size() && states == other.states &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
};

std::vector<Token> tokens(uint32_t vocabulary, uint32_t count, uint32_t seed) {
  std::vector<Token> out;
  for (uint32_t i = 0; i < count; ++i)
    out.push_back(static_cast<Token>((uint64_t{i} * 7919 + seed * 131 + 11) % vocabulary));
  return out;
}

// The forms of the matrix: decode, chunks of 2, 16, 17, 64 and 512, batches of 2 and 5.
std::vector<Form> forms() {
  std::vector<Form> out{Form{}};
  for (const uint32_t rows : {2U, 16U, 17U, 64U, 512U}) out.push_back({Form::Kind::Chunk, rows});
  for (const uint32_t sequences : {2U, 5U}) out.push_back({Form::Kind::Batch, sequences});
  return out;
}

template <class T>
T check(Result<T> result) {
  TW_CHECK(result.ok(), "{}", to_text(result.refusal()));
  return std::move(*result);
}

// Slot 0 takes chunks of every size and single tokens between; then batches of 2 and of 5 over slots of different
// lengths.
Step run(Engine& engine) {
  const uint32_t vocabulary = engine.facts().vocabulary;
  Step out;
  for (const uint32_t rows : {2U, 16U, 1U, 17U, 64U, 1U, 512U, 1U}) {
    out.add(check(engine.extend(0, tokens(vocabulary, rows, rows))));
  }
  for (uint32_t slot = 1; slot < kSlots; ++slot) {
    out.add(check(engine.extend(slot, tokens(vocabulary, 3 * slot, slot))));
  }
  for (const std::vector<uint32_t>& slots : {std::vector<uint32_t>{6, 1}, {3, 0, 5, 2, 4}}) {
    for (uint32_t step = 0; step < 3; ++step) {
      for (const auto row : check(engine.step(slots, tokens(vocabulary, static_cast<uint32_t>(slots.size()), step)))) {
        out.add(row);
      }
    }
  }
  for (uint32_t slot = 0; slot < kSlots; ++slot) out.states.push_back(engine.state_bytes(slot));
  return out;
}

EngineOptions options_holding(lane::Numerics numerics, std::vector<std::string> held) {
  EngineOptions options;
  options.numerics = numerics;
  options.context = kContext;
  options.slots = kSlots;
  options.threads = 1;
  options.cache = lane::Dtype::F16;
  options.held = std::move(held);
  return options;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const fuse::Holdable& rule : fuse::holdables()) names.emplace_back(rule.name);
  return names;
}

// Whether a rule fired in some form.
bool fired(const Engine& engine, const std::string& rule) {
  const std::vector<Form> all = forms();
  return std::ranges::any_of(
      all, [&](const Form& form) { return plan::times_fired(check(engine.schedule(form)), rule) != 0; });
}

void expect_matrix(const gguf::Checkpoint& checkpoint, lane::Numerics numerics) {
  const auto fused = check(Engine::open(checkpoint, options_holding(numerics, {})));
  const Step expected = run(*fused);
  for (const std::string& rule : all_names()) {
    if (!fired(*fused, rule)) continue;
    const auto engine = check(Engine::open(checkpoint, options_holding(numerics, {rule})));
    EXPECT_FALSE(fired(*engine, rule)) << rule;
    EXPECT_TRUE(run(*engine).same(expected)) << "without " << rule;
  }
  const auto lifted = check(Engine::open(checkpoint, options_holding(numerics, all_names())));
  for (const Form& form : forms()) EXPECT_TRUE(check(lifted->schedule(form)).fusions.empty());
  EXPECT_TRUE(run(*lifted).same(expected)) << "without any rule";
}

struct HoldCase {
  std::string architecture, format;
  lane::Numerics numerics;
};

class HoldBack : public ::testing::TestWithParam<HoldCase> {};

TEST_P(HoldBack, ChangesNoBit) {
  const HoldCase& c = GetParam();
  const model::TemporaryModel file({.architecture = c.architecture, .shape = "context=2048", .format = c.format});
  expect_matrix(file.open(), c.numerics);
}

std::vector<HoldCase> cases() {
  std::vector<HoldCase> out;
  for (const std::string_view architecture : model::Model::known_architectures()) {
    out.push_back({std::string(architecture), "Q8_0", lane::Numerics::Int8});
    out.push_back({std::string(architecture), "Q4_0", lane::Numerics::Int8x2});
  }
  out.push_back({"qwen3", "Q8_0", lane::Numerics::Precise});
  out.push_back({"qwen35moe", "F16", lane::Numerics::Precise});
  return out;
}

std::string name_of(const ::testing::TestParamInfo<HoldCase>& info) {
  std::string name =
      fmt::format("{}_{}_{}", info.param.architecture, info.param.format, lane::name(info.param.numerics));
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, HoldBack, ::testing::ValuesIn(cases()), name_of);

TEST(HoldBackShipped, ChangesNoBit) {
  const auto checkpoint = check(gguf::Checkpoint::open("models/fable-3m-q8_0.gguf"));
  // The shipped model's context is shorter than the matrix takes; its rotation tables are made for any.
  expect_matrix(checkpoint, lane::Numerics::Int8);
}

}  // namespace
}  // namespace tw::runtime
