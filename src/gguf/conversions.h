#pragma once

// Metadata values as the types that readers ask for. A refusal is Malformed; its subject is the key, and it names the
// file, the byte offset, what was found and what was expected. `label` is the file's name.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"

namespace tw::gguf {

Result<uint64_t> to_u64(const Entry& entry, std::string_view label);  // any integer that is not negative
Result<double> to_f64(const Entry& entry, std::string_view label);    // any float, any integer that f64 holds exactly
Result<bool> to_bool(const Entry& entry, std::string_view label);
Result<std::string> to_string(const Entry& entry, std::string_view label);

Result<std::vector<std::string>> to_strings(const Entry& entry, std::string_view label);
Result<std::vector<double>> to_f64s(const Entry& entry, std::string_view label);
Result<std::vector<int64_t>> to_i64s(const Entry& entry, std::string_view label);  // any integers that fit
Result<std::vector<bool>> to_bools(const Entry& entry, std::string_view label);

}  // namespace tw::gguf
