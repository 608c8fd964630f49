// Attention: every lane, both ways of cutting the work, every layout of the caches give the same bits; the formula in
// double.

#include <random>

#include "base/half.h"
#include "lane/cpu/testing/lanes.h"

namespace tw::lane::cpu {
namespace {

using testing::expect_near;
using testing::launch;
using testing::on_every_lane;
using testing::Random;

struct AttentionShape {
  uint64_t heads, kv_heads, hd, vd, length, rows, sequences;
  std::vector<int32_t> position;  // empty: the whole cache
  graph::Window window;
  float softcap;
  bool sinks, gate;
};

enum class Cached { Rows, Blocked };

struct AttentionCase {
  AttentionShape p;
  std::vector<float> q, k, v, sinks, gate;  // k, v: sequences x length rows, of values that f16 holds exactly
};

AttentionCase make(const AttentionShape& p, uint32_t seed) {
  Random random(seed);
  const uint64_t units = p.sequences * p.rows * p.heads;
  AttentionCase c{p,
                  random.values(units * p.hd),
                  random.values(p.sequences * p.length * p.kv_heads * p.hd),
                  random.values(p.sequences * p.length * p.kv_heads * p.vd),
                  random.values(p.heads),
                  random.values(units * p.vd)};
  for (auto* cache : {&c.k, &c.v})
    for (float& x : *cache) x = f16_to_f32(f32_to_f16(x));
  return c;
}

// A cache filled through cache_write, or rows as they are.
std::vector<std::byte> fill(const Kernels& kernels, const AttentionCase& c, const std::vector<float>& rows,
                            uint64_t width, CacheView view) {
  const uint64_t bytes = c.p.sequences * view.sequence_stride * bytes_of(view.type);
  std::vector<std::byte> data(bytes, std::byte{0xff});  // NaN wherever nothing is written
  view.data = data.data();
  const CacheWriteArgs a{.src = rows.data(),
                         .to = view,
                         .fixed = 1,
                         .sequences = c.p.sequences,
                         .rows = c.p.length,
                         .kv_heads = c.p.kv_heads,
                         .width = width};
  launch(kernels.cache_write, a, items(a));
  return data;
}

std::vector<float> run(const Kernels& kernels, const AttentionCase& c, Cached layout, Dtype type, bool by_rows) {
  const AttentionShape& p = c.p;
  const bool blocked = layout == Cached::Blocked;
  CacheView k = blocked ? key_cache(nullptr, type, p.length, p.kv_heads, p.hd)
                        : cache_rows(nullptr, type, p.length, p.kv_heads, p.hd);
  CacheView v = blocked ? value_cache(nullptr, type, p.length, p.kv_heads, p.vd)
                        : cache_rows(nullptr, type, p.length, p.kv_heads, p.vd);
  const auto keys = fill(kernels, c, c.k, p.hd, k);
  const auto values = fill(kernels, c, c.v, p.vd, v);
  k.data = keys.data();
  v.data = values.data();
  std::vector<float> out(p.sequences * p.rows * p.heads * p.vd);
  std::vector<float> partials(attention_partials(p.sequences, p.rows, p.heads, p.vd, p.length));
  AttentionArgs a{.q = c.q.data(),
                  .k = k,
                  .v = v,
                  .position = p.position.empty() ? nullptr : p.position.data(),
                  .sinks = p.sinks ? c.sinks.data() : nullptr,
                  .gate = p.gate ? c.gate.data() : nullptr,
                  .out = store_rows(out.data(), p.vd),
                  .partials = partials.data(),
                  .sequences = p.sequences,
                  .rows = p.rows,
                  .heads = p.heads,
                  .kv_heads = p.kv_heads,
                  .hd = p.hd,
                  .vd = p.vd,
                  .length = p.length,
                  .window = p.window,
                  .scale = 1 / std::sqrt(static_cast<float>(p.hd)),
                  .softcap = p.softcap};
  const size_t scratch = attention_scratch_bytes(a);
  if (by_rows) {
    launch(kernels.attention_rows, a, attention_rows_items(a), scratch);
  } else {
    launch(kernels.attention_chunks, a, attention_chunks_items(a), scratch);
    launch(kernels.attention_merge, a, attention_merge_items(a), scratch);
  }
  return out;
}

std::vector<double> formula(const AttentionCase& c) {
  const AttentionShape& p = c.p;
  std::vector<double> out;
  for (uint64_t u = 0; u < p.sequences * p.rows * p.heads; ++u) {
    const uint64_t s = u / p.heads / p.rows, r = u / p.heads % p.rows, h = u % p.heads, g = h / (p.heads / p.kv_heads);
    const uint64_t n = p.position.empty() ? p.length : static_cast<uint64_t>(p.position[s]) + r;
    uint64_t begin = 0;
    if (p.window.kind == graph::Window::Kind::Sliding && n > p.window.size) begin = n - p.window.size;
    if (p.window.kind == graph::Window::Kind::Chunked) begin = (n - 1) / p.window.size * p.window.size;
    std::vector<double> o(p.vd, 0.0);
    double total = p.sinks ? std::exp(static_cast<double>(c.sinks[h])) : 0;
    for (uint64_t j = begin; j < n; ++j) {
      double score = 0;
      for (uint64_t e = 0; e < p.hd; ++e)
        score += static_cast<double>(c.q[u * p.hd + e]) * c.k[((s * p.length + j) * p.kv_heads + g) * p.hd + e];
      score /= std::sqrt(static_cast<double>(p.hd));
      if (p.softcap > 0) score = p.softcap * std::tanh(score / p.softcap);
      const double w = std::exp(score);
      total += w;
      for (uint64_t e = 0; e < p.vd; ++e) o[e] += w * c.v[((s * p.length + j) * p.kv_heads + g) * p.vd + e];
    }
    for (uint64_t e = 0; e < p.vd; ++e)
      out.push_back(o[e] / total * (p.gate ? 1 / (1 + std::exp(-static_cast<double>(c.gate[u * p.vd + e]))) : 1.0));
  }
  return out;
}

const AttentionShape kShapes[] = {
    {.heads = 1, .kv_heads = 1, .hd = 1, .vd = 1, .length = 1, .rows = 1, .sequences = 1, .position = {1}},
    {.heads = 6, .kv_heads = 2, .hd = 33, .vd = 7, .length = 300, .rows = 1, .sequences = 1, .position = {257}},
    {.heads = 4,
     .kv_heads = 4,
     .hd = 64,
     .vd = 48,
     .length = 140,
     .rows = 9,
     .sequences = 1,
     .position = {124},
     .sinks = true},
    {.heads = 8,
     .kv_heads = 1,
     .hd = 80,
     .vd = 80,
     .length = 270,
     .rows = 21,
     .sequences = 1,
     .position = {1},
     .gate = true},
    {.heads = 4,
     .kv_heads = 2,
     .hd = 16,
     .vd = 32,
     .length = 400,
     .rows = 5,
     .sequences = 2,
     .position = {130, 333},
     .window = {graph::Window::Kind::Sliding, 129},
     .softcap = 5.0f,
     .sinks = true,
     .gate = true},
    {.heads = 2,
     .kv_heads = 1,
     .hd = 130,
     .vd = 17,
     .length = 300,
     .rows = 40,
     .sequences = 1,
     .position = {200},
     .window = {graph::Window::Kind::Chunked, 50}},
    {.heads = 40,
     .kv_heads = 1,
     .hd = 32,
     .vd = 16,
     .length = 131,
     .rows = 2,
     .sequences = 1,
     .position = {},
     .softcap = 2.0f},
};

TEST(Attention, EveryLaneFormAndLayoutGivesTheSameBits) {
  uint32_t seed = 41;
  for (const AttentionShape& p : kShapes) {
    const AttentionCase c = make(p, seed++);
    const auto want = on_every_lane([&](const Kernels& k) { return run(k, c, Cached::Blocked, Dtype::F32, true); });
    expect_near(want, formula(c), 2e-6);
    for (const Cached layout : {Cached::Rows, Cached::Blocked})
      for (const Dtype type : {Dtype::F32, Dtype::F16})
        for (const bool by_rows : {false, true})
          for (const testing::Lane& lane : testing::lanes()) {
            if (lane.name == "reference" && by_rows) continue;
            EXPECT_TRUE(testing::same_bits(run(*lane.kernels, c, layout, type, by_rows), want))
                << lane.name << ", shape " << seed - 41 << ", blocked " << (layout == Cached::Blocked) << ", type "
                << name(type) << ", by rows " << by_rows;
          }
  }
}

// Lengths about a chunk's edge, usual and unusual widths, every group of heads that a tile can hold and some that it
// cannot.
AttentionShape random_shape(std::mt19937& engine) {
  const auto one_of = [&](std::initializer_list<uint64_t> list) { return list.begin()[engine() % list.size()]; };
  const uint64_t length = one_of({1, 2, 127, 128, 129, 255, 257, 300});
  const uint64_t kv_heads = one_of({1, 2}), group = one_of({1, 2, 3, 4, 5, 6, 7, 8, 16});
  const uint64_t rows = std::min(length, one_of({1, 1, 2, 7, 25}));
  const uint64_t width = one_of({64, 80, 96, 128, 256, 72});
  AttentionShape p{.heads = kv_heads * group,
                   .kv_heads = kv_heads,
                   .hd = width,
                   .vd = one_of({width, width, 40}),
                   .length = length,
                   .rows = rows,
                   .sequences = one_of({1, 1, 2}),
                   .softcap = engine() % 4 == 0 ? 3.0f : 0.0f,
                   .sinks = engine() % 3 == 0,
                   .gate = engine() % 3 == 0};
  for (uint64_t s = 0; s < p.sequences; ++s)
    p.position.push_back(static_cast<int32_t>(1 + (s == 0 ? length - rows : engine() % (length - rows + 1))));
  if (engine() % 3 == 0)
    p.window = {engine() % 2 == 0 ? graph::Window::Kind::Sliding : graph::Window::Kind::Chunked,
                static_cast<uint32_t>(one_of({1, 50, 128, 200}))};
  return p;
}

TEST(Attention, RandomShapesGiveTheReferencesBits) {
  constexpr uint32_t kSeed = 4711;
  std::mt19937 engine(kSeed);
  for (uint32_t i = 0; i < 40; ++i) {
    const AttentionCase c = make(random_shape(engine), static_cast<uint32_t>(engine()));
    const auto want = run(reference_kernels(), c, Cached::Blocked, Dtype::F32, false);
    for (const testing::Lane& lane : testing::lanes()) {
      if (lane.name == "reference") continue;
      for (const Dtype type : {Dtype::F32, Dtype::F16})
        for (const bool by_rows : {false, true})
          EXPECT_TRUE(testing::same_bits(run(*lane.kernels, c, Cached::Blocked, type, by_rows), want))
              << lane.name << ", seed " << kSeed << ", shape " << i << ": " << c.p.heads << " heads of " << c.p.kv_heads
              << ", " << c.p.hd << " wide, " << c.p.length << " positions, " << c.p.rows << " rows, type " << name(type)
              << ", by rows " << by_rows;
    }
  }
}

TEST(Attention, ARowDoesNotDependOnTheChunkItIsIn) {
  const AttentionShape whole{
      .heads = 4, .kv_heads = 2, .hd = 32, .vd = 32, .length = 200, .rows = 60, .sequences = 1, .position = {101}};
  const AttentionCase c = make(whole, 60);
  const Kernels& k = kernels(best_isa());
  const auto want = run(k, c, Cached::Blocked, Dtype::F16, true);
  for (const uint64_t row : {0, 27, 28, 59}) {
    AttentionCase one = c;
    one.p.rows = 1;
    one.p.position = {static_cast<int32_t>(101 + row)};
    const auto stride = static_cast<long>(whole.heads * whole.hd);
    one.q.assign(c.q.begin() + static_cast<long>(row) * stride, c.q.begin() + static_cast<long>(row + 1) * stride);
    const auto got = run(k, one, Cached::Blocked, Dtype::F16, false);
    EXPECT_TRUE(testing::same_bits(
        got, {want.begin() + static_cast<long>(row) * stride, want.begin() + static_cast<long>(row + 1) * stride}));
  }
}

}  // namespace
}  // namespace tw::lane::cpu
