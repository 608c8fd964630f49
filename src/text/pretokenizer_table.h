#pragma once

// What the names of `tokenizer.ggml.pre` mean: how text is cut into words before pairs are merged inside each word.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::text {

// One pass over the pieces that the passes before it left. Each match becomes a piece, and so does what lies between
// matches. A pattern sees its piece alone: the ends of the piece are the ends of the text.
struct SplitRule {
  std::string_view pattern;      // PCRE2 with UTF and UCP; \s and \S mean the property White_Space
  bool groups_of_three = false;  // a match is cut on, every three characters counted from its end
};

enum PreFlags : unsigned {
  kPlain = 0,
  kIgnoreMerges = 1,  // a word that is a token is that token, whatever the merges say
  kAddBos = 2,        // the text begins with BOS unless add_bos_token says otherwise
  kForceBos = 4,      // the text begins with BOS whatever add_bos_token says
  kRawUtf8 = 8,       // token texts are UTF-8 with U+2581 for the space and <0xXX> for bytes, not the byte alphabet
  kLineRuns = 16,     // a run of line feeds that is a token is that token
};

struct PreTokenizerRow {
  std::vector<std::string_view> names;
  std::vector<SplitRule> rules;
  unsigned flags = kPlain;
};

std::span<const PreTokenizerRow> pretokenizer_rows();
const PreTokenizerRow* find_pretokenizer(std::string_view name);
// "afmoe, bailingmoe, ...": all names, sorted.
std::string pretokenizer_names();

}  // namespace tw::text
