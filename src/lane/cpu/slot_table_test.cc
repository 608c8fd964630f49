// Kernels over several sequences whose carried memory lies at slots: the bits of sequences that lie back to back.

#include "lane/cpu/slot_table.h"

#include <algorithm>
#include <cstring>

#include "lane/cpu/store.h"
#include "lane/cpu/testing/lanes.h"

namespace tw::lane::cpu {
namespace {

using testing::launch;
using testing::on_every_lane;
using testing::Random;

constexpr uint32_t kSlots[] = {3, 0, 4};
constexpr uint64_t kSequences = 3, kAll = 5;

// Memories of `size` values moved between back to back and slots `stride` apart. Nothing else of the slots is a number.
std::vector<float> to_slots(const std::vector<float>& memory, uint64_t size, uint64_t stride) {
  std::vector<float> all(kAll * stride, std::nanf(""));
  for (uint64_t s = 0; s < kSequences; ++s) std::copy_n(&memory[s * size], size, &all[kSlots[s] * stride]);
  return all;
}
std::vector<float> from_slots(const std::vector<float>& all, uint64_t size, uint64_t stride) {
  std::vector<float> memory;
  for (uint64_t s = 0; s < kSequences; ++s)
    memory.insert(memory.end(), &all[kSlots[s] * stride], &all[kSlots[s] * stride] + size);
  return memory;
}

// Runs `body` on memories back to back and at slots, on every lane, and expects the same results and memories.
void expect_same(const std::vector<float>& memory,
                 const std::function<std::vector<float>(const Kernels&, float*, SlotTable)>& body) {
  const uint64_t size = memory.size() / kSequences, stride = size + 16;
  const auto run = [&](const Kernels& kernels, bool at_slots) {
    std::vector<float> held = at_slots ? to_slots(memory, size, stride) : memory;
    std::vector<float> result = body(kernels, held.data(), at_slots ? SlotTable{kSlots, stride} : SlotTable{});
    if (at_slots) held = from_slots(held, size, stride);
    result.insert(result.end(), held.begin(), held.end());
    return result;
  };
  const auto apart = on_every_lane([&](const Kernels& k) { return run(k, false); });
  const auto slots = on_every_lane([&](const Kernels& k) { return run(k, true); });
  EXPECT_TRUE(testing::same_bits(slots, apart));
}

TEST(SlotTable, Convolution) {
  Random random(1);
  const uint64_t chan = 33, taps = 3, rows = 2;
  const auto x = random.values(kSequences * rows * chan), w = random.values(taps * chan);
  expect_same(random.values(kSequences * taps * chan), [&](const Kernels& k, float* ring, SlotTable rings) {
    std::vector<float> y(x.size());
    ConvArgs a{.x = x.data(), .w = w.data(), .ring = ring, .y = y.data(), .sequences = kSequences, .rows = rows};
    a.chan = chan, a.taps = taps, a.silu = true, a.rings = rings;
    launch(k.conv, a, items(a));
    return y;
  });
}

TEST(SlotTable, DeltaRule) {
  Random random(2);
  const uint64_t heads = 4, keys = 2, d = 20;
  const auto q = random.values(kSequences * keys * d), key = random.values(kSequences * keys * d);
  const auto v = random.values(kSequences * heads * d), z = random.values(kSequences * heads * d);
  const auto beta = random.between(kSequences * heads, 0, 1), alpha = random.between(kSequences * heads, 0, 1);
  const auto norm = random.values(d);
  expect_same(random.values(kSequences * heads * d * d), [&](const Kernels& k, float* state, SlotTable states) {
    std::vector<float> out(v.size());
    DeltaArgs a;
    a.q = q.data(), a.k = key.data(), a.v = v.data(), a.z = z.data(), a.beta = beta.data(), a.alpha = alpha.data();
    a.norm = norm.data(), a.state = state, a.o = out.data(), a.out = store_rows(out.data(), d);
    a.sequences = kSequences, a.value_heads = heads, a.key_heads = keys, a.d = d, a.eps = 1e-5F, a.states = states;
    launch(k.delta_update, a, delta_update_items(a));
    launch(k.delta_norm, a, delta_norm_items(a));
    return out;
  });
}

TEST(SlotTable, CacheWriteAndAttention) {
  Random random(3);
  const uint64_t heads = 4, kv = 2, hd = 12, length = 40;
  const auto q = random.values(kSequences * heads * hd), rows = random.values(kSequences * kv * hd);
  const int32_t position[] = {40, 1, 17};
  for (const bool blocked : {false, true}) {
    const CacheView view =
        blocked ? key_cache(nullptr, Dtype::F32, length, kv, hd) : value_cache(nullptr, Dtype::F32, length, kv, hd);
    const auto values = random.values(kSequences * length * kv * hd);
    expect_same(random.values(kSequences * view.sequence_stride), [&](const Kernels& k, float* cache, SlotTable table) {
      CacheView keys = view;
      keys.data = cache, keys.table = table;
      const CacheWriteArgs write{
          .src = rows.data(), .to = keys, .position = position, .sequences = kSequences, .kv_heads = kv, .width = hd};
      launch(k.cache_write, write, items(write));
      std::vector<float> out(q.size());
      AttentionArgs a;
      a.q = q.data(), a.k = keys, a.position = position, a.out = store_rows(out.data(), hd);
      a.v = blocked ? cache_rows(values.data(), Dtype::F32, length, kv, hd) : keys;
      a.sequences = kSequences, a.heads = heads, a.kv_heads = kv, a.hd = hd, a.vd = hd, a.length = length;
      launch(k.attention_rows, a, attention_rows_items(a), attention_scratch_bytes(a));
      return out;
    });
  }
}

// Heads of every sequence go to its own row of its own cache.
TEST(SlotTable, StoresOfRotations) {
  Random random(4);
  const uint64_t heads = 2, width = 16, half = 8, length = 20;
  const auto x = random.values(kSequences * heads * width);
  const auto cosine = random.values(length * half), sine = random.values(length * half);
  const int32_t position[] = {20, 1, 7};
  for (const auto form : {Store::Form::Rows, Store::Form::KeyBlocks, Store::Form::ValueRows}) {
    const uint64_t size = cache_elements(length, heads, width);
    expect_same(random.values(kSequences * size), [&](const Kernels& k, float* cache, SlotTable tables) {
      RopeArgs a;
      a.x = x.data(), a.x_pitch = width, a.cos = cosine.data(), a.sin = sine.data(), a.position = position;
      a.position_a_row = true, a.heads = kSequences * heads, a.per_row = heads, a.width = width, a.half = half;
      a.y = store_rows(cache, width);
      a.y.form = form, a.y.position = position, a.y.row_pitch = heads * width;
      a.y.head_width = width, a.y.head_stride = padded_positions(length) * width;
      a.y.sequence_units = heads, a.y.size = size, a.y.tables = tables;
      launch(k.rope, a, items(a), scratch_bytes(a));
      return std::vector<float>{};
    });
  }
}

}  // namespace
}  // namespace tw::lane::cpu
