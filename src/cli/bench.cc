// tilewright bench: prompt and decode speed, and their share of what this machine can do.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/verb.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/roofline.h"
#include "lane/work.h"

namespace tw::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct BenchFlags {
  std::string model;
  uint32_t prompt = 512, decode = 128, repeats = 5, depth = 0;
  EngineFlags engine;
  bool json = false;
};

struct Measured {
  std::string name;
  std::vector<double> rates;  // tokens a second, one a run
  double share_of_bandwidth = 0, share_of_dots = 0;

  [[nodiscard]] double median() const {
    std::vector<double> sorted = rates;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
};

// Tokens that mean nothing, the same ones every time.
std::vector<runtime::Token> filler(const runtime::Engine& engine, uint32_t count) {
  std::vector<runtime::Token> tokens(count);
  for (uint32_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<runtime::Token>((uint64_t{i} * 7919 + 11) % engine.facts().vocabulary);
  }
  return tokens;
}

double seconds_since(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

Result<void> fill(runtime::Engine& engine, uint32_t depth) {
  engine.reset(0);
  if (depth != 0) {
    TW_TRY(const auto logits, engine.extend(0, filler(engine, depth)));
    (void)logits;
  }
  return {};
}

Result<double> time_prompt(runtime::Engine& engine, const BenchFlags& flags) {
  TW_TRY_VOID(fill(engine, flags.depth));
  const auto tokens = filler(engine, flags.prompt);
  const auto from = Clock::now();
  TW_TRY(const auto logits, engine.extend(0, tokens));
  (void)logits;
  return flags.prompt / seconds_since(from);
}

Result<double> time_decode(runtime::Engine& engine, const BenchFlags& flags) {
  TW_TRY_VOID(fill(engine, flags.depth));
  const auto tokens = filler(engine, flags.decode);
  const auto from = Clock::now();
  for (const runtime::Token& token : tokens) {
    TW_TRY(const auto logits, engine.extend(0, {&token, 1}));
    (void)logits;
  }
  return flags.decode / seconds_since(from);
}

using Timing = Result<double> (*)(runtime::Engine&, const BenchFlags&);

Result<Measured> measure(runtime::Engine& engine, const BenchFlags& flags, std::string name, Timing timing) {
  Measured measured{std::move(name), {}, 0, 0};
  TW_TRY(const double warm_up, timing(engine, flags));
  (void)warm_up;
  for (uint32_t i = 0; i < flags.repeats; ++i) {
    TW_TRY(const double rate, timing(engine, flags));
    measured.rates.push_back(rate);
  }
  return measured;
}

struct Roofline {
  double bandwidth = 0, dots = 0;
};

// The shares of the two limits that a run of steps, each of `rows` tokens, reached.
Result<void> hold_against(const runtime::Engine& engine, const graph::Form& form, const Roofline& roofline,
                          Measured& m) {
  TW_TRY(const lane::Schedule schedule, engine.schedule(form));
  const lane::Work work = lane::work_of(schedule);
  const double steps = m.median() / form.rows;
  m.share_of_bandwidth = steps * static_cast<double>(work.weight_bytes) / roofline.bandwidth;
  m.share_of_dots = steps * static_cast<double>(work.products) / roofline.dots;
  return {};
}

void print_table(const runtime::Engine& engine, const std::string& label, const std::string& numerics,
                 const Roofline& roofline, const std::vector<Measured>& all) {
  fmt::print("{} | {} weights | {} threads, {}, {}\n", label, human_count(engine.facts().parameters), engine.threads(),
             lane::cpu::name(engine.isa()), numerics);
  fmt::print("streaming read {:.2f} GB/s, int8 dot peak {:.1f} G multiply-adds/s (measured now, same threads)\n\n",
             roofline.bandwidth / 1e9, roofline.dots / 1e9);
  fmt::print("{:<10} {:>12} {:>10} {:>10} {:>18} {:>14}\n", "test", "tokens/s", "lowest", "highest", "of the bandwidth",
             "of the dots");
  for (const Measured& m : all) {
    fmt::print("{:<10} {:>12.2f} {:>10.2f} {:>10.2f} {:>17.1f}% {:>13.1f}%\n", m.name, m.median(),
               *std::min_element(m.rates.begin(), m.rates.end()), *std::max_element(m.rates.begin(), m.rates.end()),
               100 * m.share_of_bandwidth, 100 * m.share_of_dots);
  }
}

Result<int> bench(const BenchFlags& flags) {
  TW_TRY(runtime::EngineOptions options, flags.engine.options());
  if (flags.repeats == 0) return refuse(RefusalKind::Usage, "-r", "is 0, and must be at least 1");
  TW_TRY(const gguf::Checkpoint checkpoint, open_model(flags.model));
  if (options.context == 0) options.context = std::max({flags.prompt, flags.decode, 1U}) + flags.depth;
  TW_TRY(const auto engine, open_engine(checkpoint, options));
  std::vector<Measured> all;
  if (flags.prompt != 0) {
    TW_TRY(Measured m, measure(*engine, flags, fmt::format("pp{}", flags.prompt), time_prompt));
    all.push_back(std::move(m));
  }
  if (flags.decode != 0) {
    TW_TRY(Measured m, measure(*engine, flags, fmt::format("tg{}", flags.decode), time_decode));
    all.push_back(std::move(m));
  }
  TW_TRY(const lane::Schedule decode, engine->schedule({}));
  Roofline roofline;
  {
    lane::cpu::Pool pool(engine->threads());
    roofline.bandwidth = lane::cpu::stream_read_bandwidth(engine->isa(), pool, lane::work_of(decode).weight_bytes, 3);
    roofline.dots = lane::cpu::int8_dot_peak(engine->isa(), pool, 3);
  }
  for (Measured& m : all) {
    graph::Form form;
    if (m.name.starts_with("pp") && flags.prompt > 1) {
      form = {graph::Form::Kind::Chunk, std::min(flags.prompt, options.chunk), false};
    }
    TW_TRY_VOID(hold_against(*engine, form, roofline, m));
  }
  if (!flags.json) {
    print_table(*engine, checkpoint.label(), flags.engine.numerics, roofline, all);
    return kFine;
  }
  nlohmann::ordered_json json{{"model", checkpoint.label()},
                              {"threads", engine->threads()},
                              {"isa", lane::cpu::name(engine->isa())},
                              {"numerics", flags.engine.numerics},
                              {"cache", flags.engine.cache},
                              {"stream_read_bytes_per_second", roofline.bandwidth},
                              {"int8_dot_peak_per_second", roofline.dots}};
  for (const Measured& m : all) {
    json["tests"].push_back({{"test", m.name},
                             {"tokens_per_second", m.median()},
                             {"runs", m.rates},
                             {"share_of_bandwidth", m.share_of_bandwidth},
                             {"share_of_dots", m.share_of_dots}});
  }
  print_json(json);
  return kFine;
}

}  // namespace

Action add_bench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  app.add_option("MODEL", flags->model, "A GGUF checkpoint");
  app.add_option("-m,--model", flags->model, "The same as MODEL");
  app.add_option("--pp", flags->prompt, "Tokens of the prompt that is timed (0: none)")->capture_default_str();
  app.add_option("--tg", flags->decode, "Tokens decoded one after the other (0: none)")->capture_default_str();
  app.add_option("-d,--depth", flags->depth, "Tokens in the cache before the timed ones")->capture_default_str();
  app.add_option("-r,--repetitions", flags->repeats, "Timed runs; the median is shown")->capture_default_str();
  flags->engine.add_to(app);
  app.add_flag("--json", flags->json, "Print as JSON");
  return [flags] { return bench(*flags); };
}

}  // namespace tw::cli
