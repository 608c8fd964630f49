// tilewright simulate: the steps of a model on a spatial target, beside their definition.

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/spatial.h"
#include "cli/verb.h"
#include "spatial/step/rollout.h"
#include "text/tokenizer.h"

namespace tw::cli {

namespace {

using nlohmann::ordered_json;
using spatial::step::Choice;
using spatial::step::Difference;
using spatial::step::RolloutStep;
using spatial::step::Simulator;
using spatial::step::StepOutcome;

struct SimulateFlags {
  SpatialFlags spatial;
  std::string tokens;
  std::optional<std::string> text;
  std::optional<uint32_t> chunk;
  uint32_t steps = 1;
  bool every = false, json = false;
};

// ---- what is said of a step ----

std::string percent(double part) { return fmt::format("{:.3g} %", 100 * part); }

std::string op_text(const graph::StepGraph& graph, const Difference& difference) {
  if (!difference.op) return fmt::format("state {}", difference.tensor);
  return fmt::format("op {} {} {}", index(*difference.op), op_name(graph.at(*difference.op).spec), difference.tensor);
}

std::string difference_text(const graph::StepGraph& graph, const Difference& d) {
  if (d.difference == 0) return fmt::format("{}: equal", op_text(graph, d));
  return fmt::format("{}: {:.6g} ({} of {:.6g}) at element {}, {:.6g} for {:.6g}", op_text(graph, d), d.difference,
                     percent(d.relative()), d.scale, d.element, d.got, d.want);
}

ordered_json difference_json(const Difference& d) {
  ordered_json json{{"tensor", d.tensor}, {"op", nullptr},    {"element", d.element},       {"got", d.got},
                    {"want", d.want},     {"scale", d.scale}, {"difference", d.difference}, {"relative", d.relative()}};
  if (d.op) json["op"] = index(*d.op);
  return json;
}

// What a run says as it goes on: text step by step, or one JSON value at the end.
class Telling {
 public:
  Telling(const SimulateFlags& flags, const Simulator& simulator, bool ids_from_one)
      : flags_(flags), simulator_(simulator), first_id_(ids_from_one ? 0 : 1) {}

  void step(spatial::step::FormId form, uint32_t position, const std::vector<int32_t>& tokens,
            const StepOutcome& outcome) {
    flags_.json ? collect(form, position, tokens, outcome) : say(form, position, tokens, outcome);
    agree_ = agree_ && outcome.same_choices();
  }
  void end() {
    if (flags_.json) print_json({{"target", flags_.spatial.target}, {"steps", steps_}, {"same_choices", agree_}});
  }

 private:
  [[nodiscard]] int64_t id(int64_t token) const { return token - first_id_; }

  void say(spatial::step::FormId form, uint32_t position, const std::vector<int32_t>& tokens,
           const StepOutcome& outcome) {
    const graph::StepGraph& graph = simulator_.graph(form);
    const std::string rows = tokens.empty() ? std::string{}
                             : tokens.size() == 1
                                 ? fmt::format(", position {}", position)
                                 : fmt::format(", positions {} to {}", position, position + tokens.size() - 1);
    fmt::print("{} {}{}: {} sections, {} tiles loaded, {} stored\n", graph.name, to_text(graph.form), rows,
               simulator_.lowered(form).composition.sections.size(), outcome.tiles_loaded, outcome.tiles_stored);
    for (const Choice& choice : outcome.choices)
      fmt::print("  next      {}{}\n", id(choice.got),
                 choice.got == choice.want
                     ? ", as defined"
                     : fmt::format(", the definition prefers {} by {:.4g}", id(choice.want), choice.margin));
    for (const graph::SequenceIo& sequence : graph.io.sequences)
      if (sequence.logits != graph::kNoTensor)
        if (const Difference* logits = outcome.of(graph.at(sequence.logits).name))
          fmt::print("  logits    {}\n", difference_text(graph, *logits));
    if (flags_.every)
      for (const Difference& difference : outcome.differences)
        fmt::print("            {}\n", difference_text(graph, difference));
    const Difference* worst = outcome.worst();
    if (worst && worst->difference > 0) fmt::print("  worst     {}\n", difference_text(graph, *worst));
    if (worst && worst->difference == 0) fmt::print("  every result and state is equal\n");
  }

  void collect(spatial::step::FormId form, uint32_t position, const std::vector<int32_t>& tokens,
               const StepOutcome& outcome) {
    ordered_json ids = ordered_json::array(), choices = ordered_json::array(), differences = ordered_json::array();
    for (const int32_t token : tokens) ids.push_back(id(token));
    for (const Choice& c : outcome.choices)
      choices.push_back(
          {{"sequence", c.sequence}, {"row", c.row}, {"got", id(c.got)}, {"want", id(c.want)}, {"margin", c.margin}});
    for (const Difference& difference : outcome.differences) differences.push_back(difference_json(difference));
    steps_.push_back({{"form", to_text(simulator_.graph(form).form)},
                      {"position", position},
                      {"tokens", std::move(ids)},
                      {"choices", std::move(choices)},
                      {"tiles_loaded", outcome.tiles_loaded},
                      {"tiles_stored", outcome.tiles_stored},
                      {"differences", std::move(differences)}});
  }

