#include "model/paired_feed_forward.h"

#include <fmt/format.h>

#include <cmath>

namespace tw::model {

using graph::TensorId;

namespace {

constexpr TensorSpec kPairedFeedForwardTensors[] = {
    {.pattern = "blk.*.pre_ffw_norm_2.weight", .shape = "width", .part = Part::Mixture, .content = Content::Norm},
    {.pattern = "blk.*.post_ffw_norm_1.weight", .shape = "width", .part = Part::Mixture, .content = Content::Norm},
    {.pattern = "blk.*.post_ffw_norm_2.weight", .shape = "width", .part = Part::Mixture, .content = Content::Norm},
    {.pattern = "blk.*.ffn_gate_inp.scale", .shape = "width", .part = Part::Mixture, .content = Content::Norm},
    {.pattern = "blk.*.ffn_down_exps.scale",
     .shape = "experts",
     .part = Part::Mixture,
     .need = Need::Optional,
     .content = Content::Norm,
     .written_with = "expert_scales"},
};

constexpr std::string_view kNorms[] = {"ffn_norm", "post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"};

// The router's logits are router . (u * scale / sqrt(width)), u the residual normed without a weight. The mixture reads
// u * norm, so its router is the file's, each channel times scale / (norm * sqrt(width)).
void place_router(Placer& placer, const std::string& block, uint32_t width) {
  const std::string name = block + "ffn_gate_inp.weight", norm_name = block + "pre_ffw_norm_2.weight";
  const std::vector<float> router = placer.widened(name), scale = placer.widened(block + "ffn_gate_inp.scale"),
                           norm = placer.widened(norm_name);
  const size_t experts = router.size() / width;
  const double root = std::sqrt(static_cast<double>(width));
  std::vector<float> out(router.size());
  for (size_t t = 0; t < width; ++t) {
    if (norm[t] == 0)
      placer.refuse_later(refuse(RefusalKind::Unsupported, placer.subject(norm_name),
                                 fmt::format("value {} is 0, which hides a channel that the router reads", t)));
    for (size_t e = 0; e < experts; ++e)
      out[t * experts + e] = static_cast<float>(router[e * width + t] * double{scale[t]} / (norm[t] * root));
  }
  placer.values(name, {width, static_cast<uint32_t>(experts)}, std::move(out));
}

}  // namespace

TensorTable paired_tensors() { return kPairedFeedForwardTensors; }

std::vector<Part> PairedFeedForward::parts() const { return {Part::Dense, Part::Mixture}; }

void PairedFeedForward::add_dims(Dims& dims) const {
  dense.add_dims(dims);
  mixture.add_dims(dims);
}

void PairedFeedForward::place(Placer& placer, const std::string& block) const {
  for (const std::string_view stem : kNorms) {
    const std::string name = fmt::format("{}{}.weight", block, stem);
    placer.vector(name, name);
  }
  dense.place(placer, block);
  place_router(placer, block, width);
  mixture.place_experts(placer, block);
}

TensorId PairedFeedForward::write(StepWriter& step, const std::string& block, TensorId h) const {
  const auto normed = [&](std::string_view stem, TensorId x) {
    const std::string name = fmt::format("{}{}", block, stem);
    return step.rms_norm(name, x, name + ".weight", eps);
  };
  const TensorId whole = normed("post_ffw_norm_1", dense.write(step, block, normed("ffn_norm", h)));
  const TensorId mixed = normed("post_ffw_norm_2", mixture.write(step, block, normed("pre_ffw_norm_2", h)));
  return step.elementwise(block + "ffn_out", graph::Arithmetic::Add, whole, mixed);
}

}  // namespace tw::model
