// Qwen3-Next: gated delta nets with every fourth layer a gated attention, and in every layer a mixture with a gated
// shared expert. Value heads are grouped by key head; ssm_ba holds both gates' matrices.

#include <fmt/format.h>

#include "model/hybrid.h"
#include "model/registry.h"

namespace tw::model {

namespace {

Result<Decoder> configure_qwen3next(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  constexpr std::string_view kLegacy = "blk.0.ssm_in.weight";
  if (checkpoint.find_tensor(kLegacy) != nullptr)
    return refuse(RefusalKind::Unsupported, fmt::format("{}: tensor {}", checkpoint.label(), kLegacy),
                  "it holds q, k, v and z interleaved by key head, a layout of early files",
                  "Convert the model again: new files have attn_qkv and attn_gate instead.");
  return read_hybrid(hyper, checkpoint,
                     {.key_head_of = graph::KeyHeadOf::Grouped, .joint_gates = true, .mixture = true});
}

}  // namespace

const FamilyInfo& qwen3next_family() {
  static const FamilyInfo info{
      .architecture = "qwen3next",
      .summary = "Qwen3-Next",
      .pre_tokenizer = "qwen2",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), delta_keys(), optional_dense_keys(), expert_count_keys(),
               mixture_keys()},
      .tensors = {decoder_tensors(), post_attention_norm_tensors(), attention_tensors(), attention_bias_tensors(),
                  head_norm_tensors(), delta_tensors(), joint_gate_tensors(), mixture_tensors(),
                  shared_expert_tensors(), shared_expert_gate_tensors()},
      .configure = configure_qwen3next,
      .toy =
          {{"layers", 4},         {"width", 64},          {"heads", 4},        {"kv_heads", 2},   {"head", 32},
           {"rotated", 16},       {"hidden", 128},        {"interval", 4},     {"taps", 4},       {"key_heads", 2},
           {"value_heads", 4},    {"state", 32},          {"experts", 8},      {"used", 2},       {"expert_hidden", 32},
           {"shared_hidden", 32}, {"rope_base", 1000000}, {"vocabulary", 384}, {"context", 2048}, {"tied", 0}},
  };
  return info;
}

}  // namespace tw::model
