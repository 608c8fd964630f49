#pragma once

// A delta net whose memory decays channel by channel (Kimi Delta Attention): q, k, v convolved over time, heads of q
// and k brought to length 1, the decay and the output gate made through narrow matrices, the output product.

#include <cstdint>
#include <string>
#include <vector>

#include "model/step_writer.h"
#include "model/tensor_table.h"

namespace tw::model {

struct ChannelDelta {
  uint32_t heads = 0;
  uint32_t state = 0;  // width of every head
  uint32_t taps = 0;   // of the convolutions
  float eps = 0;

  [[nodiscard]] uint32_t channels() const { return heads * state; }
  [[nodiscard]] std::string_view rotation() const { return {}; }

  [[nodiscard]] std::vector<Part> parts() const { return {Part::ChannelDelta}; }
  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId x) const;
};

KeyTable channel_delta_keys();
TensorTable channel_delta_tensors();
Result<ChannelDelta> read_channel_delta(const Hyper& hyper, uint32_t layer);

}  // namespace tw::model
