// Profiles and traces of the shipped model: they account for all the time and all the launches, and change no bit.

#include "runtime/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/trace.h"

namespace tw::runtime {
namespace {

constexpr uint32_t kThreads = 3, kPrompt = 17, kDecoded = 5;

std::unique_ptr<Engine> open(uint32_t slots = 1) {
  const auto checkpoint = gguf::Checkpoint::open("models/fable-3m-q8_0.gguf");
  EXPECT_TRUE(checkpoint) << to_text(checkpoint.refusal());
  EngineOptions options;
  options.context = 64;
  options.threads = kThreads;
  options.slots = slots;
  auto engine = Engine::open(*checkpoint, options);
  EXPECT_TRUE(engine) << to_text(engine.refusal());
  return std::move(*engine);
}

// A prompt and some tokens after it: the logits of every step.
std::vector<float> steps(Engine& engine) {
  std::vector<float> all;
  std::vector<Token> prompt(kPrompt);
  for (uint32_t i = 0; i < kPrompt; ++i) prompt[i] = static_cast<Token>(i * 31 % engine.facts().vocabulary);
  const auto keep = [&all](const Result<std::span<const float>>& logits) {
    ASSERT_TRUE(logits) << to_text(logits.refusal());
    all.insert(all.end(), logits->begin(), logits->end());
  };
  keep(engine.extend(0, prompt));
  for (uint32_t i = 0; i < kDecoded; ++i) keep(engine.extend(0, {&prompt[i], 1}));
  return all;
}

uint64_t launches_of_plan(const Engine& engine, const graph::Form& form) {
  uint64_t count = 0;
  for (const auto& [kind, launches] : lane::census(*engine.schedule(form))) count += launches;
  return count;
}

const graph::Form kChunk{graph::Form::Kind::Chunk, kPrompt, false};

TEST(Profile, CountsEveryLaunchOfThePlanOnceAStep) {
  const auto engine = open();
  Profile profile(*engine);
  engine->time_steps([&](const TimedStep& step) { profile.add(step); });
  steps(*engine);
  const std::vector<PhaseProfile> phases = phases_of(profile);
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].name, "prefill");
  EXPECT_EQ(phases[0].steps, 1U);
  EXPECT_EQ(phases[0].rows, kPrompt);
  EXPECT_EQ(phases[0].all.launches, launches_of_plan(*engine, kChunk));
  EXPECT_EQ(phases[1].name, "decode");
  EXPECT_EQ(phases[1].steps, kDecoded);
  EXPECT_EQ(phases[1].all.launches, kDecoded * launches_of_plan(*engine, {}));
  const auto census = lane::census(*engine->schedule({}));
  ASSERT_EQ(phases[1].kinds.size(), census.size());
  for (const PhaseProfile::Kind& kind : phases[1].kinds) {
    EXPECT_EQ(kind.spent.launches, kDecoded * census.at(kind.kind)) << kind.kind;
  }
}

TEST(Profile, EveryNanosecondOfEveryThreadIsInALaunchOrWaited) {
  const auto engine = open();
  Profile profile(*engine);
  engine->time_steps([&](const TimedStep& step) { profile.add(step); });
  steps(*engine);
  for (const ProfiledForm& form : profile.forms()) {
    double sum = form.starting;
    EXPECT_GE(form.starting, 0);
    for (const ProfiledLaunch& launch : form.launches) {
      EXPECT_GT(launch.spent.busy, 0) << launch.kind;
      EXPECT_GE(launch.spent.waited, 0) << launch.kind;
      EXPECT_FALSE(launch.ops.empty()) << launch.kind;
      sum += launch.spent.busy + launch.spent.waited;
    }
    EXPECT_DOUBLE_EQ(sum, form.thread_time(kThreads));
  }
}