  const SimulateFlags& flags_;
  const Simulator& simulator_;
  int64_t first_id_;
  ordered_json steps_ = ordered_json::array();
  bool agree_ = true;
};

// ---- running ----

// 1-based, as the graph counts. A model's ids are those of its vocabulary, from 0 on; a graph's are its own.
Result<std::vector<int32_t>> prompt_of(const SimulateFlags& flags, const StepSource& source) {
  if (flags.tokens.empty() && !flags.text)
    return refuse(RefusalKind::Usage, "tokens", "none were given", "Give --tokens 1,2,3 or -p TEXT.");
  if (flags.text && !source.is_model())
    return refuse(RefusalKind::Usage, "--prompt", "is for models; a graph has no vocabulary", "Give --tokens 1,2,3.");
  std::vector<runtime::Token> ids;
  if (flags.text) {
    TW_TRY(const text::Tokenizer tokenizer, text::Tokenizer::load(source.checkpoint()));
    ids = tokenizer.encode(*flags.text);
  } else {
    TW_TRY(ids, parse_tokens(flags.tokens));
  }
  std::vector<int32_t> prompt;
  for (const runtime::Token id : ids) {
    const int64_t token = int64_t{id} + (source.is_model() ? 1 : 0);
    if (token < 1 || token > std::numeric_limits<int32_t>::max())
      return refuse(RefusalKind::Usage, "--tokens", fmt::format("holds {}, which is no token", id));
    prompt.push_back(static_cast<int32_t>(token));
  }
  return prompt;
}

// A graph without io is a computation of its own.
Result<void> run_once(Simulator& simulator, const graph::StepGraph& graph, Telling& telling) {
  TW_TRY(const spatial::step::FormId form, simulator.add(graph));
  TW_TRY(const StepOutcome outcome, simulator.run(form, {}, {}));
  telling.step(form, 1, {}, outcome);
  return {};
}

Result<int> simulate(const SimulateFlags& flags) {
  TW_TRY(spatial::Target target, target_of(flags.spatial));
  TW_TRY(const StepSource source, StepSource::open(flags.spatial));
  Simulator simulator(std::move(target), source.constants());
  Telling telling(flags, simulator, !source.is_model());
  if (!source.is_model() && source.graph().io.tokens == graph::kNoTensor) {
    TW_TRY_VOID(run_once(simulator, source.graph(), telling));
    telling.end();
    return kFine;
  }
  TW_TRY(std::vector<int32_t> prompt, prompt_of(flags, source));
  const uint32_t chunk = flags.chunk.value_or(source.is_model() ? 32 : source.graph().form.rows);
  if (chunk < 1 || chunk > graph::kMaxChunkRows)
    return refuse(RefusalKind::Usage, "--chunk", fmt::format("is {}, expected 1 to {}", chunk, graph::kMaxChunkRows));
  const Result<void> run = roll_out(
      simulator, [&](uint32_t rows) { return source.step_of_rows(rows); },
      {std::move(prompt), chunk, flags.steps, &interrupted()},
      [&](const RolloutStep& step) { telling.step(step.form, step.position, step.tokens, step.outcome); });
  telling.end();
  if (!run) return run.refusal();
  return kFine;
}

}  // namespace

Action add_simulate(const Verb& verb) {
  auto flags = std::make_shared<SimulateFlags>();
  flags->spatial.add_to(verb);
  const Option tokens =
      verb.option("--tokens", flags->tokens, "Token ids: 1,2,3 (of a graph they count from 1, as the graph does)");
  const Option text = verb.option("-p,--prompt", flags->text, "Text to take the tokens from");
  tokens.excludes(text);
  verb.option("--chunk", flags->chunk, "The most rows of the prompt taken in one step (32; of a graph its own)");
  verb.option("--steps", flags->steps, "Decode steps after the prompt, each with the token the target chose")
      .shows_default();
  verb.flag("--every", flags->every, "Say of every result and state how far it is off");
  verb.flag("--json", flags->json, "Print as JSON");
  verb.footer(
      "Example:\n"
      "  tilewright simulate model.gguf --target tensix -p \"Once upon a time\" --steps 4 -c 64\n"
      "The step is run bit by bit as the target would run it, and beside it in double precision, as the ops are\n"
      "defined. Differences are given with the largest magnitude of the tensor that they are in.");
  return [flags] { return simulate(*flags); };
}

}  // namespace tw::cli
