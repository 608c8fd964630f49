#pragma once

// Which tokens are special, and how: their ids, what begins and ends a text, what ends a generation, and the types of
// tokens after the corrections that well-known token texts ask for.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/lexicon.h"
#include "text/pretokenizer_table.h"
#include "text/vocabulary.h"

namespace tw::text {

enum class Kind { SentencePiece, BytePair, WordPiece, Unigram };

// What a name of tokenizer.ggml.model means when the file says nothing else.
struct KindRow {
  std::string_view model;
  Kind kind;
  Token bos, eos, unknown, separator;  // -1: none
  bool add_bos, add_eos, add_space_prefix;
};
// The row of `model`, or a refusal that lists the known names.
Result<const KindRow*> find_kind(std::string_view model);

struct SpecialTokens {
  std::vector<TokenType> types;  // one a token
  std::optional<Token> bos, eos, unknown, separator;
  bool add_bos = false;
  bool add_eos = false;
  std::vector<bool> ends_generation;  // one a token
  std::vector<bool> strips_left;      // white space before the token belongs to it
  std::vector<bool> strips_right;     // white space after it
  std::vector<std::string> notes;     // what was decided without the file's word, a sentence each
};

// Requires check_vocabulary(vocabulary). `row` is null for kinds without a pre-tokenizer.
Result<SpecialTokens> resolve_special_tokens(const Vocabulary& vocabulary, const Lexicon& lexicon, const KindRow& kind,
                                             const PreTokenizerRow* row);

}  // namespace tw::text
