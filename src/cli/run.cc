// tilewright run: continues a text, or each line of a file in lock step.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/common.h"
#include "cli/profile.h"
#include "cli/verb.h"
#include "runtime/generate.h"

namespace tw::cli {

namespace {

constexpr std::string_view kStory = "Once upon a time, in a little house at the edge of the forest,";
constexpr int kLimitRuns = 5;  // of which a profile's limits are the median and the best

struct RunFlags {
  std::string model, model_option, batch_file;
  std::optional<std::string> prompt, prompt_option, prompt_file;  // an empty prompt is one too
  bool json = false, quiet = false, hide_prompt = false;
  EngineFlags engine;
  ProfileFlags profile;
  runtime::Request request;
};

void add_sampling(const Verb& verb, runtime::Sampling& s) {
  verb.option("--temp", s.temperature, "Temperature; 0 always takes the likeliest token").shows_default();
  verb.option("--top-k", s.top_k, "Keep this many of the likeliest tokens (0: all)").shows_default();
  verb.option("--top-p", s.top_p, "Keep the fewest tokens whose probabilities reach this (1: all)").shows_default();
  verb.option("--min-p", s.min_p, "Keep tokens at least this likely, next to the likeliest (0: all)").shows_default();
  verb.option("--repeat-penalty", s.repeat_penalty, "Above 1: what was said lately becomes less likely")
      .shows_default();
  verb.option("--presence-penalty", s.presence_penalty, "Taken off the logit of a token seen lately").shows_default();
  verb.option("--frequency-penalty", s.frequency_penalty, "Taken off for every time it was seen lately")
      .shows_default();
  verb.option("--repeat-last-n", s.penalty_window, "How many tokens are lately").shows_default();
  verb.option("-s,--seed", s.seed, "The same seed gives the same text, on every machine").shows_default();
}

Result<std::string> prompt_text(const RunFlags& flags) {
  if (flags.prompt_file) {
    TW_TRY(std::string text, read_text(*flags.prompt_file));
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }
  if (flags.prompt_option) return *flags.prompt_option;
  return flags.prompt.value_or(std::string(kStory));
}

double rate(size_t tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }

nlohmann::ordered_json outcome_json(const runtime::Request& request, const runtime::Outcome& outcome) {
  return {{"prompt", request.prompt},
          {"text", outcome.text},
          {"ended", runtime::name(outcome.ended)},
          {"prompt_tokens", outcome.prompt_tokens},
          {"prompt_tokens_taken", outcome.prompt_taken},
          {"tokens", outcome.tokens},
          {"prompt_tokens_per_second", rate(outcome.prompt_taken, outcome.prompt_seconds)},
          {"decode_tokens_per_second", rate(outcome.decode_steps, outcome.decode_seconds)}};
}

void print_context_full(const runtime::Engine& engine) {
  fmt::print(stderr, "The context of {} positions is full; -c asks for a longer one (the model was made for {}).\n",
             engine.facts().context, engine.facts().trained_context);
}

void print_closing_line(const runtime::Engine& engine, const runtime::Outcome& outcome) {
  if (outcome.ended == runtime::Ended::ContextFull) print_context_full(engine);
  const size_t prompt = outcome.prompt_tokens.size();
  const bool whole = outcome.prompt_taken == prompt;
  fmt::print(stderr, "prompt {} tokens, {:.1f} tokens/s | decode {} tokens, {:.1f} tokens/s | {} | {} threads, {}\n",
             whole ? fmt::to_string(prompt) : fmt::format("{} of {}", outcome.prompt_taken, prompt),
             rate(outcome.prompt_taken, outcome.prompt_seconds), outcome.tokens.size(),
             rate(outcome.decode_steps, outcome.decode_seconds), runtime::name(outcome.ended), engine.threads(),
             lane::cpu::name(engine.isa()));
}

int exit_code(runtime::Ended ended) { return ended == runtime::Ended::Interrupted ? kInterrupted : kFine; }

Result<int> run_one(const RunFlags& flags, runtime::Engine& engine, const text::Tokenizer& tokenizer) {
  runtime::Request request = flags.request;
  TW_TRY(request.prompt, prompt_text(flags));
  const bool stream = !flags.json;
  // The prompt is printed with the first text, so that a refusal leaves stdout empty.
  std::string before = flags.hide_prompt ? std::string{} : request.prompt;
  const auto sink = [&before](std::string_view text) {
    fmt::print("{}{}", std::exchange(before, {}), text);
    if (std::fflush(stdout) != 0) end_early();
  };
  TW_TRY(const runtime::Outcome outcome,
         runtime::generate(engine, tokenizer, request, 0, stream ? runtime::TextSink(sink) : runtime::TextSink{},
                           &interrupted()));
  if (stream) sink("\n");
  if (flags.json) print_json(outcome_json(request, outcome));
  std::fflush(stdout);
  if (!flags.quiet) print_closing_line(engine, outcome);
  return exit_code(outcome.ended);
}

// A request for each line that is not empty.
Result<std::vector<runtime::Request>> requests_of(const RunFlags& flags) {
  std::vector<runtime::Request> requests;
  TW_TRY(const std::string text, read_text(flags.batch_file));
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t stop = end > at && text[end - 1] == '\r' ? end - 1 : end;
    ++number;
    if (stop > at) {
      requests.push_back(flags.request);
      requests.back().prompt = text.substr(at, stop - at);
      requests.back().name = fmt::format("{} line {}", flags.batch_file, number);
    }
    at = end + 1;
  }
  if (requests.empty()) return refuse(RefusalKind::Usage, flags.batch_file, "holds no line that is not empty");
  if (requests.size() > runtime::kMaxSlots)
    return refuse(RefusalKind::TooLarge, flags.batch_file,
                  fmt::format("holds {} lines that are not empty, and at most {} run in lock step", requests.size(),
                              runtime::kMaxSlots),
                  "Split the file.");
  return requests;
}

Result<int> run_batch(const RunFlags& flags, const std::vector<runtime::Request>& requests, runtime::Engine& engine,
                      const text::Tokenizer& tokenizer) {
  TW_TRY(const auto outcomes, runtime::generate_batch(engine, tokenizer, requests, {}, &interrupted()));
  auto json = nlohmann::ordered_json::array();
  size_t tokens = 0;
  double seconds = 0;
  int code = kFine;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (flags.json) {
      json.push_back(outcome_json(requests[i], outcomes[i]));
    } else {
      fmt::print("{}{}\n", flags.hide_prompt ? "" : requests[i].prompt, outcomes[i].text);
    }
    tokens += outcomes[i].decode_steps;
    seconds = std::max(seconds, outcomes[i].decode_seconds);
    code = std::max(code, exit_code(outcomes[i].ended));
  }
  if (flags.json) print_json(json);
  std::fflush(stdout);
  if (!flags.quiet) {
    fmt::print(stderr, "{} sequences | decode {} tokens, {:.1f} tokens/s | {} threads, {}\n", outcomes.size(), tokens,
               rate(tokens, seconds), engine.threads(), lane::cpu::name(engine.isa()));
  }
  return code;
}

