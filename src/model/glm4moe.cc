// GLM-4.5: attention with biases whose heads are normed where the file has the norms, half of each head rotating; dense
// layers first, then mixtures with sigmoid scores, a bias of the choice and a shared expert.

#include <fmt/format.h>

#include "model/registry.h"

namespace tw::model {

namespace {

Result<Decoder> configure_glm4moe(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  out.feed_norm = "post_attention_norm";
  TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
  TW_TRY(MixtureFeedForward mixture,
         read_mixture(hyper, hidden, {.score = graph::ScoreKind::Sigmoid, .renormalize = false}));
  TW_TRY(mixture.shared_hidden, read_shared_hidden(hyper, hidden));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    attention.rotated = out.rope.width;
    attention.head_norms = checkpoint.find_tensor(fmt::format("blk.{}.attn_q_norm.weight", layer)) != nullptr;
    if (layer < hyper.count("leading_dense_block_count"))
      out.layers.push_back({attention, DenseFeedForward{hyper.count("feed_forward_length", layer)}});
    else
      out.layers.push_back({attention, mixture});
  }
  return out;
}

}  // namespace

const FamilyInfo& glm4moe_family() {
  static const FamilyInfo info{
      .architecture = "glm4moe",
      .summary = "GLM-4.5 mixtures of experts",
      .pre_tokenizer = "glm4",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys(), expert_count_keys(), mixture_keys(),
               router_keys(), leading_dense_keys(), shared_count_keys()},
      .tensors = {decoder_tensors(), attention_tensors(), attention_bias_tensors(), optional_head_norm_tensors(),
                  post_attention_norm_tensors(), dense_tensors(), mixture_tensors(), select_bias_tensors(),
                  shared_expert_tensors()},
      .configure = configure_glm4moe,
      .toy = {{"layers", 3},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 32},
              {"rotated", 16},
              {"hidden", 128},
              {"leading_dense", 1},
              {"experts", 8},
              {"used", 2},
              {"expert_hidden", 32},
              {"shared", 1},
              {"renormalize", 1},
              {"rope_base", 1000000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0},
              {"biases", 1}},
  };
  return info;
}

}  // namespace tw::model
