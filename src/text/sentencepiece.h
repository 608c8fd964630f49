#pragma once

// SentencePiece-style tokenizer (`tokenizer.ggml.model` = llama): characters are merged to tokens, best score first;
// what is no token is spelled in byte tokens <0xXX>. A space is written U+2581.

#include <array>
#include <string_view>
#include <vector>

#include "text/lexicon.h"
#include "text/vocabulary.h"

namespace tw::text {

class SentencePiece {
 public:
  // The vocabulary and the lexicon outlive the tokenizer. `types` are the vocabulary's after overrides, one a token.
  SentencePiece(const Vocabulary& vocabulary, const Lexicon& lexicon, const std::vector<TokenType>& types,
                std::optional<Token> unknown);
  // `text` is a run without special tokens, spaces still spaces.
  void encode(std::string_view text, bool space_prefix, std::vector<Token>& out) const;

 private:
  [[nodiscard]] Token find(std::string_view text) const;

  const Vocabulary* vocabulary_;
  const Lexicon* lexicon_;
  const std::vector<TokenType>* types_;
  std::array<Token, 256> bytes_;  // the token of each byte: <0xXX>, else the byte itself, else unknown
};

}  // namespace tw::text