// With -m, what stands first on the command line is the prompt. There is one prompt, or a file of them.
Result<void> settle_prompt(RunFlags& flags) {
  if (!flags.model_option.empty() && !flags.model.empty()) {
    if (flags.prompt) {
      return refuse(RefusalKind::Usage, "-m",
                    fmt::format("names a model, and \"{}\" and \"{}\" are given besides", flags.model, *flags.prompt),
                    "With -m only the prompt is given besides.");
    }
    flags.prompt = std::exchange(flags.model, {});
  }
  if (flags.prompt && (flags.prompt_option || flags.prompt_file || !flags.batch_file.empty())) {
    return refuse(RefusalKind::Usage, "prompt",
                  fmt::format("is given as \"{}\" and by -p, -f or --batch besides", *flags.prompt), "Give it once.");
  }
  return {};
}

// A single word or text may be meant as the prompt, where a model is expected.
Result<gguf::Checkpoint> open_model_of(const RunFlags& flags) {
  auto checkpoint = open_model(flags.model_option.empty() ? flags.model : flags.model_option);
  if (checkpoint.ok() || checkpoint.refusal().kind != RefusalKind::Missing) return checkpoint;
  if (flags.model.empty() || flags.prompt || !checkpoint.refusal().remedy.empty()) return checkpoint;
  Refusal refusal = checkpoint.refusal();
  refusal.remedy = "MODEL comes first; a text for the story model to continue is given with -p.";
  return refusal;
}

