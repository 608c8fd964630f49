// GPT-OSS: attention with biases and sinks, a sliding window in every other layer, YaRN rotation; in every layer a
// mixture whose router and experts have biases, and whose experts clamp their gate.

#include "model/registry.h"
#include "model/window.h"

namespace tw::model {

namespace {

constexpr graph::MoeAct kClampedGate{graph::MoeAct::Kind::ClampedSwiGlu, 7.0F, 1.702F};

Result<Decoder> configure_gpt_oss(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  out.feed_norm = "post_attention_norm";
  TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
  TW_TRY(MixtureFeedForward mixture, read_mixture(hyper, hidden));
  mixture.act = kClampedGate;
  const std::vector<graph::Window> windows = read_windows(hyper, layer_count(hyper), {.size = 128, .period = 2});
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    attention.rotated = out.rope.width;
    attention.window = windows[layer];
    out.layers.push_back({attention, mixture});
  }
  return out;
}

// Windowed layers rotate as the others do.
constexpr KeySpec kOneRotation[] = {
    {.key = "rope.freq_base_swa", .type = KeyType::Real, .high = 0, .feature = "another rotation in windowed layers"},
};

}  // namespace

const FamilyInfo& gpt_oss_family() {
  static const FamilyInfo info{
      .architecture = "gpt-oss",
      .summary = "GPT-OSS",
      .pre_tokenizer = "gpt-4o",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), window_keys(), kOneRotation, optional_dense_keys(),
               expert_count_keys(), mixture_keys()},
      .tensors = {decoder_tensors(), attention_tensors(), attention_bias_tensors(), attention_output_bias_tensors(),
                  sink_tensors(), post_attention_norm_tensors(), mixture_tensors(), expert_bias_tensors()},
      .configure = configure_gpt_oss,
      .toy = {{"layers", 4},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 32},
              {"window", 16},
              {"hidden", 64},
              {"experts", 8},
              {"used", 2},
              {"expert_hidden", 64},
              {"rope_base", 150000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0},
              {"biases", 1}},
  };
  return info;
}

}  // namespace tw::model
