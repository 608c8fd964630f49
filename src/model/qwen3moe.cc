// Qwen3 mixtures: the attention of Qwen3, and in every layer a mixture of experts whose chosen weights are
// renormalized.

#include "model/registry.h"

namespace tw::model {

namespace {

Result<Decoder> configure_qwen3moe(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
  TW_TRY(const MixtureFeedForward mixture, read_mixture(hyper, hidden));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    attention.rotated = out.rope.width;
    attention.head_norms = true;
    out.layers.push_back({attention, mixture});
  }
  return out;
}

}  // namespace

const FamilyInfo& qwen3moe_family() {
  static const FamilyInfo info{
      .architecture = "qwen3moe",
      .summary = "Qwen3 mixtures of experts",
      .pre_tokenizer = "qwen2",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), optional_dense_keys(), expert_count_keys(),
               mixture_keys()},
      .tensors = {decoder_tensors(), attention_tensors(), attention_bias_tensors(), head_norm_tensors(),
                  feed_norm_tensors(), mixture_tensors()},
      .configure = configure_qwen3moe,
      .toy = {{"layers", 2},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 32},
              {"hidden", 128},
              {"experts", 8},
              {"used", 2},
              {"expert_hidden", 32},
              {"rope_base", 1000000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0}},
  };
  return info;
}

}  // namespace tw::model
