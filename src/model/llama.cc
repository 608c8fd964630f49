// Llama 1 to 3, Mistral, Mixtral, TinyLlama: pre-norm, grouped-query attention rotating adjacent pairs, a dense gated
// network or (expert_count > 0) a mixture of experts. Optional biases; rope_freqs.weight divides the frequencies.

#include "model/registry.h"

namespace tw::model {

namespace {

Result<Decoder> configure_llama(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    attention.rotated = out.rope.width;
    attention.adjacent_pairs = true;
    if (hyper.count("expert_count") == 0) {
      out.layers.push_back({attention, DenseFeedForward{hyper.count("feed_forward_length", layer)}});
      continue;
    }
    TW_TRY(const MixtureFeedForward mixture, read_mixture(hyper, hyper.count("feed_forward_length", layer)));
    out.layers.push_back({attention, mixture});
  }
  return out;
}

}  // namespace

const FamilyInfo& llama_family() {
  static const FamilyInfo info{
      .architecture = "llama",
      .summary = "Llama 1 to 3, Mistral, Mixtral, TinyLlama",
      .pre_tokenizer = "llama-bpe",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys(), optional_expert_count_keys(),
               mixture_keys()},
      .tensors = {decoder_tensors(), rope_divisor_tensors(), attention_tensors(), attention_bias_tensors(),
                  attention_output_bias_tensors(), feed_norm_tensors(), dense_tensors(), dense_bias_tensors(),
                  mixture_tensors()},
      .configure = configure_llama,
      .toy = {{"layers", 2},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 16},
              {"hidden", 128},
              {"experts", 0},
              {"used", 0},
              {"rope_base", 10000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0},
              {"biases", 0},
              {"rope_divisors", 0}},
  };
  return info;
}

}  // namespace tw::model
