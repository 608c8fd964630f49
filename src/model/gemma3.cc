// Gemma 3: norms of query and key heads; five layers windowed and turning by a base of their own, then one that attends
// everything and alone scales its rotation.

#include "model/gemma.h"
#include "model/registry.h"

namespace tw::model {

namespace {

constexpr KeySpec kGemma3Keys[] = {
    {.key = "final_logit_softcapping", .type = KeyType::Real, .fallback = 0, .low = 0, .high = 1e6},
};

Result<Decoder> configure_gemma3(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  return read_gemma(hyper, checkpoint,
                    {.windows = {.period = 6}, .window_base = 10000, .large_layers = 62, .head_norms = true});
}

std::vector<TensorTable> tensors() {
  std::vector<TensorTable> out = gemma_tensors();
  out.push_back(head_norm_tensors());
  return out;
}

}  // namespace

const FamilyInfo& gemma3_family() {
  static const FamilyInfo info{
      .architecture = "gemma3",
      .summary = "Gemma 3",
      .pre_tokenizer = "default",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys(), window_keys(), kGemma3Keys},
      .tensors = tensors(),
      .configure = configure_gemma3,
      .toy = {{"layers", 3},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 32},
              {"hidden", 128},
              {"window", 16},
              {"period", 3},
              {"logit_cap", 0},
              {"rope_base", 1000000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 1}},
  };
  return info;
}

}  // namespace tw::model
