#include "text/sentencepiece.h"

#include <string>

#include "text/pair_merge.h"
#include "text/utf8.h"

namespace tw::text {

SentencePiece::SentencePiece(const Vocabulary& vocabulary, const Lexicon& lexicon, const std::vector<TokenType>& types,
                             std::optional<Token> unknown)
    : vocabulary_(&vocabulary), lexicon_(&lexicon), types_(&types), bytes_() {
  for (size_t byte = 0; byte < bytes_.size(); ++byte) {
    std::optional<Token> token = lexicon.find(hex_token(static_cast<uint8_t>(byte)));
    if (!token) token = lexicon.find(std::string(1, static_cast<char>(byte)));
    if (!token) token = unknown;
    bytes_[byte] = token.value_or(kNoToken);
  }
}

// Control, unknown and byte tokens are no text: a prompt that spells "<s>" does not become the beginning of a text.
Token SentencePiece::find(std::string_view text) const {
  if (text.size() > lexicon_->longest()) return kNoToken;  // bounds the cost of a lookup
  const std::optional<Token> token = lexicon_->find(text);
  if (!token) return kNoToken;
  const TokenType type = (*types_)[static_cast<size_t>(*token)];
  const bool is_text = type != TokenType::Control && type != TokenType::Unknown && type != TokenType::Byte;
  return is_text ? *token : kNoToken;
}

void SentencePiece::encode(std::string_view text, bool space_prefix, std::vector<Token>& out) const {
  std::string escaped(space_prefix ? " " : "");
  escaped.append(text);
  replace_all(escaped, " ", kSpaceMark);
  const std::string_view all = escaped;

  std::vector<Symbol> symbols;
  symbols.reserve(all.size());
  for (size_t at = 0; at < all.size();) {
    const size_t bytes = decode_utf8(all, at).bytes;
    symbols.push_back({at, at + bytes, find(all.substr(at, bytes))});
    at += bytes;
  }
  merge_pairs<float>(symbols, [&](const Symbol& left, const Symbol& right) -> std::optional<Merge<float>> {
    const Token token = find(all.substr(left.begin, right.end - left.begin));
    if (token == kNoToken) return std::nullopt;
    const std::vector<float>& scores = vocabulary_->scores;
    return Merge<float>{scores.empty() ? 0.0f : -scores[static_cast<size_t>(token)], token};
  });
  for (const Symbol& symbol : symbols) {
    if (symbol.token != kNoToken) {
      out.push_back(symbol.token);
      continue;
    }
    for (size_t i = symbol.begin; i < symbol.end; ++i) {
      const Token token = bytes_[static_cast<uint8_t>(all[i])];
      if (token != kNoToken) out.push_back(token);
    }
  }
}

}  // namespace tw::text
