#pragma once

// Token by text: a table that is filled and asked hundreds of thousands of times while a tokenizer is made.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace tw::text {

// The texts are kept alive by the vocabulary. An empty text names no token, and of equal texts the first counts.
class Lexicon {
 public:
  // Requires at most as many tokens as a Token can count.
  explicit Lexicon(const std::vector<std::string>& tokens);

  [[nodiscard]] std::optional<Token> find(std::string_view text) const;
  // The same, looking first whether `guess` is the one.
  [[nodiscard]] std::optional<Token> find_near(std::string_view text, Token guess) const;
  [[nodiscard]] size_t longest() const { return longest_; }  // bytes of the longest token
  // The first token whose text an earlier one has, after that one.
  [[nodiscard]] const std::optional<std::pair<Token, Token>>& duplicate() const { return duplicate_; }

 private:
  static constexpr Token kFree = -1;
  // A text lies at its hash or in the next free slot after it; at most half of the slots are taken.
  struct Slot {
    uint32_t hash = 0;
    Token token = kFree;
  };
  [[nodiscard]] size_t place_of(std::string_view text, uint32_t hash) const;
  [[nodiscard]] std::string_view text(Token token) const { return (*tokens_)[static_cast<size_t>(token)]; }

  const std::vector<std::string>* tokens_;
  std::vector<Slot> slots_;  // a power of two of them
  size_t longest_ = 0;
  std::optional<std::pair<Token, Token>> duplicate_;
};

}  // namespace tw::text
