#pragma once

// Rewrites a checkpoint with its matrices in another format.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "gguf/checkpoint.h"

namespace tw::model {

struct Requantized {
  uint64_t matrices = 0;      // tensors that were rewritten
  uint64_t kept = 0;          // tensors copied as they were: norms, biases, routers, convolutions
  uint64_t bytes_before = 0;  // of all tensors
  uint64_t bytes_after = 0;
};

// `format` is a format that can be written, or a mixture ("Q4_K_M"). Metadata is kept, with general.file_type left out.
// A tensor that a model reads as a matrix is widened and quantized again; a matrix whose rows are not whole blocks gets
// Q8_0 or F16. `progress` is called with the tensors done and the tensors there are; `interrupted`, when given, ends
// the work with no file left. Works for every architecture. Refuses to write over the file it reads.
Result<Requantized> requantize(const gguf::Checkpoint& checkpoint, std::string_view format,
                               const std::filesystem::path& out,
                               const std::function<void(uint64_t done, uint64_t total)>& progress = {},
                               const std::atomic<bool>* interrupted = nullptr);

}  // namespace tw::model
