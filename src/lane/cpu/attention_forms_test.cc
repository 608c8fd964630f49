// Attention whose operands lie in other ways than whole arrays: values inside the key rows, queries and keys in two
// pieces, outputs in every form. Every lane against the reference in bits, and against the plain way.

#include <cstring>

#include "base/half.h"
#include "lane/cpu/testing/landing.h"
#include "lane/cpu/testing/lanes.h"

namespace tw::lane::cpu {
namespace {

using testing::Landing;
using testing::launch;
using testing::Random;
using testing::Sink;

// Row-major values of a type, with nothing to read behind them.
struct Stored {
  Dtype type;
  std::vector<uint16_t> narrow;
  std::vector<float> wide;
  Stored(Dtype t, const std::vector<float>& values) : type(t) {
    if (t == Dtype::F32) wide = values;
    for (const float x : values)
      if (t == Dtype::F16) narrow.push_back(f32_to_f16(x));
  }
  [[nodiscard]] const void* data() const {
    return type == Dtype::F32 ? static_cast<const void*>(wide.data()) : narrow.data();
  }
};

std::vector<float> halves(std::vector<float> values) {
  for (float& x : values) x = f16_to_f32(f32_to_f16(x));
  return values;
}

void attend(const Kernels& kernels, AttentionArgs a, bool by_rows) {
  const size_t scratch = attention_scratch_bytes(a);
  std::vector<float> partials(attention_partials(a.sequences, a.rows, a.heads, a.vd, a.length));
  a.partials = partials.data();
  if (by_rows) return launch(kernels.attention_rows, a, attention_rows_items(a), scratch);
  launch(kernels.attention_chunks, a, attention_chunks_items(a), scratch);
  launch(kernels.attention_merge, a, attention_merge_items(a), scratch);
}

// What every lane makes of `args`, both ways; the same bits everywhere. make(to): the arguments, landing at `to`.
template <class Make>
std::vector<float> on_every_lane_both_ways(Landing landing, uint64_t units, uint64_t vd, Make make) {
  std::vector<float> want;
  for (const testing::Lane& lane : testing::lanes())
    for (const bool by_rows : {false, true}) {
      Sink sink(landing, units, vd);
      attend(*lane.kernels, make(sink.store()), by_rows);
      if (want.empty()) want = sink.values();
      EXPECT_TRUE(testing::same_bits(sink.values(), want)) << lane.name << ", by rows " << by_rows;
    }
  return want;
}

struct Latent {
  uint64_t heads, hd, vd, v_offset, length, rows;
  int32_t position;
  graph::Window window = {};
};
const Latent kLatents[] = {
    {.heads = 1, .hd = 5, .vd = 3, .v_offset = 2, .length = 20, .rows = 1, .position = 17},
    {.heads = 40, .hd = 48, .vd = 32, .v_offset = 16, .length = 300, .rows = 1, .position = 290},
    {.heads = 16, .hd = 72, .vd = 64, .v_offset = 0, .length = 200, .rows = 3, .position = 140},
    {.heads = 20, .hd = 33, .vd = 32, .v_offset = 1, .length = 150, .rows = 12, .position = 119},
    {.heads = 6,
     .hd = 130,
     .vd = 96,
     .v_offset = 34,
     .length = 270,
     .rows = 9,
     .position = 250,
     .window = {graph::Window::Kind::Sliding, 131}},
};

TEST(AttentionForms, ValuesInsideTheKeyRows) {
  uint32_t seed = 71;
  for (const Latent& p : kLatents)
    for (const Dtype type : {Dtype::F32, Dtype::F16}) {
      Random random(seed++);
      const auto q = random.values(p.rows * p.heads * p.hd), keys = halves(random.values(p.length * p.hd));
      std::vector<float> values;
      for (uint64_t j = 0; j < p.length; ++j)
        for (uint64_t e = 0; e < p.vd; ++e) values.push_back(keys[j * p.hd + p.v_offset + e]);
      const Stored rows(type, keys), apart(type, values);
      const auto make = [&](bool inside, const Store& to) {
        AttentionArgs a{.q = q.data(),
                        .k = cache_rows(rows.data(), type, p.length, 1, p.hd),
                        .v = cache_rows(apart.data(), type, p.length, 1, p.vd),
                        .position = &p.position,
                        .out = to,
                        .rows = p.rows,
                        .heads = p.heads,
                        .hd = p.hd,
                        .vd = p.vd,
                        .length = p.length,
                        .window = p.window,
                        .scale = 0.2f};
        if (!inside) return a;
        a.v = a.k;
        a.v_offset = p.v_offset;
        return a;
      };
      const uint64_t units = p.rows * p.heads;
      const auto want =
          on_every_lane_both_ways(Landing::Rows, units, p.vd, [&](const Store& to) { return make(false, to); });
      const auto got =
          on_every_lane_both_ways(Landing::Rows, units, p.vd, [&](const Store& to) { return make(true, to); });
      EXPECT_TRUE(testing::same_bits(got, want)) << "shape " << seed - 72;
    }
}

struct Split {
  uint64_t heads, kv_heads, own, tail, vd, length, rows;
  int32_t position;
};
const Split kSplits[] = {
    {.heads = 4, .kv_heads = 4, .own = 16, .tail = 8, .vd = 16, .length = 40, .rows = 1, .position = 33},
    {.heads = 6, .kv_heads = 2, .own = 7, .tail = 5, .vd = 9, .length = 150, .rows = 3, .position = 130},
    {.heads = 4, .kv_heads = 4, .own = 70, .tail = 33, .vd = 40, .length = 140, .rows = 20, .position = 121},
    {.heads = 40, .kv_heads = 1, .own = 1, .tail = 64, .vd = 16, .length = 30, .rows = 2, .position = 3},
};

TEST(AttentionForms, QueriesAndKeysInTwoPieces) {
  uint32_t seed = 91;
  for (const Split& p : kSplits)
    for (const Dtype type : {Dtype::F32, Dtype::F16})
      for (const bool blocked : {false, true}) {
        Random random(seed++);
        const uint64_t units = p.rows * p.heads, hd = p.own + p.tail;
        const uint64_t q_pitch = p.own + 3, tail_pitch = p.tail + 6, key_tail_pitch = p.tail + 4;
        const auto own = random.values(units * q_pitch), tail = random.values(units * tail_pitch);
        const auto keys = halves(random.values(p.length * p.kv_heads * p.own)),
                   key_tails = halves(random.values(p.length * key_tail_pitch)),
                   values = random.values(p.length * p.kv_heads * p.vd);
        std::vector<float> q, k;
        for (uint64_t u = 0; u < units; ++u) {
          for (uint64_t e = 0; e < p.own; ++e) q.push_back(own[u * q_pitch + e]);
          for (uint64_t e = 0; e < p.tail; ++e) q.push_back(tail[u * tail_pitch + 5 + e]);
        }
        for (uint64_t j = 0; j < p.length; ++j)
          for (uint64_t g = 0; g < p.kv_heads; ++g) {
            for (uint64_t e = 0; e < p.own; ++e) k.push_back(keys[(j * p.kv_heads + g) * p.own + e]);
            for (uint64_t e = 0; e < p.tail; ++e) k.push_back(key_tails[j * key_tail_pitch + 2 + e]);
          }
        const Stored key_rows(type, keys), key_tail_rows(type, key_tails);
        CacheView own_keys = blocked ? key_cache(nullptr, Dtype::F16, p.length, p.kv_heads, p.own)
                                     : cache_rows(key_rows.data(), type, p.length, p.kv_heads, p.own);
        std::vector<uint16_t> block(own_keys.sequence_stride);
        if (blocked) {
          own_keys.data = block.data();
          const CacheWriteArgs w{
              .src = keys.data(), .to = own_keys, .rows = p.length, .kv_heads = p.kv_heads, .width = p.own};
          launch(kernels(best_isa()).cache_write, w, items(w));
        }
        const auto make = [&](bool split, const Store& to) {
          AttentionArgs a{.q = q.data(),
                          .k = cache_rows(k.data(), Dtype::F32, p.length, p.kv_heads, hd),
                          .v = cache_rows(values.data(), Dtype::F32, p.length, p.kv_heads, p.vd),
                          .position = &p.position,
                          .out = to,
                          .rows = p.rows,
                          .heads = p.heads,
                          .kv_heads = p.kv_heads,
                          .hd = hd,
                          .vd = p.vd,
                          .length = p.length,
                          .scale = 0.1f};
          if (!split) return a;
          a.q = own.data();
          a.k = own_keys;
          a.split = {.own = p.own,
                     .q_pitch = q_pitch,
                     .q_tail = tail.data(),
                     .k_tail = key_tail_rows.data(),
                     .k_tail_type = type,
                     .q_tail_pitch = tail_pitch,
                     .q_tail_offset = 5,
                     .k_tail_pitch = key_tail_pitch,
                     .k_tail_offset = 2};
          return a;
        };
        const auto want =
            on_every_lane_both_ways(Landing::Rows, units, p.vd, [&](const Store& to) { return make(false, to); });
        const auto got =
            on_every_lane_both_ways(Landing::Rows, units, p.vd, [&](const Store& to) { return make(true, to); });
        EXPECT_TRUE(testing::same_bits(got, want)) << "shape " << seed - 92;
      }
}

TEST(AttentionForms, EveryGateAndForm) {
  using enum graph::ActivationKind;
  Random random(111);
  const uint64_t heads = 4, hd = 16, vd = 64, length = 150, rows = 2, units = rows * heads;
  const int32_t position = 140;
  const auto q = random.values(units * hd), k = random.values(length * 2 * hd), v = random.values(length * 2 * vd),
             gate = random.values(units * vd + 7);
  for (const auto act : {Silu, Sigmoid, GeluTanh, Relu, Softplus, Tanh, Exp})
    for (const Landing landing : {Landing::Rows, Landing::Quantized, Landing::RowsAndTwoWords}) {
      const auto make = [&](const Store& to) {
        return AttentionArgs{.q = q.data(),
                             .k = cache_rows(k.data(), Dtype::F32, length, 2, hd),
                             .v = cache_rows(v.data(), Dtype::F32, length, 2, vd),
                             .position = &position,
                             .gate = gate.data() + 7,
                             .out = to,
                             .rows = rows,
                             .heads = heads,
                             .kv_heads = 2,
                             .hd = hd,
                             .vd = vd,
                             .length = length,
                             .gate_act = act};
      };
      on_every_lane_both_ways(landing, units, vd, make);
    }
}

}  // namespace
}  // namespace tw::lane::cpu
