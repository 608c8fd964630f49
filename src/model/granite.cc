// Granite 3 and its mixtures: Llama's layers, with a factor each for the embedding, for what a half of a layer adds,
// for the scores and for the logits. rope.scaling.finetuned = false leaves the rotation out.

#include "model/registry.h"

namespace tw::model {

namespace {

constexpr KeySpec kGraniteKeys[] = {
    {.key = "embedding_scale", .type = KeyType::Real, .fallback = 0, .low = 0, .high = 1e6},
    {.key = "residual_scale", .type = KeyType::Real, .fallback = 0, .low = 0, .high = 1e6},
    {.key = "logit_scale", .type = KeyType::Real, .need = Need::Required, .low = 1e-6, .high = 1e6},
    {.key = "rope.scaling.finetuned", .type = KeyType::Flag, .fallback = 1, .low = 0, .high = 1},
};

// A factor of 0 is one that the file does not give.
float factor(const Hyper& hyper, std::string_view key) {
  const double given = hyper.real(key);
  return given == 0 ? 1.0F : static_cast<float>(given);
}

Result<Decoder> read_granite(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  out.embedding_scale = factor(hyper, "embedding_scale");
  out.residual_scale = factor(hyper, "residual_scale");
  out.logit_scale = static_cast<float>(1 / hyper.real("logit_scale"));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    attention.rotated = hyper.flag("rope.scaling.finetuned") ? out.rope.width : 0;
    attention.adjacent_pairs = true;
    out.layers.emplace_back().mix = attention;
  }
  return out;
}

Result<Decoder> configure_granite_dense(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_granite(hyper, checkpoint));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer)
    out.layers[layer].feed = DenseFeedForward{hyper.count("feed_forward_length", layer)};
  return out;
}

Result<Decoder> configure_granite_mixture(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_granite(hyper, checkpoint));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(MixtureFeedForward mixture, read_mixture(hyper, hyper.count("feed_forward_length", layer)));
    mixture.shared_hidden = hyper.count("expert_shared_feed_forward_length");
    out.layers[layer].feed = mixture;
  }
  return out;
}

}  // namespace

const FamilyInfo& granite_family() {
  static const FamilyInfo info{
      .architecture = "granite",
      .summary = "Granite 3",
      .pre_tokenizer = "refact",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys(), kGraniteKeys},
      .tensors = {decoder_tensors(), rope_divisor_tensors(), attention_tensors(), attention_bias_tensors(),
                  attention_output_bias_tensors(), feed_norm_tensors(), dense_tensors(), dense_bias_tensors()},
      .configure = configure_granite_dense,
      .toy = {{"layers", 2},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 16},
              {"hidden", 128},
              {"embedding_scale", 12},
              {"residual_percent", 22},
              {"logit_scale", 8},
              {"rope_base", 10000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0}},
  };
  return info;
}

const FamilyInfo& granitemoe_family() {
  static const FamilyInfo info{
      .architecture = "granitemoe",
      .summary = "Granite 3 mixtures of experts",
      .pre_tokenizer = "refact",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys(), expert_count_keys(), mixture_keys(),
               kGraniteKeys},
      .tensors = {decoder_tensors(), rope_divisor_tensors(), attention_tensors(), attention_bias_tensors(),
                  attention_output_bias_tensors(), feed_norm_tensors(), mixture_tensors(), shared_expert_tensors()},
      .configure = configure_granite_mixture,
      .toy = {{"layers", 2},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 16},
              {"hidden", 32},
              {"experts", 8},
              {"used", 2},
              {"shared_hidden", 64},
              {"embedding_scale", 12},
              {"residual_percent", 22},
              {"logit_scale", 6},
              {"rope_base", 10000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0}},
  };
  return info;
}

}  // namespace tw::model
