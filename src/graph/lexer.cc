#include "graph/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tw::graph {
namespace {

constexpr std::string_view kMarks = "=(),[];";

bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (is_plain(c))
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

// The byte that two hexadecimal digits stand for, or nothing.
std::optional<char> hex_byte(std::string_view digits) {
  uint8_t value = 0;
  if (digits.size() != 2) return std::nullopt;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, value, 16);
  if (error != std::errc{} || end != digits.data() + 2) return std::nullopt;
  return static_cast<char>(value);
}

}  // namespace

bool is_word_byte(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || std::string_view("_.-+:/@").find(c) != std::string_view::npos;
}

std::string name_text(std::string_view name) {
  if (!name.empty() && std::ranges::all_of(name, is_word_byte)) return std::string(name);
  return fmt::format("\"{}\"", escaped(name));
}

std::string name_of(const Token& token) {
  if (token.kind == Token::Kind::Word) return std::string(token.text);
  std::string name;
  for (size_t i = 0; i < token.text.size(); ++i) {
    if (token.text[i] != '\\') {
      name += token.text[i];
    } else if (token.text[i + 1] == 'x') {
      name += *hex_byte(token.text.substr(i + 2, 2));
      i += 3;
    } else {
      name += token.text[++i];
    }
  }
  return name;
}

std::string found_text(const Token& token) {
  constexpr size_t kShown = 48;
  if (token.kind == Token::Kind::End) return "the end of the text";
  if (token.kind == Token::Kind::LineEnd) return "the end of the line";
  const bool cut = token.text.size() > kShown;
  return fmt::format("\"{}{}\"", escaped(token.text.substr(0, kShown)), cut ? "..." : "");
}

Refusal Lexer::refuse_at(const Token& at, std::string_view found, std::string_view expected, std::string remedy) const {
  return refuse(RefusalKind::Malformed, label_,
                fmt::format("line {}, column {}: found {}, expected {}", at.line, at.column, found, expected),
                std::move(remedy));
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\n' && in_brackets_) {
      line_begin_ = ++at_;
      ++line_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

Token Lexer::token(Token::Kind kind, size_t begin, size_t end) const {
  return {kind, text_.substr(begin, end - begin), line_, begin - line_begin_ + 1};
}

Result<Token> Lexer::quoted() {
  const Token open = token(Token::Kind::Quoted, at_, at_ + 1);
  const size_t begin = at_ + 1;
  size_t end = begin;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
    if (text_[end] != '\\') {
      ++end;
      continue;
    }
    const char escape = end + 1 < text_.size() ? text_[end + 1] : '\0';
    const bool byte = escape == 'x' && hex_byte(text_.substr(end + 2, 2));
    if (!byte && escape != '"' && escape != '\\')
      return refuse_at(token(Token::Kind::Quoted, end, end + 1), "an escape of another kind",
                       "\\\", \\\\ or \\x and two hexadecimal digits");
    end += byte ? 4 : 2;
  }
  if (end == text_.size() || text_[end] != '"')
    return refuse_at(open, "a quote that is not closed", "one on the same line");
  Token name = token(Token::Kind::Quoted, begin, end);
  name.column = open.column;
  at_ = end + 1;
  return name;
}

Result<Token> Lexer::next() {
  skip_blanks();
  if (at_ >= text_.size()) return token(Token::Kind::End, text_.size(), text_.size());
  const char c = text_[at_];
  if (c == '\n') {
    const Token end = token(Token::Kind::LineEnd, at_, at_ + 1);
    line_begin_ = ++at_;
    ++line_;
    return end;
  }
  if (c == '"') return quoted();
  if (kMarks.find(c) != std::string_view::npos) {
    if (c == '[' || c == ']') in_brackets_ = c == '[';
    ++at_;
    return token(Token::Kind::Mark, at_ - 1, at_);
  }
  if (!is_word_byte(c)) {
    const Token odd = token(Token::Kind::Mark, at_, at_ + 1);
    return refuse_at(odd, found_text(odd), "a word, a quoted name or one of = ( ) , [ ] ;");
  }
  const size_t begin = at_;
  while (at_ < text_.size() && is_word_byte(text_[at_])) ++at_;
  return token(Token::Kind::Word, begin, at_);
}

}  // namespace tw::graph
