#pragma once

// The table of tensors of one file, and the checks on where their bytes lie.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"
#include "gguf/cursor.h"

namespace tw::gguf {

// The least bytes of a tensor's record: length and one byte of a name, the number of dimensions, one dimension, a type,
// an offset.
inline constexpr uint64_t kMinTensorRecordBytes = 8 + 1 + 4 + 8 + 4 + 8;

// A tensor as its record describes it. `info.offset` counts from the start of the tensor data until place_tensors.
struct TensorRecord {
  TensorInfo info;
  uint64_t at = 0;  // where the record starts in the file, for messages
};

// Reads `count` records from the cursor, which must have room for count * kMinTensorRecordBytes. Duplicate names are
// not looked for here.
Result<std::vector<TensorRecord>> read_tensor_table(Cursor& cursor, uint64_t count);

// Makes the offsets count from the start of the file. The data starts at the next multiple of `alignment` (a power of
// two) after the cursor. Refuses tensors that are not aligned, do not lie in the file, or overlap.
Result<void> place_tensors(Cursor& cursor, uint64_t alignment, std::vector<TensorRecord>& records);

}  // namespace tw::gguf
