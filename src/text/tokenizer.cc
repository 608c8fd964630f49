#include "text/tokenizer.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>
#include <variant>

#include "text/byte_alphabet.h"
#include "text/byte_pair.h"
#include "text/lexicon.h"
#include "text/sentencepiece.h"
#include "text/special_splitter.h"
#include "text/special_tokens.h"
#include "text/unigram.h"
#include "text/utf8.h"
#include "text/word_piece.h"

namespace tw::text {

using Model = std::variant<std::monostate, SentencePiece, BytePair, WordPiece, Unigram>;

struct Tokenizer::Impl {
  Impl(Vocabulary v, const KindRow& k) : vocabulary(std::move(v)), lexicon(vocabulary.tokens), kind(&k) {}

  Vocabulary vocabulary;
  Lexicon lexicon;
  const KindRow* kind;
  const PreTokenizerRow* row = nullptr;
  SpecialTokens special;
  std::optional<SpecialSplitter> splitter;
  Model model;
  bool add_space = false;

  [[nodiscard]] bool known(Token token) const {
    return token >= 0 && static_cast<size_t>(token) < vocabulary.tokens.size();
  }
  [[nodiscard]] TokenType type(Token token) const { return special.types[static_cast<size_t>(token)]; }
  [[nodiscard]] bool is_special(Token token) const {
    const TokenType t = type(token);
    return t == TokenType::Control || t == TokenType::UserDefined || t == TokenType::Unknown;
  }
  [[nodiscard]] std::string text_of(Token token) const;
  void encode_run(std::string_view run, bool first, std::vector<Token>& out) const;
};

namespace {

Result<const PreTokenizerRow*> choose_pretokenizer(Vocabulary& vocabulary, std::vector<std::string>& notes) {
  if (vocabulary.model == "gemma4") {
    vocabulary.pre = "gemma4";
  } else if (vocabulary.pre.empty()) {
    vocabulary.pre = "default";
    notes.push_back(
        "The file names no pre-tokenizer (tokenizer.ggml.pre), so the default one is used; words may be cut otherwise "
        "than in training.");
  }
  const PreTokenizerRow* row = find_pretokenizer(vocabulary.pre);
  if (row != nullptr) return row;
  return refuse(RefusalKind::Unsupported, "tokenizer.ggml.pre",
                fmt::format("is \"{}\", the known pre-tokenizers are {}", vocabulary.pre, pretokenizer_names()),
                "Set the key to the one of these that cuts words as the model's own tokenizer does, or give token ids "
                "instead of text");
}

Result<void> check_distinct(const Vocabulary& vocabulary, const Lexicon& lexicon) {
  if (!lexicon.duplicate()) return {};
  const auto [first, second] = *lexicon.duplicate();
  return refuse(RefusalKind::Malformed, "tokenizer.ggml.tokens",
                fmt::format("tokens {} and {} are both \"{}\", expected each text once", first, second,
                            vocabulary.tokens[static_cast<size_t>(first)]));
}

Result<Token> need_unknown(const SpecialTokens& special) {
  if (special.unknown) return *special.unknown;
  return refuse(RefusalKind::Missing, "tokenizer.ggml.unknown_token_id",
                "this kind of tokenizer needs an unknown token, and the file names none");
}

Result<void> need_scores(const Vocabulary& vocabulary) {
  if (!vocabulary.scores.empty()) return {};
  return refuse(RefusalKind::Missing, "tokenizer.ggml.scores",
                fmt::format("a tokenizer of the kind \"{}\" needs a score for each of its {} tokens, the file has none",
                            vocabulary.model, vocabulary.tokens.size()),
                "Convert the model again with its tokenizer");
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const gguf::Checkpoint& checkpoint) {
  TW_TRY(Vocabulary vocabulary, read_vocabulary(checkpoint));
  return make(std::move(vocabulary));
}

Result<Tokenizer> Tokenizer::make(Vocabulary vocabulary) {
  TW_TRY(const KindRow* kind, find_kind(vocabulary.model));
  std::vector<std::string> notes;
  const PreTokenizerRow* row = nullptr;
  if (kind->kind == Kind::BytePair) {
    TW_TRY(row, choose_pretokenizer(vocabulary, notes));
  } else {
    vocabulary.pre.clear();
  }
  if (kind->kind == Kind::WordPiece) use_space_marks(vocabulary.tokens);
  TW_TRY_VOID(check_vocabulary(vocabulary));

  auto impl = std::make_unique<Impl>(std::move(vocabulary), *kind);
  const Vocabulary& words = impl->vocabulary;
  TW_TRY_VOID(check_distinct(words, impl->lexicon));
  impl->row = row;
  TW_TRY(impl->special, resolve_special_tokens(words, impl->lexicon, *kind, row));
  impl->special.notes.insert(impl->special.notes.begin(), notes.begin(), notes.end());
  impl->splitter.emplace(words, impl->special);
  const bool add_space = words.add_space_prefix.value_or(kind->add_space_prefix);
  const std::vector<TokenType>& types = impl->special.types;
  switch (kind->kind) {
    case Kind::SentencePiece:
      TW_TRY_VOID(need_scores(words));
      impl->model.emplace<SentencePiece>(words, impl->lexicon, types, impl->special.unknown);
      impl->add_space = add_space;
      break;
    case Kind::BytePair: {
      TW_TRY(BytePair model, BytePair::make(words, impl->lexicon, *row, impl->special.unknown));
      impl->model = std::move(model);
      break;
    }
    case Kind::WordPiece: {
      TW_TRY(const Token unknown, need_unknown(impl->special));
      const bool lowercase = words.lowercase.value_or(true);
      impl->model.emplace<WordPiece>(words, types,
                                     WordPiece::Options{lowercase, words.strip_accents.value_or(lowercase)}, unknown);
      impl->add_space = true;
      break;
    }
    case Kind::Unigram: {
      TW_TRY_VOID(need_scores(words));
      TW_TRY(const Token unknown, need_unknown(impl->special));
      const Unigram::Options options{add_space, words.remove_extra_whitespaces.value_or(false)};
      TW_TRY(Unigram model, Unigram::make(words, types, options, unknown));
      impl->model = std::move(model);
      impl->add_space = options.add_space_prefix || options.remove_extra_whitespaces;
      break;
    }
  }
  return Tokenizer(std::move(impl));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

void Tokenizer::Impl::encode_run(std::string_view run, bool first, std::vector<Token>& out) const {
  std::visit(
      [&](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, SentencePiece>)
          m.encode(run, add_space && first, out);
        else if constexpr (!std::is_same_v<M, std::monostate>)
          m.encode(run, out);
      },
      model);
}

std::vector<Token> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<Token> out;
  const SpecialTokens& special = impl_->special;
  const bool framed = impl_->kind->kind == Kind::WordPiece;  // [CLS] text [SEP], whatever the flags say
  if (options.add_special && special.bos && (special.add_bos || framed)) out.push_back(*special.bos);
  bool first = true;  // of the text, or after a special token
  for (const Fragment& fragment : impl_->splitter->split(text, options.parse_special)) {
    if (const Token* token = std::get_if<Token>(&fragment)) {
      out.push_back(*token);
      first = true;
    } else {
      impl_->encode_run(std::get<std::string_view>(fragment), first, out);
      first = false;
    }
  }
  if (!options.add_special) return out;
  if (framed && special.separator)
    out.push_back(*special.separator);
  else if (!framed && special.add_eos && special.eos)
    out.push_back(*special.eos);
  return out;
}

std::string Tokenizer::Impl::text_of(Token token) const {
  const std::string& text = vocabulary.tokens[static_cast<size_t>(token)];
  if (is_special(token)) return text;
  const bool alphabet = kind->kind == Kind::BytePair && (row->flags & kRawUtf8) == 0;
  if (alphabet) return alphabet_to_bytes(text);
  if (type(token) == TokenType::Byte || kind->kind == Kind::SentencePiece) {
    if (const std::optional<uint8_t> byte = byte_of_hex_token(text)) return std::string(1, static_cast<char>(*byte));
  }
  std::string out = text;
  replace_all(out, kSpaceMark, " ");
  return out;
}

std::string Tokenizer::piece(Token token, bool special) const {
  if (!impl_->known(token)) return {};
  const TokenType type = impl_->type(token);
  if (!special && (type == TokenType::Control || type == TokenType::Unknown)) return {};
  return impl_->text_of(token);
}

std::string Tokenizer::running_piece(Token token, bool& first, bool special) const {
  std::string text = piece(token, special);
  const bool apart = impl_->known(token) && impl_->is_special(token);
  const bool drop = first && !apart && impl_->add_space && !text.empty() && text.front() == ' ';
  if (apart || !text.empty()) first = apart;
  if (drop) text.erase(0, 1);
  return text;
}

std::string Tokenizer::decode(const std::vector<Token>& tokens, bool special) const {
  std::string out;
  bool first = true;
  for (const Token token : tokens) out.append(running_piece(token, first, special));
  return out;
}

Token Tokenizer::size() const { return static_cast<Token>(impl_->vocabulary.tokens.size()); }
std::string_view Tokenizer::kind() const { return impl_->kind->model; }
std::string_view Tokenizer::pre() const { return impl_->vocabulary.pre; }
std::optional<Token> Tokenizer::bos() const { return impl_->special.bos; }
std::optional<Token> Tokenizer::eos() const { return impl_->special.eos; }
bool Tokenizer::adds_bos() const { return impl_->special.add_bos && impl_->special.bos; }
bool Tokenizer::ends_generation(Token token) const {
  return impl_->known(token) && impl_->special.ends_generation[static_cast<size_t>(token)];
}
const std::vector<std::string>& Tokenizer::notes() const { return impl_->special.notes; }

}  // namespace tw::text
