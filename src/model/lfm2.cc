// LFM2 and its mixtures: gated short convolutions, and attention with norms of query and key heads in the layers that
// have key/value heads. Mixtures begin after the leading dense layers and choose by sigmoid scores plus a bias.

#include "model/registry.h"

namespace tw::model {

namespace {

constexpr KeySpec kLfm2Keys[] = {
    // 0: a layer of short convolution.
    {.key = "attention.head_count_kv", .type = KeyType::PerLayer, .need = Need::Required, .low = 0, .high = 4096},
};

constexpr TensorSpec kFinalNorm[] = {
    {.pattern = "token_embd_norm.weight", .shape = "width", .part = Part::Model, .content = Content::Norm},
};

Result<Decoder> read_lfm2(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  out.final_norm = "token_embd_norm";
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    if (hyper.count("attention.head_count_kv", layer) == 0) {
      out.layers.emplace_back().mix = read_short_conv(hyper);
      continue;
    }
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    attention.rotated = out.rope.width;
    attention.head_norms = true;
    out.layers.emplace_back().mix = attention;
  }
  return out;
}

Result<Decoder> configure_lfm2_dense(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_lfm2(hyper, checkpoint));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer)
    out.layers[layer].feed = DenseFeedForward{hyper.count("feed_forward_length", layer)};
  return out;
}

Result<Decoder> configure_lfm2_mixture(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_lfm2(hyper, checkpoint));
  TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
  TW_TRY(const MixtureFeedForward mixture, read_mixture(hyper, hidden, {.score = graph::ScoreKind::Sigmoid}));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    if (layer < hyper.count("leading_dense_block_count"))
      out.layers[layer].feed = DenseFeedForward{hyper.count("feed_forward_length", layer)};
    else
      out.layers[layer].feed = mixture;
  }
  return out;
}

std::vector<TensorTable> common_tensors() {
  return {embedding_tensors(),      kFinalNorm,          mix_norm_tensors(),  short_conv_tensors(), attention_tensors(),
          attention_bias_tensors(), head_norm_tensors(), feed_norm_tensors(), dense_tensors()};
}

std::vector<TensorTable> mixture_family_tensors() {
  std::vector<TensorTable> out = common_tensors();
  out.insert(out.end(), {mixture_tensors(), optional_select_bias_tensors()});
  return out;
}

}  // namespace

const FamilyInfo& lfm2_family() {
  static const FamilyInfo info{
      .architecture = "lfm2",
      .summary = "LFM2",
      .pre_tokenizer = "lfm2",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), short_conv_keys(), dense_keys(), kLfm2Keys},
      .tensors = common_tensors(),
      .configure = configure_lfm2_dense,
      .toy = {{"layers", 3},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 16},
              {"hidden", 128},
              {"attention_interval", 3},
              {"short_taps", 3},
              {"rope_base", 1000000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 1}},
  };
  return info;
}

const FamilyInfo& lfm2moe_family() {
  static const FamilyInfo info{
      .architecture = "lfm2moe",
      .summary = "LFM2 mixtures of experts",
      .pre_tokenizer = "lfm2",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), short_conv_keys(), dense_keys(), expert_count_keys(),
               mixture_keys(), router_keys(), leading_dense_keys(), kLfm2Keys},
      .tensors = mixture_family_tensors(),
      .configure = configure_lfm2_mixture,
      .toy = {{"layers", 4},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 16},
              {"hidden", 128},
              {"attention_interval", 2},
              {"short_taps", 3},
              {"leading_dense", 1},
              {"experts", 8},
              {"used", 2},
              {"expert_hidden", 32},
              {"score", 2},
              {"select_bias", 1},
              {"rope_base", 1000000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 1}},
  };
  return info;
}

}  // namespace tw::model
