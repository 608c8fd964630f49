#include "model/window.h"

namespace tw::model {

namespace {

constexpr KeySpec kWindowKeys[] = {
    {.key = "attention.sliding_window", .fallback = 0, .high = 1 << 30},
    {.key = "attention.sliding_window_pattern", .type = KeyType::Pattern, .fallback = 0, .high = 4096},
    {.key = "rope.freq_base_swa", .type = KeyType::Real, .fallback = 0, .low = 1.0009765625, .high = 1e15},
};

}  // namespace

KeyTable window_keys() { return kWindowKeys; }

std::vector<graph::Window> read_windows(const Hyper& hyper, uint32_t layers, const WindowDefaults& defaults) {
  const bool given = hyper.has("attention.sliding_window");
  const uint32_t size = given ? hyper.count("attention.sliding_window") : defaults.size;
  std::vector<graph::Window> out(layers);
  if (size == 0) return out;
  for (uint32_t layer = 0; layer < layers; ++layer)
    if (hyper.pattern("attention.sliding_window_pattern", layer, defaults.period))
      out[layer] = {graph::Window::Kind::Sliding, size};
  return out;
}

double window_base(const Hyper& hyper, double otherwise) {
  return hyper.has("rope.freq_base_swa") ? hyper.real("rope.freq_base_swa") : otherwise;
}

}  // namespace tw::model
