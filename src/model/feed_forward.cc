#include "model/feed_forward.h"

#include <fmt/format.h>

namespace tw::model {

using graph::TensorId;

namespace {

constexpr KeySpec kDenseKeys[] = {
    {.key = "feed_forward_length", .type = KeyType::PerLayer, .need = Need::Required, .low = 1, .high = 1 << 28},
};

constexpr KeySpec kOptionalDenseKeys[] = {
    {.key = "feed_forward_length", .type = KeyType::PerLayer, .fallback = 0, .high = 1 << 28},
};

constexpr TensorSpec kDenseTensors[] = {
    {.pattern = "blk.*.ffn_gate.weight", .shape = "width hidden", .part = Part::Dense},
    {.pattern = "blk.*.ffn_up.weight", .shape = "width hidden", .part = Part::Dense},
    {.pattern = "blk.*.ffn_down.weight", .shape = "hidden width", .part = Part::Dense},
};

constexpr TensorSpec kDenseBiases[] = {
    {.pattern = "blk.*.ffn_gate.bias",
     .shape = "hidden",
     .part = Part::Dense,
     .need = Need::Optional,
     .content = Content::Bias},
    {.pattern = "blk.*.ffn_up.bias",
     .shape = "hidden",
     .part = Part::Dense,
     .need = Need::Optional,
     .content = Content::Bias},
    {.pattern = "blk.*.ffn_down.bias",
     .shape = "width",
     .part = Part::Dense,
     .need = Need::Optional,
     .content = Content::Bias},
};

constexpr KeySpec kExpertCounts[] = {
    {.key = "expert_count", .need = Need::Required, .low = 1, .high = 4096},
    {.key = "expert_used_count", .need = Need::Required, .low = 1, .high = 4096},
};

constexpr KeySpec kOptionalExpertCounts[] = {
    {.key = "expert_count", .fallback = 0, .high = 4096},
    {.key = "expert_used_count", .fallback = 0, .high = 4096},
};

constexpr KeySpec kMixtureKeys[] = {
    {.key = "expert_feed_forward_length", .low = 1, .high = 1 << 28},
    {.key = "expert_shared_feed_forward_length", .low = 0, .high = 1 << 28},
    {.key = "expert_weights_scale", .type = KeyType::Real, .fallback = 0, .low = 0, .high = 1e6},
    {.key = "expert_weights_norm",
     .type = KeyType::Flag,
     .fallback = 1,
     .low = 1,
     .high = 1,
     .feature = "experts' weights that are not renormalized"},
    {.key = "expert_gating_func", .fallback = 1, .low = 1, .high = 1, .feature = "a router other than softmax (1)"},
    {.key = "expert_group_count", .fallback = 1, .high = 1, .feature = "a router with groups of experts"},
    {.key = "expert_group_used_count", .fallback = 1, .high = 4096},
    {.key = "leading_dense_block_count", .high = 0, .feature = "dense layers before the mixtures"},
    {.key = "moe_every_n_layers", .high = 1, .feature = "dense layers between the mixtures"},
};

constexpr KeySpec kRouterKeys[] = {
    {.key = "expert_weights_norm", .type = KeyType::Flag, .high = 1},
    // 1: softmax, 2: sigmoid, 3: softmax over the chosen, which is softmax over all, renormalized.
    {.key = "expert_gating_func", .low = 1, .high = 3, .feature = "a router that is neither softmax nor sigmoid"},
    {.key = "expert_group_count", .fallback = 1, .high = 4096},
    {.key = "expert_group_used_count", .fallback = 1, .high = 4096},
};

constexpr KeySpec kLeadingDense[] = {
    {.key = "leading_dense_block_count", .high = 4096},
};

constexpr KeySpec kSharedCount[] = {
    {.key = "expert_shared_count", .high = 4096},
};

constexpr std::string_view kGateUp = "blk.*.ffn_gate_up_exps.weight";

constexpr TensorSpec kMixtureTensors[] = {
    {.pattern = "blk.*.ffn_gate_inp.weight",
     .shape = "width experts",
     .part = Part::Mixture,
     .content = Content::Router},
    {.pattern = kGateUp, .shape = "width two_hidden experts", .part = Part::Mixture, .need = Need::Optional},
    {.pattern = "blk.*.ffn_gate_exps.weight",
     .shape = "width expert_hidden experts",
     .part = Part::Mixture,
     .unless = kGateUp},
    {.pattern = "blk.*.ffn_up_exps.weight",
     .shape = "width expert_hidden experts",
     .part = Part::Mixture,
     .unless = kGateUp},
    {.pattern = "blk.*.ffn_down_exps.weight", .shape = "expert_hidden width experts", .part = Part::Mixture},
};

constexpr TensorSpec kSelectBias[] = {
    {.pattern = "blk.*.exp_probs_b.bias", .shape = "experts", .part = Part::Mixture, .content = Content::Bias},
};

constexpr TensorSpec kOptionalSelectBias[] = {
    {.pattern = "blk.*.exp_probs_b.bias",
     .shape = "experts",
     .part = Part::Mixture,
     .need = Need::Optional,
     .content = Content::Bias,
     .written_with = "select_bias"},
};

constexpr TensorSpec kExpertBiases[] = {
    {.pattern = "blk.*.ffn_gate_inp.bias", .shape = "experts", .part = Part::Mixture, .content = Content::Bias},
    {.pattern = "blk.*.ffn_gate_exps.bias",
     .shape = "expert_hidden experts",
     .part = Part::Mixture,
     .content = Content::Bias},
    {.pattern = "blk.*.ffn_up_exps.bias",
     .shape = "expert_hidden experts",
     .part = Part::Mixture,
     .content = Content::Bias},
    {.pattern = "blk.*.ffn_down_exps.bias", .shape = "width experts", .part = Part::Mixture, .content = Content::Bias},
};

constexpr TensorSpec kSharedGate[] = {
    {.pattern = "blk.*.ffn_gate_inp_shexp.weight",
     .shape = "width",
     .part = Part::SharedExpert,
     .content = Content::Vector},
};

constexpr TensorSpec kSharedTensors[] = {
    {.pattern = "blk.*.ffn_gate_shexp.weight", .shape = "width shared_hidden", .part = Part::SharedExpert},
    {.pattern = "blk.*.ffn_up_shexp.weight", .shape = "width shared_hidden", .part = Part::SharedExpert},
    {.pattern = "blk.*.ffn_down_shexp.weight", .shape = "shared_hidden width", .part = Part::SharedExpert},
};

std::string_view short_name(graph::ActivationKind kind) {
  return kind == graph::ActivationKind::Silu ? "silu" : "gelu";
}

// The gated network whose matrices are `block` ffn_{gate,up,down}`kind`.
TensorId write_gated(StepWriter& step, const std::string& block, std::string_view kind, TensorId x,
                     graph::ActivationKind activation = graph::ActivationKind::Silu) {
  const auto stem = [&](std::string_view part) { return fmt::format("{}ffn_{}{}", block, part, kind); };
  const TensorId gate = step.product(stem("gate"), x, stem("gate"));
  const TensorId up = step.product(stem("up"), x, stem("up"));
  const TensorId open = step.activate(fmt::format("{}_{}", stem("gate"), short_name(activation)), activation, gate);
  const TensorId hidden = step.elementwise(stem("hidden"), graph::Arithmetic::Mul, open, up);
  return step.product(stem("down"), hidden, stem("down"));
}

void place_gated(Placer& placer, const std::string& block, std::string_view kind) {
  for (const std::string_view part : {"gate", "up", "down"}) {
    const std::string stem = fmt::format("{}ffn_{}{}", block, part, kind);
    placer.matrix(stem + ".weight", stem + ".weight");
    if (placer.has(stem + ".bias")) placer.vector(stem + ".bias", stem + ".bias");
  }
}

}  // namespace

KeyTable dense_keys() { return kDenseKeys; }
KeyTable optional_dense_keys() { return kOptionalDenseKeys; }
TensorTable dense_tensors() { return kDenseTensors; }
TensorTable dense_bias_tensors() { return kDenseBiases; }
KeyTable mixture_keys() { return kMixtureKeys; }
KeyTable expert_count_keys() { return kExpertCounts; }
KeyTable optional_expert_count_keys() { return kOptionalExpertCounts; }
TensorTable mixture_tensors() { return kMixtureTensors; }
TensorTable shared_expert_tensors() { return kSharedTensors; }
TensorTable shared_expert_gate_tensors() { return kSharedGate; }
TensorTable select_bias_tensors() { return kSelectBias; }
TensorTable optional_select_bias_tensors() { return kOptionalSelectBias; }
TensorTable expert_bias_tensors() { return kExpertBiases; }
KeyTable router_keys() { return kRouterKeys; }
KeyTable leading_dense_keys() { return kLeadingDense; }
KeyTable shared_count_keys() { return kSharedCount; }

namespace {

// The groups of experts among which the choice is made, when there are several.
Result<void> read_groups(const Hyper& hyper, MixtureFeedForward& out) {
  const uint32_t groups = hyper.count("expert_group_count");
  if (groups <= 1) return {};
  if (out.experts % groups != 0)
    return refuse(RefusalKind::Malformed, hyper.subject("expert_group_count"),
                  fmt::format("is {}, which does not divide the {} experts", groups, out.experts));
  out.groups = groups;
  out.groups_kept = hyper.count("expert_group_used_count");
  const uint64_t left = uint64_t{out.groups_kept} * (out.experts / groups);
  if (out.groups_kept == 0 || out.groups_kept > groups || left < out.used)
    return refuse(RefusalKind::Malformed, hyper.subject("expert_group_used_count"),
                  fmt::format("is {} of {} groups, which leaves {} experts to choose {} from", out.groups_kept, groups,
                              left, out.used));
  return {};
}

}  // namespace

Result<MixtureFeedForward> read_mixture(const Hyper& hyper, uint32_t hidden, const RouterDefaults& defaults) {
  MixtureFeedForward out;
  out.experts = hyper.count("expert_count");
  out.used = hyper.count("expert_used_count");
  out.hidden = hidden;
  out.score = defaults.score;
  out.renormalize = defaults.renormalize;
  if (hyper.has("expert_gating_func")) {
    const uint32_t score = hyper.count("expert_gating_func");
    out.score = score == 2 ? graph::ScoreKind::Sigmoid : graph::ScoreKind::Softmax;
    if (score == 3) out.renormalize = true;
  }
  if (hyper.has("expert_weights_norm")) out.renormalize = hyper.flag("expert_weights_norm");
  const double scale = hyper.real("expert_weights_scale");
  out.scale = scale == 0 ? 1.0F : static_cast<float>(scale);
  if (out.used == 0 || out.used > out.experts)
    return refuse(RefusalKind::Malformed, hyper.subject("expert_used_count"),
                  fmt::format("is {}; expected 1 to {}, the number of experts", out.used, out.experts));
  TW_TRY_VOID(read_groups(hyper, out));
  return out;
}

Result<uint32_t> read_shared_hidden(const Hyper& hyper, uint32_t hidden) {
  constexpr uint64_t kWidest = 1U << 28;
  const uint64_t shared = uint64_t{hyper.count("expert_shared_count")} * hidden;
  if (shared <= kWidest) return static_cast<uint32_t>(shared);
  return refuse(RefusalKind::TooLarge, hyper.subject("expert_shared_count"),
                fmt::format("makes a shared expert {} wide; at most {} are supported", shared, kWidest));
}

Result<uint32_t> read_expert_hidden(const Hyper& hyper) {
  if (hyper.has("expert_feed_forward_length")) return hyper.count("expert_feed_forward_length");
  const uint32_t whole = hyper.has("feed_forward_length") ? hyper.count("feed_forward_length", 0) : 0;
  const uint32_t used = hyper.count("expert_used_count");
  if (whole == 0 || whole % used != 0)
    return refuse(
        RefusalKind::Missing, hyper.subject("expert_feed_forward_length"),
        fmt::format("the file has no such key, and feed_forward_length {} is not a multiple of the {} experts "
                    "a token uses",
                    whole, used));
  return whole / used;
}

void DenseFeedForward::add_dims(Dims& dims) const { dims["hidden"] = hidden; }

void DenseFeedForward::place(Placer& placer, const std::string& block) const { place_gated(placer, block, ""); }

TensorId DenseFeedForward::write(StepWriter& step, const std::string& block, TensorId x) const {
  return write_gated(step, block, "", x, activation);
}

std::vector<Part> MixtureFeedForward::parts() const {
  if (shared_hidden == 0) return {Part::Mixture};
  return {Part::Mixture, Part::SharedExpert};
}

void MixtureFeedForward::add_dims(Dims& dims) const {
  dims["experts"] = experts;
  dims["expert_hidden"] = hidden;
  dims["two_hidden"] = 2 * uint64_t{hidden};
  dims["shared_hidden"] = shared_hidden;
}

void MixtureFeedForward::place_experts(Placer& placer, const std::string& block) const {
  placer.table(block + "ffn_down_exps.weight", block + "ffn_down_exps.weight");
  const std::string merged = block + "ffn_gate_up_exps.weight";
  uint32_t from = 0;
  for (const std::string_view part : {"gate", "up"}) {
    const std::string name = fmt::format("{}ffn_{}_exps.weight", block, part);
    if (!placer.has(merged)) {
      placer.table(name, name);
      continue;
    }
    // Each expert's gate rows, then its up rows.
    std::vector<uint32_t> order(size_t{experts} * hidden);
    for (uint32_t expert = 0; expert < experts; ++expert)
      for (uint32_t row = 0; row < hidden; ++row) order[expert * hidden + row] = expert * 2 * hidden + from + row;
    placer.table(name, merged, std::move(order));
    from += hidden;
  }
  for (const std::string_view part : {"gate", "up", "down"}) {
    const std::string name = fmt::format("{}ffn_{}_exps.bias", block, part);
    if (placer.has(name)) placer.table(name, name);
  }
  const std::string scales = block + "ffn_down_exps.scale";
  if (placer.has(scales)) placer.vector(scales, scales);
}

void MixtureFeedForward::place(Placer& placer, const std::string& block) const {
  placer.matrix(block + "ffn_gate_inp.weight", block + "ffn_gate_inp.weight");
  for (const std::string_view bias : {"ffn_gate_inp.bias", "exp_probs_b.bias"}) {
    const std::string name = fmt::format("{}{}", block, bias);
    if (placer.has(name)) placer.vector(name, name);
  }
  place_experts(placer, block);
  if (shared_hidden == 0) return;
  place_gated(placer, block, "_shexp");
  const std::string gate = block + "ffn_gate_inp_shexp.weight";
  if (placer.has(gate)) placer.matrix_values(gate, gate, {0});
}

TensorId MixtureFeedForward::write(StepWriter& step, const std::string& block, TensorId x) const {
  const auto weight = [&](std::string_view part) { return step.constant(fmt::format("{}ffn_{}.weight", block, part)); };
  const auto bias = [&](std::string_view part) { return step.optional(fmt::format("{}{}.bias", block, part)); };
  const graph::Moe mixture{.experts = experts,
                           .used = used,
                           .hidden = hidden,
                           .score = score,
                           .act = act,
                           .renormalize = renormalize,
                           .weigh_inputs = weigh_inputs,
                           .scale = scale,
                           .groups = groups,
                           .groups_kept = groups_kept};
  const TensorId routed =
      step.add(block + "ffn_moe", mixture,
               {x, weight("gate_inp"), weight("gate_exps"), weight("up_exps"), weight("down_exps"),
                bias("ffn_gate_inp"), bias("ffn_gate_exps"), bias("ffn_up_exps"), bias("ffn_down_exps"),
                bias("exp_probs_b"), step.optional(block + "ffn_down_exps.scale")});
  if (shared_hidden == 0) return routed;
  TensorId shared = write_gated(step, block, "_shexp", x);
  if (step.has(block + "ffn_gate_inp_shexp.weight")) {
    const TensorId open = step.activate(block + "ffn_shexp_gate_sigmoid", graph::ActivationKind::Sigmoid,
                                        step.product(block + "ffn_shexp_gate", x, block + "ffn_gate_inp_shexp"));
    shared = step.add(block + "ffn_shexp_gated", graph::RowBroadcast{.op = graph::Arithmetic::Mul, .scalar = true},
                      {shared, open});
  }
  return step.elementwise(block + "ffn_out", graph::Arithmetic::Add, routed, shared);
}

}  // namespace tw::model
