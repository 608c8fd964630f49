// tilewright bench: prompt and decode speed, and their share of what this machine can do.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/profile.h"
#include "cli/verb.h"
#include "lane/work.h"

namespace tw::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct BenchFlags {
  std::string model;
  uint32_t prompt = 512, decode = 128, repeats = 5, depth = 0, sequences = 1;
  EngineFlags engine;
  ProfileFlags profile;
  bool json = false;
};

// Tokens that mean nothing, the same ones every time.
std::vector<runtime::Token> filler(const runtime::Engine& engine, size_t count) {
  std::vector<runtime::Token> tokens(count);
  for (uint32_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<runtime::Token>((uint64_t{i} * 7919 + 11) % engine.facts().vocabulary);
  }
  return tokens;
}

double seconds_since(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

// `depth` tokens in each of the first `sequences` slots.
void fill(runtime::Engine& engine, uint32_t depth, uint32_t sequences) {
  for (uint32_t slot = 0; slot < sequences; ++slot) {
    engine.reset(slot);
    if (depth != 0) engine.assume(slot, depth);
  }
}

Result<double> time_prompt(runtime::Engine& engine, const BenchFlags& flags) {
  fill(engine, flags.depth, 1);
  const auto tokens = filler(engine, flags.prompt);
  const auto from = Clock::now();
  TW_TRY(const auto logits, engine.extend(0, tokens));
  (void)logits;
  return flags.prompt / seconds_since(from);
}

Result<double> time_decode(runtime::Engine& engine, const BenchFlags& flags) {
  fill(engine, flags.depth, flags.sequences);
  std::vector<uint32_t> slots(flags.sequences);
  for (uint32_t s = 0; s < flags.sequences; ++s) slots[s] = s;
  const auto tokens = filler(engine, size_t{flags.decode} * flags.sequences);
  const auto from = Clock::now();
  for (size_t at = 0; at < tokens.size(); at += flags.sequences) {
    if (interrupted()) return refuse(RefusalKind::Interrupted, "decoding", "was interrupted");
    TW_TRY(const auto logits, engine.step(slots, std::span(tokens).subspan(at, flags.sequences)));
    (void)logits;
  }
  return static_cast<double>(tokens.size()) / seconds_since(from);
}

struct Test {
  std::string name;
  graph::Form form;  // of its steps
  uint32_t before;   // positions taken by each sequence, half way through
  Result<double> (*time)(runtime::Engine&, const BenchFlags&);
  std::vector<double> rates{};  // tokens a second, one a run
  lane::Work work{};            // of a step
  double of_read = 0, of_dots = 0;

  [[nodiscard]] double median() const {
    std::vector<double> sorted = rates;
    std::sort(sorted.begin(), sorted.end());
    const size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
};

std::vector<Test> tests_of(const BenchFlags& flags, uint32_t chunk) {
  using Kind = graph::Form::Kind;
  std::vector<Test> tests;
  if (flags.prompt != 0) {
    const uint32_t rows = std::min(flags.prompt, chunk);
    const graph::Form form = rows > 1 ? graph::Form{Kind::Chunk, rows, false} : graph::Form{};
    tests.push_back({fmt::format("pp{}", flags.prompt), form, flags.depth + (flags.prompt - rows) / 2, time_prompt});
  }
  if (flags.decode != 0) {
    const bool batch = flags.sequences > 1;
    const graph::Form form = batch ? graph::Form{Kind::Batch, flags.sequences, false} : graph::Form{};
    std::string name = fmt::format("tg{}", flags.decode);
    if (batch) name += fmt::format("x{}", flags.sequences);
    tests.push_back({std::move(name), form, flags.depth + flags.decode / 2, time_decode});
  }
  for (Test& test : tests) {
    if (flags.depth != 0) test.name += fmt::format("@{}", flags.depth);
  }
  return tests;
}

// All warm up before any is timed, so that no step that is recorded is the first of its form. The limits are measured
// before each run.
Result<void> time_all(runtime::Engine& engine, Recording& recording, LimitsMeter& meter, const BenchFlags& flags,
                      std::vector<Test>& tests) {
  for (const Test& test : tests) {
    TW_TRY(const double warm_up, test.time(engine, flags));
    (void)warm_up;
  }
  recording.restart();
  for (Test& test : tests) {
    for (uint32_t i = 0; i < flags.repeats; ++i) {
      meter.measure();
      TW_TRY(const double rate, test.time(engine, flags));
      test.rates.push_back(rate);
    }
  }
  return {};
}

// The shares of the two limits that a run of the test's steps reached.
Result<void> hold_against(const runtime::Engine& engine, const Limits& limits, Test& test) {
  TW_TRY(const lane::Schedule schedule, engine.schedule(test.form));
  test.work = lane::work_of(schedule, std::vector<uint32_t>(test.form.rows, test.before));
  const double steps = test.median() / test.form.rows;
  test.of_read = steps * static_cast<double>(test.work.weight_bytes + test.work.state_bytes) / limits.read;
  test.of_dots = steps * static_cast<double>(test.work.products) / limits.peak();
  return {};
}

void print_table(const runtime::Engine& engine, const std::string& label, const EngineFlags& flags,
                 const Limits& limits, const std::vector<Test>& tests) {
  fmt::print("{} | {} weights | {} threads, {}, {}, cache {}\n", label, human_count(engine.facts().parameters),
             engine.threads(), lane::cpu::name(engine.isa()), flags.numerics, lane::name(engine.cache()));
  fmt::print("{} (measured in between, same threads)\n\n", limits_text(limits));
  fmt::print("{:<12} {:>10} {:>10} {:>10} {:>9} {:>12} {:>12}\n", "test", "tokens/s", "lowest", "highest", "MB/step",
             "of the read", "of the dots");
  for (const Test& test : tests) {
    fmt::print("{:<12} {:>10.2f} {:>10.2f} {:>10.2f} {:>9.2f} {:>11.1f}% {:>11.1f}%\n", test.name, test.median(),
               *std::min_element(test.rates.begin(), test.rates.end()),
               *std::max_element(test.rates.begin(), test.rates.end()),
               static_cast<double>(test.work.weight_bytes + test.work.state_bytes) * 1e-6, 100 * test.of_read,
               100 * test.of_dots);
  }
}

nlohmann::ordered_json report_json(const runtime::Engine& engine, const std::string& label, const EngineFlags& flags,
                                   const Limits& limits, const std::vector<Test>& tests) {
  nlohmann::ordered_json json{{"model", label},
                              {"threads", engine.threads()},
                              {"isa", lane::cpu::name(engine.isa())},
                              {"numerics", flags.numerics},
                              {"cache", lane::name(engine.cache())}};
  json.update(limits_json(limits));
  for (const Test& test : tests) {
    json["tests"].push_back({{"test", test.name},
                             {"tokens_per_second", test.median()},
                             {"runs", test.rates},
                             {"weight_bytes_a_step", test.work.weight_bytes},
                             {"state_bytes_a_step", test.work.state_bytes},
                             {"share_of_bandwidth", test.of_read},
                             {"share_of_dots", test.of_dots}});
  }
  return json;
}

Result<int> bench(const BenchFlags& flags) {
  TW_TRY(runtime::EngineOptions options, flags.engine.options());
  TW_TRY_VOID(flags.profile.check());
  if (flags.prompt == 0 && flags.decode == 0)
    return refuse(RefusalKind::Usage, "--pp and --tg", "are both 0, so that nothing is timed");
  if (flags.repeats == 0) return refuse(RefusalKind::Usage, "-r", "is 0, and must be at least 1");
  if (flags.sequences == 0) return refuse(RefusalKind::Usage, "--sequences", "is 0, and must be at least 1");
  TW_TRY(const gguf::Checkpoint checkpoint, open_model(flags.model));
  const uint64_t positions = uint64_t{std::max(flags.prompt, flags.decode)} + flags.depth;
  if (positions > UINT32_MAX)
    return refuse(RefusalKind::Usage, "-d", fmt::format("and the timed tokens take {} positions together", positions));
  if (options.context == 0) options.context = static_cast<uint32_t>(positions);
  options.slots = flags.sequences;
  TW_TRY(const auto engine, open_engine(checkpoint, options));
  if (positions > engine->facts().context) {
    return refuse(RefusalKind::TooLarge, "context",
                  fmt::format("{} positions are asked for, it holds {}", positions, engine->facts().context),
                  "Ask for a longer context with -c, or for fewer tokens.");
  }
  Recording recording(*engine, flags.profile);
  std::vector<Test> tests = tests_of(flags, options.chunk);
  TW_TRY(LimitsMeter meter, LimitsMeter::make(*engine));
  TW_TRY_VOID(time_all(*engine, recording, meter, flags, tests));
  const Limits limits = meter.limits();
  for (Test& test : tests) TW_TRY_VOID(hold_against(*engine, limits, test));
  if (flags.json) {
    auto json = report_json(*engine, checkpoint.label(), flags.engine, limits, tests);
    if (!flags.profile.profile.empty()) json["profile"] = recording.json(limits);
    print_json(json);
  } else {
    print_table(*engine, checkpoint.label(), flags.engine, limits, tests);
    recording.print(stdout, limits);
  }
  TW_TRY_VOID(recording.write_trace(checkpoint.label()));
  return kFine;
}

}  // namespace

Action add_bench(const Verb& verb) {
  auto flags = std::make_shared<BenchFlags>();
  verb.option("MODEL", flags->model, "A GGUF checkpoint");
  verb.option("-m,--model", flags->model, "The same as MODEL");
  verb.option("--pp", flags->prompt, "Tokens of the prompt that is timed (0: none)").shows_default();
  verb.option("--tg", flags->decode, "Tokens decoded one after the other (0: none)").shows_default();
  verb.option("-d,--depth", flags->depth, "Tokens in the cache before the timed ones; their values mean nothing")
      .shows_default();
  verb.option("--sequences", flags->sequences, "Sequences decoded in lock step, 1 to 64; rates count all tokens")
      .shows_default();
  verb.option("-r,--repetitions", flags->repeats, "Timed runs; the median is shown").shows_default();
  flags->engine.add_to(verb);
  flags->profile.add_to(verb);
  verb.flag("--json", flags->json, "Print as JSON");
  return [flags] { return bench(*flags); };
}

}  // namespace tw::cli
