#include "model/delta.h"

#include <fmt/format.h>

namespace tw::model {

using graph::TensorId;

namespace {

constexpr KeySpec kDeltaKeys[] = {
    {.key = "ssm.conv_kernel", .need = Need::Required, .low = 1, .high = 64},
    {.key = "ssm.state_size", .need = Need::Required, .low = 1, .high = 65536},
    {.key = "ssm.group_count", .need = Need::Required, .low = 1, .high = 4096},
    {.key = "ssm.time_step_rank", .need = Need::Required, .low = 1, .high = 4096},
    {.key = "ssm.inner_size", .need = Need::Required, .low = 1, .high = 1 << 28},
    {.key = "full_attention_interval", .fallback = 4, .low = 1, .high = 65536},
    {.key = "attention.recurrent_layers", .type = KeyType::Flags, .high = 1},
};

constexpr TensorSpec kDeltaTensors[] = {
    {.pattern = "blk.*.attn_qkv.weight", .shape = "width channels", .part = Part::Delta},
    {.pattern = "blk.*.attn_gate.weight", .shape = "width values", .part = Part::Delta},
    {.pattern = "blk.*.ssm_conv1d.weight", .shape = "taps channels", .part = Part::Delta, .content = Content::Taps},
    {.pattern = "blk.*.ssm_dt.bias", .shape = "value_heads", .part = Part::Delta, .content = Content::Step},
    {.pattern = "blk.*.ssm_a", .shape = "value_heads", .part = Part::Delta, .content = Content::Rate},
    {.pattern = "blk.*.ssm_norm.weight", .shape = "state", .part = Part::Delta, .content = Content::Norm},
    {.pattern = "blk.*.ssm_out.weight", .shape = "values width", .part = Part::Delta},
};

constexpr TensorSpec kSeparateGates[] = {
    {.pattern = "blk.*.ssm_beta.weight", .shape = "width value_heads", .part = Part::Delta},
    {.pattern = "blk.*.ssm_alpha.weight", .shape = "width value_heads", .part = Part::Delta},
};

constexpr TensorSpec kJointGates[] = {
    {.pattern = "blk.*.ssm_ba.weight", .shape = "width both_gates", .part = Part::Delta},
};

// The heads' lengths never vanish in practice; this only keeps a row of zeros from dividing by zero.
constexpr float kLengthEps = 1e-12F;

}  // namespace

KeyTable delta_keys() { return kDeltaKeys; }
TensorTable delta_tensors() { return kDeltaTensors; }
TensorTable separate_gate_tensors() { return kSeparateGates; }
TensorTable joint_gate_tensors() { return kJointGates; }

Result<DeltaNet> read_delta(const Hyper& hyper) {
  DeltaNet out;
  out.taps = hyper.count("ssm.conv_kernel");
  out.state = hyper.count("ssm.state_size");
  out.key_heads = hyper.count("ssm.group_count");
  out.value_heads = hyper.count("ssm.time_step_rank");
  out.eps = static_cast<float>(hyper.real("attention.layer_norm_rms_epsilon"));
  if (out.value_heads % out.key_heads != 0)
    return refuse(
        RefusalKind::Malformed, hyper.subject("ssm.time_step_rank"),
        fmt::format("is {}, not a multiple of the {} key heads (ssm.group_count)", out.value_heads, out.key_heads));
  const uint64_t inner = hyper.count("ssm.inner_size");
  if (inner != uint64_t{out.value_heads} * out.state)
    return refuse(
        RefusalKind::Malformed, hyper.subject("ssm.inner_size"),
        fmt::format("is {}; expected time_step_rank x state_size, {} x {}", inner, out.value_heads, out.state));
  return out;
}

Result<std::vector<bool>> read_delta_layers(const Hyper& hyper, uint32_t layers) {
  std::vector<bool> out(layers);
  const std::vector<int64_t>& given = hyper.list("attention.recurrent_layers");
  const uint32_t interval = hyper.count("full_attention_interval");
  for (uint32_t layer = 0; layer < layers; ++layer)
    out[layer] = given.empty() ? (layer + 1) % interval != 0 : given[layer] != 0;
  return out;
}

void DeltaNet::add_dims(Dims& dims) const {
  dims["channels"] = 2 * uint64_t{keys()} + values();
  dims["values"] = values();
  dims["value_heads"] = value_heads;
  dims["both_gates"] = 2 * uint64_t{value_heads};
  dims["state"] = state;
  dims["taps"] = taps;
}

void DeltaNet::place(Placer& placer, const std::string& block) const {
  const std::string projection = block + "attn_qkv.weight";
  const std::string taps_tensor = block + "ssm_conv1d.weight";
  const RowRange ranges[] = {{0, keys()}, {keys(), keys()}, {2 * uint64_t{keys()}, values()}};
  const std::string_view parts[] = {"q", "k", "v"};
  for (size_t i = 0; i < std::size(parts); ++i) {
    placer.matrix(fmt::format("{}delta_{}.weight", block, parts[i]), projection, ranges[i]);
    placer.transposed(fmt::format("{}conv_{}.weight", block, parts[i]), taps_tensor, ranges[i]);
  }
  placer.matrix(block + "delta_z.weight", block + "attn_gate.weight");
  place_gates(placer, block);
  placer.vector(block + "ssm_dt.bias", block + "ssm_dt.bias");
  placer.vector(block + "ssm_a", block + "ssm_a");
  placer.vector(block + "ssm_norm.weight", block + "ssm_norm.weight");
  placer.matrix(block + "ssm_out.weight", block + "ssm_out.weight");
}

// The gates' matrices are small and read by every step, so they are held as f32 values.
void DeltaNet::place_gates(Placer& placer, const std::string& block) const {
  std::vector<uint32_t> beta = ascending(0, value_heads);
  std::vector<uint32_t> alpha = beta;
  if (!joint_gates) {
    placer.matrix_values(block + "ssm_beta.weight", block + "ssm_beta.weight", beta);
    placer.matrix_values(block + "ssm_alpha.weight", block + "ssm_alpha.weight", alpha);
    return;
  }
  // ssm_ba holds, key head by key head, the beta rows of its value heads and then their alpha rows.
  const uint32_t group = value_heads / key_heads;
  for (uint32_t head = 0; head < value_heads; ++head) {
    beta[head] = head / group * 2 * group + head % group;
    alpha[head] = beta[head] + group;
  }
  placer.matrix_values(block + "ssm_beta.weight", block + "ssm_ba.weight", beta);
  placer.matrix_values(block + "ssm_alpha.weight", block + "ssm_ba.weight", alpha);
}

TensorId write_convolved(SequenceWriter& own, const std::string& block, std::string_view part, TensorId all,
                         const Convolution& over) {
  const std::string stem = fmt::format("{}{}_conv", block, part);
  const TensorId ring = own.state(stem + "_ring", over.taps, over.channels);
  const TensorId rows = own.rows(fmt::format("{}delta_{}_row", block, part), all);
  const TensorId weight = own.step().constant(fmt::format("{}conv_{}.weight", block, part));
  const TensorId plain = own.add(stem, graph::CausalConv{}, {rows, weight, ring});
  return own.add(stem + "_silu", graph::Activate{graph::ActivationKind::Silu}, {plain});
}

TensorId write_unit_heads(SequenceWriter& own, const std::string& block, std::string_view part, TensorId rows,
                          uint32_t width) {
  return own.add(fmt::format("{}{}_unit", block, part), graph::L2Norm{kLengthEps, width}, {rows});
}

TensorId DeltaNet::write(StepWriter& step, const std::string& block, TensorId x) const {
  const TensorId q = step.product(block + "delta_q", x, block + "delta_q");
  const TensorId k = step.product(block + "delta_k", x, block + "delta_k");
  const TensorId v = step.product(block + "delta_v", x, block + "delta_v");
  const TensorId z = step.product(block + "delta_z", x, block + "delta_z");
  const TensorId beta = step.product(block + "beta_logit", x, block + "ssm_beta");
  const TensorId alpha = step.product(block + "alpha_logit", x, block + "ssm_alpha");

  const TensorId out = step.each_sequence(block + "delta", values(), [&](SequenceWriter& own) {
    const TensorId own_q =
        write_unit_heads(own, block, "q", write_convolved(own, block, "q", q, {taps, keys()}), state);
    const TensorId own_k =
        write_unit_heads(own, block, "k", write_convolved(own, block, "k", k, {taps, keys()}), state);
    const TensorId own_v = write_convolved(own, block, "v", v, {taps, values()});
    const TensorId own_z = own.rows(block + "delta_z_row", z);
    const TensorId write_gate = own.add(block + "beta", graph::Activate{graph::ActivationKind::Sigmoid},
                                        {own.rows(block + "beta_logit_row", beta)});
    const TensorId decay = own.add(block + "decay", graph::Decay{},
                                   {own.rows(block + "alpha_logit_row", alpha), step.constant(block + "ssm_dt.bias"),
                                    step.constant(block + "ssm_a")});
    const TensorId memory = own.state(block + "delta_memory", values(), state);
    return own.add(
        block + "delta",
        graph::GatedDelta{.value_heads = value_heads, .key_heads = key_heads, .eps = eps, .key_head_of = key_head_of},
        {own_q, own_k, own_v, own_z, write_gate, decay, memory, step.constant(block + "ssm_norm.weight")});
  });
  return step.product(block + "delta_out", out, block + "ssm_out");
}

}  // namespace tw::model
