#pragma once

// A gated delta net layer: q, k, v convolved over time, heads of q and k brought to length 1, a decayed memory a value
// head, a gated norm, the output product.

#include <cstdint>
#include <string>
#include <vector>

#include "model/step_writer.h"
#include "model/tensor_table.h"

namespace tw::model {

struct DeltaNet {
  uint32_t value_heads = 0;
  uint32_t key_heads = 0;
  uint32_t state = 0;  // width of every head
  uint32_t taps = 0;   // of the convolutions
  float eps = 0;
  graph::KeyHeadOf key_head_of = graph::KeyHeadOf::Modulo;
  bool joint_gates = false;  // ssm_ba instead of ssm_beta and ssm_alpha

  [[nodiscard]] uint32_t keys() const { return key_heads * state; }
  [[nodiscard]] uint32_t values() const { return value_heads * state; }

  [[nodiscard]] std::string_view rotation() const { return {}; }
  [[nodiscard]] std::vector<Part> parts() const { return {Part::Delta}; }
  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId x) const;

 private:
  void place_gates(Placer& placer, const std::string& block) const;
};

struct Convolution {
  uint32_t taps = 0;
  uint32_t channels = 0;
};
// silu of the convolution of the sequence's own rows of `all` by "<block>conv_<part>.weight", over a carried ring.
graph::TensorId write_convolved(SequenceWriter& own, const std::string& block, std::string_view part,
                                graph::TensorId all, const Convolution& over);
// Every head, `width` values, brought to length 1.
graph::TensorId write_unit_heads(SequenceWriter& own, const std::string& block, std::string_view part,
                                 graph::TensorId rows, uint32_t width);

KeyTable delta_keys();
TensorTable delta_tensors();
TensorTable separate_gate_tensors();
TensorTable joint_gate_tensors();
Result<DeltaNet> read_delta(const Hyper& hyper);
// Which layers are delta layers: attention.recurrent_layers, or all but every full_attention_interval-th.
Result<std::vector<bool>> read_delta_layers(const Hyper& hyper, uint32_t layers);

}  // namespace tw::model
