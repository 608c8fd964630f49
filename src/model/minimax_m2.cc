// MiniMax-M2: attention whose queries and keys are normed over all heads together, part of each head rotating; in every
// layer a mixture with a bias of the choice, the chosen weights renormalized.

#include "model/registry.h"

namespace tw::model {

namespace {

Result<Decoder> configure_minimax_m2(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
  TW_TRY(const MixtureFeedForward mixture, read_mixture(hyper, hidden, {.score = graph::ScoreKind::Sigmoid}));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    attention.rotated = out.rope.width;
    attention.row_norms = true;
    out.layers.push_back({attention, mixture});
  }
  return out;
}

}  // namespace

const FamilyInfo& minimax_m2_family() {
  static const FamilyInfo info{
      .architecture = "minimax-m2",
      .summary = "MiniMax-M2",
      .pre_tokenizer = "gpt-4o",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), optional_dense_keys(), expert_count_keys(),
               mixture_keys(), router_keys()},
      .tensors = {decoder_tensors(), attention_tensors(), row_norm_tensors(), feed_norm_tensors(), mixture_tensors(),
                  select_bias_tensors()},
      .configure = configure_minimax_m2,
      .toy = {{"layers", 2},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 32},
              {"rotated", 16},
              {"hidden", 32},
              {"experts", 8},
              {"used", 2},
              {"expert_hidden", 32},
              {"rope_base", 5000000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0}},
  };
  return info;
}

}  // namespace tw::model
