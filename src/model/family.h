#pragma once

// A model family: its name, its tables of metadata keys and tensors, and how hyperparameters become a Decoder.
// A family is one file (src/model/<name>.cc) and one line of the registry (registry.cc).

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"
#include "model/decoder.h"

namespace tw::model {

// A number of a synthesized model's shape, with its toy value. The names are those of shape_key.h.
struct ShapeItem {
  std::string_view name;
  uint64_t toy = 0;
};

struct FamilyInfo {
  std::string_view architecture;
  std::string_view summary;
  std::string_view pre_tokenizer;  // of a synthesized vocabulary
  std::vector<KeyTable> keys;
  std::vector<TensorTable> tensors;
  // Reads and cross-checks the hyperparameters.
  Result<Decoder> (*configure)(const Hyper& hyper, const gguf::Checkpoint& checkpoint) = nullptr;
  std::vector<ShapeItem> toy;
};

}  // namespace tw::model
