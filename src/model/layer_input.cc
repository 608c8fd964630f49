#include "model/layer_input.h"

#include <fmt/format.h>

#include <cmath>

namespace tw::model {

using graph::TensorId;

namespace {

constexpr KeySpec kLayerInputKeys[] = {
    {.key = "embedding_length_per_layer_input", .fallback = 0, .high = 65536},
};

constexpr TensorSpec kLayerInputTensors[] = {
    {.pattern = "per_layer_token_embd.weight", .shape = "layer_inputs vocabulary", .part = Part::ModelInputs},
    {.pattern = "per_layer_model_proj.weight", .shape = "width layer_inputs", .part = Part::ModelInputs},
    {.pattern = "per_layer_proj_norm.weight",
     .shape = "layer_input",
     .part = Part::ModelInputs,
     .content = Content::Norm},
    {.pattern = "blk.*.inp_gate.weight", .shape = "width layer_input", .part = Part::LayerInput},
    {.pattern = "blk.*.proj.weight", .shape = "layer_input width", .part = Part::LayerInput},
    {.pattern = "blk.*.post_norm.weight", .shape = "width", .part = Part::LayerInput, .content = Content::Norm},
};

float root(double value) { return static_cast<float>(std::sqrt(value)); }
float inverse_root(double value) { return static_cast<float>(1 / std::sqrt(value)); }

}  // namespace

KeyTable layer_input_keys() { return kLayerInputKeys; }
TensorTable layer_input_tensors() { return kLayerInputTensors; }

LayerInputs read_layer_inputs(const Hyper& hyper, uint32_t layers) {
  return {.width = hyper.count("embedding_length_per_layer_input"),
          .layers = layers,
          .residual = hyper.count("embedding_length"),
          .eps = static_cast<float>(hyper.real("attention.layer_norm_rms_epsilon"))};
}

void LayerInputs::add_dims(Dims& dims) const {
  dims["layer_input"] = width;
  dims["layer_inputs"] = uint64_t{width} * layers;
}

void LayerInputs::place(Placer& placer) const {
  placer.table("per_layer_token_embd.weight", "per_layer_token_embd.weight");
  placer.matrix("per_layer_model_proj.weight", "per_layer_model_proj.weight");
  placer.vector("per_layer_proj_norm.weight", "per_layer_proj_norm.weight");
}

void LayerInputs::place_layer(Placer& placer, const std::string& block) const {
  for (const std::string_view stem : {"inp_gate", "proj"}) {
    const std::string name = fmt::format("{}{}.weight", block, stem);
    placer.matrix(name, name);
  }
  placer.vector(block + "post_norm.weight", block + "post_norm.weight");
}

TensorId LayerInputs::write(StepWriter& step, TensorId h) const {
  const TensorId table = step.constant("per_layer_token_embd.weight");
  const TensorId rows = step.add("inputs_embedding", graph::RowsGather{}, {table, step.tokens()});
  const TensorId embedded = step.scale("inputs_embedding_scaled", rows, root(width));
  const TensorId product = step.product("inputs_proj", h, "per_layer_model_proj");
  const TensorId scaled = step.scale("inputs_proj_scaled", product, inverse_root(residual));
  const TensorId normed = step.add("inputs_proj_norm", graph::RowNorm{.eps = eps, .width = width},
                                   {scaled, step.constant("per_layer_proj_norm.weight")});
  const TensorId sum = step.elementwise("inputs_sum", graph::Arithmetic::Add, normed, embedded);
  return step.scale("inputs", sum, inverse_root(2));
}

TensorId LayerInputs::write_layer(StepWriter& step, const std::string& block, uint32_t layer, TensorId h,
                                  TensorId inputs) const {
  const TensorId own = step.add(
      block + "input", graph::HeadSlice{.every = width * layers, .from = width * layer, .width = width}, {inputs});
  const TensorId gate = step.product(block + "inp_gate", h, block + "inp_gate");
  const TensorId open = step.activate(block + "inp_gate_gelu", graph::ActivationKind::GeluTanh, gate);
  const TensorId hidden = step.elementwise(block + "inp_gated", graph::Arithmetic::Mul, open, own);
  const TensorId made = step.product(block + "inp_proj", hidden, block + "proj");
  const TensorId normed = step.rms_norm(block + "inp_norm", made, block + "post_norm.weight", eps);
  return step.elementwise(block + "inp_added", graph::Arithmetic::Add, h, normed);
}

}  // namespace tw::model
