#pragma once

// WordPiece tokenizer (`tokenizer.ggml.model` = bert): text is cut into words, lower-cased and stripped of accents, and
// each word into the longest tokens from its start; a word that cannot be is one unknown token. A token that begins a
// word begins with U+2581; the others stand bare.

#include <string>
#include <string_view>
#include <vector>

#include "text/trie.h"
#include "text/vocabulary.h"

namespace tw::text {

class WordPiece {
 public:
  struct Options {
    bool lowercase = true;
    bool strip_accents = true;
  };
  WordPiece(const Vocabulary& vocabulary, const std::vector<TokenType>& types, Options options, Token unknown);
  // `text` is a run without special tokens.
  void encode(std::string_view text, std::vector<Token>& out) const;

 private:
  void encode_word(std::string_view word, std::vector<Token>& out) const;

  Trie trie_;
  Options options_;
  Token unknown_;
};

// Words of a text as the tokenizer sees them: normalized, without white space, each punctuation mark and each Han
// character a word of its own.
std::vector<std::string> normalized_words(std::string_view text, WordPiece::Options options);

// Some files keep the spelling of the original vocabularies, "##" before what continues a word and nothing before what
// begins one: rewrites such token texts to the convention above. Texts in [brackets] stay.
void use_space_marks(std::vector<std::string>& tokens);

}  // namespace tw::text
