#pragma once

// What a checkpoint says about its tokens (keys `tokenizer.ggml.*`), as plain data: the tokenizers are made of it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"

namespace tw::text {

using Token = int32_t;

inline constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

// The numbers of tokenizer.ggml.token_type.
enum class TokenType : uint8_t { Undefined, Normal, Unknown, Control, UserDefined, Unused, Byte };

struct Vocabulary {
  std::string model;                // tokenizer.ggml.model
  std::string pre;                  // tokenizer.ggml.pre, empty when absent
  std::string architecture;         // general.architecture; it and the name decide a few white space rules
  std::string name;                 // general.name
  std::vector<std::string> tokens;  // text of token 0, 1, ...
  std::vector<float> scores;        // one a token, or empty
  std::vector<TokenType> types;     // one a token, or empty: all Normal
  std::vector<std::string> merges;  // "left right", best first
  std::string charsmap;             // tokenizer.ggml.precompiled_charsmap, its bytes

  std::optional<uint64_t> bos, eos, eot, eom, unknown, separator, cls;
  std::optional<uint64_t> fim_pad, fim_rep, fim_sep;
  std::optional<bool> add_bos, add_eos;
  std::optional<bool> add_space_prefix, remove_extra_whitespaces;
  std::optional<bool> lowercase, strip_accents;
};

// Reads the keys; types and ranges that do not depend on each other are checked here.
Result<Vocabulary> read_vocabulary(const gguf::Checkpoint& checkpoint);

// What depends on each other: lengths of the lists, ids in range, scores that are numbers.
Result<void> check_vocabulary(const Vocabulary& vocabulary);

// The byte of a token text such as "<0x0A>".
std::optional<uint8_t> byte_of_hex_token(std::string_view text);
std::string hex_token(uint8_t byte);

}  // namespace tw::text
