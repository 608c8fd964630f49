#include "model/decoder.h"

#include <fmt/format.h>

#include <cmath>

namespace tw::model {

using graph::TensorId;

namespace {

constexpr KeySpec kKeys[] = {
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

constexpr TensorSpec kTensors[] = {
    {.pattern = "token_embd.weight", .shape = "width vocabulary", .part = Part::Model},
    {.pattern = "output_norm.weight", .shape = "width", .part = Part::Model, .content = Content::Norm},
    {.pattern = "output.weight", .shape = "width vocabulary", .part = Part::Model, .need = Need::Optional},
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

KeyTable decoder_keys() { return kKeys; }
TensorTable decoder_tensors() { return kTensors; }
TensorTable head_bias_tensors() { return kHeadBias; }
TensorTable feed_norm_tensors() { return kFeedNorm; }
TensorTable post_attention_norm_tensors() { return kPostAttentionNorm; }
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

Layout layout_of(const Decoder& decoder) {
  Layout out;
  out.blocks = decoder.blocks;
  out.dims = {{"width", decoder.width}, {"vocabulary", decoder.vocabulary}, {"pairs", decoder.rope.pairs()}};
  for (const DecoderLayer& layer : decoder.layers) {
    LayerLayout own{{Part::Layer}, out.dims};
    const auto add = [&](const auto& part) {
      part.add_dims(own.dims);
      const std::vector<Part> parts = part.parts();
      own.parts.insert(own.parts.end(), parts.begin(), parts.end());
    };
    std::visit(add, layer.mix);
    std::visit(add, layer.feed);
    out.layers.push_back(std::move(own));
  }
  return out;
}

Result<Weights> place_decoder(const gguf::Checkpoint& checkpoint, Decoder decoder, uint32_t context) {
  Placer placer(checkpoint);
  placer.table("token_embd.weight", "token_embd.weight");
  placer.matrix("output.weight", placer.has("output.weight") ? "output.weight" : "token_embd.weight");
  if (placer.has("output.bias")) placer.vector("output.bias", "output.bias");
  placer.vector("output_norm.weight", "output_norm.weight");
  for (size_t layer = 0; layer < decoder.layers.size(); ++layer) {
    const std::string block = block_name(layer);
    for (const std::string_view norm : {std::string_view("attn_norm"), decoder.feed_norm}) {
      const std::string name = fmt::format("{}{}.weight", block, norm);
      placer.vector(name, name);
    }
    std::visit([&](const auto& mix) { mix.place(placer, block); }, decoder.layers[layer].mix);
    std::visit([&](const auto& feed) { feed.place(placer, block); }, decoder.layers[layer].feed);
  }
  if (placer.has("rope_freqs.weight")) {
    const std::vector<float> divisors = placer.widened("rope_freqs.weight");
    for (const float divisor : divisors)
      if (!(std::abs(divisor) > 0))
        return refuse(RefusalKind::Malformed, fmt::format("{}: tensor rope_freqs.weight", checkpoint.label()),
                      fmt::format("it holds {}, and frequencies are divided by its values", divisor));
    decoder.rope.divisors.assign(divisors.begin(), divisors.end());
  }
  if (decoder.rope.pairs() == 0) return std::move(placer).take();
  RopeTables tables = rope_tables(decoder.rope, context);
  placer.values("rope.cos", {context, decoder.rope.pairs()}, std::move(tables.cos));
  placer.values("rope.sin", {context, decoder.rope.pairs()}, std::move(tables.sin));
  return std::move(placer).take();
}

graph::StepGraph write_decoder(const Decoder& decoder, const Weights& weights, std::string name, graph::Form form,
                               uint32_t context) {
  StepWriter step(weights, std::move(name), form, context);
  TensorId h = step.add("embedding", graph::RowsGather{}, {step.constant("token_embd.weight"), step.tokens()});
  for (size_t layer = 0; layer < decoder.layers.size(); ++layer) {
    const std::string block = block_name(layer);
    const auto normed = [&](std::string_view norm) {
      return step.rms_norm(fmt::format("{}{}", block, norm), h, fmt::format("{}{}.weight", block, norm), decoder.eps);
    };
    const TensorId mixed = std::visit([&](const auto& mix) { return mix.write(step, block, normed("attn_norm")); },
                                      decoder.layers[layer].mix);
    h = step.elementwise(block + "mixed", graph::Arithmetic::Add, h, mixed);
    const TensorId fed =
        std::visit([&](const auto& feed) { return feed.write(step, block, normed(decoder.feed_norm)); },
                   decoder.layers[layer].feed);
    h = step.elementwise(block + "out", graph::Arithmetic::Add, h, fed);
  }
  step.finish_with_head(h, "output_norm.weight", decoder.eps, "output");
  return std::move(step).finish();
}

}  // namespace tw::model
