// Qwen 3.5 mixtures: as qwen35, with a mixture and a gated shared expert in every layer.

#include "model/hybrid.h"
#include "model/registry.h"

namespace tw::model {

namespace {

Result<Decoder> configure_qwen35moe(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  return read_hybrid(hyper, checkpoint, {.sectioned_rope = true, .mixture = true});
}

}  // namespace

const FamilyInfo& qwen35moe_family() {
  static const FamilyInfo info{
      .architecture = "qwen35moe",
      .summary = "Qwen3.5 mixtures of experts",
      .pre_tokenizer = "qwen35",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), section_keys(), delta_keys(), optional_dense_keys(),
               expert_count_keys(), mixture_keys()},
      .tensors = {decoder_tensors(), post_attention_norm_tensors(), attention_tensors(), attention_bias_tensors(),
                  head_norm_tensors(), delta_tensors(), separate_gate_tensors(), mixture_tensors(),
                  shared_expert_tensors(), shared_expert_gate_tensors()},
      .configure = configure_qwen35moe,
      .toy =
          {{"layers", 4},         {"width", 64},          {"heads", 4},        {"kv_heads", 2},   {"head", 32},
           {"rotated", 16},       {"hidden", 128},        {"interval", 4},     {"taps", 4},       {"key_heads", 2},
           {"value_heads", 4},    {"state", 32},          {"experts", 8},      {"used", 2},       {"expert_hidden", 32},
           {"shared_hidden", 32}, {"rope_base", 1000000}, {"vocabulary", 384}, {"context", 2048}, {"tied", 0}},
  };
  return info;
}

}  // namespace tw::model
