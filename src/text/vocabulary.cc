#include "text/vocabulary.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace tw::text {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kCharsmapKey = "tokenizer.ggml.precompiled_charsmap";

struct IdKey {
  std::string_view key;
  std::optional<uint64_t> Vocabulary::*field;
};
constexpr IdKey kIdKeys[] = {
    {"tokenizer.ggml.bos_token_id", &Vocabulary::bos},
    {"tokenizer.ggml.eos_token_id", &Vocabulary::eos},
    {"tokenizer.ggml.eot_token_id", &Vocabulary::eot},
    {"tokenizer.ggml.eom_token_id", &Vocabulary::eom},
    {"tokenizer.ggml.unknown_token_id", &Vocabulary::unknown},
    {"tokenizer.ggml.seperator_token_id", &Vocabulary::separator},  // spelled so in the format
    {"tokenizer.ggml.cls_token_id", &Vocabulary::cls},
    {"tokenizer.ggml.fim_pad_token_id", &Vocabulary::fim_pad},
    {"tokenizer.ggml.fim_rep_token_id", &Vocabulary::fim_rep},
    {"tokenizer.ggml.fim_sep_token_id", &Vocabulary::fim_sep},
};

struct FlagKey {
  std::string_view key;
  std::optional<bool> Vocabulary::*field;
};
constexpr FlagKey kFlagKeys[] = {
    {"tokenizer.ggml.add_bos_token", &Vocabulary::add_bos},
    {"tokenizer.ggml.add_eos_token", &Vocabulary::add_eos},
    {"tokenizer.ggml.add_space_prefix", &Vocabulary::add_space_prefix},
    {"tokenizer.ggml.remove_extra_whitespaces", &Vocabulary::remove_extra_whitespaces},
    {"tokenizer.ggml.normalizer.lowercase", &Vocabulary::lowercase},
    {"tokenizer.ggml.normalizer.strip_accents", &Vocabulary::strip_accents},
};

Result<void> read_types(const gguf::Checkpoint& checkpoint, Vocabulary& vocabulary) {
  TW_TRY(const auto types, checkpoint.find_i64s(kTypesKey));
  if (!types) return {};
  vocabulary.types.reserve(types->size());
  for (size_t i = 0; i < types->size(); ++i) {
    const int64_t type = (*types)[i];
    if (type < 0 || type > static_cast<int64_t>(TokenType::Byte))
      return refuse(RefusalKind::Malformed, kTypesKey,
                    fmt::format("entry {} is {}, expected a token type from 0 to 6", i, type));
    vocabulary.types.push_back(static_cast<TokenType>(type));
  }
  return {};
}

Result<void> read_charsmap(const gguf::Checkpoint& checkpoint, Vocabulary& vocabulary) {
  TW_TRY(const auto bytes, checkpoint.find_i64s(kCharsmapKey));
  if (!bytes) return {};
  vocabulary.charsmap.reserve(bytes->size());
  for (size_t i = 0; i < bytes->size(); ++i) {
    const int64_t byte = (*bytes)[i];
    if (byte < -128 || byte > 255)
      return refuse(RefusalKind::Malformed, kCharsmapKey, fmt::format("entry {} is {}, expected a byte", i, byte));
    vocabulary.charsmap.push_back(static_cast<char>(byte));
  }
  return {};
}

Result<void> check_length(std::string_view key, size_t found, size_t tokens) {
  if (found == 0 || found == tokens) return {};
  return refuse(RefusalKind::Malformed, key,
                fmt::format("has {} entries, {} has {} tokens; expected one a token", found, kTokensKey, tokens));
}

}  // namespace

Result<Vocabulary> read_vocabulary(const gguf::Checkpoint& checkpoint) {
  Vocabulary out;
  TW_TRY(out.model, checkpoint.get_string(kModelKey));
  TW_TRY(const auto pre, checkpoint.find_string("tokenizer.ggml.pre"));
  TW_TRY(const auto architecture, checkpoint.find_string("general.architecture"));
  TW_TRY(const auto name, checkpoint.find_string("general.name"));
  out.pre = pre.value_or("");
  out.architecture = architecture.value_or("");
  out.name = name.value_or("");
  TW_TRY(auto tokens, checkpoint.find_strings(kTokensKey));
  TW_TRY(const auto scores, checkpoint.find_f64s(kScoresKey));
  TW_TRY(auto merges, checkpoint.find_strings(kMergesKey));
  if (tokens) out.tokens = std::move(*tokens);
  if (merges) out.merges = std::move(*merges);
  if (scores) {
    out.scores.reserve(scores->size());
    for (const double score : *scores) out.scores.push_back(static_cast<float>(score));
  }
  TW_TRY_VOID(read_types(checkpoint, out));
  TW_TRY_VOID(read_charsmap(checkpoint, out));
  for (const IdKey& id : kIdKeys) {
    TW_TRY(out.*id.field, checkpoint.find_u64(id.key));
  }
  for (const FlagKey& flag : kFlagKeys) {
    TW_TRY(out.*flag.field, checkpoint.find_bool(flag.key));
  }
  return out;
}

Result<void> check_vocabulary(const Vocabulary& vocabulary) {
  const size_t tokens = vocabulary.tokens.size();
  if (tokens == 0)
    return refuse(RefusalKind::Missing, kTokensKey, "the vocabulary has 0 tokens, expected at least 1",
                  "Convert the model again with its tokenizer");
  if (tokens > static_cast<size_t>(std::numeric_limits<Token>::max()))
    return refuse(RefusalKind::TooLarge, kTokensKey,
                  fmt::format("has {} tokens, at most {} are supported", tokens, std::numeric_limits<Token>::max()));
  TW_TRY_VOID(check_length(kScoresKey, vocabulary.scores.size(), tokens));
  TW_TRY_VOID(check_length(kTypesKey, vocabulary.types.size(), tokens));
  for (size_t i = 0; i < vocabulary.scores.size(); ++i) {
    if (std::isnan(vocabulary.scores[i]))
      return refuse(RefusalKind::Malformed, kScoresKey, fmt::format("entry {} is not a number", i));
  }
  for (const IdKey& id : kIdKeys) {
    const std::optional<uint64_t>& value = vocabulary.*id.field;
    if (value && *value >= tokens)
      return refuse(RefusalKind::Malformed, id.key,
                    fmt::format("names token {}, the vocabulary has {} tokens", *value, tokens));
  }
  return {};
}

std::optional<uint8_t> byte_of_hex_token(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text.back() != '>') return std::nullopt;
  uint8_t value = 0;
  for (const char c : text.substr(3, 2)) {
    uint8_t digit = 0;
    if (c >= '0' && c <= '9')
      digit = static_cast<uint8_t>(c - '0');
    else if (c >= 'A' && c <= 'F')
      digit = static_cast<uint8_t>(c - 'A' + 10);
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<uint8_t>(c - 'a' + 10);
    else
      return std::nullopt;
    value = static_cast<uint8_t>(value << 4 | digit);
  }
  return value;
}

std::string hex_token(uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

}  // namespace tw::text
