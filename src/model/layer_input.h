#pragma once

// Inputs of layers: beside the residual every layer reads a row of its own, made once a step from the token's row of a
// second embedding and from a projection of the first; what the layer makes of it is added to the residual.

#include <cstdint>
#include <string>

#include "model/step_writer.h"
#include "model/tensor_table.h"

namespace tw::model {

struct LayerInputs {
  uint32_t width = 0;  // of a layer's input; 0: there are none
  uint32_t layers = 0;
  uint32_t residual = 0;  // width of the embedding
  float eps = 0;

  void add_dims(Dims& dims) const;
  void place(Placer& placer) const;
  void place_layer(Placer& placer, const std::string& block) const;
  // (norm(per_layer_model_proj . h / sqrt(width of h)) + sqrt(width) * row of per_layer_token_embd) / sqrt(2) for all
  // layers, one after the other in a row. `h` is the embedding as the first layer reads it.
  graph::TensorId write(StepWriter& step, graph::TensorId h) const;
  // h + post_norm(proj . (gelu(inp_gate . h) * the layer's input)).
  graph::TensorId write_layer(StepWriter& step, const std::string& block, uint32_t layer, graph::TensorId h,
                              graph::TensorId inputs) const;
};

KeyTable layer_input_keys();
TensorTable layer_input_tensors();
LayerInputs read_layer_inputs(const Hyper& hyper, uint32_t layers);

}  // namespace tw::model
