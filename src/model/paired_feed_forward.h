#pragma once

// A dense network and a mixture of experts side by side, each between norms of its own; the router reads the residual
// through a norm without a weight and a scale a channel.

#include <cstdint>
#include <string>
#include <vector>

#include "model/feed_forward.h"

namespace tw::model {

// Reads the residual itself: post_ffw_norm_1(dense(ffn_norm(h))) + post_ffw_norm_2(mixture(pre_ffw_norm_2(h))).
struct PairedFeedForward {
  DenseFeedForward dense;
  MixtureFeedForward mixture;
  uint32_t width = 0;  // of the residual
  float eps = 0;

  [[nodiscard]] std::vector<Part> parts() const;
  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId h) const;
};

TensorTable
paired_tensors();  // the norms and the router's scale; the networks' own are dense_tensors and mixture_tensors

}  // namespace tw::model
