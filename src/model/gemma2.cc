// Gemma 2: capped attention scores and logits, every other layer windowed.

#include "model/gemma.h"
#include "model/registry.h"

namespace tw::model {

namespace {

constexpr KeySpec kGemma2Keys[] = {
    {.key = "attn_logit_softcapping", .type = KeyType::Real, .fallback = 50, .low = 1e-3, .high = 1e6},
    {.key = "final_logit_softcapping", .type = KeyType::Real, .fallback = 30, .low = 1e-3, .high = 1e6},
};

Result<Decoder> configure_gemma2(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  return read_gemma(hyper, checkpoint, {.windows = {.size = 4096, .period = 2}, .large_layers = 46});
}

}  // namespace

const FamilyInfo& gemma2_family() {
  static const FamilyInfo info{
      .architecture = "gemma2",
      .summary = "Gemma 2",
      .pre_tokenizer = "default",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys(), window_keys(), kGemma2Keys},
      .tensors = gemma_tensors(),
      .configure = configure_gemma2,
      .toy = {{"layers", 2},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 32},
              {"hidden", 128},
              {"window", 16},
              {"score_cap", 50},
              {"logit_cap", 30},
              {"rope_base", 10000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 1}},
  };
  return info;
}

}  // namespace tw::model
