#include "text/unigram.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "text/utf8.h"

namespace tw::text {
namespace {

// How much less likely than the least likely token an unknown character is (SentencePiece, unigram_model).
constexpr float kUnknownPenalty = 10.0f;

struct Best {
  double score = -std::numeric_limits<double>::infinity();
  size_t from = 0;
  Token token = 0;
};

}  // namespace

Result<Unigram> Unigram::make(const Vocabulary& vocabulary, const std::vector<TokenType>& types, Options options,
                              Token unknown) {
  Unigram out(vocabulary, options, unknown);
  TW_TRY(out.charsmap_, Charsmap::parse(vocabulary.charsmap));
  out.read_tokens(types);
  return out;
}

void Unigram::read_tokens(const std::vector<TokenType>& types) {
  std::vector<std::pair<std::string_view, int32_t>> entries;
  std::optional<float> least;
  user_defined_.resize(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const TokenType type = types[i];
    user_defined_[i] = type == TokenType::UserDefined;
    if (type == TokenType::Normal) least = std::min(least.value_or(vocabulary_->scores[i]), vocabulary_->scores[i]);
    if (type == TokenType::Normal || type == TokenType::UserDefined || type == TokenType::Unused)
      entries.emplace_back(vocabulary_->tokens[i], static_cast<int32_t>(i));
  }
  unknown_score_ = least.value_or(0.0f) - kUnknownPenalty;
  trie_ = Trie(std::move(entries));
}

// A user-defined token costs nothing, so it is taken wherever it stands.
double Unigram::score(Token token) const {
  const size_t index = static_cast<size_t>(token);
  return user_defined_[index] ? 0.0 : static_cast<double>(vocabulary_->scores[index]);
}

std::string Unigram::normalize(std::string_view text) const {
  std::string out;
  out.reserve(text.size() * 2);
  bool in_word = false;
  bool prefixed = false;
  const auto put = [&](std::string_view part) {
    for (const char c : part) {
      if (c == ' ') {
        in_word = false;
        if (!options_.remove_extra_whitespaces) out.append(kSpaceMark);
        continue;
      }
      if (!in_word) {
        in_word = true;
        if (options_.remove_extra_whitespaces || (options_.add_space_prefix && !prefixed)) {
          out.append(kSpaceMark);
          prefixed = true;
        }
      }
      out.push_back(c);
    }
  };
  for (size_t at = 0; at < text.size();) {
    if (const auto replacement = charsmap_.match(text.substr(at))) {
      put(replacement->with);
      at += replacement->consumed;
      continue;
    }
    const Utf8Char next = decode_utf8(text, at);
    put(next.valid ? text.substr(at, next.bytes) : kReplacement);
    at += next.bytes;
  }
  return out;
}

void Unigram::encode(std::string_view text, std::vector<Token>& out) const {
  const std::string normalized = normalize(text);
  const size_t size = normalized.size();
  if (size == 0) return;
  std::vector<Best> best(size + 1);
  best[0].score = 0;
  const auto offer = [&best](size_t from, size_t to, Token token, double cost) {
    const double score = best[from].score + cost;
    if (score > best[to].score) best[to] = {score, from, token};
  };
  for (size_t at = 0; at < size;) {
    const size_t character = decode_utf8(normalized, at).bytes;
    bool covered = false;  // one token is this character
    const Trie::Node* node = &trie_.root();
    for (size_t i = at; i < size; ++i) {
      node = trie_.child(*node, static_cast<uint8_t>(normalized[i]));
      if (node == nullptr) break;
      if (node->value == Trie::kNone) continue;
      covered = covered || i + 1 - at == character;
      offer(at, i + 1, node->value, score(node->value));
    }
    if (!covered) offer(at, at + character, unknown_, static_cast<double>(unknown_score_));
    at += character;
  }
  const size_t before = out.size();
  for (size_t at = size; at > 0; at = best[at].from) {
    const Token token = best[at].token;
    const bool repeats = token == unknown_ && out.size() > before && out.back() == unknown_;
    if (!repeats) out.push_back(token);
  }
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
}

}  // namespace tw::text
