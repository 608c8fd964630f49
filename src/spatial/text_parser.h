#pragma once

// What the parts of the text form's parser share: one token ahead, values, references, and statements made of KEY=VALUE
// fields.

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/parse_number.h"
#include "base/result.h"
#include "graph/lexer.h"
#include "spatial/name_table.h"
#include "spatial/names.h"
#include "spatial/real_text.h"

namespace tw::spatial {

// ---- values that are one word ----

template <class T>
bool parse_value(std::string_view word, T& value) {
  std::optional<T> found;
  if constexpr (std::is_same_v<T, double>)
    return parse_real(word, value);
  else if constexpr (std::is_same_v<T, Precision>)
    found = parse_precision(word);
  else if constexpr (std::is_enum_v<T>)
    found = enum_of_name<T>(word);
  else
    return parse_number(word, value);
  if (found) value = *found;
  return found.has_value();
}

// What such a value may be, for messages.
template <class T>
std::string value_kind() {
  if constexpr (std::is_same_v<T, Precision>)
    return "a precision: i8, i16, i32, i64, fx16, fx32, bf16, f16 or f32";
  else if constexpr (std::is_enum_v<T>)
    return enum_choices<T>();
  else if constexpr (std::is_same_v<T, double>)
    return "a number";
  else if constexpr (std::is_same_v<T, uint32_t>)
    return "a whole number below 2^32";
  else
    return std::is_signed_v<T> ? "an integer" : "a whole number";
}

// The parts of a word between the separators.
std::vector<std::string_view> split(std::string_view word, char between);

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
  [[nodiscard]] bool at_word() const { return token_.kind == graph::Token::Kind::Word; }
  [[nodiscard]] bool at_name() const { return at_word() || token_.kind == graph::Token::Kind::Quoted; }
  [[nodiscard]] bool at_number() const { return at_word() && token_.text.starts_with('@'); }

  [[nodiscard]] Refusal expected(std::string_view what, std::string remedy = {}) const {
    return lexer_.refuse_at(token_, graph::found_text(token_), what, std::move(remedy));
  }

  Result<void> skip_lines();                        // those that are empty
  Result<void> mark(char c);                        // the mark, taken
  Result<std::string> name(std::string_view what);  // a word or a quoted name
  Result<uint32_t> number(std::string_view what);   // @3, the number of an operand, a tensor or a buffer
  template <class T>
  Result<T> value() {
    T value{};
    if (!at_word() || !parse_value(token_.text, value)) return expected(value_kind<T>());
    TW_TRY_VOID(advance());
    return value;
  }
  // "3x4" or "3:4" (by `between`) as so many numbers; `form` is how messages write it.
  template <class Number, size_t count>
  Result<std::array<Number, count>> numbers(char between, std::string_view form) {
    std::array<Number, count> values{};
    const std::vector<std::string_view> parts =
        at_word() ? split(token_.text, between) : std::vector<std::string_view>{};
    bool good = parts.size() == count;
    for (size_t i = 0; good && i < count; ++i) good = parse_number(parts[i], values[i]);
    if (!good) return expected(form);
    TW_TRY_VOID(advance());
    return values;
  }
  // (ITEM, ITEM, ...), each read by `read`.
  template <class Read>
  Result<void> list(Read read) {
    TW_TRY_VOID(mark('('));
    for (bool first = true; !token_.is(')'); first = false) {
      if (!first) TW_TRY_VOID(mark(','));
      TW_TRY_VOID(read());
    }
    return mark(')');
  }

  // ---- references: a name that an earlier line declares, or @ and a number ----

  Result<BufferId> buffer(const NameTable& names);
  Result<TensorId> source(const NameTable& names);
  Result<TensorId> result(const NameTable& names);

  // ---- fields ----

  // KEY=VALUE until the line ends, in any order, each at most once. `read` is called behind the = and takes the value.
  using Read = std::function<Result<void>()>;
  struct Field {
    std::string_view key;
    bool required = false;
    Read read;
  };
  Result<void> fields(std::initializer_list<Field> fields);

  // Readers of fields; the variable must outlive them.
  template <class T, class F>
  static Read into(T& variable, F read) {
    return [&variable, read]() -> Result<void> {
      TW_TRY(variable, read());
      return {};
    };
  }
  template <class T>
  Read into(T& variable) {
    return into(variable, [this] { return value<T>(); });
  }
  template <class Number>
  Read into_pair(Number& first, Number& second, char between, std::string_view form) {
    return [=, this, &first, &second]() -> Result<void> {
      TW_TRY(const auto pair, (numbers<Number, 2>(between, form)));
      first = pair[0];
      second = pair[1];
      return {};
    };
  }

 private:
  template <class Id>
  using Find = std::optional<Id> (NameTable::*)(std::string_view) const;
  using Known = std::vector<std::string_view> (NameTable::*)() const;
  template <class Id>
  Result<Id> reference(std::string_view what, const NameTable& names, Find<Id> find, Known known);

  graph::Lexer lexer_;
  graph::Token token_;
};

// ---- the parts ----

// A body in prefix form, up to its last token. Nests to any depth.
Result<Expr> read_expr(TokenReader& in);

bool is_stage_keyword(const graph::Token& token);
// A stage's line from its keyword on.
Result<Stage> read_stage(TokenReader& in, const NameTable& names);

}  // namespace tw::spatial
