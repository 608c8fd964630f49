// Every golden model by the rules of tests/golden/README.md, in all three numerics; and one set of bits for every way
// to run it.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fuse/rules.h"
#include "runtime/engine.h"
#include "runtime/golden_case.h"

namespace tw::runtime {
namespace {

using lane::Numerics;
using lane::cpu::Isa;

using Logits = std::vector<std::vector<float>>;  // one row a token

// One thread unless threads are what a test is about: beside other work two wait for each other at every barrier.
EngineOptions options_of(Numerics numerics, uint32_t threads = 1) {
  EngineOptions options;
  options.numerics = numerics;
  options.threads = threads;
  options.cache = lane::Dtype::F32;  // as the goldens were made
  return options;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    case_ = golden::load(GetParam());
    auto opened = gguf::Checkpoint::open(case_.model);
    ASSERT_TRUE(opened) << to_text(opened.refusal());
    checkpoint_.emplace(std::move(*opened));
  }

  std::unique_ptr<Engine> open(EngineOptions options) const {
    options.context = static_cast<uint32_t>(case_.tokens.size()) + 16;
    auto engine = Engine::open(*checkpoint_, options);
    EXPECT_TRUE(engine) << to_text(engine.refusal());
    return engine ? std::move(*engine) : nullptr;
  }

  Logits all_logits(Engine& engine, uint32_t slot = 0) const {
    Logits rows;
    const auto taken = engine.extend_each(
        slot, case_.tokens, [&](std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); });
    EXPECT_TRUE(taken) << to_text(taken.refusal());
    return rows;
  }

  golden::Case case_;
  std::optional<gguf::Checkpoint> checkpoint_;
};

struct Difference {
  double max = 0, rms = 0;
};

Difference difference(const std::vector<float>& a, const std::vector<float>& b) {
  Difference d;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(static_cast<double>(a[i]) - b[i]);
    d.max = std::max(d.max, std::isnan(error) ? INFINITY : error);
    d.rms += error * error;
  }
  d.rms = std::sqrt(d.rms / static_cast<double>(std::max<size_t>(a.size(), 1)));
  return d;
}

std::vector<float> last_rows(const Logits& rows, size_t first) {
  std::vector<float> flat;
  for (size_t r = first; r < rows.size(); ++r) flat.insert(flat.end(), rows[r].begin(), rows[r].end());
  return flat;
}

Token argmax(std::span<const float> row) {
  return static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
}

TEST_P(Golden, PreciseNumericsAreWithinTheToleranceOfFloatMath) {
  const auto engine = open(options_of(Numerics::Precise));
  ASSERT_NE(engine, nullptr);
  const Logits rows = all_logits(*engine);
  ASSERT_EQ(rows.size(), case_.tokens.size());
  const Difference d = difference(last_rows(rows, case_.first_row), case_.logits_ref);
  EXPECT_LE(d.max, case_.float_tolerance);
  for (size_t i = 0; i < case_.argmax_ref.size(); ++i) {
    if (case_.margin_ref[i] <= 2 * case_.float_tolerance) continue;
    EXPECT_EQ(argmax(rows[case_.argmax_first + i]), case_.argmax_ref[i]) << "position " << case_.argmax_first + i;
  }
  Token next = argmax(rows.back());
  for (size_t i = 0; i < case_.greedy_ref.size(); ++i) {
    if (case_.greedy_margin_ref[i] <= 2 * case_.float_tolerance) break;
    ASSERT_EQ(next, case_.greedy_ref[i]) << "greedy step " << i;
    const auto logits = engine->extend(0, {&next, 1});
    ASSERT_TRUE(logits) << to_text(logits.refusal());
    next = argmax(*logits);
  }
}

bool rounds_activations(const std::string& format) { return format != "F32" && format != "F16" && format != "BF16"; }

TEST_P(Golden, QuantizedNumericsLoseNoMoreThanTheReferenceDoes) {
  std::vector<float> one, two;
  for (auto* result : {&one, &two}) {
    const auto engine = open(options_of(result == &one ? Numerics::Int8 : Numerics::Int8x2));
    ASSERT_NE(engine, nullptr);
    *result = last_rows(all_logits(*engine), case_.first_row);
  }
  const Difference int8 = difference(one, case_.logits_ref), int8x2 = difference(two, case_.logits_ref);
  const Difference own = difference(case_.logits, case_.logits_ref);
  if (!rounds_activations(case_.format)) {
    EXPECT_LE(int8.max, case_.float_tolerance) << "floating-point weights read activations as they are";
    return;
  }
  EXPECT_LE(int8.max, case_.rounded_max);
  EXPECT_LE(int8.rms, case_.rounded_rms);
  // The reference rounds its own way, so its figure on eight rows is one draw of the same noise: ours may be the larger
  // one.
  EXPECT_LE(int8.rms, 1.25 * own.rms);
  EXPECT_LE(int8x2.rms, int8.rms);
  RecordProperty("int8_rms", std::to_string(int8.rms));
  RecordProperty("reference_rms", std::to_string(own.rms));
  std::printf("%-24s reference rms %.4f  int8 %.4f  int8x2 %.6f\n", case_.name.c_str(), own.rms, int8.rms, int8x2.rms);
}

