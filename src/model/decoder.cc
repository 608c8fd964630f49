#include "model/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tw::model {

using graph::TensorId;

namespace {

constexpr KeySpec kDecoderKeys[] = {
    {.key = "block_count", .need = Need::Required, .low = 1, .high = 4096},
    {.key = "nextn_predict_layers", .fallback = 0, .high = 4095},
    {.key = "context_length", .need = Need::Required, .low = 1},
    {.key = "embedding_length", .need = Need::Required, .low = 1, .high = 1 << 24},
    {.key = "vocab_size", .low = 1, .high = 1 << 28},
    {.key = "embedding_scale", .type = KeyType::Real, .high = 0, .feature = "a scaled embedding"},
    {.key = "residual_scale", .type = KeyType::Real, .high = 0, .feature = "scaled residuals"},
    {.key = "logit_scale", .type = KeyType::Real, .high = 0, .feature = "scaled logits"},
    {.key = "final_logit_softcapping", .type = KeyType::Real, .high = 0, .feature = "capped logits"},
};

constexpr TensorSpec kDecoderTensors[] = {
    {.pattern = "token_embd.weight", .shape = "width vocabulary", .part = Part::Model},
    {.pattern = "output.weight", .shape = "width vocabulary", .part = Part::Model, .need = Need::Optional},
    {.pattern = "output_norm.weight", .shape = "width", .part = Part::Model, .content = Content::Norm},
    {.pattern = "blk.*.attn_norm.weight", .shape = "width", .content = Content::Norm},
};

constexpr TensorSpec kHeadBias[] = {
    {.pattern = "output.bias",
     .shape = "vocabulary",
     .part = Part::Model,
     .need = Need::Optional,
     .content = Content::Bias},
};

constexpr TensorSpec kFeedNorm[] = {
    {.pattern = "blk.*.ffn_norm.weight", .shape = "width", .content = Content::Norm},
};
constexpr TensorSpec kPostAttentionNorm[] = {
    {.pattern = "blk.*.post_attention_norm.weight", .shape = "width", .content = Content::Norm},
};
constexpr TensorSpec kPostFeedNorm[] = {
    {.pattern = "blk.*.post_ffw_norm.weight", .shape = "width", .content = Content::Norm},
};
constexpr TensorSpec kRopeDivisors[] = {
    {.pattern = "rope_freqs.weight",
     .shape = "pairs",
     .part = Part::Model,
     .need = Need::Optional,
     .content = Content::Frequencies,
     .written_with = "rope_divisors"},
};

std::string block_name(size_t layer) { return fmt::format("blk.{}.", layer); }

// The rows of the vocabulary: vocab_size, or the embedding's rows when the file does not say.
Result<uint32_t> read_vocabulary(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  if (hyper.has("vocab_size")) return hyper.count("vocab_size");
  const gguf::TensorInfo* embedding = checkpoint.find_tensor("token_embd.weight");
  if (embedding == nullptr)
    return refuse(
        RefusalKind::Missing, fmt::format("{}: tensor token_embd.weight", checkpoint.label()),
        fmt::format("the file has no such tensor; expected shape [{}, vocabulary]", hyper.count("embedding_length")));
  if (embedding->rows() > (1U << 28))
    return refuse(RefusalKind::TooLarge, fmt::format("{}: tensor token_embd.weight", checkpoint.label()),
                  fmt::format("it has {} rows; the vocabulary is at most {}", embedding->rows(), 1U << 28));
  return static_cast<uint32_t>(embedding->rows());
}

}  // namespace

KeyTable decoder_keys() { return kDecoderKeys; }
TensorTable decoder_tensors() { return kDecoderTensors; }
TensorTable embedding_tensors() { return TensorTable(kDecoderTensors).first(2); }
TensorTable output_norm_tensors() { return TensorTable(kDecoderTensors).subspan(2, 1); }
TensorTable mix_norm_tensors() { return TensorTable(kDecoderTensors).last(1); }
TensorTable head_bias_tensors() { return kHeadBias; }
TensorTable feed_norm_tensors() { return kFeedNorm; }
TensorTable post_attention_norm_tensors() { return kPostAttentionNorm; }
TensorTable post_feed_norm_tensors() { return kPostFeedNorm; }
TensorTable rope_divisor_tensors() { return kRopeDivisors; }

