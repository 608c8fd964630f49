#pragma once

// Sliding windows: which layers attend only the last positions, and how many.

#include <cstdint>
#include <vector>

#include "graph/op.h"
#include "model/hyper.h"

namespace tw::model {

// Overrides the refusal of windows in attention_keys(). rope.freq_base_swa is the base of windowed layers' rotation.
KeyTable window_keys();

// What a family does when the file does not say.
struct WindowDefaults {
  uint32_t size = 0;    // of a window, 0: there are none
  uint32_t period = 0;  // of layers; the last of each period attends everything
};

// One a layer. A window size of 0 means that no layer has one.
std::vector<graph::Window> read_windows(const Hyper& hyper, uint32_t layers, const WindowDefaults& defaults);

// rope.freq_base_swa, or `otherwise` when the file does not give it.
double window_base(const Hyper& hyper, double otherwise);

}  // namespace tw::model
