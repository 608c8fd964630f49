// Llama 4 Scout and Maverick: layers that rotate and attend aligned chunks of positions, every fourth one attending
// everything without a rotation, its queries scaled up with the position; mixtures in every layer or every second, the
// one chosen expert's score weighing its input, with a shared expert.

#include <fmt/format.h>

#include "model/registry.h"

namespace tw::model {

namespace {

// No file says these; they belong to the architecture.
constexpr uint32_t kChunk = 8192;
constexpr uint32_t kPeriod = 4;
constexpr double kTemperatureScale = 0.1;

constexpr KeySpec kLlama4Keys[] = {
    {.key = "interleave_moe_layer_step", .need = Need::Required, .low = 1, .high = 4096},
    {.key = "attention.sliding_window",
     .fallback = kChunk,
     .low = kChunk,
     .high = kChunk,
     .feature = "chunks of attention other than 8192"},
    {.key = "attention.chunk_size",
     .fallback = kChunk,
     .low = kChunk,
     .high = kChunk,
     .feature = "chunks of attention other than 8192"},
    {.key = "attention.sliding_window_pattern",
     .type = KeyType::Pattern,
     .fallback = kPeriod,
     .low = kPeriod,
     .high = kPeriod,
     .feature = "another pattern of layers than every fourth"},
    {.key = "rope.freq_base_swa", .type = KeyType::Real, .high = 0, .feature = "another rotation in chunked layers"},
    {.key = "expert_gating_func", .fallback = 2, .low = 2, .high = 2, .feature = "a router other than sigmoid (2)"},
};

// A query is stretched as a rotation stretches pairs.
Result<void> check_pairs(const Hyper& hyper, const Attention& attention) {
  if (attention.key_width % 2 == 0) return {};
  return refuse(RefusalKind::Malformed, hyper.subject("attention.key_length"),
                fmt::format("is {}; expected an even number", attention.key_width));
}

// The smaller model norms the heads of queries and keys; the larger one, known by its 128 experts, does not.
bool norms_heads(const MixtureFeedForward& mixture) { return mixture.experts != 128; }

Attention chunked(Attention attention, uint32_t rotated, bool unit_heads) {
  attention.rotated = rotated;
  attention.adjacent_pairs = true;
  attention.unit_heads = unit_heads;
  attention.window = {graph::Window::Kind::Chunked, kChunk};
  return attention;
}

Attention whole(Attention attention) {
  attention.tempered = true;
  return attention;
}

Result<Decoder> configure_llama4(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
  TW_TRY(MixtureFeedForward mixture,
         read_mixture(hyper, hidden, {.score = graph::ScoreKind::Sigmoid, .renormalize = false}));
  mixture.renormalize = false;
  mixture.weigh_inputs = true;
  mixture.shared_hidden = hidden;
  const uint32_t step = hyper.count("interleave_moe_layer_step");
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(const Attention attention, read_attention(hyper, layer));
    TW_TRY_VOID(check_pairs(hyper, attention));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    out.temperature = {attention.key_width / 2, kTemperatureScale, kChunk};
    DecoderLayer own;
    own.mix = (layer + 1) % kPeriod == 0 ? whole(attention) : chunked(attention, out.rope.width, norms_heads(mixture));
    if ((layer + 1) % step == 0)
      own.feed = mixture;
    else
      own.feed = DenseFeedForward{hyper.count("feed_forward_length", layer)};
    out.layers.push_back(std::move(own));
  }
  return out;
}

}  // namespace

const FamilyInfo& llama4_family() {
  static const FamilyInfo info{
      .architecture = "llama4",
      .summary = "Llama 4",
      .pre_tokenizer = "llama4",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys(), expert_count_keys(), mixture_keys(),
               kLlama4Keys},
      .tensors = {decoder_tensors(), rope_divisor_tensors(), attention_tensors(), feed_norm_tensors(), dense_tensors(),
                  mixture_tensors(), shared_expert_tensors()},
      .configure = configure_llama4,
      .toy = {{"layers", 4},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 32},
              {"hidden", 128},
              {"moe_step", 2},
              {"experts", 4},
              {"used", 1},
              {"expert_hidden", 32},
              {"rope_base", 500000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0},
              {"rope_divisors", 0}},
  };
  return info;
}

}  // namespace tw::model
