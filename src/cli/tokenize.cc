// tilewright tokenize: text to token ids.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/common.h"
#include "cli/verb.h"
#include "text/tokenizer.h"

namespace tw::cli {

namespace {

struct TokenizeFlags {
  std::string model, file;
  std::optional<std::string> text;
  bool ids = false, json = false, no_special = false;
};

Result<int> tokenize(const TokenizeFlags& flags) {
  if (!flags.text && flags.file.empty())
    return refuse(RefusalKind::Usage, "text", "none was given", "Give one with -p, or a file with -f.");
  TW_TRY(const gguf::Checkpoint checkpoint, open_model(flags.model));
  TW_TRY(const text::Tokenizer tokenizer, text::Tokenizer::load(checkpoint));
  for (const auto& note : tokenizer.notes()) fmt::print(stderr, "tokenizer: {}\n", note);
  std::string text = flags.text.value_or("");
  if (!flags.file.empty()) {
    TW_TRY(text, read_text(flags.file));
  }
  text::EncodeOptions options;
  options.add_special = options.parse_special = !flags.no_special;
  const std::vector<text::Token> tokens = tokenizer.encode(text, options);
  if (flags.json) {
    nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
    for (const text::Token token : tokens) pieces.push_back(tokenizer.piece(token, true));
    print_json({{"tokenizer", tokenizer.kind()}, {"pre", tokenizer.pre()}, {"ids", tokens}, {"pieces", pieces}});
  } else if (flags.ids) {
    fmt::print("{}\n", fmt::join(tokens, ","));
  } else {
    for (const text::Token token : tokens) {
      fmt::print(
          "{:>7}  {}\n", token,
          nlohmann::json(tokenizer.piece(token, true)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
  }
  return kFine;
}

}  // namespace

Action add_tokenize(const Verb& verb) {
  auto flags = std::make_shared<TokenizeFlags>();
  verb.option("MODEL", flags->model, "A GGUF checkpoint");
  verb.option("-m,--model", flags->model, "The same as MODEL");
  const Option text = verb.option("-p,--prompt", flags->text, "The text");
  const Option file = verb.option("-f,--file", flags->file, "Read the text from a file (-: standard input)");
  text.excludes(file);
  verb.flag("--no-special", flags->no_special, "Add no special tokens, and read none in the text");
  const Option ids = verb.flag("--ids", flags->ids, "Print the ids alone, on one line");
  verb.flag("--json", flags->json, "Print ids and pieces as JSON").excludes(ids);
  return [flags] { return tokenize(*flags); };
}

}  // namespace tw::cli
