#pragma once

// Unigram tokenizer (`tokenizer.ggml.model` = t5): of all ways to cut the normalized text into tokens, the one with the
// greatest sum of scores. A character that no token covers is the unknown token.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/charsmap.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace tw::text {

class Unigram {
 public:
  struct Options {
    bool add_space_prefix = false;
    bool remove_extra_whitespaces = false;  // a run of spaces is one, none at the end
  };
  // The vocabulary outlives the tokenizer. `types` are the vocabulary's after overrides, one a token.
  static Result<Unigram> make(const Vocabulary& vocabulary, const std::vector<TokenType>& types, Options options,
                              Token unknown);
  // `text` is a run without special tokens.
  void encode(std::string_view text, std::vector<Token>& out) const;

  [[nodiscard]] std::string normalize(std::string_view text) const;

 private:
  Unigram(const Vocabulary& vocabulary, Options options, Token unknown)
      : vocabulary_(&vocabulary), options_(options), unknown_(unknown) {}
  void read_tokens(const std::vector<TokenType>& types);
  [[nodiscard]] double score(Token token) const;

  const Vocabulary* vocabulary_;
  Options options_;
  Token unknown_;
  Charsmap charsmap_;
  Trie trie_;
  std::vector<bool> user_defined_;
  float unknown_score_ = 0;
};

}  // namespace tw::text
