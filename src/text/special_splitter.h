#pragma once

// Finds the special tokens that are spelled out in a text. The longest texts are looked for first, everywhere, then the
// shorter ones in what is left.

#include <string_view>
#include <variant>
#include <vector>

#include "text/special_tokens.h"
#include "text/vocabulary.h"

namespace tw::text {

// A run of text, or a special token that stood in it.
using Fragment = std::variant<std::string_view, Token>;

class SpecialSplitter {
 public:
  // Both outlive the splitter.
  SpecialSplitter(const Vocabulary& vocabulary, const SpecialTokens& special);
  // User-defined tokens are always found, control and unknown ones only with `parse_special`.
  [[nodiscard]] std::vector<Fragment> split(std::string_view text, bool parse_special) const;

 private:
  void split_by(Token token, std::vector<Fragment>& fragments) const;

  const Vocabulary* vocabulary_;
  const SpecialTokens* special_;
  std::vector<Token> tokens_;  // longest text first
};

}  // namespace tw::text
