#include <algorithm>

#include "lane/cpu/reference/reference.h"

namespace tw::lane::cpu::reference {

void conv(const ConvArgs& a, Range range, std::byte*) {
  const uint64_t block = a.l2_width != 0 ? a.l2_width : 64;
  const uint64_t blocks = (a.chan + block - 1) / block;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t s = item / blocks;
    const uint64_t begin = item % blocks * block;
    const uint64_t end = std::min(a.chan, begin + block);
    const uint64_t n = end - begin;
    float* ring = a.ring + sequence_begin(a.rings, s, a.taps * a.chan);
    // E, the channels of the item only.
    std::vector<float> e;
    for (uint64_t t = 0; t < a.taps; ++t) e.insert(e.end(), ring + t * a.chan + begin, ring + t * a.chan + end);
    for (uint64_t r = 0; r < a.rows; ++r) {
      const float* x = a.x + (s * a.rows + r) * a.chan;
      e.insert(e.end(), x + begin, x + end);
    }
    for (uint64_t r = 0; r < a.rows; ++r) {
      std::vector<float> y(n, 0.0f);
      for (uint64_t c = 0; c < n; ++c) {
        for (uint64_t t = 0; t < a.taps; ++t)
          y[c] = math::fma(e[(r + 1 + t) * n + c], a.w[t * a.chan + begin + c], y[c]);
        if (a.silu) y[c] = math::silu(y[c]);
      }
      const float factor = a.l2_width != 0 ? math::rsq(lane_tree(y, y) + a.l2_eps) : 1.0f;
      for (uint64_t c = 0; c < n; ++c)
        a.y[(s * a.rows + r) * a.chan + begin + c] = a.l2_width != 0 ? y[c] * factor : y[c];
    }
    for (uint64_t t = 0; t < a.taps; ++t)
      for (uint64_t c = 0; c < n; ++c) ring[t * a.chan + begin + c] = e[(a.rows + t) * n + c];
  }
}

void conv_parts(const ConvPartsArgs& a, Range range, std::byte*) {
  uint64_t item = 0;
  for (uint64_t p = 0; p < a.count; ++p)
    for (uint64_t own = 0; own < items(a.parts[p]); ++own, ++item)
      if (item >= range.begin && item < range.end) conv(a.parts[p], {own, own + 1}, nullptr);
}

void delta_update(const DeltaArgs& a, Range range, std::byte*) {
  const uint64_t d = a.d;
  const uint64_t blocks = (d + kDeltaRows - 1) / kDeltaRows;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t h = item / blocks % a.value_heads;
    const uint64_t s = item / blocks / a.value_heads;
    const uint64_t g = a.key_head_of == graph::KeyHeadOf::Modulo ? h % a.key_heads : h / (a.value_heads / a.key_heads);
    const uint64_t first = item % blocks * kDeltaRows;
    for (uint64_t i = first; i < std::min(d, first + kDeltaRows); ++i) {
      const uint64_t memory = sequence_begin(a.states, s, a.value_heads * d * d) + (h * d + i) * d;
      for (uint64_t r = s * a.rows; r < (s + 1) * a.rows; ++r) {
        const std::vector<float> k(a.k + (r * a.key_heads + g) * d, a.k + (r * a.key_heads + g + 1) * d);
        const std::vector<float> q(a.q + (r * a.key_heads + g) * d, a.q + (r * a.key_heads + g + 1) * d);
        const uint64_t unit = r * a.value_heads + h;
        const float v = a.v[unit * d + i];
        std::vector<float> old(d);
        std::vector<float> decayed(d);
        for (uint64_t j = 0; j < d; ++j) {
          old[j] = widen(a.state_type, a.state, memory + j);
          decayed[j] = (a.channel_decay ? a.alpha[unit * d + j] : a.alpha[unit]) * old[j];
        }
        const float error =
            a.channel_decay ? v - lane_tree(decayed, k) : math::fma(-a.alpha[unit], lane_tree(old, k), v);
        const float c = a.beta[unit] * error;
        std::vector<float> stored(d);
        for (uint64_t j = 0; j < d; ++j) {
          narrow(a.state_type, a.state, memory + j, math::fma(c, k[j], decayed[j]));
          stored[j] = widen(a.state_type, a.state, memory + j);
        }
        a.o[unit * d + i] = lane_tree(stored, q) * math::rsq(static_cast<float>(d));
      }
    }
  }
}

void delta_norm(const DeltaArgs& a, Range range, std::byte*) {
  for (uint64_t unit = range.begin; unit < range.end; ++unit) {
    const float* o = a.o + unit * a.d;
    std::vector<float> y = rms_norm(std::vector<float>(o, o + a.d), a.eps, a.norm, nullptr);
    for (uint64_t i = 0; i < a.d; ++i) {
      const float z = a.z[unit * a.d + i];
      y[i] = y[i] * (a.gate == graph::GateKind::Silu ? math::silu(z) : math::sigmoid(z));
    }
    store(a.out, unit, 0, y);
  }
}

}  // namespace tw::lane::cpu::reference
