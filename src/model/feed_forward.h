#pragma once

// The feed-forward half of a layer: a dense gated network, or a mixture of experts with an optional shared expert.

#include <cstdint>
#include <string>

#include "model/step_writer.h"
#include "model/tensor_table.h"

namespace tw::model {

// down(silu(gate(x)) * up(x)).
struct DenseFeedForward {
  uint32_t hidden = 0;

  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId x) const;
};

struct MixtureFeedForward {
  uint32_t experts = 0;
  uint32_t used = 0;
  uint32_t hidden = 0;         // of an expert
  uint32_t shared_hidden = 0;  // of the shared expert; 0: there is none
  bool renormalize = false;
  float scale = 1;

  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId x) const;
};

KeyTable dense_keys();
KeyTable optional_dense_keys();  // of a family whose networks are all mixtures
TensorTable dense_tensors();
// FFN biases, which some llama files have.
TensorTable dense_bias_tensors();

KeyTable mixture_keys();
KeyTable expert_count_keys();
KeyTable optional_expert_count_keys();  // of a family that is dense when expert_count is absent or 0
TensorTable mixture_tensors();
TensorTable shared_expert_tensors();
// Softmax over all experts, the weights of the chosen ones renormalized. `hidden` is the width of an expert.
Result<MixtureFeedForward> read_mixture(const Hyper& hyper, uint32_t hidden);
// expert_feed_forward_length, or when absent the feed-forward width shared among the chosen experts.
Result<uint32_t> read_expert_hidden(const Hyper& hyper);

}  // namespace tw::model
