#pragma once

// Small vocabularies for tests and the fuzz target.

#include <string>
#include <utility>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace tw::text::sample {

inline Token add(Vocabulary& v, std::string text, float score, TokenType type = TokenType::Normal) {
  v.tokens.push_back(std::move(text));
  v.scores.push_back(score);
  v.types.push_back(type);
  return static_cast<Token>(v.tokens.size() - 1);
}

// Byte-level: 0 to 255 are the bytes in order, then the results of `merges`, then <|end|> (user-defined) and
// <|im_end|> (control, EOS).
inline Vocabulary byte_level(const std::vector<std::pair<std::string, std::string>>& merges,
                             std::string pre = "gpt-2") {
  Vocabulary v;
  v.model = "gpt2";
  v.pre = std::move(pre);
  for (int byte = 0; byte < 256; ++byte) add(v, bytes_to_alphabet(std::string(1, static_cast<char>(byte))), 0);
  for (const auto& [left, right] : merges) {
    v.merges.push_back(bytes_to_alphabet(left) + " " + bytes_to_alphabet(right));
    add(v, bytes_to_alphabet(left + right), 0);
  }
  add(v, "<tag>", 0, TokenType::UserDefined);
  v.eos = static_cast<uint64_t>(add(v, "<|im_end|>", 0, TokenType::Control));
  return v;
}

inline std::vector<std::pair<std::string, std::string>> english_merges() {
  return {{"h", "e"},     {"l", "l"}, {"he", "ll"}, {"hell", "o"},
          {" ", "hello"}, {"a", "a"}, {" ", " "},   {"\xC3", "\xA9"}};
}

// SentencePiece: <unk>, <s>, </s>, the 256 byte tokens, then texts with their scores.
inline Vocabulary sentence_piece(const std::vector<std::pair<std::string, float>>& texts) {
  Vocabulary v;
  v.model = "llama";
  add(v, "<unk>", 0, TokenType::Unknown);
  v.bos = static_cast<uint64_t>(add(v, "<s>", 0, TokenType::Control));
  v.eos = static_cast<uint64_t>(add(v, "</s>", 0, TokenType::Control));
  for (int byte = 0; byte < 256; ++byte) add(v, hex_token(static_cast<uint8_t>(byte)), 0, TokenType::Byte);
  for (const auto& [text, score] : texts) add(v, text, score);
  return v;
}

// `text` with U+2581 for each '_'.
inline std::string marked(std::string text) {
  replace_all(text, "_", kSpaceMark);
  return text;
}

inline std::vector<std::pair<std::string, float>> english_pieces() {
  return {{marked("_"), -1}, {"a", -2},  {"b", -3},  {"c", -4},  {"<", -5},          {"s", -5},
          {">", -5},         {"ab", -6}, {"bc", -5}, {"s>", -7}, {marked("_a"), -8}, {marked("_ab"), -9}};
}

// WordPiece: [PAD], [UNK], [CLS], [SEP], then texts.
inline Vocabulary word_piece(const std::vector<std::string>& texts) {
  Vocabulary v;
  v.model = "bert";
  add(v, "[PAD]", 0, TokenType::Control);
  v.unknown = static_cast<uint64_t>(add(v, "[UNK]", 0, TokenType::Unknown));
  v.bos = static_cast<uint64_t>(add(v, "[CLS]", 0, TokenType::Control));
  v.separator = static_cast<uint64_t>(add(v, "[SEP]", 0, TokenType::Control));
  for (const std::string& text : texts) add(v, text, 0);
  return v;
}

// Unigram: <pad>, </s>, <unk>, then texts with their scores.
inline Vocabulary unigram(const std::vector<std::pair<std::string, float>>& texts) {
  Vocabulary v;
  v.model = "t5";
  add(v, "<pad>", 0, TokenType::Control);
  v.eos = static_cast<uint64_t>(add(v, "</s>", 0, TokenType::Control));
  v.unknown = static_cast<uint64_t>(add(v, "<unk>", 0, TokenType::Unknown));
  for (const auto& [text, score] : texts) add(v, text, score);
  v.add_space_prefix = true;
  return v;
}

}  // namespace tw::text::sample
