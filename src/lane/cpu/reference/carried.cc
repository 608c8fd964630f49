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

namespace {

uint64_t key_head(const DeltaArgs& a, uint64_t h) {
  return a.key_head_of == graph::KeyHeadOf::Modulo ? h % a.key_heads : h / (a.value_heads / a.key_heads);
}
// The key or query of row r, counted over all sequences.
std::vector<float> key_vector(const DeltaArgs& a, const float* of, uint64_t r, uint64_t h) {
  const float* from = of + (r * a.key_heads + key_head(a, h)) * a.d;
  return {from, from + a.d};
}

// Memory row i of a head through row r of its sequence s.
void delta_row(const DeltaArgs& a, uint64_t s, uint64_t h, uint64_t i, uint64_t r) {
  const uint64_t d = a.d;
  const uint64_t memory = sequence_begin(a.states, s, a.value_heads * d * d) + (h * d + i) * d;
  const std::vector<float> k = key_vector(a, a.k, s * a.rows + r, h), q = key_vector(a, a.q, s * a.rows + r, h);
  const uint64_t unit = (s * a.rows + r) * a.value_heads + h;
  const float v = a.v[unit * d + i];
  std::vector<float> old(d);
  std::vector<float> decayed(d);
  for (uint64_t j = 0; j < d; ++j) {
    old[j] = widen(a.state_type, a.state, memory + j);
    decayed[j] = (a.channel_decay ? a.alpha[unit * d + j] : a.alpha[unit]) * old[j];
  }
  const float error = a.channel_decay ? v - lane_tree(decayed, k) : math::fma(-a.alpha[unit], lane_tree(old, k), v);
  const float c = a.beta[unit] * error;
  std::vector<float> stored(d);
  for (uint64_t j = 0; j < d; ++j) {
    narrow(a.state_type, a.state, memory + j, math::fma(c, k[j], decayed[j]));
    stored[j] = widen(a.state_type, a.state, memory + j);
  }
  a.o[unit * d + i] = lane_tree(stored, q) * math::rsq(static_cast<float>(d));
}

float chain(const float* x, const float* y, uint64_t n) {
  float sum = 0;
  for (uint64_t i = 0; i < n; ++i) sum = math::fma(x[i], y[i], sum);
  return sum;
}

// The chunk of a head that begins at row `from` of its sequence s.
void delta_chunk(const DeltaArgs& a, uint64_t s, uint64_t h, uint64_t from) {
  constexpr uint64_t kRows = kDeltaChunk;
  const uint64_t d = a.d;
  const auto unit = [&](uint64_t t) { return (s * a.rows + from + t) * a.value_heads + h; };
  std::vector<std::vector<float>> k, q;
  for (uint64_t t = 0; t < kRows; ++t) {
    k.push_back(key_vector(a, a.k, s * a.rows + from + t, h));
    q.push_back(key_vector(a, a.q, s * a.rows + from + t, h));
  }
  float g[kRows], G[kRows][kRows], A[kRows][kRows], P[kRows][kRows];
  for (uint64_t t = 0; t < kRows; ++t) {
    const float alpha = a.alpha[unit(t)];
    g[t] = t == 0 ? alpha : alpha * g[t - 1];
    for (uint64_t i = 0; i <= t; ++i) {
      G[t][i] = i == t ? 1.0f : alpha * G[t - 1][i];
      A[t][i] = (a.beta[unit(t)] * G[t][i]) * chain(k[t].data(), k[i].data(), d);
      P[t][i] = G[t][i] * chain(q[t].data(), k[i].data(), d);
    }
  }
  float* memory = static_cast<float*>(a.state) + sequence_begin(a.states, s, a.value_heads * d * d) + h * d * d;
  for (uint64_t m = 0; m < d; ++m, memory += d) {
    float c[kRows];
    for (uint64_t t = 0; t < kRows; ++t) {
      c[t] = a.beta[unit(t)] * math::fma(-g[t], chain(memory, k[t].data(), d), a.v[unit(t) * d + m]);
      for (uint64_t i = 0; i < t; ++i) c[t] = math::fma(-A[t][i], c[i], c[t]);
      float o = g[t] * chain(memory, q[t].data(), d);
      for (uint64_t i = 0; i <= t; ++i) o = math::fma(P[t][i], c[i], o);
      a.o[unit(t) * d + m] = o * math::rsq(static_cast<float>(d));
    }
    for (uint64_t j = 0; j < d; ++j) {
      memory[j] = g[kRows - 1] * memory[j];
      for (uint64_t t = 0; t < kRows; ++t) memory[j] = math::fma(G[kRows - 1][t] * c[t], k[t][j], memory[j]);
    }
  }
}

}  // namespace

void delta_update(const DeltaArgs& a, Range range, std::byte*) {
  const uint64_t blocks = (a.d + kDeltaRows - 1) / kDeltaRows;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t h = item / blocks % a.value_heads;
    const uint64_t s = item / blocks / a.value_heads;
    const uint64_t first = item % blocks * kDeltaRows;
    for (uint64_t i = first; i < std::min(a.d, first + kDeltaRows); ++i)
      for (uint64_t r = 0; r < a.rows; ++r) delta_row(a, s, h, i, r);
  }
}

void delta_chunks(const DeltaArgs& a, Range range, std::byte*) {
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t s = item / a.value_heads, h = item % a.value_heads;
    uint64_t r = 0;
    for (; r + kDeltaChunk <= a.rows; r += kDeltaChunk) delta_chunk(a, s, h, r);
    for (; r < a.rows; ++r)
      for (uint64_t i = 0; i < a.d; ++i) delta_row(a, s, h, i, r);
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
