// DeepSeek 2 and 3, Kimi K2: latent attention in its absorbed form, YaRN rotation whose magnitude goes into the scale
// of the scores; dense layers first, then mixtures with a shared expert, whose choice may be limited to groups of
// experts.

#include <fmt/format.h>

#include <cmath>

#include "model/registry.h"

namespace tw::model {

namespace {

constexpr KeySpec kDeepseek2Keys[] = {
    {.key = "rope.scaling.attn_factor",
     .type = KeyType::Real,
     .fallback = 1,
     .low = 1,
     .high = 1,
     .feature = "an attention factor beside YaRN's"},
};

// The file holds a tenth of the multiplier m of the scores' magnitude, 1 + 0.1 m ln(factor). That magnitude is taken
// out of cos and sin, and multiplies queries and keys both, so the scale of the scores has its square.
Result<RopeSpec> read_latent_rope(const Hyper& hyper, LatentAttention& attention) {
  TW_TRY(RopeSpec rope, read_rope(hyper, attention.key_width()));
  if (rope.scaling != RopeSpec::Scaling::Yarn || rope.factor <= 1) return rope;
  if (rope.log_multiplier == 0)
    return refuse(RefusalKind::Missing, hyper.subject("rope.scaling.yarn_log_multiplier"),
                  "the file scales its rotation by YaRN and does not say how the scores' magnitude follows");
  const double magnitude = 1 + 0.1 * (10 * rope.log_multiplier) * std::log(rope.factor);
  attention.scale = static_cast<float>(attention.scale * magnitude * magnitude);
  rope.log_multiplier = 1;
  return rope;
}

// Only a router with sigmoid scores has a bias of the choice, so where the file does not name the scores, it tells.
graph::ScoreKind default_score(const gguf::Checkpoint& checkpoint, uint32_t first_mixture) {
  const bool biased = checkpoint.find_tensor(fmt::format("blk.{}.exp_probs_b.bias", first_mixture)) != nullptr;
  return biased ? graph::ScoreKind::Sigmoid : graph::ScoreKind::Softmax;
}

Result<Decoder> configure_deepseek2(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  const uint32_t leading = hyper.count("leading_dense_block_count");
  TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
  TW_TRY(MixtureFeedForward mixture,
         read_mixture(hyper, hidden, {.score = default_score(checkpoint, leading), .renormalize = false}));
  TW_TRY(mixture.shared_hidden, read_shared_hidden(hyper, hidden));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(LatentAttention attention, read_latent(hyper, checkpoint, layer));
    TW_TRY(out.rope, read_latent_rope(hyper, attention));
    if (layer < leading)
      out.layers.push_back({attention, DenseFeedForward{hyper.count("feed_forward_length", layer)}});
    else
      out.layers.push_back({attention, mixture});
  }
  return out;
}

}  // namespace

const FamilyInfo& deepseek2_family() {
  static const FamilyInfo info{
      .architecture = "deepseek2",
      .summary = "DeepSeek 2, 2 Lite, 3 and R1, Kimi K2, GLM-4.7 Flash",
      .pre_tokenizer = "deepseek-v3",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), latent_keys(), kDeepseek2Keys, dense_keys(),
               expert_count_keys(), mixture_keys(), router_keys(), leading_dense_keys(), shared_count_keys()},
      .tensors = {decoder_tensors(), latent_tensors(), feed_norm_tensors(), dense_tensors(), mixture_tensors(),
                  optional_select_bias_tensors(), shared_expert_tensors()},
      .configure = configure_deepseek2,
      .toy = {{"layers", 3},         {"width", 64},        {"heads", 4},         {"query_rank", 48},
              {"latent", 32},        {"latent_key", 48},   {"latent_value", 32}, {"rotated", 16},
              {"hidden", 128},       {"leading_dense", 1}, {"experts", 8},       {"used", 2},
              {"expert_hidden", 32}, {"shared", 1},        {"score", 2},         {"renormalize", 1},
              {"groups", 4},         {"groups_kept", 2},   {"select_bias", 1},   {"rope_base", 10000},
              {"vocabulary", 384},   {"context", 2048},    {"tied", 0}},
  };
  return info;
}

}  // namespace tw::model
