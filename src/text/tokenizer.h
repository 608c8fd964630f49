#pragma once

// Text to token ids and back, by the vocabulary that a checkpoint carries (keys `tokenizer.ggml.*`).
// Token ids here are the file's: 0-based. (The step graph counts from 1; the runtime converts.)

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"
#include "text/vocabulary.h"

namespace tw::text {

struct EncodeOptions {
  bool add_special = true;    // BOS/EOS/CLS/SEP as the vocabulary asks for
  bool parse_special = true;  // the text of control tokens in the input becomes those tokens
};

// May be used from several threads at once.
class Tokenizer {
 public:
  static Result<Tokenizer> load(const gguf::Checkpoint& checkpoint);
  static Result<Tokenizer> make(Vocabulary vocabulary);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  [[nodiscard]] std::vector<Token> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // The bytes of one token as they stand in running text; a control token gives nothing unless `special`. Nothing for
  // an id that is no token.
  [[nodiscard]] std::string piece(Token token, bool special = false) const;
  // piece() in the course of a text, without the space that encode() adds at the start of a text and after a special
  // token. `first` says whether the token stands there, and is set for the next token.
  [[nodiscard]] std::string running_piece(Token token, bool& first, bool special = false) const;
  // The text of a whole sequence: its running pieces.
  [[nodiscard]] std::string decode(const std::vector<Token>& tokens, bool special = false) const;

  [[nodiscard]] Token size() const;
  [[nodiscard]] std::string_view kind() const;  // "gpt2", "llama", "bert", "t5" as tokenizer.ggml.model names it
  [[nodiscard]] std::string_view pre() const;   // the pre-tokenizer's name, empty when the kind has none
  [[nodiscard]] std::optional<Token> bos() const;
  [[nodiscard]] std::optional<Token> eos() const;
  [[nodiscard]] bool adds_bos() const;                    // encode() begins a text with BOS
  [[nodiscard]] bool ends_generation(Token token) const;  // EOS, EOT, EOM and their known names
  // What was decided where the file says nothing or contradicts itself, a sentence each, for the user to see.
  [[nodiscard]] const std::vector<std::string>& notes() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Turns a stream of tokens into text that is cut only at whole UTF-8 characters: push() gives what is complete, flush()
// the rest with U+FFFD for what never completed. What is given is valid UTF-8 always.
class StreamDecoder {
 public:
  // A stream that continues a text keeps the leading space that decode() drops from the start of a text.
  enum class Start { OfText, Continuation };

  explicit StreamDecoder(const Tokenizer& tokenizer, Start start = Start::OfText)
      : tokenizer_(&tokenizer), first_(start == Start::OfText) {}
  std::string push(Token token);
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;
  bool first_ = true;
};

}  // namespace tw::text
