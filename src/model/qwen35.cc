// Qwen 3.5, dense: gated delta nets with every fourth layer a gated attention, sectioned rotation, a dense network.

#include "model/hybrid.h"
#include "model/registry.h"

namespace tw::model {

namespace {

Result<Decoder> configure_qwen35(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  return read_hybrid(hyper, checkpoint, {.sectioned_rope = true});
}

}  // namespace

const FamilyInfo& qwen35_family() {
  static const FamilyInfo info{
      .architecture = "qwen35",
      .summary = "Qwen3.5, dense",
      .pre_tokenizer = "qwen35",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), section_keys(), delta_keys(), dense_keys()},
      .tensors = {decoder_tensors(), post_attention_norm_tensors(), attention_tensors(), attention_bias_tensors(),
                  head_norm_tensors(), delta_tensors(), separate_gate_tensors(), dense_tensors()},
      .configure = configure_qwen35,
      .toy = {{"layers", 4},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 32},
              {"rotated", 16},
              {"hidden", 128},
              {"interval", 4},
              {"taps", 4},
              {"key_heads", 2},
              {"value_heads", 4},
              {"state", 32},
              {"rope_base", 1000000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0}},
  };
  return info;
}

}  // namespace tw::model