TEST(Profile, CountsWeightsAndCarriedMemory) {
  const auto engine = open();
  Profile profile(*engine);
  engine->time_steps([&](const TimedStep& step) { profile.add(step); });
  steps(*engine);
  const PhaseProfile decode = phases_of(profile)[1];
  const lane::Schedule schedule = *engine->schedule({});
  lane::Work want;
  for (uint32_t i = 0; i < kDecoded; ++i) want += lane::work_of(schedule, std::vector<uint32_t>{kPrompt + i});
  EXPECT_EQ(decode.all.work, want);
  // One more position costs each attention the keys and values of one position: 2 heads of 32 in 2 layers, f16.
  const lane::Work one = lane::work_of(schedule, std::vector<uint32_t>{40});
  const lane::Work next = lane::work_of(schedule, std::vector<uint32_t>{41});
  EXPECT_EQ(next.weight_bytes, one.weight_bytes);
  EXPECT_EQ(next.state_bytes - one.state_bytes, 2U * 2 * (32 + 32) * sizeof(uint16_t));
}

TEST(Profile, TimingChangesNoBit) {
  const auto timed = open();
  uint64_t seen = 0;
  timed->time_steps([&](const TimedStep&) { ++seen; });
  const std::vector<float> got = steps(*timed);
  const std::vector<float> want = steps(*open());
  EXPECT_EQ(seen, 1U + kDecoded);
  ASSERT_EQ(got.size(), want.size());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0);
}

TEST(Profile, NothingIsSeenOnceTimingIsOff) {
  const auto engine = open();
  uint64_t seen = 0;
  engine->time_steps([&](const TimedStep&) { ++seen; });
  engine->time_steps({});
  steps(*engine);
  EXPECT_EQ(seen, 0U);
}

TEST(Profile, AnAssumedLengthIsAttendedLikeARealOne) {
  const auto engine = open();
  engine->assume(0, 40);
  EXPECT_EQ(engine->length(0), 40U);
  Profile profile(*engine);
  engine->time_steps([&](const TimedStep& step) { profile.add(step); });
  const Token token = 3;
  const auto logits = engine->extend(0, {&token, 1});
  ASSERT_TRUE(logits) << to_text(logits.refusal());
  for (const float logit : *logits) ASSERT_TRUE(std::isfinite(logit));
  EXPECT_EQ(phases_of(profile)[0].all.work, lane::work_of(*engine->schedule({}), std::vector<uint32_t>{40}));
  engine->reset(0);
  EXPECT_EQ(engine->length(0), 0U);
}

TEST(Profile, BatchesAreAPhaseOfTheirOwn) {
  const auto engine = open(2);
  Profile profile(*engine);
  engine->time_steps([&](const TimedStep& step) { profile.add(step); });
  const std::vector<uint32_t> slots{0, 1};
  const std::vector<Token> tokens{3, 4};
  ASSERT_TRUE(engine->step(slots, tokens));
  ASSERT_EQ(phases_of(profile).size(), 1U);
  EXPECT_EQ(phases_of(profile)[0].name, "batch of 2");
  EXPECT_EQ(phases_of(profile)[0].rows, 2U);
}

TEST(Trace, HasEveryLaunchOnceAStepAndThread) {
  const auto engine = open();
  constexpr uint32_t kKept = 3;
  Trace trace(*engine, kKept);
  engine->time_steps([&](const TimedStep& step) { trace.add(step); });
  steps(*engine);
  const auto path = std::filesystem::temp_directory_path() / ("tilewright-trace-" + std::to_string(getpid()) + ".json");
  const auto written = trace.write(path, "a \"title\" \xff");
  ASSERT_TRUE(written) << to_text(written.refusal());
  const auto json = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  std::map<std::tuple<int, int, int>, int> times;  // step, thread, launch
  int steps_seen = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "M") continue;
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_GE(event["dur"].get<double>(), 0);
    if (event["cat"] == "step") {
      ++steps_seen;
      continue;
    }
    EXPECT_FALSE(event["args"]["ops"].get<std::string>().empty());
    ++times[{event["args"]["step"], event["tid"], event["args"]["launch"]}];
  }
  EXPECT_EQ(steps_seen, 1 + kKept);
  EXPECT_EQ(times.size(), kThreads * (launches_of_plan(*engine, kChunk) + kKept * launches_of_plan(*engine, {})));
  for (const auto& [at, count] : times) EXPECT_EQ(count, 1);
}

TEST(Trace, APathThatCannotBeWrittenIsNamed) {
  const auto engine = open();
  const auto written = Trace(*engine).write("/no/such/folder/trace.json", "");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.refusal().subject, "/no/such/folder/trace.json");
}

}  // namespace
}  // namespace tw::runtime
