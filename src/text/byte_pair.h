#pragma once

// Byte-pair tokenizer (`tokenizer.ggml.model` = gpt2 or gemma4): text is cut into words, the symbols of a word are
// merged by the rank of the merge. Symbols are bytes in the byte alphabet, or characters (kRawUtf8), whose spaces are
// U+2581 and whose unknown ones are spelled in <0xXX>.

#include <array>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/lexicon.h"
#include "text/merge_table.h"
#include "text/pretokenizer.h"
#include "text/vocabulary.h"

namespace tw::text {

class BytePair {
 public:
  // The lexicon outlives the tokenizer.
  static Result<BytePair> make(const Vocabulary& vocabulary, const Lexicon& lexicon, const PreTokenizerRow& row,
                               std::optional<Token> unknown);
  // `text` is a run without special tokens.
  void encode(std::string_view text, std::vector<Token>& out) const;

 private:
  BytePair(const Lexicon& lexicon, const PreTokenizerRow& row) : lexicon_(&lexicon), row_(&row), splitter_(row.rules) {}
  Result<void> read_merges(const std::vector<std::string>& merges);
  void find_bytes(std::optional<Token> unknown);
  [[nodiscard]] std::optional<Token> whole_word(std::string_view word) const;
  void encode_word(std::string_view word, std::vector<Token>& out) const;
  [[nodiscard]] bool raw() const { return (row_->flags & kRawUtf8) != 0; }

  const Lexicon* lexicon_;
  const PreTokenizerRow* row_;
  PreTokenizer splitter_;
  MergeTable rules_;
  std::array<Token, 256> bytes_{};  // the token of each byte, kNoToken where there is none
};

}  // namespace tw::text
