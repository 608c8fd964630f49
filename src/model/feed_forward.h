#pragma once

// The feed-forward half of a layer: a dense gated network, or a mixture of experts with an optional shared expert.

#include <cstdint>
#include <string>
#include <vector>

#include "model/step_writer.h"
#include "model/tensor_table.h"

namespace tw::model {

// down(f(gate(x)) * up(x)).
struct DenseFeedForward {
  uint32_t hidden = 0;
  graph::ActivationKind activation = graph::ActivationKind::Silu;

  [[nodiscard]] std::vector<Part> parts() const { return {Part::Dense}; }
  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId x) const;
};

// A router's scores, the chosen experts, and what runs on every token beside them. Biases (of the router, of the
// choice, of the experts), scales of the experts' outputs, the shared expert's gate and merged gate and up matrices are
// used where the file has them.
struct MixtureFeedForward {
  uint32_t experts = 0;
  uint32_t used = 0;
  uint32_t hidden = 0;         // of an expert
  uint32_t shared_hidden = 0;  // of the shared expert; 0: there is none
  graph::ScoreKind score = graph::ScoreKind::Softmax;
  graph::MoeAct act;
  bool renormalize = false;
  bool weigh_inputs = false;
  float scale = 1;
  uint32_t groups = 1;
  uint32_t groups_kept = 1;

  [[nodiscard]] std::vector<Part> parts() const;
  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  void place_experts(Placer& placer, const std::string& block) const;  // a part of place()
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId x) const;
};

KeyTable dense_keys();
KeyTable optional_dense_keys();  // of a family whose networks are all mixtures
TensorTable dense_tensors();
// FFN biases, which some llama files have.
TensorTable dense_bias_tensors();

KeyTable mixture_keys();  // of a softmax router whose weights are renormalized, in every layer
KeyTable router_keys();   // after mixture_keys: of a router that may also score, weigh and limit the choice otherwise
KeyTable leading_dense_keys();  // after mixture_keys: the first layers may be dense
KeyTable shared_count_keys();   // expert_shared_count
KeyTable expert_count_keys();
KeyTable optional_expert_count_keys();  // of a family that is dense when expert_count is absent or 0
TensorTable mixture_tensors();
TensorTable select_bias_tensors();           // exp_probs_b: added to the scores for the choice alone
TensorTable optional_select_bias_tensors();  // the same, of a family where only some files have it
TensorTable expert_bias_tensors();           // of the router and of the experts
TensorTable shared_expert_tensors();
TensorTable shared_expert_gate_tensors();

// What a family's router does where the file does not say.
struct RouterDefaults {
  graph::ScoreKind score = graph::ScoreKind::Softmax;
  bool renormalize = true;
};

// `hidden` is the width of an expert.
Result<MixtureFeedForward> read_mixture(const Hyper& hyper, uint32_t hidden, const RouterDefaults& defaults = {});
// expert_feed_forward_length, or when absent the feed-forward width shared among the chosen experts.
Result<uint32_t> read_expert_hidden(const Hyper& hyper);
// Of a family with shared_count_keys: expert_shared_count experts of width `hidden` as one; 0 without any.
Result<uint32_t> read_shared_hidden(const Hyper& hyper, uint32_t hidden);

}  // namespace tw::model