uint32_t layer_count(const Hyper& hyper) { return hyper.count("block_count") - hyper.count("nextn_predict_layers"); }

Result<Decoder> read_decoder(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  Decoder out;
  out.blocks = hyper.count("block_count");
  if (hyper.count("nextn_predict_layers") >= out.blocks)
    return refuse(
        RefusalKind::Malformed, hyper.subject("nextn_predict_layers"),
        fmt::format("is {}, and there are {} blocks in all", hyper.count("nextn_predict_layers"), out.blocks));
  out.width = hyper.count("embedding_length");
  out.trained_context = hyper.count("context_length");
  out.eps = static_cast<float>(hyper.real("attention.layer_norm_rms_epsilon"));
  TW_TRY(out.vocabulary, read_vocabulary(hyper, checkpoint));
  return out;
}

void set_window(const Decoder& decoder, const graph::Window& window, Attention& attention) {
  attention.window = window;
  if (window.kind != graph::Window::Kind::None && decoder.window_rope != decoder.rope) attention.rope = "rope_window";
}

Layout layout_of(const Decoder& decoder) {
  Layout out;
  out.blocks = decoder.blocks;
  out.dims = {
      {"width", decoder.width}, {"vocabulary", decoder.vocabulary}, {"pairs", decoder.rope.pairs()}, {"one", 1}};
  const bool inputs = decoder.inputs.width > 0;
  decoder.inputs.add_dims(out.dims);
  if (inputs) out.parts.push_back(Part::ModelInputs);
  for (const DecoderLayer& layer : decoder.layers) {
    LayerLayout own{{Part::Layer}, out.dims};
    const auto add = [&](const auto& part) {
      part.add_dims(own.dims);
      const std::vector<Part> parts = part.parts();
      own.parts.insert(own.parts.end(), parts.begin(), parts.end());
    };
    std::visit(add, layer.mix);
    std::visit(add, layer.feed);
    if (inputs) own.parts.push_back(Part::LayerInput);
    out.layers.push_back(std::move(own));
  }
  return out;
}

namespace {

// The divisors of the frequencies that the file has, for the rotation they belong to.
Result<void> read_divisors(const Placer& placer, RopeSpec& rope) {
  if (!placer.has(kRopeDivisors[0].pattern)) return {};
  const std::vector<float> divisors = placer.widened(kRopeDivisors[0].pattern);
  for (const float divisor : divisors)
    if (!(std::abs(divisor) > 0))
      return refuse(RefusalKind::Malformed, placer.subject(kRopeDivisors[0].pattern),
                    fmt::format("it holds {}, and frequencies are divided by its values", divisor));
  rope.divisors.assign(divisors.begin(), divisors.end());
  return {};
}

// A layer's factor, where the file has one, as a row.
void place_output_scale(Placer& placer, const std::string& name, uint32_t width) {
  if (placer.has(name)) placer.values(name, {1, width}, std::vector<float>(width, placer.widened(name)[0]));
}

void place_tables(Placer& placer, std::string_view name, Extent extent, RopeTables tables) {
  placer.values(fmt::format("{}.cos", name), extent, std::move(tables.cos));
  placer.values(fmt::format("{}.sin", name), extent, std::move(tables.sin));
}

// The tables under the prefix `name`, when a layer reads them.
void place_rotation(Placer& placer, const Decoder& decoder, std::string_view name, const RopeSpec& rope,
                    uint32_t context) {
  const bool read = std::any_of(decoder.layers.begin(), decoder.layers.end(), [&](const DecoderLayer& layer) {
    return std::visit([](const auto& mix) { return mix.rotation(); }, layer.mix) == name;
  });
  if (read) place_tables(placer, name, {context, rope.pairs()}, rope_tables(rope, context));
}

}  // namespace

