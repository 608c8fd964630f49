#include "text/lexicon.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace tw::text {
namespace {

uint32_t hash_of(std::string_view text) { return static_cast<uint32_t>(std::hash<std::string_view>()(text)); }

}  // namespace

Lexicon::Lexicon(const std::vector<std::string>& tokens)
    : tokens_(&tokens), slots_(std::bit_ceil(2 * tokens.size() + 2)) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty()) continue;
    const uint32_t hash = hash_of(tokens[i]);
    Slot& slot = slots_[place_of(tokens[i], hash)];
    if (slot.token == kFree)
      slot = {hash, static_cast<Token>(i)};
    else if (!duplicate_)
      duplicate_ = {slot.token, static_cast<Token>(i)};
    longest_ = std::max(longest_, tokens[i].size());
  }
}

// The slot that holds the text, or the free one where it belongs.
size_t Lexicon::place_of(std::string_view wanted, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.token == kFree || (slot.hash == hash && text(slot.token) == wanted)) return at;
  }
}

std::optional<Token> Lexicon::find(std::string_view wanted) const {
  const Slot& slot = slots_[place_of(wanted, hash_of(wanted))];
  return slot.token == kFree ? std::nullopt : std::optional<Token>(slot.token);
}

std::optional<Token> Lexicon::find_near(std::string_view wanted, Token guess) const {
  const bool known = guess >= 0 && static_cast<size_t>(guess) < tokens_->size();
  if (known && !wanted.empty() && text(guess) == wanted && !duplicate_) return guess;
  return find(wanted);
}

}  // namespace tw::text
