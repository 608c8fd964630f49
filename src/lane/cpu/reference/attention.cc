#include <algorithm>

#include "lane/cpu/reference/reference.h"

namespace tw::lane::cpu::reference {
namespace {

struct State {
  float m = 0, l = 0;
  std::vector<float> o;
};

float key(const AttentionArgs& a, uint64_t s, uint64_t g, uint64_t j, uint64_t e) {
  const uint64_t own = a.split.own != 0 ? a.split.own : a.hd;
  if (e >= own)
    return widen(a.split.k_tail_type, a.split.k_tail, a.split.k_tail_offset + j * a.split.k_tail_pitch + e - own);
  const uint64_t base = cache_begin(a.k, s) + g * a.k.head_stride;
  return widen(a.k.type, a.k.data,
               base + (a.k.blocked ? (j / 16 * own + e) * 16 + j % 16 : j * a.k.position_stride + e));
}

float query(const AttentionArgs& a, uint64_t unit, uint64_t e) {
  if (a.split.own == 0) return a.q[unit * a.hd + e];
  if (e < a.split.own) return a.q[unit * a.split.q_pitch + e];
  return a.split.q_tail[unit * a.split.q_tail_pitch + a.split.q_tail_offset + e - a.split.own];
}

// m_c, l_c, o_c of the positions [begin, end), all of one chunk.
State chunk(const AttentionArgs& a, uint64_t unit, uint64_t begin, uint64_t end) {
  const uint64_t s = unit / a.heads / a.rows;
  const uint64_t g = unit % a.heads / (a.heads / a.kv_heads);
  std::vector<float> q(a.hd);
  for (uint64_t e = 0; e < a.hd; ++e) q[e] = query(a, unit, e);
  const uint64_t from = begin / kAttentionChunk * kAttentionChunk;
  std::vector<float> score;
  for (uint64_t j = begin; j < end; ++j) {
    std::vector<float> k(a.hd);
    for (uint64_t e = 0; e < a.hd; ++e) k[e] = key(a, s, g, j, e);
    float value = chain_of_chains(q, k, 64) * a.scale;
    if (a.softcap > 0) value = math::softcap(value, a.softcap);
    score.push_back(value);
  }
  State c{score[0], 0, std::vector<float>(a.vd, 0.0f)};
  for (const float x : score) c.m = math::max(x, c.m);
  std::vector<float> weight(kAttentionChunk, 0.0f);
  for (uint64_t j = begin; j < end; ++j) {
    const float w = math::exp(score[j - begin] - c.m);
    weight[j - from] = w;
    for (uint64_t e = 0; e < a.vd; ++e) {
      const uint64_t at = a.v_offset + cache_begin(a.v, s) + g * a.v.head_stride + j * a.v.position_stride + e;
      c.o[e] = math::fma(w, widen(a.v.type, a.v.data, at), c.o[e]);
    }
  }
  c.l = lane_tree(weight);
  return c;
}

void attend(const AttentionArgs& a, uint64_t unit) {
  const Span span = attended(a, unit / a.heads / a.rows, unit / a.heads % a.rows);
  State state{0, 0, std::vector<float>(a.vd, 0.0f)};
  bool any = a.sinks != nullptr;
  if (any) state = {a.sinks[unit % a.heads], 1, state.o};
  for (uint64_t begin = span.begin; begin < span.end;) {
    const uint64_t end = std::min(span.end, (begin / kAttentionChunk + 1) * kAttentionChunk);
    const State c = chunk(a, unit, begin, end);
    begin = end;
    if (!any) {
      state = c;
      any = true;
      continue;
    }
    const float m = math::max(state.m, c.m);
    const float f = math::exp(state.m - m);
    const float g = math::exp(c.m - m);
    state.m = m;
    state.l = math::fma(c.l, g, state.l * f);
    for (uint64_t e = 0; e < a.vd; ++e) state.o[e] = math::fma(c.o[e], g, state.o[e] * f);
  }
  for (uint64_t e = 0; e < a.vd; ++e) {
    float& out = state.o[e];
    out = out * (1.0f / state.l);
    if (a.gate != nullptr) out = out * activate(a.gate_act, a.gate[unit * a.vd + e]);
  }
  store(a.out, unit, 0, state.o);
}

}  // namespace

// Nothing to prepare: the merge attends from the caches themselves.
void attention_chunks(const AttentionArgs&, Range, std::byte*) {}

void attention_merge(const AttentionArgs& a, Range range, std::byte*) {
  for (uint64_t unit = range.begin; unit < range.end; ++unit) attend(a, unit);
}

void attention_rows(const AttentionArgs& a, Range range, std::byte*) {
  const uint64_t tile = attention_tile_rows(a);
  const uint64_t tiles = (a.rows + tile - 1) / tile;
  const uint64_t group = a.heads / a.kv_heads;
  for (uint64_t item = range.begin; item < range.end; ++item)
    for (uint64_t r = item % tiles * tile; r < std::min(a.rows, (item % tiles + 1) * tile); ++r)
      for (uint64_t h = 0; h < group; ++h)
        attend(a, (item / tiles / a.kv_heads * a.rows + r) * a.heads + item / tiles % a.kv_heads * group + h);
}

}  // namespace tw::lane::cpu::reference
