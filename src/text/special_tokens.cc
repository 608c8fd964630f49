#include "text/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <span>

namespace tw::text {
namespace {

constexpr KindRow kKinds[] = {
    {"llama", Kind::SentencePiece, 1, 2, 0, -1, true, false, true},
    {"gpt2", Kind::BytePair, -1, -1, -1, -1, false, false, false},
    {"gemma4", Kind::BytePair, -1, -1, -1, -1, false, false, false},
    {"bert", Kind::WordPiece, 101, -1, 100, 102, true, false, false},
    {"t5", Kind::Unigram, -1, 1, 2, -1, false, true, false},
};

// Texts that end a turn or a text, whatever type the file gives them.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    ("<\xEF\xBD\x9C"
     "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"),
    "[e~[",
};

// Fill-in-the-middle texts that a generation must not run past; the first that is there counts.
constexpr std::string_view kFimPadTexts[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kFimRepoTexts[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"};
constexpr std::string_view kFimFileTexts[] = {"<|file_sep|>"};

// Control texts of the harmony format that are part of what is shown.
constexpr std::string_view kShownTexts[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

std::optional<Token> id_of(const std::optional<uint64_t>& given, Token fallback, size_t tokens) {
  if (given) return static_cast<Token>(*given);
  if (fallback < 0 || static_cast<size_t>(fallback) >= tokens) return std::nullopt;
  return fallback;
}

class Resolver {
 public:
  Resolver(const Vocabulary& vocabulary, const Lexicon& lexicon) : vocabulary_(vocabulary), lexicon_(lexicon) {
    const size_t tokens = vocabulary.tokens.size();
    out_.types = vocabulary.types;
    if (out_.types.empty()) out_.types.assign(tokens, TokenType::Normal);
    out_.ends_generation.assign(tokens, false);
    out_.strips_left.assign(tokens, false);
    out_.strips_right.assign(tokens, false);
  }

  void set_ids(const KindRow& kind) {
    const size_t tokens = vocabulary_.tokens.size();
    out_.bos = id_of(vocabulary_.bos ? vocabulary_.bos : vocabulary_.cls, kind.bos, tokens);
    out_.eos = id_of(vocabulary_.eos, kind.eos, tokens);
    out_.unknown = id_of(vocabulary_.unknown, kind.unknown, tokens);
    out_.separator = id_of(vocabulary_.separator, kind.separator, tokens);
  }

  Result<void> set_additions(const KindRow& kind, const PreTokenizerRow* row) {
    const unsigned flags = row == nullptr ? 0u : row->flags;
    out_.add_bos = vocabulary_.add_bos.value_or(kind.add_bos || (flags & kAddBos) != 0);
    out_.add_eos = vocabulary_.add_eos.value_or(kind.add_eos);
    if ((flags & kForceBos) != 0 && !out_.add_bos) {
      out_.add_bos = true;
      out_.notes.emplace_back("Models of this pre-tokenizer need a BOS token, so one is added whatever the file says.");
    }
    TW_TRY_VOID(settle(out_.add_bos, out_.bos, vocabulary_.add_bos, "bos"));
    return settle(out_.add_eos, out_.eos, vocabulary_.add_eos, "eos");
  }

  void set_ends() {
    for (const std::string_view text : kEndTexts) mark_end(lexicon_.find(text));
    mark_end(first_of(vocabulary_.fim_pad, kFimPadTexts));
    mark_end(first_of(vocabulary_.fim_rep, kFimRepoTexts));
    mark_end(first_of(vocabulary_.fim_sep, kFimFileTexts));
    for (const auto& id : {vocabulary_.eos, vocabulary_.eot, vocabulary_.eom}) {
      if (id) out_.ends_generation[*id] = true;
    }
    if (out_.eos) out_.ends_generation[static_cast<size_t>(*out_.eos)] = true;
    for (const std::string_view text : kShownTexts) set_type(lexicon_.find(text), TokenType::UserDefined);
    // In the harmony and solar formats "<|end|>" closes a message, not the answer.
    const bool calls = ends("<|call|>") || ends("<|calls|>");
    if (calls && (ends("<|return|>") || ends("<|flush|>"))) unmark_end("<|end|>", TokenType::UserDefined);
    // Where there is a tool response to end at, "</s>" is plain text.
    if (ends("<|tool_response>")) unmark_end("</s>", TokenType::Normal);
  }

  // White space at special tokens, which no key tells: known by the name of the pre-tokenizer, architecture or model.
  void set_strips() {
    const auto has = [](std::string_view text, std::initializer_list<std::string_view> parts) {
      return std::any_of(parts.begin(), parts.end(),
                         [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
    };
    std::string name = vocabulary_.name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (has(vocabulary_.pre, {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
        has(vocabulary_.architecture, {"nomic-bert-moe", "jina-bert-v3"})) {
      if (const auto mask = lexicon_.find("<mask>")) out_.strips_left[static_cast<size_t>(*mask)] = true;
    } else if (has(name, {"phi-3", "phi3"})) {
      for (size_t i = 0; i < out_.types.size(); ++i) {
        const TokenType type = out_.types[i];
        out_.strips_right[i] =
            type == TokenType::Control || type == TokenType::UserDefined || type == TokenType::Unknown;
      }
      for (const char* text : {"<unk>", "<s>", "<|endoftext|>"}) {
        if (const auto token = lexicon_.find(text)) out_.strips_right[static_cast<size_t>(*token)] = false;
      }
    } else if (has(name, {"modern-bert"})) {
      if (const auto mask = lexicon_.find("[MASK]")) out_.strips_left[static_cast<size_t>(*mask)] = true;
    }
  }

  SpecialTokens take() { return std::move(out_); }

 private:
  // What the file asks for must be possible; what is only usual is left out when there is no such token.
  Result<void> settle(bool& add, const std::optional<Token>& token, const std::optional<bool>& asked,
                      std::string_view name) {
    if (!add || token) return {};
    if (asked.value_or(false))
      return refuse(RefusalKind::Conflict, fmt::format("tokenizer.ggml.add_{}_token", name),
                    fmt::format("is true, but there is no tokenizer.ggml.{}_token_id", name),
                    "Set the id or set the flag to false");
    add = false;
    out_.notes.push_back(
        fmt::format("Texts for this tokenizer usually get a token of tokenizer.ggml.{}_token_id; the file names none, "
                    "so none is added.",
                    name));
    return {};
  }

  void set_type(std::optional<Token> token, TokenType type) {
    if (token) out_.types[static_cast<size_t>(*token)] = type;
  }

  void mark_end(std::optional<Token> token) {
    if (!token) return;
    const size_t index = static_cast<size_t>(*token);
    out_.ends_generation[index] = true;
    if (out_.types[index] == TokenType::Control) return;
    out_.types[index] = TokenType::Control;
    out_.notes.push_back(
        fmt::format("Token {} \"{}\" is taken for a control token by its text.", index, vocabulary_.tokens[index]));
  }

  [[nodiscard]] bool ends(std::string_view text) const {
    const std::optional<Token> token = lexicon_.find(text);
    return token && out_.ends_generation[static_cast<size_t>(*token)];
  }

  void unmark_end(std::string_view text, TokenType type) {
    const std::optional<Token> token = lexicon_.find(text);
    if (!token) return;
    out_.ends_generation[static_cast<size_t>(*token)] = false;
    set_type(token, type);
  }

  [[nodiscard]] std::optional<Token> first_of(const std::optional<uint64_t>& given,
                                              std::span<const std::string_view> texts) const {
    if (given) return static_cast<Token>(*given);
    for (const std::string_view text : texts) {
      if (const auto token = lexicon_.find(text)) return token;
    }
    return std::nullopt;
  }

  const Vocabulary& vocabulary_;
  const Lexicon& lexicon_;
  SpecialTokens out_;
};

}  // namespace

Result<const KindRow*> find_kind(std::string_view model) {
  std::vector<std::string_view> names;
  for (const KindRow& row : kKinds) {
    if (row.model == model) return &row;
    names.push_back(row.model);
  }
  return refuse(RefusalKind::Unsupported, "tokenizer.ggml.model",
                fmt::format("is \"{}\", the known tokenizers are {}", model, fmt::join(names, ", ")),
                "Use a model with one of these tokenizers, or give token ids instead of text");
}

Result<SpecialTokens> resolve_special_tokens(const Vocabulary& vocabulary, const Lexicon& lexicon, const KindRow& kind,
                                             const PreTokenizerRow* row) {
  Resolver resolver(vocabulary, lexicon);
  resolver.set_ids(kind);
  TW_TRY_VOID(resolver.set_additions(kind, row));
  resolver.set_ends();
  resolver.set_strips();
  return resolver.take();
}

}  // namespace tw::text
