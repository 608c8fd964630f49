#include "text/word_piece.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "text/utf8.h"

namespace tw::text {
namespace {

bool is_white_space(uint32_t code) {
  static constexpr std::array<std::pair<uint32_t, uint32_t>, 10> kRanges = {{{0x09, 0x0D},
                                                                             {0x20, 0x20},
                                                                             {0x85, 0x85},
                                                                             {0xA0, 0xA0},
                                                                             {0x1680, 0x1680},
                                                                             {0x2000, 0x200A},
                                                                             {0x2028, 0x2029},
                                                                             {0x202F, 0x202F},
                                                                             {0x205F, 0x205F},
                                                                             {0x3000, 0x3000}}};
  return std::any_of(kRanges.begin(), kRanges.end(),
                     [code](const auto& range) { return code >= range.first && code <= range.second; });
}

// The blocks that the reference implementation of BERT calls Chinese; its extension E begins at 2B920.
bool is_han(uint32_t code) {
  static constexpr std::array<std::pair<uint32_t, uint32_t>, 8> kRanges = {{{0x4E00, 0x9FFF},
                                                                            {0x3400, 0x4DBF},
                                                                            {0x20000, 0x2A6DF},
                                                                            {0x2A700, 0x2B73F},
                                                                            {0x2B740, 0x2B81F},
                                                                            {0x2B920, 0x2CEAF},
                                                                            {0xF900, 0xFAFF},
                                                                            {0x2F800, 0x2FA1F}}};
  return std::any_of(kRanges.begin(), kRanges.end(),
                     [code](const auto& range) { return code >= range.first && code <= range.second; });
}

bool is_other(utf8proc_category_t category) {  // general category C
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CN ||
         category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS;
}

bool is_punctuation(uint32_t code, utf8proc_category_t category) {
  if (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO) return true;
  return code < 0x7F && category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO;
}

// Canonical decomposition of one character. Marks may come out of order, which is of no account: they are dropped.
std::vector<uint32_t> decomposed(uint32_t code) {
  std::array<utf8proc_int32_t, 16> buffer{};
  int last_class = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), buffer.data(), buffer.size(),
                              static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &last_class);
  if (count <= 0 || count > static_cast<utf8proc_ssize_t>(buffer.size())) return {code};
  std::vector<uint32_t> out;
  for (utf8proc_ssize_t i = 0; i < count; ++i) out.push_back(static_cast<uint32_t>(buffer[static_cast<size_t>(i)]));
  return out;
}

class WordList {
 public:
  explicit WordList(WordPiece::Options options) : options_(options) {}

  void add(uint32_t code) {
    const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
    if (is_white_space(code)) {
      finish();
      return;
    }
    if (code == 0 || code == kReplacementCode || is_other(category)) return;
    if (options_.strip_accents && category == UTF8PROC_CATEGORY_MN) return;
    const bool alone = is_punctuation(code, category) || is_han(code);
    if (alone) finish();
    append_utf8(word_, options_.lowercase ? static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)))
                                          : code);
    if (alone) finish();
  }

  std::vector<std::string> take() {
    finish();
    return std::move(words_);
  }

 private:
  void finish() {
    if (!word_.empty()) words_.push_back(std::move(word_));
    word_.clear();
  }

  WordPiece::Options options_;
  std::string word_;
  std::vector<std::string> words_;
};

Trie trie_of_texts(const Vocabulary& vocabulary, const std::vector<TokenType>& types) {
  std::vector<std::pair<std::string_view, int32_t>> entries;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (types[i] != TokenType::Control && types[i] != TokenType::Unknown)
      entries.emplace_back(vocabulary.tokens[i], static_cast<int32_t>(i));
  }
  return Trie(std::move(entries));
}

}  // namespace

std::vector<std::string> normalized_words(std::string_view text, WordPiece::Options options) {
  WordList words(options);
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    at += next.bytes;
    if (options.strip_accents) {
      for (const uint32_t part : decomposed(next.code)) words.add(part);
    } else {
      words.add(next.code);
    }
  }
  return words.take();
}

void use_space_marks(std::vector<std::string>& tokens) {
  const auto begins = [](const std::string& text, std::string_view with) {
    return text.compare(0, with.size(), with) == 0;
  };
  const bool marked = std::any_of(tokens.begin(), tokens.end(), [&](const auto& t) { return begins(t, kSpaceMark); });
  const bool hashed =
      std::any_of(tokens.begin(), tokens.end(), [&](const auto& t) { return t.size() > 2 && begins(t, "##"); });
  if (marked || !hashed) return;
  for (std::string& token : tokens) {
    if (token.empty() || (token.front() == '[' && token.back() == ']' && token.size() > 2)) continue;
    if (token.size() > 2 && begins(token, "##"))
      token.erase(0, 2);
    else
      token.insert(0, kSpaceMark);
  }
}

WordPiece::WordPiece(const Vocabulary& vocabulary, const std::vector<TokenType>& types, Options options, Token unknown)
    : trie_(trie_of_texts(vocabulary, types)), options_(options), unknown_(unknown) {}

void WordPiece::encode(std::string_view text, std::vector<Token>& out) const {
  for (const std::string& word : normalized_words(text, options_)) encode_word(std::string(kSpaceMark) + word, out);
}

void WordPiece::encode_word(std::string_view word, std::vector<Token>& out) const {
  const size_t before = out.size();
  for (size_t at = 0; at < word.size();) {
    Token longest = Trie::kNone;
    size_t end = at;
    const Trie::Node* node = &trie_.root();
    for (size_t i = at; i < word.size(); ++i) {
      node = trie_.child(*node, static_cast<uint8_t>(word[i]));
      if (node == nullptr) break;
      if (node->value == Trie::kNone) continue;
      longest = node->value;
      end = i + 1;
    }
    if (longest == Trie::kNone) {
      out.resize(before);
      out.push_back(unknown_);
      return;
    }
    out.push_back(longest);
    at = end;
  }
}

}  // namespace tw::text
