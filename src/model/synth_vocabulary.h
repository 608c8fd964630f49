#pragma once

// The vocabulary of a synthesized model: byte-level BPE of any size, all made up. The 256 bytes come first, then tokens
// that are all reached by merges of pairs of letters, then three control tokens, the last of which end a text.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gguf/value.h"

namespace tw::model {

Result<std::vector<std::pair<std::string, gguf::Value>>> vocabulary_metadata(std::string_view pre_tokenizer,
                                                                             uint64_t size);

}  // namespace tw::model
