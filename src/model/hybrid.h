#pragma once

// What the hybrids of gated delta nets and gated attention share: qwen3next, qwen35, qwen35moe.

#include "model/decoder.h"

namespace tw::model {

// Which of the family's ways a hybrid goes.
struct HybridKind {
  graph::KeyHeadOf key_head_of = graph::KeyHeadOf::Modulo;
  bool joint_gates = false;
  bool sectioned_rope = false;  // rope.dimension_sections
  bool mixture = false;         // in every layer, with a gated shared expert; else dense
};

KeyTable section_keys();
Result<Decoder> read_hybrid(const Hyper& hyper, const gguf::Checkpoint& checkpoint, const HybridKind& kind);

}  // namespace tw::model
