#include "cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "fuse/rules.h"
#include "lane/cpu/isa.h"

namespace tw::cli {

namespace {

std::string joined(const std::vector<std::string_view>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

Refusal unknown(std::string_view flag, std::string_view value, const std::vector<std::string_view>& known) {
  return refuse(RefusalKind::Usage, flag, fmt::format("does not know \"{}\"", value),
                fmt::format("It takes one of: {}.", joined(known)));
}

}  // namespace

Result<std::filesystem::path> model_path(const std::string& given) {
  if (!given.empty()) return std::filesystem::path(given);
  if (const char* named = std::getenv("TILEWRIGHT_MODEL"); named != nullptr && *named != 0) {
    return std::filesystem::path(named);
  }
  const std::filesystem::path shipped(TW_SHIPPED_MODEL);
  std::error_code error;
  for (const std::filesystem::path& path : {"models" / shipped.filename(), shipped}) {
    if (std::filesystem::exists(path, error)) return path;
  }
  return refuse(RefusalKind::Usage, "model", "none was given, and the one that ships with the project is not here",
                "Give one with -m, or run from the project's folder.");
}

Result<gguf::Checkpoint> open_model(const std::string& given) {
  TW_TRY(const std::filesystem::path path, model_path(given));
  return gguf::Checkpoint::open(path);
}

void EngineFlags::add_to(const Verb& verb) {
  verb.option("-t,--threads", threads, "Threads (0: one a core)").shows_default();
  verb.option("-c,--ctx-size", context, "Positions a sequence can hold (0: the model's own, at most 4096)")
      .shows_default();
  verb.option("-b,--batch-size", chunk, "The most rows of a prompt taken in one step, 1 to 512").shows_default();
  verb.option("--numerics", numerics,
              "How products read activations: int8 (one 8-bit word), int8x2 (two), precise (f32, sums in f64)")
      .shows_default();
  verb.option(
          "--order", order,
          "Order of sums: strict (the bits do not depend on how a prompt was cut), fast-delta (delta rules take many "
          "rows in chunks)")
      .shows_default();
  verb.option("--isa", isa, "Instruction set: scalar, avx2, avx512 (default: the widest of this machine)");
  verb.option("--cache", cache, "Storage of keys and values: f32, f16 (default: f16 with int8, else f32)");
  verb.option("--state", state, "Storage of the memories of delta rules: f32, bf16").shows_default();
  verb.option("--hold", held, "Rules of fusion to hold back, by name, or all (never changes a result)").takes_list();
}

Result<runtime::EngineOptions> EngineFlags::options() const {
  runtime::EngineOptions options;
  options.threads = threads;
  options.context = context;
  options.chunk = chunk;
  TW_TRY_VOID(runtime::check(options));
  const auto parsed = lane::parse_numerics(numerics);
  if (!parsed) return unknown("--numerics", numerics, {"int8", "int8x2", "precise"});
  options.numerics = *parsed;
  const auto parsed_order = lane::parse_order(order);
  if (!parsed_order) return unknown("--order", order, {"strict", "fast-delta"});
  options.order = *parsed_order;
  if (!isa.empty()) {
    options.isa = lane::cpu::isa_by_name(isa);
    if (!options.isa) return unknown("--isa", isa, {"scalar", "avx2", "avx512"});
  }
  if (!cache.empty()) {
    if (cache != "f32" && cache != "f16") return unknown("--cache", cache, {"f32", "f16"});
    options.cache = cache == "f16" ? lane::Dtype::F16 : lane::Dtype::F32;
  }
  if (state != "f32" && state != "bf16") return unknown("--state", state, {"f32", "bf16"});
  options.state = state == "bf16" ? lane::Dtype::BF16 : lane::Dtype::F32;
  for (const std::string& rule : held) {
    if (rule != "all") {
      options.held.push_back(rule);
      continue;
    }
    for (const fuse::Holdable& each : fuse::holdables()) options.held.emplace_back(each.name);
  }
  return options;
}

Result<std::unique_ptr<runtime::Engine>> open_engine(const gguf::Checkpoint& checkpoint,
                                                     runtime::EngineOptions options) {
  ProgressBar bar;
  if (isatty(STDERR_FILENO) != 0) options.progress = [&bar](uint64_t done, uint64_t total) { bar.show(done, total); };
  options.interrupted = &interrupted();
  return runtime::Engine::open(checkpoint, options);
}

Result<graph::Form> form_of(const std::string& text) {
  if (const auto form = graph::parse_form(text)) return *form;
  return refuse(
      RefusalKind::Usage, "--form", fmt::format("does not know \"{}\"", text),
      "It takes decode, chunk:M (M rows, 1 to 512), chunk:M:all (logits of every row) or batch:B (B sequences).");
}

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return refuse(RefusalKind::Io, path, "is a folder, not a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(RefusalKind::Io, path, "cannot be opened for reading");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (file.bad()) return refuse(RefusalKind::Io, path, "cannot be read to its end");
  return text;
}

Result<std::vector<runtime::Token>> parse_tokens(const std::string& text) {
  std::vector<runtime::Token> tokens;
  const char* at = text.data();
  const char* end = at + text.size();
  while (true) {
    runtime::Token token = 0;
    const auto [after, error] = std::from_chars(at, end, token);
    if (error != std::errc() || (after != end && *after != ',')) {
      return refuse(
          RefusalKind::Usage, "--tokens",
          fmt::format("holds \"{}\" where a token id was expected", std::string(at, end - at < 12 ? end : at + 12)),
          "Write ids separated by commas: 1,2,3.");
    }
    tokens.push_back(token);
    if (after == end) return tokens;
    at = after + 1;
  }
}

namespace {

std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int signal) {
  interrupt_flag.store(true);
  std::signal(signal, SIG_DFL);
}

}  // namespace

void end_early() { interrupt_flag.store(true); }

const std::atomic<bool>& interrupted() {
  static const bool installed = std::signal(SIGINT, on_interrupt) != SIG_ERR;
  (void)installed;
  return interrupt_flag;
}

void print_json(const nlohmann::ordered_json& json) {
  // Bytes of a file that are not UTF-8 are shown as U+FFFD.
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace tw::cli
