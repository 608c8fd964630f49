#pragma once

// Words, quoted names and punctuation of the text form.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tw::graph {

struct Token {
  enum class Kind : uint8_t { Word, Quoted, Mark, LineEnd, End };
  Kind kind = Kind::End;
  std::string_view text;  // as written: a quoted name without its quotes, escapes not resolved
  uint64_t line = 1;
  uint64_t column = 1;  // of its first byte

  [[nodiscard]] bool is(char mark) const { return kind == Kind::Mark && text[0] == mark; }
  [[nodiscard]] bool is_word(std::string_view word) const { return kind == Kind::Word && text == word; }
};

// Whether a byte may stand in a word. Names made of other bytes are quoted.
bool is_word_byte(char c);
// The name as a word, or quoted with escapes.
std::string name_text(std::string_view name);
// The name a token stands for. Requires a Word or Quoted.
std::string name_of(const Token& token);
// The token as messages show it.
std::string found_text(const Token& token);

// Gives one token at a time. A comment runs from # to the end of its line; between [ and ] a line end is a blank.
class Lexer {
 public:
  Lexer(std::string_view text, std::string_view label) : text_(text), label_(label) {}

  Result<Token> next();
  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] Refusal refuse_at(const Token& at, std::string_view found, std::string_view expected,
                                  std::string remedy = {}) const;

 private:
  void skip_blanks();
  [[nodiscard]] Token token(Token::Kind kind, size_t begin, size_t end) const;
  Result<Token> quoted();

  std::string_view text_;
  std::string label_;
  size_t at_ = 0;
  uint64_t line_ = 1;
  size_t line_begin_ = 0;
  bool in_brackets_ = false;
};

}  // namespace tw::graph
