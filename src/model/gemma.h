#pragma once

// What Gemma 2 and 3 share: norms before and after both halves of a layer, a scaled embedding, GELU networks, windowed
// layers among full ones.

#include <vector>

#include "model/decoder.h"
#include "model/window.h"

namespace tw::model {

struct GemmaKind {
  WindowDefaults windows;
  double window_base = 0;     // of the rotation of windowed layers, which is unscaled then; 0: as that of the others
  uint32_t large_layers = 0;  // of the largest model, whose scores are scaled by width / heads, not the head's width
  bool head_norms = false;
};

Result<Decoder> read_gemma(const Hyper& hyper, const gguf::Checkpoint& checkpoint, const GemmaKind& kind);
// All but the head norms.
std::vector<TensorTable> gemma_tensors();

}  // namespace tw::model