Result<int> run(RunFlags flags) {
  TW_TRY_VOID(settle_prompt(flags));
  TW_TRY_VOID(flags.profile.check());
  TW_TRY(runtime::EngineOptions options, flags.engine.options());
  TW_TRY_VOID(runtime::check(flags.request.sampling));
  std::vector<runtime::Request> requests;
  if (!flags.batch_file.empty()) {
    TW_TRY(requests, requests_of(flags));
    options.slots = static_cast<uint32_t>(requests.size());
  }
  TW_TRY(const gguf::Checkpoint checkpoint, open_model_of(flags));
  // The tokenizer is made beside the engine: much of opening one waits for memory.
  auto making = std::async(std::launch::async, [&checkpoint] { return text::Tokenizer::load(checkpoint); });
  auto engine_made = open_engine(checkpoint, options);
  TW_TRY(const text::Tokenizer tokenizer, making.get());
  for (const auto& note : tokenizer.notes()) fmt::print(stderr, "tokenizer: {}\n", note);
  TW_TRY(const auto engine, std::move(engine_made));
  const Recording recording(*engine, flags.profile);
  TW_TRY(const int code,
         requests.empty() ? run_one(flags, *engine, tokenizer) : run_batch(flags, requests, *engine, tokenizer));
  if (!flags.profile.on()) return code;
  TW_TRY(LimitsMeter meter, LimitsMeter::make(*engine));
  for (int i = 0; i < kLimitRuns; ++i) meter.measure();
  fmt::print(stderr, "{}\n", limits_text(meter.limits()));
  recording.print(stderr, meter.limits());
  TW_TRY_VOID(recording.write_trace(checkpoint.label()));
  return code;
}

}  // namespace

Action add_run(const Verb& verb) {
  auto flags = std::make_shared<RunFlags>();
  flags->request.max_tokens = 200;
  verb.option("MODEL", flags->model, "A GGUF checkpoint (default: the story model that ships with the project)");
  verb.option("PROMPT", flags->prompt, "The text to continue");
  verb.option("-m,--model", flags->model_option, "The same as MODEL");
  const Option prompt = verb.option("-p,--prompt", flags->prompt_option, "The same as PROMPT");
  const Option file = verb.option("-f,--file", flags->prompt_file, "Read the prompt from a file (-: standard input)");
  const Option batch = verb.option("--batch", flags->batch_file, "Run every line of a file as a prompt, in lock step");
  prompt.excludes(file).excludes(batch);
  file.excludes(batch);
  verb.option("-n,--predict", flags->request.max_tokens, "The most tokens to make").shows_default();
  verb.option("--stop", flags->request.stop, "End where this text appears (may be given several times)");
  verb.flag("--ignore-eos", flags->request.ignore_end, "Go on past the end of a text");
  add_sampling(verb, flags->request.sampling);
  flags->engine.add_to(verb);
  flags->profile.add_to(verb);
  verb.flag("--no-display-prompt", flags->hide_prompt, "Print what was made, not the prompt");
  verb.flag("-q,--quiet", flags->quiet, "No closing line");
  verb.flag("--json", flags->json, "Print text, tokens and speeds as JSON at the end");
  return [flags] { return run(*flags); };
}

}  // namespace tw::cli