void expect_same_bits(const Logits& a, const Logits& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t r = 0; r < a.size(); ++r) {
    ASSERT_EQ(a[r].size(), b[r].size());
    ASSERT_EQ(std::memcmp(a[r].data(), b[r].data(), a[r].size() * sizeof(float)), 0) << what << ", row " << r;
  }
}

TEST_P(Golden, TheBitsDependOnNeitherChunksThreadsNorInstructions) {
  const auto first = open(options_of(Numerics::Int8));
  ASSERT_NE(first, nullptr);
  const Logits want = all_logits(*first);
  for (const uint32_t chunk : {1U, 7U, 16U, 17U, 64U}) {
    EngineOptions options = options_of(Numerics::Int8, chunk == 7 || chunk == 64 ? 2 : 1);
    options.chunk = chunk;
    const auto engine = open(options);
    ASSERT_NE(engine, nullptr);
    expect_same_bits(all_logits(*engine), want, "chunks of " + std::to_string(chunk));
    EXPECT_EQ(engine->state_bytes(0), first->state_bytes(0)) << "carried state, chunks of " << chunk;
  }
  for (const Isa isa : lane::cpu::kIsas) {
    if (!lane::cpu::supported(isa)) continue;
    EngineOptions options = options_of(Numerics::Int8);
    options.isa = isa;
    const auto engine = open(options);
    ASSERT_NE(engine, nullptr);
    expect_same_bits(all_logits(*engine), want, std::string(lane::cpu::name(isa)));
  }
}

TEST_P(Golden, TheBitsAreThoseOfEachOpApart) {
  for (const Numerics numerics : {Numerics::Int8, Numerics::Int8x2, Numerics::Precise}) {
    EngineOptions options = options_of(numerics);
    const auto fused = open(options);
    ASSERT_NE(fused, nullptr);
    for (const fuse::Holdable& rule : fuse::holdables()) options.held.emplace_back(rule.name);
    const auto apart = open(options);
    ASSERT_NE(apart, nullptr);
    expect_same_bits(all_logits(*fused), all_logits(*apart), std::string(lane::name(numerics)));
    EXPECT_EQ(fused->state_bytes(0), apart->state_bytes(0)) << "carried state, " << lane::name(numerics);
  }
}

TEST_P(Golden, ASequenceInABatchHasTheBitsItHasAlone) {
  const auto alone = open(options_of(Numerics::Int8));
  ASSERT_NE(alone, nullptr);
  const Logits want = all_logits(*alone);
  const size_t steps = std::min<size_t>(case_.tokens.size(), 40);
  for (const uint32_t batch : {3U, 8U, 32U}) {
    EngineOptions options = options_of(Numerics::Int8, batch == 8 ? 2 : 1);
    options.slots = batch;
    const auto engine = open(options);
    ASSERT_NE(engine, nullptr);
    // The sequence runs in the middle slot; every neighbour began earlier with a text of its own length.
    const uint32_t mine = batch / 2;
    std::vector<uint32_t> slots(batch);
    for (uint32_t s = 0; s < batch; ++s) {
      slots[s] = s;
      std::vector<Token> other(s + 1);
      for (uint32_t i = 0; i <= s; ++i) other[i] = case_.tokens[(i * 5 + s) % case_.tokens.size()];
      if (s == mine) continue;
      ASSERT_TRUE(engine->extend(s, other));
    }
    std::vector<Token> tokens(batch);
    for (size_t t = 0; t < steps && t + batch < case_.tokens.size(); ++t) {
      for (uint32_t s = 0; s < batch; ++s) tokens[s] = case_.tokens[s == mine ? t : (t * 3 + s) % case_.tokens.size()];
      const auto logits = engine->step(slots, tokens);
      ASSERT_TRUE(logits) << to_text(logits.refusal());
      ASSERT_EQ(std::memcmp((*logits)[mine].data(), want[t].data(), want[t].size() * sizeof(float)), 0)
          << "batch of " << batch << ", step " << t;
    }
  }
}

TEST(Goldens, OverAllOfThemOneWordLosesNoMoreThanTheReference) {
  double log_ratio = 0;
  int count = 0;
  for (const std::string& name : model::golden_names()) {
    const golden::Case c = golden::load(name);
    if (!rounds_activations(c.format)) continue;
    const auto checkpoint = gguf::Checkpoint::open(c.model);
    ASSERT_TRUE(checkpoint);
    EngineOptions options = options_of(Numerics::Int8);
    options.context = static_cast<uint32_t>(c.tokens.size());
    const auto engine = Engine::open(*checkpoint, options);
    ASSERT_TRUE(engine);
    Logits rows;
    ASSERT_TRUE((*engine)->extend_each(0, c.tokens,
                                       [&](std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); }));
    const double ours = difference(last_rows(rows, c.first_row), c.logits_ref).rms;
    log_ratio += std::log(ours / difference(c.logits, c.logits_ref).rms);
    ++count;
  }
  ASSERT_GT(count, 20);
  const double ratio = std::exp(log_ratio / count);
  std::printf("geometric mean of our rms over the reference's, %d goldens: %.3f\n", count, ratio);
  EXPECT_LE(ratio, 1.0);
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(model::golden_names()), [](const auto& param) {
  std::string name = param.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace tw::runtime
