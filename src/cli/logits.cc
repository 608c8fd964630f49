// tilewright logits: the logits of a prompt's last tokens as a file of f32, and a hash of their bits.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common.h"
#include "cli/verb.h"
#include "text/tokenizer.h"

namespace tw::cli {

namespace {

static_assert(std::endian::native == std::endian::little, "logits are written as they lie in memory");

struct LogitsFlags {
  std::string model, tokens, out;
  std::optional<std::string> text;
  uint32_t last = 1;
  EngineFlags engine;
  bool json = false;
};

// FNV-1a over the bytes: small, and defined everywhere.
uint64_t hash_of(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ ((bits >> shift) & 0xffU)) * 0x100000001b3U;
  }
  return hash;
}

Result<std::vector<runtime::Token>> tokens_of(const LogitsFlags& flags, const gguf::Checkpoint& checkpoint) {
  if (!flags.tokens.empty()) return parse_tokens(flags.tokens);
  TW_TRY(const text::Tokenizer tokenizer, text::Tokenizer::load(checkpoint));
  return tokenizer.encode(*flags.text);
}

Result<void> write_file(const std::string& path, const std::vector<float>& values) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  file.close();
  if (!file)
    return refuse(RefusalKind::Io, path,
                  fmt::format("{} bytes cannot be written: {}", values.size() * sizeof(float), std::strerror(errno)));
  return {};
}

Result<int> logits(const LogitsFlags& flags) {
  TW_TRY(const runtime::EngineOptions options, flags.engine.options());
  if (flags.tokens.empty() && !flags.text)
    return refuse(RefusalKind::Usage, "tokens", "none were given", "Give --tokens 1,2,3 or -p TEXT.");
  if (flags.last == 0) return refuse(RefusalKind::Usage, "--last", "is 0, and must be at least 1");
  TW_TRY(const gguf::Checkpoint checkpoint, open_model(flags.model));
  TW_TRY(const auto tokens, tokens_of(flags, checkpoint));
  if (tokens.empty())
    return refuse(RefusalKind::Usage, "tokens", "the text has none, and this vocabulary none that begins a text");
  TW_TRY(const auto engine, open_engine(checkpoint, options));
  const size_t rows = std::min<size_t>(flags.last, tokens.size());
  const size_t vocabulary = engine->facts().vocabulary;
  std::vector<float> values;
  values.reserve(rows * vocabulary);
  const std::span<const runtime::Token> all(tokens);
  if (tokens.size() > rows) {
    TW_TRY(const auto skipped, engine->extend(0, all.first(tokens.size() - rows)));
    (void)skipped;
  }
  TW_TRY_VOID(engine->extend_each(
      0, all.last(rows), [&](std::span<const float> row) { values.insert(values.end(), row.begin(), row.end()); }));
  if (!flags.out.empty()) TW_TRY_VOID(write_file(flags.out, values));
  const std::string hash = fmt::format("{:016x}", hash_of(values));
  if (flags.json) {
    print_json({{"rows", rows}, {"vocabulary", vocabulary}, {"tokens", tokens}, {"hash", hash}, {"file", flags.out}});
  } else {
    fmt::print("{} rows of {} logits, hash {}\n", rows, vocabulary, hash);
  }
  return kFine;
}

}  // namespace

Action add_logits(const Verb& verb) {
  auto flags = std::make_shared<LogitsFlags>();
  verb.option("MODEL", flags->model, "A GGUF checkpoint");
  verb.option("-m,--model", flags->model, "The same as MODEL");
  const Option tokens = verb.option("--tokens", flags->tokens, "Token ids: 1,2,3");
  const Option text = verb.option("-p,--prompt", flags->text, "Text to take the tokens from");
  tokens.excludes(text);
  verb.option("--last", flags->last, "How many of the last tokens to give logits of (all when there are fewer)")
      .shows_default();
  verb.option("-o,--output", flags->out, "Write the logits here: rows of little-endian f32");
  flags->engine.add_to(verb);
  verb.option("--chunk", flags->engine.chunk, "The same as -b: the most rows taken in one step")
      .excludes(verb.named("--batch-size"));
  verb.flag("--json", flags->json, "Print as JSON");
  return [flags] { return logits(*flags); };
}

}  // namespace tw::cli
