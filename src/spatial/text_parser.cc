#include "spatial/text_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/near_name.h"

namespace tw::spatial {

using graph::Token;

std::vector<std::string_view> split(std::string_view word, char between) {
  std::vector<std::string_view> parts;
  for (size_t end = word.find(between); end != std::string_view::npos; end = word.find(between)) {
    parts.push_back(word.substr(0, end));
    word.remove_prefix(end + 1);
  }
  parts.push_back(word);
  return parts;
}

Result<void> TokenReader::skip_lines() {
  while (token_.kind == Token::Kind::LineEnd) TW_TRY_VOID(advance());
  return {};
}

Result<void> TokenReader::mark(char c) {
  if (!token_.is(c)) return expected(fmt::format("\"{}\"", c));
  return advance();
}

Result<std::string> TokenReader::name(std::string_view what) {
  if (!at_name()) return expected(what);
  std::string text = graph::name_of(token_);
  TW_TRY_VOID(advance());
  return text;
}

Result<uint32_t> TokenReader::number(std::string_view what) {
  uint32_t number = 0;
  if (!at_number() || !parse_number(token_.text.substr(1), number)) return expected(what);
  TW_TRY_VOID(advance());
  return number;
}

// ---- references ----

template <class Id>
Result<Id> TokenReader::reference(std::string_view what, const NameTable& names, Find<Id> find, Known known) {
  if (at_number()) {
    TW_TRY(const uint32_t id, number(fmt::format("{}, or @ and its number", what)));
    return Id{id};
  }
  if (!at_name()) return expected(what);
  const std::string name = graph::name_of(token_);
  if (const std::optional<Id> found = (names.*find)(name)) {
    TW_TRY_VOID(advance());
    return *found;
  }
  const std::optional<std::string_view> near = near_name(name, (names.*known)());
  return expected(fmt::format("{} that an earlier line declares", what),
                  near ? fmt::format("Did you mean {}?", *near) : "");
}

Result<BufferId> TokenReader::buffer(const NameTable& names) {
  return reference("a buffer", names, &NameTable::buffer, &NameTable::buffers);
}
Result<TensorId> TokenReader::source(const NameTable& names) {
  return reference("a tensor", names, &NameTable::source, &NameTable::tensors);
}
Result<TensorId> TokenReader::result(const NameTable& names) {
  return reference("a tensor", names, &NameTable::result, &NameTable::tensors);
}

// ---- fields ----

Result<void> TokenReader::fields(std::initializer_list<Field> fields) {
  std::vector<bool> seen(fields.size());
  while (!at_line_end()) {
    const Token key = token_;
    const auto* const field =
        std::find_if(fields.begin(), fields.end(), [&](const Field& each) { return key.is_word(each.key); });
    if (field == fields.end()) {
      std::string keys = "one of";
      for (const Field& each : fields) keys += fmt::format(" {}=", each.key);
      return expected(keys);
    }
    const auto at = static_cast<size_t>(field - fields.begin());
    if (seen[at]) return lexer_.refuse_at(key, fmt::format("{}= a second time", key.text), "it once");
    seen[at] = true;
    TW_TRY_VOID(advance());
    TW_TRY_VOID(mark('='));
    TW_TRY_VOID(field->read());
  }
  for (size_t i = 0; i < fields.size(); ++i)
    if (const Field& field = fields.begin()[i]; field.required && !seen[i])
      return expected(fmt::format("{}=", field.key));
  return {};
}

}  // namespace tw::spatial
