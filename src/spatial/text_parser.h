#pragma once

// What the parts of the text form's parser share: one token ahead, numbers, and statements made of KEY=VALUE fields.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/lexer.h"
#include "spatial/expr.h"
#include "spatial/words.h"

namespace tw::spatial {

class TokenReader {
 public:
  TokenReader(std::string_view text, std::string_view label) : lexer_(text, label) {}

  // Must be called once before anything is read.
  Result<void> start() { return advance(); }
  [[nodiscard]] const graph::Token& peek() const { return token_; }
  Result<void> advance() {
    TW_TRY(token_, lexer_.next());
    return {};
  }
  [[nodiscard]] bool at_end() const { return token_.kind == graph::Token::Kind::End; }
  [[nodiscard]] bool at_line_end() const { return at_end() || token_.kind == graph::Token::Kind::LineEnd; }

  [[nodiscard]] Refusal expected(std::string_view what, std::string remedy = {}) const {
    return lexer_.refuse_at(token_, graph::found_text(token_), what, std::move(remedy));
  }
  [[nodiscard]] Refusal refuse_at(const graph::Token& at, std::string_view found, std::string_view what) const {
    return lexer_.refuse_at(at, found, what);
  }

  Result<void> skip_lines();                        // those that are empty
  Result<void> mark(char c);                        // the mark, taken
  Result<std::string> name(std::string_view what);  // a word or a quoted name
  Result<std::string_view> word(std::string_view what);
  template <class E>
  Result<E> one_of() {
    const std::optional<E> value = token_.kind == graph::Token::Kind::Word ? of_word<E>(token_.text) : std::nullopt;
    if (!value) return expected(words<E>());
    TW_TRY_VOID(advance());
    return *value;
  }
  Result<Precision> precision();
  Result<uint64_t> natural();
  Result<uint32_t> natural32();
  Result<int64_t> integer();
  Result<double> real();
  // "3x4" or "3:4" (by `between`) as so many numbers; `what` says the form.
  Result<std::vector<uint64_t>> naturals(char between, size_t count, std::string_view what);
  Result<std::vector<int64_t>> integers(char between, size_t count, std::string_view what);

  // KEY=VALUE until the line ends, in any order, each at most once. `read` is called behind the = and takes the value.
  struct Field {
    std::string_view key;
    bool required = false;
    std::function<Result<void>()> read;
  };
  Result<void> fields(std::initializer_list<Field> fields);

 private:
  graph::Lexer lexer_;
  graph::Token token_;
};

// A body in prefix form, up to its last token. Nests to any depth.
Result<Expr> read_expr(TokenReader& in);

}  // namespace tw::spatial
