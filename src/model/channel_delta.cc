#include "model/channel_delta.h"

#include <fmt/format.h>

#include "model/delta.h"

namespace tw::model {

using graph::TensorId;

namespace {

constexpr KeySpec kChannelDeltaKeys[] = {
    {.key = "ssm.conv_kernel", .need = Need::Required, .low = 1, .high = 64},
    {.key = "kda.head_dim", .need = Need::Required, .low = 1, .high = 65536},
};

constexpr TensorSpec kChannelDeltaTensors[] = {
    {.pattern = "blk.*.attn_q.weight", .shape = "width channels", .part = Part::ChannelDelta},
    {.pattern = "blk.*.attn_k.weight", .shape = "width channels", .part = Part::ChannelDelta},
    {.pattern = "blk.*.attn_v.weight", .shape = "width channels", .part = Part::ChannelDelta},
    {.pattern = "blk.*.ssm_conv1d_q.weight",
     .shape = "taps one channels",
     .part = Part::ChannelDelta,
     .content = Content::Taps},
    {.pattern = "blk.*.ssm_conv1d_k.weight",
     .shape = "taps one channels",
     .part = Part::ChannelDelta,
     .content = Content::Taps},
    {.pattern = "blk.*.ssm_conv1d_v.weight",
     .shape = "taps one channels",
     .part = Part::ChannelDelta,
     .content = Content::Taps},
    {.pattern = "blk.*.ssm_f_a.weight", .shape = "width state", .part = Part::ChannelDelta},
    {.pattern = "blk.*.ssm_f_b.weight", .shape = "state channels", .part = Part::ChannelDelta},
    {.pattern = "blk.*.ssm_dt.bias", .shape = "channels", .part = Part::ChannelDelta, .content = Content::Step},
    {.pattern = "blk.*.ssm_a", .shape = "one heads", .part = Part::ChannelDelta, .content = Content::Rate},
    {.pattern = "blk.*.ssm_beta.weight", .shape = "width heads", .part = Part::ChannelDelta},
    {.pattern = "blk.*.ssm_g_a.weight", .shape = "width state", .part = Part::ChannelDelta},
    {.pattern = "blk.*.ssm_g_b.weight", .shape = "state channels", .part = Part::ChannelDelta},
    {.pattern = "blk.*.ssm_norm.weight", .shape = "state", .part = Part::ChannelDelta, .content = Content::Norm},
    {.pattern = "blk.*.attn_output.weight", .shape = "channels width", .part = Part::ChannelDelta},
};

}  // namespace

KeyTable channel_delta_keys() { return kChannelDeltaKeys; }
TensorTable channel_delta_tensors() { return kChannelDeltaTensors; }

Result<ChannelDelta> read_channel_delta(const Hyper& hyper, uint32_t layer) {
  ChannelDelta out;
  out.heads = hyper.count("attention.head_count", layer);
  out.state = hyper.count("kda.head_dim");
  out.taps = hyper.count("ssm.conv_kernel");
  out.eps = static_cast<float>(hyper.real("attention.layer_norm_rms_epsilon"));
  return out;
}

void ChannelDelta::add_dims(Dims& dims) const {
  dims["one"] = 1;
  dims["heads"] = heads;
  dims["channels"] = channels();
  dims["state"] = state;
  dims["taps"] = taps;
}

void ChannelDelta::place(Placer& placer, const std::string& block) const {
  for (const std::string_view part : {"q", "k", "v"}) {
    const std::string projection = fmt::format("{}attn_{}.weight", block, part);
    placer.matrix(projection, projection);
    placer.transposed(fmt::format("{}conv_{}.weight", block, part), fmt::format("{}ssm_conv1d_{}.weight", block, part),
                      {0, channels()});
  }
  for (const std::string_view narrow : {"ssm_f_a", "ssm_f_b", "ssm_g_a", "ssm_g_b", "attn_output"}) {
    const std::string name = fmt::format("{}{}.weight", block, narrow);
    placer.matrix(name, name);
  }
  placer.matrix_values(block + "ssm_beta.weight", block + "ssm_beta.weight", ascending(0, heads));
  placer.vector(block + "ssm_dt.bias", block + "ssm_dt.bias");
  placer.vector(block + "ssm_norm.weight", block + "ssm_norm.weight");
  // The file has a rate a head; the decay of a channel takes its head's.
  std::vector<uint32_t> head_of(channels());
  for (uint32_t channel = 0; channel < channels(); ++channel) head_of[channel] = channel / state;
  placer.vector(block + "ssm_a", block + "ssm_a", head_of);
}

TensorId ChannelDelta::write(StepWriter& step, const std::string& block, TensorId x) const {
  const TensorId q = step.product(block + "delta_q", x, block + "attn_q");
  const TensorId k = step.product(block + "delta_k", x, block + "attn_k");
  const TensorId v = step.product(block + "delta_v", x, block + "attn_v");
  const auto narrowed = [&](std::string_view name, std::string_view stem) {
    const TensorId low = step.product(fmt::format("{}{}_low", block, name), x, fmt::format("{}{}_a", block, stem));
    return step.product(fmt::format("{}{}", block, name), low, fmt::format("{}{}_b", block, stem));
  };
  const TensorId forget = narrowed("alpha_logit", "ssm_f");
  const TensorId z = narrowed("delta_z", "ssm_g");
  const TensorId beta = step.product(block + "beta_logit", x, block + "ssm_beta");

  const TensorId out = step.each_sequence(block + "delta", channels(), [&](SequenceWriter& own) {
    const Convolution over{taps, channels()};
    const TensorId own_q = write_unit_heads(own, block, "q", write_convolved(own, block, "q", q, over), state);
    const TensorId own_k = write_unit_heads(own, block, "k", write_convolved(own, block, "k", k, over), state);
    const TensorId own_v = write_convolved(own, block, "v", v, over);
    const TensorId own_z = own.rows(block + "delta_z_row", z);
    const TensorId write_gate = own.add(block + "beta", graph::Activate{graph::ActivationKind::Sigmoid},
                                        {own.rows(block + "beta_logit_row", beta)});
    const TensorId decay = own.add(block + "decay", graph::Decay{},
                                   {own.rows(block + "alpha_logit_row", forget), step.constant(block + "ssm_dt.bias"),
                                    step.constant(block + "ssm_a")});
    const TensorId memory = own.state(block + "delta_memory", channels(), state);
    return own.add(
        block + "delta",
        graph::GatedDelta{.value_heads = heads, .key_heads = heads, .eps = eps, .gate = graph::GateKind::Sigmoid},
        {own_q, own_k, own_v, own_z, write_gate, decay, memory, step.constant(block + "ssm_norm.weight")});
  });
  return step.product(block + "delta_out", out, block + "attn_output");
}

}  // namespace tw::model
