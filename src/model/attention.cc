#include "model/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "model/pair_order.h"

namespace tw::model {

using graph::TensorId;

namespace {

constexpr KeySpec kAttentionKeys[] = {
    {.key = "attention.head_count", .type = KeyType::PerLayer, .need = Need::Required, .low = 1, .high = 4096},
    {.key = "attention.head_count_kv", .type = KeyType::PerLayer, .low = 1, .high = 4096},
    {.key = "attention.key_length", .low = 2, .high = 65536},
    {.key = "attention.value_length", .low = 1, .high = 65536},
    {.key = "attention.layer_norm_rms_epsilon", .type = KeyType::Real, .need = Need::Required, .low = 1e-12, .high = 1},
    {.key = "attention.scale", .type = KeyType::Real, .fallback = 0, .low = 0, .high = 1e3},
    {.key = "attention.sliding_window", .high = 0, .feature = "a sliding window"},
    {.key = "attention.chunk_size", .high = 0, .feature = "chunked attention"},
    {.key = "attention.causal",
     .type = KeyType::Flag,
     .fallback = 1,
     .low = 1,
     .high = 1,
     .feature = "attention to the future"},
    {.key = "attention.clamp_kqv", .type = KeyType::Real, .high = 0, .feature = "clamped projections"},
    {.key = "attention.max_alibi_bias", .type = KeyType::Real, .high = 0, .feature = "position biases"},
    {.key = "attention.temperature_scale", .type = KeyType::Real, .high = 0, .feature = "an attention temperature"},
    {.key = "attn_logit_softcapping", .type = KeyType::Real, .high = 0, .feature = "capped attention scores"},
    {.key = "use_parallel_residual", .type = KeyType::Flag, .high = 0, .feature = "parallel residuals"},
};

constexpr std::string_view kFused = "blk.*.attn_qkv.weight";
constexpr std::string_view kFusedBias = "blk.*.attn_qkv.bias";

constexpr TensorSpec kAttentionTensors[] = {
    {.pattern = kFused, .shape = "width qkv", .part = Part::Attention, .need = Need::Optional},
    {.pattern = "blk.*.attn_q.weight", .shape = "width q", .part = Part::Attention, .unless = kFused},
    {.pattern = "blk.*.attn_k.weight", .shape = "width k", .part = Part::Attention, .unless = kFused},
    {.pattern = "blk.*.attn_v.weight", .shape = "width v", .part = Part::Attention, .unless = kFused},
    {.pattern = "blk.*.attn_output.weight", .shape = "o width", .part = Part::Attention},
};

constexpr TensorSpec kBiases[] = {
    {.pattern = kFusedBias, .shape = "qkv", .part = Part::Attention, .need = Need::Optional, .content = Content::Bias},
    {.pattern = "blk.*.attn_q.bias",
     .shape = "q",
     .part = Part::Attention,
     .need = Need::Optional,
     .content = Content::Bias,
     .unless = kFusedBias,
     .written_with = "biases"},
    {.pattern = "blk.*.attn_k.bias",
     .shape = "k",
     .part = Part::Attention,
     .need = Need::Optional,
     .content = Content::Bias,
     .unless = kFusedBias,
     .written_with = "biases"},
    {.pattern = "blk.*.attn_v.bias",
     .shape = "v",
     .part = Part::Attention,
     .need = Need::Optional,
     .content = Content::Bias,
     .unless = kFusedBias,
     .written_with = "biases"},
};

constexpr TensorSpec kOutputBias[] = {
    {.pattern = "blk.*.attn_output.bias",
     .shape = "width",
     .part = Part::Attention,
     .need = Need::Optional,
     .content = Content::Bias,
     .written_with = "biases"},
};

constexpr TensorSpec kHeadNorms[] = {
    {.pattern = "blk.*.attn_q_norm.weight", .shape = "head", .part = Part::Attention, .content = Content::Norm},
    {.pattern = "blk.*.attn_k_norm.weight", .shape = "head", .part = Part::Attention, .content = Content::Norm},
};

constexpr TensorSpec kOptionalHeadNorms[] = {
    {.pattern = "blk.*.attn_q_norm.weight",
     .shape = "head",
     .part = Part::Attention,
     .need = Need::Optional,
     .content = Content::Norm},
    {.pattern = "blk.*.attn_k_norm.weight",
     .shape = "head",
     .part = Part::Attention,
     .need = Need::Optional,
     .content = Content::Norm},
};

constexpr TensorSpec kRowNorms[] = {
    {.pattern = "blk.*.attn_q_norm.weight", .shape = "q", .part = Part::Attention, .content = Content::Norm},
    {.pattern = "blk.*.attn_k_norm.weight", .shape = "k", .part = Part::Attention, .content = Content::Norm},
};

constexpr TensorSpec kSinks[] = {
    {.pattern = "blk.*.attn_sinks.weight", .shape = "heads", .part = Part::Attention, .content = Content::Bias},
};

}  // namespace

KeyTable attention_keys() { return kAttentionKeys; }
TensorTable attention_tensors() { return kAttentionTensors; }
TensorTable attention_bias_tensors() { return kBiases; }
TensorTable attention_output_bias_tensors() { return kOutputBias; }
TensorTable head_norm_tensors() { return kHeadNorms; }
TensorTable optional_head_norm_tensors() { return kOptionalHeadNorms; }
TensorTable row_norm_tensors() { return kRowNorms; }
TensorTable sink_tensors() { return kSinks; }

Result<Attention> read_attention(const Hyper& hyper, uint32_t layer) {
  Attention out;
  const uint32_t width = hyper.count("embedding_length");
  out.heads = hyper.count("attention.head_count", layer);
  out.kv_heads = hyper.has("attention.head_count_kv") ? hyper.count("attention.head_count_kv", layer) : out.heads;
  if (out.heads % out.kv_heads != 0)
    return refuse(RefusalKind::Malformed, hyper.subject("attention.head_count_kv"),
                  fmt::format("is {}, which does not divide the {} query heads", out.kv_heads, out.heads));
  const bool has_widths = hyper.has("attention.key_length") && hyper.has("attention.value_length");
  if (!has_widths && width % out.heads != 0)
    return refuse(RefusalKind::Malformed, hyper.subject("attention.head_count"),
                  fmt::format("is {}, which does not divide the width {}, and the file gives no widths of heads",
                              out.heads, width));
  const auto head_width = [&](std::string_view key) { return hyper.has(key) ? hyper.count(key) : width / out.heads; };
  out.key_width = head_width("attention.key_length");
  out.value_width = head_width("attention.value_length");
  const double scale = hyper.real("attention.scale");
  out.scale = static_cast<float>(scale == 0 ? 1 / std::sqrt(static_cast<double>(out.key_width)) : scale);
  out.eps = static_cast<float>(hyper.real("attention.layer_norm_rms_epsilon"));
  return out;
}

void Attention::add_dims(Dims& dims) const {
  dims["q"] = query_rows();
  dims["k"] = uint64_t{kv_heads} * key_width;
  dims["v"] = uint64_t{kv_heads} * value_width;
  dims["qkv"] = dims["q"] + dims["k"] + dims["v"];
  dims["o"] = uint64_t{heads} * value_width;
  dims["head"] = key_width;
  dims["heads"] = heads;
}

void Attention::place(Placer& placer, const std::string& block) const {
  struct Projection {
    std::string_view name;
    uint32_t heads;
    uint32_t width;
    uint32_t rotated;
  };
  const uint32_t pairs = adjacent_pairs ? rotated : 0;
  const Projection parts[] = {{"attn_q", heads, key_width * (gated ? 2 : 1), pairs},
                              {"attn_k", kv_heads, key_width, pairs},
                              {"attn_v", kv_heads, value_width, 0}};
  uint32_t from = 0;
  for (const Projection& part : parts) {
    if (caches_of && part.name != "attn_q") break;
    for (const std::string_view kind : {".weight", ".bias"}) {
      const std::string fused = fmt::format("{}attn_qkv{}", block, kind);
      const std::string name = fmt::format("{}{}{}", block, part.name, kind);
      const bool is_fused = placer.has(fused);
      if (!is_fused && !placer.has(name)) continue;
      const uint32_t first = is_fused ? from : 0;
      const std::string& source = is_fused ? fused : name;
      const bool in_order = part.rotated == 0;
      if (kind == ".bias")
        placer.vector(name, source, split_half_order({first, part.heads, part.width, 0, part.rotated}));
      else if (in_order)
        placer.matrix(name, source, RowRange{first, uint64_t{part.heads} * part.width});
      else
        placer.matrix(name, source, split_half_order({first, part.heads, part.width, 0, part.rotated}));
    }
    from += part.heads * part.width;
  }
  placer.matrix(block + "attn_output.weight", block + "attn_output.weight");
  if (placer.has(block + "attn_output.bias")) placer.vector(block + "attn_output.bias", block + "attn_output.bias");
  if (placer.has(block + "attn_sinks.weight")) placer.vector(block + "attn_sinks.weight", block + "attn_sinks.weight");
  if (!head_norms && !row_norms) return;
  const auto place_norm = [&](std::string_view part, uint32_t spanned) {
    const std::string name = fmt::format("{}{}_norm.weight", block, part);
    placer.vector(name, name, split_half_order({0, spanned, key_width, 0, pairs}));
  };
  place_norm("attn_q", row_norms ? heads : 1);
  if (!caches_of) place_norm("attn_k", row_norms ? kv_heads : 1);
}

TensorId Attention::write_heads(SequenceWriter& own, const std::string& block, std::string_view which,
                                TensorId all) const {
  const auto named = [&](std::string_view what) { return fmt::format("{}{}_{}", block, which, what); };
  TensorId rows = own.rows(named("row"), all);
  if (head_norms || row_norms)
    rows = own.add(named("norm"), graph::RowNorm{.eps = eps, .width = row_norms ? 0 : key_width},
                   {rows, own.step().constant(fmt::format("{}attn_{}_norm.weight", block, which))});
  const auto turn = [&](std::string_view what, const std::string& tables, uint32_t half) {
    rows = own.add(named(what), graph::Rope{.width = key_width, .half = half},
                   {rows, own.step().constant(tables + ".cos"), own.step().constant(tables + ".sin"), own.position()});
  };
  if (rotated > 0) turn("rope", rope, rotated / 2);
  if (tempered && which == "q") turn("tempered", "temperature", key_width / 2);
  if (unit_heads) rows = own.add(named("unit"), graph::RowNorm{.eps = eps, .width = key_width}, {rows});
  return rows;
}

Attention::Caches Attention::write_caches(SequenceWriter& own, const std::string& block, TensorId k, TensorId v) const {
  const std::string stem = caches_of ? fmt::format("blk.{}.", *caches_of) : block;
  const Caches caches{own.state(stem + "k_cache", own.step().context(), kv_heads * key_width),
                      own.state(stem + "v_cache", own.step().context(), kv_heads * value_width)};
  if (caches_of) return caches;
  own.set_cache(caches.keys, write_heads(own, block, "k", k));
  TensorId rows = own.rows(block + "v_row", v);
  if (value_norms) rows = own.add(block + "v_norm", graph::RowNorm{.eps = eps, .width = value_width}, {rows});
  own.set_cache(caches.values, rows);
  return caches;
}

TensorId Attention::write(StepWriter& step, const std::string& block, TensorId x) const {
  TensorId q = step.product(block + "q", x, block + "attn_q");
  const TensorId k = caches_of ? graph::kNoTensor : step.product(block + "k", x, block + "attn_k");
  const TensorId v = step.has(block + "attn_v.weight") ? step.product(block + "v", x, block + "attn_v") : k;
  TensorId gate = graph::kNoTensor;
  if (gated) {
    const TensorId both = q;
    q = step.add(block + "query", graph::HeadSlice{2 * key_width, 0, key_width}, {both});
    gate = step.add(block + "gate", graph::HeadSlice{2 * key_width, key_width, key_width}, {both});
  }
  TensorId out = step.each_sequence(block + "attn", heads * value_width, [&](SequenceWriter& own) {
    const TensorId own_q = write_heads(own, block, "q", q);
    const Caches caches = write_caches(own, block, k, v);
    return own.add(
        block + "attn",
        graph::Attention{.heads = heads, .kv_heads = kv_heads, .scale = scale, .softcap = softcap, .window = window},
        {own_q, caches.keys, caches.values, own.position(), step.optional(block + "attn_sinks.weight")});
  });
  if (gated) {
    const TensorId open = step.activate(block + "gate_sigmoid", graph::ActivationKind::Sigmoid, gate);
    out = step.elementwise(block + "attn_gated", graph::Arithmetic::Mul, out, open);
  }
  return step.product(block + "attn_out", out, block + "attn_output");
}

}  // namespace tw::model