Result<Weights> place_decoder(const gguf::Checkpoint& checkpoint, Decoder decoder, uint32_t context) {
  Placer placer(checkpoint);
  placer.table("token_embd.weight", "token_embd.weight");
  placer.matrix("output.weight", placer.has("output.weight") ? "output.weight" : "token_embd.weight");
  if (placer.has("output.bias")) placer.vector("output.bias", "output.bias");
  const auto norm = [&](const std::string& block, std::string_view stem) {
    const std::string name = fmt::format("{}{}.weight", block, stem);
    if (!stem.empty()) placer.vector(name, name);
  };
  norm("", decoder.final_norm);
  const bool inputs = decoder.inputs.width > 0;
  if (inputs) decoder.inputs.place(placer);
  for (size_t layer = 0; layer < decoder.layers.size(); ++layer) {
    const std::string block = block_name(layer);
    for (const std::string_view stem :
         {decoder.mix_norm, decoder.post_mix_norm, decoder.feed_norm, decoder.post_feed_norm})
      norm(block, stem);
    const auto place = [&](const auto& half) { half.place(placer, block); };
    std::visit(place, decoder.layers[layer].mix);
    std::visit(place, decoder.layers[layer].feed);
    if (inputs) decoder.inputs.place_layer(placer, block);
    place_output_scale(placer, block + "layer_output_scale.weight", decoder.width);
  }
  TW_TRY_VOID(read_divisors(placer, decoder.rope));
  place_rotation(placer, decoder, "rope", decoder.rope, context);
  place_rotation(placer, decoder, "rope_window", decoder.window_rope, context);
  if (const Temperature& temperature = decoder.temperature; temperature.pairs > 0)
    place_tables(placer, "temperature", {context, temperature.pairs}, temperature_tables(temperature, context));
  return std::move(placer).take();
}

graph::StepGraph write_decoder(const Decoder& decoder, const Weights& weights, std::string name, graph::Form form,
                               uint32_t context) {
  StepWriter step(weights, std::move(name), form, context);
  TensorId h = step.add("embedding", graph::RowsGather{}, {step.constant("token_embd.weight"), step.tokens()});
  h = step.scale("embedding_scaled", h, decoder.embedding_scale);
  const TensorId inputs = decoder.inputs.width > 0 ? decoder.inputs.write(step, h) : graph::kNoTensor;
  for (size_t layer = 0; layer < decoder.layers.size(); ++layer) {
    const std::string block = block_name(layer);
    const auto normed = [&](std::string_view norm, TensorId x) {
      const std::string stem = fmt::format("{}{}", block, norm);
      return norm.empty() ? x : step.rms_norm(stem, x, stem + ".weight", decoder.eps);
    };
    // h plus what a half of the layer makes of it.
    const auto add = [&](const auto& half, std::string_view before, std::string_view after, std::string_view made,
                         std::string_view sum) {
      const TensorId x = normed(before, h);
      const TensorId plain = std::visit([&](const auto& own) { return own.write(step, block, x); }, half);
      const TensorId scaled =
          step.scale(fmt::format("{}{}_scaled", block, made), normed(after, plain), decoder.residual_scale);
      h = step.elementwise(fmt::format("{}{}", block, sum), graph::Arithmetic::Add, h, scaled);
    };
    add(decoder.layers[layer].mix, decoder.mix_norm, decoder.post_mix_norm, "mix", "mixed");
    add(decoder.layers[layer].feed, decoder.feed_norm, decoder.post_feed_norm, "feed", "out");
    if (decoder.inputs.width > 0) h = decoder.inputs.write_layer(step, block, static_cast<uint32_t>(layer), h, inputs);
    if (const TensorId factor = step.optional(block + "layer_output_scale.weight"); factor != graph::kNoTensor)
      h = step.add(block + "out_scaled", graph::RowBroadcast{.op = graph::Arithmetic::Mul}, {h, factor});
  }
  const std::string final_norm = fmt::format("{}.weight", decoder.final_norm);
  step.finish_with_head(h, {.norm = final_norm,
                            .eps = decoder.eps,
                            .stem = "output",
                            .scale = decoder.logit_scale,
                            .softcap = decoder.logit_softcap});
  return std::move(step).finish();
}

}  // namespace tw::model
