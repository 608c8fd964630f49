// Kimi Linear: delta nets that decay channel by channel, with some layers of latent attention that rotate nothing;
// dense layers first, then mixtures with sigmoid scores, a bias of the choice and a shared expert.

#include "model/registry.h"

namespace tw::model {

namespace {

constexpr KeySpec kKimiLinearKeys[] = {
    // 0: a delta net.
    {.key = "attention.head_count_kv", .type = KeyType::PerLayer, .need = Need::Required, .low = 0, .high = 4096},
};

Result<Decoder> configure_kimi_linear(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
  TW_TRY(MixtureFeedForward mixture, read_mixture(hyper, hidden, {.score = graph::ScoreKind::Sigmoid}));
  TW_TRY(mixture.shared_hidden, read_shared_hidden(hyper, hidden));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    DecoderLayer own;
    if (hyper.count("attention.head_count_kv", layer) == 0) {
      TW_TRY(own.mix, read_channel_delta(hyper, layer));
    } else {
      TW_TRY(LatentAttention attention, read_latent(hyper, checkpoint, layer));
      attention.rotates = false;
      own.mix = attention;
    }
    if (layer < hyper.count("leading_dense_block_count"))
      own.feed = DenseFeedForward{hyper.count("feed_forward_length", layer)};
    else
      own.feed = mixture;
    out.layers.push_back(std::move(own));
  }
  return out;
}

}  // namespace

const FamilyInfo& kimi_linear_family() {
  static const FamilyInfo info{
      .architecture = "kimi-linear",
      .summary = "Kimi Linear",
      .pre_tokenizer = "kimi-k2",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), latent_keys(), channel_delta_keys(), kKimiLinearKeys,
               dense_keys(), expert_count_keys(), mixture_keys(), router_keys(), leading_dense_keys(),
               shared_count_keys()},
      .tensors = {decoder_tensors(), latent_tensors(), channel_delta_tensors(), feed_norm_tensors(), dense_tensors(),
                  mixture_tensors(), select_bias_tensors(), shared_expert_tensors()},
      .configure = configure_kimi_linear,
      .toy = {{"layers", 4},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 1},
              {"attention_interval", 4},
              {"delta_state", 32},
              {"taps", 4},
              {"latent", 32},
              {"latent_key", 48},
              {"latent_value", 32},
              {"rotated", 16},
              {"hidden", 128},
              {"leading_dense", 1},
              {"experts", 8},
              {"used", 2},
              {"expert_hidden", 32},
              {"shared", 1},
              {"score", 2},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0}},
  };
  return info;
}

}  // namespace tw::model
