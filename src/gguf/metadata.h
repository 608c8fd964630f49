#pragma once

// The metadata of one file: keys with values.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"
#include "gguf/cursor.h"

namespace tw::gguf {

// The least bytes of an entry: length and one byte of a key, a type, a one-byte value.
inline constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;

// Reads `count` entries from the cursor, which must have room for count * kMinEntryBytes. Duplicate keys are not looked
// for here.
Result<std::vector<Entry>> read_metadata(Cursor& cursor, uint64_t count);

}  // namespace tw::gguf
