#include "text/special_splitter.h"

#include <algorithm>
#include <bitset>
#include <cstring>  // memmem, which is linear
#include <memory>

namespace tw::text {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

size_t find_in(std::string_view text, std::string_view what, size_t from) {
  const void* hit = memmem(text.data() + from, text.size() - from, what.data(), what.size());
  return hit == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(hit) - text.data());
}

// The pairs of neighbouring bytes in a text. Most special tokens hold a pair that the text does not, so that the text
// need not be searched for them.
class BytePairs {
 public:
  explicit BytePairs(std::string_view text) : seen_(std::make_unique<std::bitset<65536>>()) {
    for (size_t i = 0; i + 1 < text.size(); ++i) seen_->set(index(text, i));
  }
  [[nodiscard]] bool may_hold(std::string_view what) const {
    for (size_t i = 0; i + 1 < what.size(); ++i) {
      if (!seen_->test(index(what, i))) return false;
    }
    return true;
  }

 private:
  static size_t index(std::string_view text, size_t at) {
    return static_cast<size_t>(static_cast<uint8_t>(text[at])) << 8 | static_cast<uint8_t>(text[at + 1]);
  }
  std::unique_ptr<std::bitset<65536>> seen_;
};

}  // namespace

SpecialSplitter::SpecialSplitter(const Vocabulary& vocabulary, const SpecialTokens& special)
    : vocabulary_(&vocabulary), special_(&special) {
  for (size_t i = 0; i < special.types.size(); ++i) {
    const TokenType type = special.types[i];
    const bool found = type == TokenType::Control || type == TokenType::UserDefined || type == TokenType::Unknown;
    if (found && !vocabulary.tokens[i].empty()) tokens_.push_back(static_cast<Token>(i));
  }
  std::stable_sort(tokens_.begin(), tokens_.end(), [&](Token a, Token b) {
    return vocabulary.tokens[static_cast<size_t>(a)].size() > vocabulary.tokens[static_cast<size_t>(b)].size();
  });
}

std::vector<Fragment> SpecialSplitter::split(std::string_view text, bool parse_special) const {
  std::vector<Fragment> fragments;
  if (text.empty()) return fragments;
  fragments.emplace_back(text);
  const BytePairs pairs(text);
  for (const Token token : tokens_) {
    const size_t index = static_cast<size_t>(token);
    if (!parse_special && special_->types[index] != TokenType::UserDefined) continue;
    const std::string_view what = vocabulary_->tokens[index];
    if (what.size() <= text.size() && pairs.may_hold(what)) split_by(token, fragments);
  }
  return fragments;
}

void SpecialSplitter::split_by(Token token, std::vector<Fragment>& fragments) const {
  const size_t index = static_cast<size_t>(token);
  const std::string_view what = vocabulary_->tokens[index];
  std::vector<Fragment> out;
  for (const Fragment& fragment : fragments) {
    const std::string_view* run = std::get_if<std::string_view>(&fragment);
    if (run == nullptr) {
      out.push_back(fragment);
      continue;
    }
    std::string_view rest = *run;
    while (!rest.empty()) {
      const size_t hit = find_in(rest, what, 0);
      if (hit == std::string_view::npos) break;
      std::string_view before = rest.substr(0, hit);
      rest.remove_prefix(hit + what.size());
      while (special_->strips_left[index] && !before.empty() && is_space(before.back())) before.remove_suffix(1);
      while (special_->strips_right[index] && !rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
      if (!before.empty()) out.emplace_back(before);
      out.emplace_back(token);
    }
    if (!rest.empty()) out.emplace_back(rest);
  }
  fragments = std::move(out);
}

}  // namespace tw::text
