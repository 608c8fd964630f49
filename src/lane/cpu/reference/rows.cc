#include <algorithm>
#include <bit>
#include <cmath>

#include "lane/cpu/reference/reference.h"

namespace tw::lane::cpu::reference {
namespace {

using Row = std::vector<float>;

Row row_at(const float* data, uint64_t n) { return Row(data, data + n); }

}  // namespace

void norm(const NormArgs& a, Range range, std::byte*) {
  for (uint64_t r = range.begin; r < range.end; ++r) {
    Row v = row_at(a.x + r * a.x_pitch, a.cols);
    if (a.add != nullptr) {
      Row added = row_at(a.add + r * a.cols, a.cols);
      if (a.pre) added = rms_norm(added, a.pre_eps, a.pre_weight, nullptr);
      for (size_t i = 0; i < v.size(); ++i) v[i] = v[i] + added[i];
    }
    if (a.sum != nullptr) std::copy(v.begin(), v.end(), a.sum + r * a.cols);
    if (a.kind == graph::NormKind::Layer) {
      const float mean = lane_tree(v) / static_cast<float>(a.cols);
      for (float& x : v) x = x - mean;
    }
    const Row y = rms_norm(v, a.eps, a.weight, a.bias);
    store(a.out, r, 0, y);
    store(a.quantized, r, 0, y);
  }
}

void l2_norm(const L2NormArgs& a, Range range, std::byte*) {
  for (uint64_t r = range.begin; r < range.end; ++r) {
    const Row x = row_at(a.x + r * a.cols, a.cols);
    const float factor = math::rsq(lane_tree(x, x) + a.eps);
    for (uint64_t i = 0; i < a.cols; ++i) a.y[r * a.cols + i] = x[i] * factor;
  }
}

void softmax(const SoftmaxArgs& a, Range range, std::byte*) {
  for (uint64_t r = range.begin; r < range.end; ++r) {
    Row w = row_at(a.x + r * a.cols, a.cols);
    float m = w[0];
    for (const float x : w) m = math::max(x, m);
    const float sink = a.sinks != nullptr ? a.sinks[a.sink_a_row ? r : 0] : 0.0f;
    if (a.sinks != nullptr) m = math::max(sink, m);
    for (float& x : w) x = math::exp(x - m);
    float z = lane_tree(w);
    if (a.sinks != nullptr) z = z + math::exp(sink - m);
    for (uint64_t i = 0; i < a.cols; ++i) a.y[r * a.cols + i] = w[i] / z;
  }
}

void quant(const QuantArgs& a, Range range, std::byte*) {
  const uint64_t blocks = (a.cols + 31) / 32;
  for (uint64_t b = range.begin; b < range.end; ++b) {
    Row x(32, 0.0f);
    for (uint64_t i = 0; i < 32 && b % blocks * 32 + i < a.cols; ++i)
      x[i] = a.x[b / blocks * a.pitch + b % blocks * 32 + i];
    quantize(x.data(), a.to, b, a.words);
  }
}

void rope(const RopeArgs& a, Range range, std::byte*) {
  for (uint64_t head = range.begin; head < range.end; ++head) {
    const uint64_t row = head / a.per_row;
    Row x = row_at(a.x + head * a.x_pitch, a.width);
    if (a.normed) x = rms_norm(x, a.eps, a.norm_weight, nullptr);
    uint64_t table = row;
    if (a.position != nullptr && a.position_a_row) table = static_cast<uint64_t>(a.position[row]) - 1;
    if (a.position != nullptr && !a.position_a_row) table = static_cast<uint64_t>(a.position[0]) - 1 + row;
    Row y = x;
    for (uint64_t i = 0; i < a.half; ++i) {
      const float c = a.cos[table * a.half + i];
      const float s = a.sin[table * a.half + i];
      y[i] = math::fma(x[i], c, -(x[i + a.half] * s));
      y[i + a.half] = math::fma(x[i], s, x[i + a.half] * c);
    }
    store(a.y, head, 0, y);
  }
}

void rope_parts(const RopePartsArgs& a, Range range, std::byte*) {
  uint64_t item = 0;
  for (uint64_t s = 0; s < a.count; ++s)
    for (uint64_t head = 0; head < a.sides[s].heads; ++head, ++item)
      if (item >= range.begin && item < range.end) rope(a.sides[s], {head, head + 1}, nullptr);
}

void argmax_scan(const ArgMaxArgs& a, Range range, std::byte*) {
  const uint64_t pieces = (a.n + kArgMaxPiece - 1) / kArgMaxPiece;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    Best best{-INFINITY, 0};
    const uint64_t begin = item % pieces * kArgMaxPiece;
    for (uint64_t i = begin; i < std::min(a.n, begin + kArgMaxPiece); ++i) {
      const float x = a.x[item / pieces * a.n + i];
      if (x > best.value) best = {x, static_cast<int32_t>(i + 1)};
    }
    a.best[item] = best;
  }
}

// Straight from the definition, from the values themselves.
void argmax_merge(const ArgMaxArgs& a, Range range, std::byte*) {
  for (uint64_t r = range.begin; r < range.end; ++r) {
    uint64_t best = 0;
    for (uint64_t i = 1; i < a.n; ++i)
      if (a.x[r * a.n + i] > a.x[r * a.n + best]) best = i;
    a.out[r] = static_cast<int32_t>(best + 1);
    const uint64_t each = a.rows / a.sequences;
    if (a.token != nullptr && r % each == each - 1) {
      a.token[r / each] = a.out[r];
      a.position[r / each] += a.consumed;
    }
  }
}

}  // namespace tw::lane::cpu::reference
