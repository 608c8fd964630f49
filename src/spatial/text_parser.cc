#include "spatial/text_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tw::spatial {
namespace {

using graph::Token;

template <class Number>
bool parse_whole(std::string_view text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end;
}

// The parts of a word between the separators, each a number.
template <class Number>
bool parse_parts(std::string_view text, char between, size_t count, std::vector<Number>& values) {
  for (size_t i = 0; i < count; ++i) {
    const size_t end = i + 1 < count ? text.find(between) : text.size();
    Number value{};
    if (end == std::string_view::npos || !parse_whole(text.substr(0, end), value)) return false;
    values.push_back(value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

}  // namespace

Result<void> TokenReader::skip_lines() {
  while (token_.kind == Token::Kind::LineEnd) TW_TRY_VOID(advance());
  return {};
}

Result<void> TokenReader::mark(char c) {
  if (!token_.is(c)) return expected(fmt::format("\"{}\"", c));
  return advance();
}

Result<std::string> TokenReader::name(std::string_view what) {
  if (token_.kind != Token::Kind::Word && token_.kind != Token::Kind::Quoted) return expected(what);
  std::string text = graph::name_of(token_);
  TW_TRY_VOID(advance());
  return text;
}

Result<std::string_view> TokenReader::word(std::string_view what) {
  if (token_.kind != Token::Kind::Word) return expected(what);
  const std::string_view text = token_.text;
  TW_TRY_VOID(advance());
  return text;
}

Result<Precision> TokenReader::precision() {
  const std::optional<Precision> value = token_.kind == Token::Kind::Word ? parse_precision(token_.text) : std::nullopt;
  if (!value) return expected("a precision: i8, i16, i32, i64, fx16, fx32, bf16, f16 or f32");
  TW_TRY_VOID(advance());
  return *value;
}

Result<uint64_t> TokenReader::natural() {
  uint64_t value = 0;
  if (token_.kind != Token::Kind::Word || !parse_whole(token_.text, value)) return expected("a whole number");
  TW_TRY_VOID(advance());
  return value;
}

Result<uint32_t> TokenReader::natural32() {
  uint32_t value = 0;
  if (token_.kind != Token::Kind::Word || !parse_whole(token_.text, value))
    return expected("a whole number below 2^32");
  TW_TRY_VOID(advance());
  return value;
}

Result<int64_t> TokenReader::integer() {
  int64_t value = 0;
  if (token_.kind != Token::Kind::Word || !parse_whole(token_.text, value)) return expected("an integer");
  TW_TRY_VOID(advance());
  return value;
}

Result<double> TokenReader::real() {
  double value = 0;
  if (token_.kind != Token::Kind::Word || !parse_real(token_.text, value)) return expected("a number");
  TW_TRY_VOID(advance());
  return value;
}

Result<std::vector<uint64_t>> TokenReader::naturals(char between, size_t count, std::string_view what) {
  std::vector<uint64_t> values;
  if (token_.kind != Token::Kind::Word || !parse_parts(token_.text, between, count, values)) return expected(what);
  TW_TRY_VOID(advance());
  return values;
}

Result<std::vector<int64_t>> TokenReader::integers(char between, size_t count, std::string_view what) {
  std::vector<int64_t> values;
  if (token_.kind != Token::Kind::Word || !parse_parts(token_.text, between, count, values)) return expected(what);
  TW_TRY_VOID(advance());
  return values;
}

Result<void> TokenReader::fields(std::initializer_list<Field> fields) {
  std::vector<bool> seen(fields.size());
  const auto keys = [&] {
    std::string text = "one of";
    for (const Field& field : fields) text += fmt::format(" {}=", field.key);
    return text;
  };
  while (!at_line_end()) {
    const Token key = token_;
    size_t i = 0;
    const Field* found = nullptr;
    for (const Field& field : fields) {
      if (key.is_word(field.key)) {
        found = &field;
        break;
      }
      ++i;
    }
    if (!found) return expected(keys());
    if (seen[i]) return refuse_at(key, fmt::format("{}= a second time", key.text), "it once");
    seen[i] = true;
    TW_TRY_VOID(advance());
    TW_TRY_VOID(mark('='));
    TW_TRY_VOID(found->read());
  }
  size_t i = 0;
  for (const Field& field : fields)
    if (!seen[i++] && field.required) return expected(fmt::format("{}=", field.key));
  return {};
}

}  // namespace tw::spatial
