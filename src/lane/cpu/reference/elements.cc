#include <algorithm>

#include "lane/cpu/reference/reference.h"

namespace tw::lane::cpu::reference {
namespace {

// Elements of the items of an array of n.
template <class Body>
void each(Range range, uint64_t n, Body body) {
  for (uint64_t i = range.begin * kElementBlock; i < std::min(n, range.end * kElementBlock); ++i) body(i);
}

float combine(graph::Arithmetic op, float x, float y) {
  switch (op) {
    case graph::Arithmetic::Add: return x + y;
    case graph::Arithmetic::Sub: return x - y;
    case graph::Arithmetic::Mul: return x * y;
    case graph::Arithmetic::Div: return x / y;
    case graph::Arithmetic::Min: return x < y ? x : y;
    case graph::Arithmetic::Max: return x > y ? x : y;
  }
  return x;
}

}  // namespace

void binary(const BinaryArgs& a, Range range, std::byte*) {
  const uint64_t cols = a.row == 0 ? a.n : a.row;
  const uint64_t blocks = (cols + kElementBlock - 1) / kElementBlock;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t row = item / blocks;
    const uint64_t first = row * cols + item % blocks * kElementBlock;
    std::vector<float> y;
    each({item % blocks, item % blocks + 1}, cols, [&](uint64_t c) {
      float b = a.b[a.row != 0 && a.scalar ? row : row * a.b_pitch + c];
      if (a.gated) b = activate(a.act, b);
      y.push_back(combine(a.op, a.a[row * cols + c], b));
    });
    store(a.out, 0, first, y);
  }
}

void scale(const ScaleArgs& a, Range range, std::byte*) {
  each(range, a.n, [&](uint64_t i) { a.y[i] = a.x[i] * a.factor; });
}

void swiglu(const SwiGluArgs& a, Range range, std::byte*) {
  std::vector<float> y;
  each(range, a.n, [&](uint64_t i) { y.push_back(math::silu(a.g[i]) * a.u[i]); });
  store(a.out, 0, range.begin * kElementBlock, y);
}

void unary(const UnaryArgs& a, Range range, std::byte*) {
  each(range, a.n, [&](uint64_t i) { a.y[i] = a.cap > 0 ? math::softcap(a.x[i], a.cap) : activate(a.act, a.x[i]); });
}

void gates(const GatesArgs& a, Range range, std::byte*) {
  for (uint64_t i = range.begin * a.heads; i < range.end * a.heads; ++i) {
    a.decay[i] = math::decay(a.x[i], a.bias[i % a.heads], a.rate[i % a.heads]);
    if (a.beta != nullptr) a.beta[i] = math::sigmoid(a.b[i]);
  }
}

void gather(const GatherArgs& a, Range range, std::byte*) {
  for (uint64_t r = range.begin; r < range.end; ++r) {
    const uint64_t from = (a.index != nullptr ? static_cast<uint64_t>(a.index[r]) : a.fixed) - 1;
    for (uint64_t c = 0; c < a.cols; ++c) a.out[r * a.cols + c] = widen(a.type, a.table, from * a.cols + c) * a.scale;
  }
}

void copy(const CopyArgs& a, Range range, std::byte*) {
  for (uint64_t u = range.begin; u < range.end; ++u)
    for (uint64_t i = 0; i < a.width; ++i)
      narrow(a.y_type, a.y, a.y_offset + u * a.y_pitch + i, widen(a.x_type, a.x, a.x_offset + u * a.x_pitch + i));
}

void join(const JoinArgs& a, Range range, std::byte*) {
  for (uint64_t u = range.begin; u < range.end; ++u) {
    store(a.y, u, 0, std::vector<float>(a.a + u * a.ha, a.a + (u + 1) * a.ha));
    store(a.y, u, a.ha, std::vector<float>(a.b + u * a.hb, a.b + (u + 1) * a.hb));
  }
}

void transpose(const TransposeArgs& a, Range range, std::byte*) {
  for (uint64_t c = range.begin; c < range.end; ++c)
    for (uint64_t r = 0; r < a.rows; ++r) a.y[c * a.rows + r] = a.x[r * a.cols + c];
}

void cache_write(const CacheWriteArgs& a, Range range, std::byte*) {
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t g = item % a.kv_heads;
    const uint64_t r = item / a.kv_heads % a.rows;
    const uint64_t s = item / a.kv_heads / a.rows;
    const uint64_t j = (a.position != nullptr ? static_cast<uint64_t>(a.position[s]) : a.fixed) - 1 + r;
    for (uint64_t e = 0; e < a.width; ++e) {
      const uint64_t base = cache_begin(a.to, s) + g * a.to.head_stride;
      const uint64_t at = a.to.blocked ? (j / 16 * a.width + e) * 16 + j % 16 : j * a.to.position_stride + e;
      narrow(a.to.type, const_cast<void*>(a.to.data), base + at, a.src[item * a.width + e]);
    }
  }
}

}  // namespace tw::lane::cpu::reference
