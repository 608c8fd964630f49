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

namespace tw::text {

using Token = int32_t;

struct EncodeOptions {
  bool add_special = true;    // BOS/EOS/CLS/SEP as the vocabulary asks for
  bool parse_special = true;  // the text of control tokens in the input becomes those tokens
};

class Tokenizer {
 public:
  static Result<Tokenizer> load(const gguf::Checkpoint& checkpoint);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  [[nodiscard]] std::vector<Token> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // The bytes of one token as they stand in running text; a control token gives nothing unless `special`.
  [[nodiscard]] std::string piece(Token token, bool special = false) const;
  // The text of a whole sequence (drops the leading space that a SentencePiece vocabulary adds).
  [[nodiscard]] std::string decode(const std::vector<Token>& tokens, bool special = false) const;

  [[nodiscard]] Token size() const;
  [[nodiscard]] std::string_view kind() const;  // "gpt2", "llama", "bert", "t5" as tokenizer.ggml.model names it
  [[nodiscard]] std::string_view pre() const;   // the pre-tokenizer's name, empty when the kind has none
  [[nodiscard]] std::optional<Token> bos() const;
  [[nodiscard]] std::optional<Token> eos() const;
  [[nodiscard]] bool ends_generation(Token token) const;  // EOS, EOT, EOM and their known names

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Turns a stream of tokens into text that is cut only at whole UTF-8 characters: push() gives what is complete, flush()
// the rest with U+FFFD for what never completed.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  std::string push(Token token);
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;
  bool first_ = true;
};

}  // namespace tw::text
