#include "text/byte_pair.h"

#include <fmt/format.h>

#include <string>

#include "text/byte_alphabet.h"
#include "text/pair_merge.h"
#include "text/utf8.h"

namespace tw::text {
namespace {}  // namespace

Result<BytePair> BytePair::make(const Vocabulary& vocabulary, const Lexicon& lexicon, const PreTokenizerRow& row,
                                std::optional<Token> unknown) {
  BytePair out(lexicon, row);
  TW_TRY_VOID(out.read_merges(vocabulary.merges));
  out.find_bytes(unknown);
  return out;
}

Result<void> BytePair::read_merges(const std::vector<std::string>& merges) {
  if (merges.empty())
    return refuse(RefusalKind::Missing, kMergesKey, "the vocabulary has 0 merges, expected at least 1",
                  "Convert the model again with its tokenizer's merges");
  if (merges.size() > UINT32_MAX)
    return refuse(RefusalKind::TooLarge, kMergesKey, fmt::format("has {} merges, at most 2^32 - 1 fit", merges.size()));
  rules_ = MergeTable(merges.size());
  Token made = kNoToken;
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const size_t space = merge.find(' ', 1);  // the left part may begin with a space
    if (space == std::string_view::npos || space + 1 == merge.size())
      return refuse(RefusalKind::Malformed, kMergesKey,
                    fmt::format("entry {} is \"{}\", expected two texts with a space between", rank, merge));
    joined.assign(merge.substr(0, space)).append(merge.substr(space + 1));
    const std::string_view parts[] = {merge.substr(0, space), merge.substr(space + 1), joined};
    Token tokens[3] = {};
    for (size_t i = 0; i < 3; ++i) {
      // Most vocabularies list what merges make in the order of the merges.
      const std::optional<Token> token =
          i == 2 && made != kNoToken ? lexicon_->find_near(parts[i], made + 1) : lexicon_->find(parts[i]);
      if (!token)
        return refuse(RefusalKind::Malformed, kMergesKey,
                      fmt::format("entry {} is \"{}\", but \"{}\" is no token", rank, merge, parts[i]),
                      "Convert the model again; its merges and tokens do not belong together");
      tokens[i] = *token;
    }
    made = tokens[2];
    rules_.add({tokens[0], tokens[1], static_cast<uint32_t>(rank), made});
  }
  return {};
}

void BytePair::find_bytes(std::optional<Token> unknown) {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>(i);
    std::string text;
    if (raw())
      text = hex_token(byte);
    else
      append_utf8(text, code_of_byte(byte));
    std::optional<Token> token = lexicon_->find(text);
    if (!token) token = unknown;
    bytes_[i] = token.value_or(kNoToken);
  }
}

std::optional<Token> BytePair::whole_word(std::string_view word) const {
  const bool lines = (row_->flags & kLineRuns) != 0 && word.find_first_not_of('\n') == std::string_view::npos;
  if ((row_->flags & kIgnoreMerges) == 0 && !lines) return std::nullopt;
  if (word.size() > lexicon_->longest()) return std::nullopt;
  return lexicon_->find(raw() ? std::string(word) : bytes_to_alphabet(word));
}

void BytePair::encode(std::string_view text, std::vector<Token>& out) const {
  if (!raw()) {
    for (const std::string_view word : splitter_.split(text)) encode_word(word, out);
    return;
  }
  std::string escaped(text);
  replace_all(escaped, " ", kSpaceMark);
  for (const std::string_view word : splitter_.split(escaped)) encode_word(word, out);
}

void BytePair::encode_word(std::string_view word, std::vector<Token>& out) const {
  if (const std::optional<Token> whole = whole_word(word)) {
    out.push_back(*whole);
    return;
  }
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (size_t at = 0; at < word.size();) {
    const size_t bytes = raw() ? decode_utf8(word, at).bytes : 1;
    const Token token =
        raw() ? lexicon_->find(word.substr(at, bytes)).value_or(kNoToken) : bytes_[static_cast<uint8_t>(word[at])];
    symbols.push_back({at, at + bytes, token});
    at += bytes;
  }
  merge_pairs<uint32_t>(symbols, [&](const Symbol& left, const Symbol& right) -> std::optional<Merge<uint32_t>> {
    const MergeRule* rule = rules_.find(left.token, right.token);
    if (rule == nullptr) return std::nullopt;
    return Merge<uint32_t>{rule->rank, rule->made};
  });
  for (const Symbol& symbol : symbols) {
    if (symbol.token != kNoToken) {
      out.push_back(symbol.token);
      continue;
    }
    for (size_t i = symbol.begin; raw() && i < symbol.end; ++i) {
      const Token token = bytes_[static_cast<uint8_t>(word[i])];
      if (token != kNoToken) out.push_back(token);
    }
  }
}

}  // namespace tw::text
