#pragma once

// A gated short convolution: b, c and x are products of the row; out(c * conv(b * x)), the convolution over time.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/step_writer.h"
#include "model/tensor_table.h"

namespace tw::model {

struct ShortConv {
  uint32_t channels = 0;
  uint32_t taps = 0;

  [[nodiscard]] std::string_view rotation() const { return {}; }
  [[nodiscard]] std::vector<Part> parts() const { return {Part::ShortConv}; }
  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId x) const;
};

KeyTable short_conv_keys();
TensorTable short_conv_tensors();
ShortConv read_short_conv(const Hyper& hyper);

}  // namespace tw::model
