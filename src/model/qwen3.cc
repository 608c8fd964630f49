// Qwen3: pre-norm, grouped-query attention with a norm of every query and key head, split-half rotation, a dense
// network.

#include "model/registry.h"

namespace tw::model {

namespace {

Result<Decoder> configure_qwen3(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    attention.rotated = out.rope.width;
    attention.head_norms = true;
    out.layers.push_back({attention, DenseFeedForward{hyper.count("feed_forward_length", layer)}});
  }
  return out;
}

}  // namespace

const FamilyInfo& qwen3_family() {
  static const FamilyInfo info{
      .architecture = "qwen3",
      .summary = "Qwen3",
      .pre_tokenizer = "qwen2",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys()},
      .tensors = {decoder_tensors(), attention_tensors(), attention_bias_tensors(), head_norm_tensors(),
                  feed_norm_tensors(), dense_tensors()},
      .configure = configure_qwen3,
      .toy = {{"layers", 2},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 32},
              {"hidden", 128},
              {"rope_base", 1000000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0},
              {"biases", 0}},
  };
  return info;
}

}  // namespace tw::model
