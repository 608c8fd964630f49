// Gemma 4: windowed layers have heads of their own width and turn by their own base; values are normed; the last layers
// may read the caches of earlier ones; a layer may read an input of its own, scale its output, and run a mixture beside
// its dense network.

#include <fmt/format.h>

#include <cmath>

#include "model/registry.h"
#include "model/window.h"

namespace tw::model {

namespace {

constexpr KeySpec kGemma4Keys[] = {
    {.key = "final_logit_softcapping", .type = KeyType::Real, .fallback = 0, .low = 0, .high = 1e6},
    {.key = "attention.sliding_window", .need = Need::Required, .high = 1 << 30},
    {.key = "attention.sliding_window_pattern", .type = KeyType::Flags, .need = Need::Required, .high = 1},
    {.key = "attention.key_length", .need = Need::Required, .low = 2, .high = 65536},
    {.key = "attention.value_length", .need = Need::Required, .low = 1, .high = 65536},
    {.key = "attention.key_length_swa", .need = Need::Required, .low = 2, .high = 65536},
    {.key = "attention.value_length_swa", .need = Need::Required, .low = 1, .high = 65536},
    {.key = "attention.shared_kv_layers", .fallback = 0, .high = 4096},
    {.key = "attention.scale", .type = KeyType::Real, .fallback = 1, .low = 1, .high = 1, .feature = "scaled scores"},
    {.key = "rope.dimension_count_swa", .low = 2, .high = 65536},
};

constexpr TensorSpec kGemma4Tensors[] = {
    {.pattern = "blk.*.attn_q.weight", .shape = "width q", .part = Part::Attention},
    {.pattern = "blk.*.attn_q_norm.weight", .shape = "head", .part = Part::Attention, .content = Content::Norm},
    {.pattern = "blk.*.attn_k.weight", .shape = "width k", .part = Part::OwnCaches},
    {.pattern = "blk.*.attn_k_norm.weight", .shape = "head", .part = Part::OwnCaches, .content = Content::Norm},
    // Without it the keys, before their norm, are the values.
    {.pattern = "blk.*.attn_v.weight",
     .shape = "width v",
     .part = Part::OwnCaches,
     .need = Need::Optional,
     .written_with = "own_values"},
    // Some files keep what a layer that reads another's caches has no use for.
    {.pattern = "blk.*.attn_k.weight", .shape = "width k", .part = Part::OthersCaches, .need = Need::Optional},
    {.pattern = "blk.*.attn_v.weight", .shape = "width v", .part = Part::OthersCaches, .need = Need::Optional},
    {.pattern = "blk.*.attn_k_norm.weight",
     .shape = "head",
     .part = Part::OthersCaches,
     .need = Need::Optional,
     .content = Content::Norm},
    {.pattern = "blk.*.attn_output.weight", .shape = "o width", .part = Part::Attention},
    {.pattern = "rope_freqs.weight", .shape = "pairs", .part = Part::Model, .content = Content::Frequencies},
    {.pattern = "blk.*.layer_output_scale.weight",
     .shape = "one",
     .need = Need::Optional,
     .content = Content::Norm,
     .written_with = "output_scales"},
};

Result<RopeSpec> read_window_rope(const Hyper& hyper) {
  const uint32_t head = hyper.count("attention.key_length_swa");
  RopeSpec rope{.width = hyper.has("rope.dimension_count_swa") ? hyper.count("rope.dimension_count_swa") : head,
                .base = window_base(hyper, 10000)};
  if (rope.width % 2 != 0 || rope.width > head)
    return refuse(RefusalKind::Malformed, hyper.subject("rope.dimension_count_swa"),
                  fmt::format("is {}; expected an even number up to the head's width, {}", rope.width, head));
  return rope;
}

// The last layer before `end` of the same kind, whose caches a later layer reads.
Result<uint32_t> cache_layer(const Hyper& hyper, uint32_t layer, uint32_t end) {
  const std::vector<int64_t>& windowed = hyper.list("attention.sliding_window_pattern");
  for (uint32_t earlier = end; earlier-- > 0;)
    if ((windowed[earlier] != 0) == (windowed[layer] != 0)) return earlier;
  return refuse(RefusalKind::Malformed, hyper.subject("attention.shared_kv_layers"),
                fmt::format("layer {} reads the caches of an earlier layer, and none of its kind is among the first {}",
                            layer, end));
}

Result<Attention> read_layer_attention(const Hyper& hyper, const Decoder& decoder, uint32_t layer, bool windowed) {
  TW_TRY(Attention out, read_attention(hyper, layer));
  if (windowed) {
    out.key_width = hyper.count("attention.key_length_swa");
    out.value_width = hyper.count("attention.value_length_swa");
    out.window = {graph::Window::Kind::Sliding, hyper.count("attention.sliding_window")};
    out.rope = "rope_window";
  }
  if (out.key_width != out.value_width)
    return refuse(RefusalKind::Unsupported,
                  hyper.subject(windowed ? "attention.value_length_swa" : "attention.value_length"),
                  fmt::format("is {}, and keys are {} wide; architecture gemma4 needs them equal", out.value_width,
                              out.key_width));
  out.scale = 1;
  out.rotated = (windowed ? decoder.window_rope : decoder.rope).width;
  out.head_norms = true;
  out.value_norms = true;
  return out;
}

// Gives the layers their feed-forward halves: dense, or with experts a dense network and a mixture.
Result<void> read_feeds(const Hyper& hyper, Decoder& decoder) {
  const bool mixtures = hyper.count("expert_count") > 0;
  MixtureFeedForward mixture;
  if (mixtures) {
    decoder.feed_norm = {};
    TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
    TW_TRY(mixture, read_mixture(hyper, hidden));
    mixture.act.kind = graph::MoeAct::Kind::GeGlu;
  }
  for (uint32_t layer = 0; layer < decoder.layers.size(); ++layer) {
    const DenseFeedForward dense{hyper.count("feed_forward_length", layer), graph::ActivationKind::GeluTanh};
    if (mixtures)
      decoder.layers[layer].feed = PairedFeedForward{dense, mixture, decoder.width, decoder.eps};
    else
      decoder.layers[layer].feed = dense;
  }
  return {};
}

Result<Decoder> configure_gemma4(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  out.post_mix_norm = "post_attention_norm";
  out.post_feed_norm = "post_ffw_norm";
  out.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(out.width)));
  out.logit_softcap = static_cast<float>(hyper.real("final_logit_softcapping"));
  const uint32_t layers = layer_count(hyper);
  out.inputs = read_layer_inputs(hyper, layers);
  TW_TRY(out.rope, read_rope(hyper, hyper.count("attention.key_length")));
  TW_TRY(out.window_rope, read_window_rope(hyper));
  const uint32_t shared = hyper.count("attention.shared_kv_layers");
  if (shared >= layers)
    return refuse(RefusalKind::Malformed, hyper.subject("attention.shared_kv_layers"),
                  fmt::format("is {}, and there are {} layers in all", shared, layers));
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const bool windowed = hyper.list("attention.sliding_window_pattern")[layer] != 0;
    TW_TRY(Attention attention, read_layer_attention(hyper, out, layer, windowed));
    if (layer >= layers - shared) {
      TW_TRY(const uint32_t source, cache_layer(hyper, layer, layers - shared));
      const uint32_t theirs = std::get<Attention>(out.layers[source].mix).kv_heads;
      if (attention.kv_heads != theirs)
        return refuse(RefusalKind::Malformed, hyper.subject("attention.head_count_kv"),
                      fmt::format("layer {} has {} key/value heads, and layer {}, whose caches it reads, {}", layer,
                                  attention.kv_heads, source, theirs));
      attention.caches_of = source;
    }
    out.layers.emplace_back().mix = attention;
  }
  TW_TRY_VOID(read_feeds(hyper, out));
  return out;
}

}  // namespace

const FamilyInfo& gemma4_family() {
  static const FamilyInfo info{
      .architecture = "gemma4",
      .summary = "Gemma 4",
      .pre_tokenizer = "default",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys(), window_keys(), optional_expert_count_keys(),
               mixture_keys(), layer_input_keys(), kGemma4Keys},
      .tensors = {decoder_tensors(), layer_input_tensors(), kGemma4Tensors, post_attention_norm_tensors(),
                  feed_norm_tensors(), post_feed_norm_tensors(), dense_tensors(), mixture_tensors(), paired_tensors()},
      .configure = configure_gemma4,
      .toy = {{"layers", 4},        {"width", 64},        {"heads", 4},           {"kv_heads", 2},
              {"head", 32},         {"window_head", 16},  {"hidden", 128},        {"experts", 0},
              {"used", 0},          {"expert_hidden", 0}, {"window", 16},         {"full_interval", 2},
              {"shared_caches", 2}, {"layer_input", 32},  {"own_values", 1},      {"output_scales", 1},
              {"expert_scales", 1}, {"logit_cap", 30},    {"rope_base", 1000000}, {"vocabulary", 384},
              {"context", 2048},    {"tied", 1}},
  };
  return info;
}

}  // namespace tw::model
