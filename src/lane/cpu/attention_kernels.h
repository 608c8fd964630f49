#pragma once

// Attention (attention.h), as templates over the instruction set.

#include "lane/cpu/attention.h"
#include "lane/cpu/elementwise_kernels.h"
#include "lane/cpu/move_kernels.h"
#include "lane/cpu/reduce.h"

namespace tw::lane::cpu {

// Up to kQueryBlock query vectors of one sequence and key/value head: query i is of row first_row + i / group of the
// sequence and head kv_head * group + i % group.
struct QueryBlock {
  uint64_t sequence, kv_head, group, first, count;  // queries [first, first + count) of rows * group
};
TW_INLINE inline uint64_t query_row(const QueryBlock& b, uint64_t i) { return (b.first + i) / b.group; }
// Its place in rows * heads of all sequences.
TW_INLINE inline uint64_t query_unit(const AttentionArgs& a, const QueryBlock& b, uint64_t i) {
  return (b.sequence * a.rows + query_row(b, i)) * a.heads + b.kv_head * b.group + (b.first + i) % b.group;
}

// Working arrays of a thread, and what they hold of the present chunk.
struct AttentionWork {
  float* scores;   // kQueryBlock x kAttentionChunk: scores, then weights
  float* values;   // kQueryBlock x wide: o_c
  float* state;    // kQueryBlock x wide: o
  float* keys;     // kAttentionChunk x hd, blocked: keys that do not lie in blocks, or in two pieces
  float* queries;  // kQueryBlock x hd: queries that lie in two pieces
  uint64_t wide;
  float m[kQueryBlock], l[kQueryBlock];
  uint32_t begin[kQueryBlock], end[kQueryBlock];  // attended, counted from the chunk's first position
};

TW_INLINE inline void prepare(AttentionWork& work, std::byte* scratch, const AttentionArgs& a) {
  work.wide = (a.vd + 15) / 16 * 16;
  work.scores = reinterpret_cast<float*>(scratch);
  work.values = work.scores + kQueryBlock * kAttentionChunk;
  work.state = work.values + kQueryBlock * work.wide;
  work.keys = work.state + kQueryBlock * work.wide;
  work.queries = work.keys + a.hd * kAttentionChunk;
}

// Sets begin and end of every query for a chunk; answers the union (end 0: nobody attends).
TW_INLINE inline Span chunk_spans(const AttentionArgs& a, const QueryBlock& b, uint64_t chunk, AttentionWork& work) {
  Span all{kAttentionChunk, 0};
  const uint64_t from = chunk * kAttentionChunk;
  for (uint64_t i = 0; i < b.count; ++i) {
    const Span row = attended(a, b.sequence, query_row(b, i));
    const uint64_t begin = row.begin > from ? row.begin - from : 0;
    const uint64_t end = row.end > from ? least(row.end - from, kAttentionChunk) : 0;
    const bool some = begin < end;
    work.begin[i] = some ? static_cast<uint32_t>(begin) : 0;
    work.end[i] = some ? static_cast<uint32_t>(end) : 0;
    if (!some) continue;
    all.begin = least(all.begin, begin);
    if (end > all.end) all.end = end;
  }
  return all;
}

// Scores of N queries with W blocks of 16 positions: CC(64) over hd, times scale. keys: block-major, `stride` apart.
template <class S, int N, int W, class Stored>
TW_INLINE inline void score_tile(Stored, const typename Stored::Element* keys, uint64_t stride, const float* const* q,
                                 uint64_t hd, float scale, float* scores) {
  using V = typename S::V;
  V total[N][W];
  for (int n = 0; n < N; ++n)
    for (int w = 0; w < W; ++w) total[n][w] = S::zero();
  for (uint64_t segment = 0; segment < hd; segment += 64) {
    V chain[N][W];
    for (int n = 0; n < N; ++n)
      for (int w = 0; w < W; ++w) chain[n][w] = S::zero();
    const uint64_t end = least(hd, segment + 64);
    for (uint64_t e = segment; e < end; ++e) {
      V k[W];
      for (int w = 0; w < W; ++w) k[w] = Stored::load(keys + static_cast<uint64_t>(w) * stride + e * kPositionBlock);
      for (int n = 0; n < N; ++n) {
        const V value = S::set(q[n][e]);
        for (int w = 0; w < W; ++w) chain[n][w] = S::fma(value, k[w], chain[n][w]);
      }
    }
    for (int n = 0; n < N; ++n)
      for (int w = 0; w < W; ++w) total[n][w] = S::add(total[n][w], chain[n][w]);
  }
  const V factor = S::set(scale);
  for (int n = 0; n < N; ++n)
    for (int w = 0; w < W; ++w) S::store(scores + n * kAttentionChunk + w * 16, S::mul(total[n][w], factor));
}

// o_c of N queries over positions [begin, end) of the chunk, W vectors of outputs from e on (or a ragged one).
template <class S, int N, int W, class Stored>
TW_INLINE inline void value_tile(Stored, const typename Stored::Element* v, uint64_t stride, const float* weights,
                                 uint64_t begin, uint64_t end, float* values, uint64_t wide, int ragged) {
  using V = typename S::V;
  V sum[N][W];
  for (int n = 0; n < N; ++n)
    for (int w = 0; w < W; ++w) sum[n][w] = S::load(values + n * wide + w * 16);
  for (uint64_t j = begin; j < end; ++j) {
    V value[W];
    const auto* p = v + j * stride;
    for (int w = 0; w < W; ++w) value[w] = ragged != 0 ? Stored::load(p, ragged) : Stored::load(p + w * 16);
    for (int n = 0; n < N; ++n) {
      const V weight = S::set(weights[n * kAttentionChunk + j]);
      for (int w = 0; w < W; ++w) sum[n][w] = S::fma(weight, value[w], sum[n][w]);
    }
  }
  for (int n = 0; n < N; ++n)
    for (int w = 0; w < W; ++w) S::store(values + n * wide + w * 16, sum[n][w]);
}

// All vd outputs of N queries.
template <class S, int N, class Stored>
TW_INLINE inline void value_rows(Stored stored, const typename Stored::Element* v, uint64_t stride,
                                 const float* weights, uint64_t begin, uint64_t end, float* values, uint64_t wide,
                                 uint64_t vd) {
  constexpr int kVectors = S::kQueryTile / N;
  uint64_t e = 0;
  for (; e + 16 * kVectors <= vd; e += 16 * kVectors)
    value_tile<S, N, kVectors>(stored, v + e, stride, weights, begin, end, values + e, wide, 0);
  for (; e + 16 <= vd; e += 16) value_tile<S, N, 1>(stored, v + e, stride, weights, begin, end, values + e, wide, 0);
  if (e < vd)
    value_tile<S, N, 1>(stored, v + e, stride, weights, begin, end, values + e, wide, static_cast<int>(vd - e));
}

// Scores become weights: soft cap, m_c = MAX, w = exp(s - m_c), l_c = LT by lane j mod 32. Positions of the query's
// blocks that it does not attend get weight +0.
template <class S>
TW_INLINE inline void weigh(float* s, uint64_t begin, uint64_t end, float softcap, float& m, float& l) {
  const uint64_t first = begin / 16 * 16;
  const uint64_t last = (end + 15) / 16 * 16;
  if (softcap > 0)
    for (uint64_t j = first; j < last; j += 16) S::store(s + j, math::softcap<S>(S::load(s + j), S::set(softcap)));
  for (uint64_t j = first; j < begin; ++j) s[j] = -__builtin_inff();
  for (uint64_t j = end; j < last; ++j) s[j] = -__builtin_inff();
  auto most = S::load(s + first);
  for (uint64_t j = first + 16; j < last; j += 16) most = S::max(most, S::load(s + j));
  m = lanes_max<S>(most);
  for (uint64_t j = first; j < last; j += 16) S::store(s + j, math::exp<S>(S::sub(S::load(s + j), S::set(m))));
  for (uint64_t j = first; j < begin; ++j) s[j] = 0;
  for (uint64_t j = end; j < last; ++j) s[j] = 0;
  auto low = S::zero();
  auto high = S::zero();
  for (uint64_t j = first; j < last; j += 16) {
    if (j % 32 == 0)
      low = S::add(low, S::load(s + j));
    else
      high = S::add(high, S::load(s + j));
  }
  l = S::tree(S::add(low, high));
}

// Calls tile(first, Count<N>) over [i, count), N the largest power of two that fits.
template <int N>
struct Count {
  static constexpr int kValue = N;
};
template <int N, class Tile>
TW_INLINE inline void each_tile(uint64_t i, uint64_t count, Tile tile) {
  for (; i + N <= count; i += N) tile(i, Count<N>{});
  if constexpr (N > 1) {
    if (i < count) each_tile<N / 2>(i, count, tile);
  }
}

// `width` values of the keys of the chunk's positions `all`, from rows `pitch` apart, to blocks of 16 positions
// `stride` apart, value e of position j at e * 16 + j. In squares of 16 x 16.
template <class S, class Stored>
TW_INLINE inline void pack_rows(Stored, const typename Stored::Element* keys, uint64_t pitch, uint64_t width, Span all,
                                float* to, uint64_t stride) {
  for (uint64_t block = all.begin / 16; block * 16 < all.end; ++block) {
    const uint64_t first = block * 16 > all.begin ? 0 : all.begin - block * 16;
    const uint64_t last = least(16, all.end - block * 16);
    alignas(64) float square[16 * 16] = {};
    for (uint64_t e = 0; e < width; e += 16) {
      const auto count = static_cast<int>(least(16, width - e));
      for (uint64_t j = first; j < last; ++j) {
        const auto* key = keys + (block * 16 + j) * pitch + e;
        S::store(square + j * 16, count == 16 ? Stored::load(key) : Stored::load(key, count));
      }
      float* lanes = to + block * stride + e * 16;
      if (count == 16) {
        S::transpose(square, lanes);
        continue;
      }
      alignas(64) float ragged[16 * 16];
      S::transpose(square, ragged);
      for (int i = 0; i < count; ++i) S::store(lanes + i * 16, S::load(ragged + i * 16));
    }
  }
}

// The same from keys that lie in blocks.
template <class S, class Stored>
TW_INLINE inline void pack_blocks(Stored stored, const typename Stored::Element* keys, uint64_t width, Span all,
                                  float* to, uint64_t stride) {
  for (uint64_t block = all.begin / 16; block * 16 < all.end; ++block)
    convert<S>(stored, keys + block * width * 16, StoredF32<S>{}, to + block * stride, width * 16);
}

// Scores of all queries with the blocks that hold the positions `all`. keys: of the chunk, blocked. q: the queries.
template <class S, class Stored>
TW_INLINE inline void score_blocks(Stored stored, const typename Stored::Element* keys, const float* const* q,
                                   const AttentionArgs& a, const QueryBlock& b, Span all, float* scores) {
  const uint64_t stride = kPositionBlock * a.hd;
  const uint64_t last = (all.end + 15) / 16;
  each_tile<S::kQueryTile>(0, b.count, [&](uint64_t i, auto tile) {
    constexpr int N = decltype(tile)::kValue;
    constexpr int W = S::kQueryTile / N;
    float* to = scores + i * kAttentionChunk;
    uint64_t block = all.begin / 16;
    for (; block + W <= last; block += W)
      score_tile<S, N, W>(stored, keys + block * stride, stride, q + i, a.hd, a.scale, to + block * 16);
    for (; block < last; ++block)
      score_tile<S, N, 1>(stored, keys + block * stride, stride, q + i, a.hd, a.scale, to + block * 16);
  });
}

// The block's queries; those in two pieces are put together first.
template <class S>
TW_INLINE inline void gather_queries(const AttentionArgs& a, const QueryBlock& b, const AttentionWork& work,
                                     const float** q) {
  for (uint64_t i = 0; i < b.count; ++i) {
    const uint64_t unit = query_unit(a, b, i);
    q[i] = a.q + unit * a.hd;
    if (a.split.own == 0) continue;
    float* to = work.queries + i * a.hd;
    const float* tail = a.split.q_tail + unit * a.split.q_tail_pitch + a.split.q_tail_offset;
    convert<S>(StoredF32<S>{}, a.q + unit * a.split.q_pitch, StoredF32<S>{}, to, a.split.own);
    convert<S>(StoredF32<S>{}, tail, StoredF32<S>{}, to + a.split.own, a.hd - a.split.own);
    q[i] = to;
  }
}

// The chunk's keys of key/value head kv_head into work.keys.
template <class S, class Stored>
TW_INLINE inline void pack_keys(Stored stored, const typename Stored::Element* keys, const AttentionArgs& a,
                                uint64_t chunk, Span all, const AttentionWork& work) {
  const uint64_t from = chunk * kAttentionChunk;
  const uint64_t stride = kPositionBlock * a.hd;
  const uint64_t own = a.split.own == 0 ? a.hd : a.split.own;
  if (a.k.blocked)
    pack_blocks<S>(stored, keys + from * own, own, all, work.keys, stride);
  else
    pack_rows<S>(stored, keys + from * a.k.position_stride, a.k.position_stride, own, all, work.keys, stride);
  if (a.split.own == 0) return;
  with_stored<S>(a.split.k_tail_type, [&](auto tail_stored) {
    const auto* tail = static_cast<const typename decltype(tail_stored)::Element*>(a.split.k_tail) +
                       a.split.k_tail_offset + from * a.split.k_tail_pitch;
    pack_rows<S>(tail_stored, tail, a.split.k_tail_pitch, a.hd - own, all, work.keys + own * 16, stride);
  });
}

template <class S>
TW_INLINE inline void score(const AttentionArgs& a, const QueryBlock& b, uint64_t chunk, Span all,
                            AttentionWork& work) {
  const float* q[kQueryBlock];
  gather_queries<S>(a, b, work, q);
  with_stored<S>(a.k.type, [&](auto stored) {
    const auto* keys = static_cast<const typename decltype(stored)::Element*>(a.k.data) + cache_begin(a.k, b.sequence) +
                       b.kv_head * a.k.head_stride;
    if (a.k.blocked && a.split.own == 0)
      score_blocks<S>(stored, keys + chunk * kAttentionChunk * a.hd, q, a, b, all, work.scores);
    else
      pack_keys<S>(stored, keys, a, chunk, all, work);
  });
  if (!a.k.blocked || a.split.own != 0) score_blocks<S>(StoredF32<S>{}, work.keys, q, a, b, all, work.scores);
}

// o_c of every query. Queries of a tile walk the positions that all of them attend together, the others alone.
template <class S, class Stored>
TW_INLINE inline void add_values(Stored stored, const typename Stored::Element* v, const AttentionArgs& a,
                                 const QueryBlock& b, AttentionWork& work) {
  each_tile<S::kQueryTile>(0, b.count, [&](uint64_t i, auto tile) {
    constexpr uint64_t N = decltype(tile)::kValue;
    const float* weights = work.scores + i * kAttentionChunk;
    float* values = work.values + i * work.wide;
    uint64_t begin = 0;
    uint64_t end = kAttentionChunk;
    for (uint64_t n = i; n < i + N; ++n) {
      begin = work.begin[n] > begin ? work.begin[n] : begin;
      end = least(end, work.end[n]);
    }
    if (N == 1 || begin >= end) begin = end = 0;  // nothing in common
    const auto alone = [&](uint64_t n, uint64_t from, uint64_t to) {
      if (from < to)
        value_rows<S, 1>(stored, v, a.v.position_stride, weights + n * kAttentionChunk, from, to,
                         values + n * work.wide, work.wide, a.vd);
    };
    if (begin == end) {
      for (uint64_t n = 0; n < N; ++n) alone(n, work.begin[i + n], work.end[i + n]);
      return;
    }
    for (uint64_t n = 0; n < N; ++n) alone(n, work.begin[i + n], begin);
    value_rows<S, N>(stored, v, a.v.position_stride, weights, begin, end, values, work.wide, a.vd);
    for (uint64_t n = 0; n < N; ++n) alone(n, end, work.end[i + n]);
  });
}

// m_c, l_c and o_c of every query of the block for one chunk; false when nobody attends it.
template <class S>
TW_INLINE inline bool attend_chunk(const AttentionArgs& a, const QueryBlock& b, uint64_t chunk, AttentionWork& work) {
  const Span all = chunk_spans(a, b, chunk, work);
  if (all.end == 0) return false;
  score<S>(a, b, chunk, all, work);
  for (uint64_t i = 0; i < b.count; ++i) {
    if (work.end[i] == 0) continue;
    weigh<S>(work.scores + i * kAttentionChunk, work.begin[i], work.end[i], a.softcap, work.m[i], work.l[i]);
    for (uint64_t e = 0; e < work.wide; e += 16) S::store(work.values + i * work.wide + e, S::zero());
  }
  with_stored<S>(a.v.type, [&](auto stored) {
    const auto* v = static_cast<const typename decltype(stored)::Element*>(a.v.data) + a.v_offset +
                    cache_begin(a.v, b.sequence) + b.kv_head * a.v.head_stride +
                    chunk * kAttentionChunk * a.v.position_stride;
    add_values<S>(stored, v, a, b, work);
  });
  return true;
}

// The state of one query.
struct AttentionState {
  float m = 0, l = 0;
  bool any = false;
};

// Takes the chunk (m, l, values) into the state; values and o are `wide` floats.
template <class S>
TW_INLINE inline void merge(AttentionState& state, float* o, float m, float l, const float* values, uint64_t wide) {
  if (!state.any) {
    state = {m, l, true};
    for (uint64_t e = 0; e < wide; e += 16) S::store(o + e, S::load(values + e));
    return;
  }
  const float most = math::max(state.m, m);
  const float f = math::exp(state.m - most);
  const float g = math::exp(m - most);
  state = {most, math::fma(l, g, state.l * f), true};
  for (uint64_t e = 0; e < wide; e += 16)
    S::store(o + e, S::fma(S::load(values + e), S::set(g), S::mul(S::load(o + e), S::set(f))));
}

template <class S>
TW_INLINE inline AttentionState start(const AttentionArgs& a, uint64_t unit, float* o, uint64_t wide) {
  for (uint64_t e = 0; e < wide; e += 16) S::store(o + e, S::zero());
  if (a.sinks == nullptr) return {};
  return {a.sinks[unit % a.heads], 1.0f, true};
}

// o, `vd` floats padded to 16, is used up.
template <class S>
TW_INLINE inline void finish(const AttentionArgs& a, uint64_t unit, AttentionState state, float* o) {
  const auto inverse = S::set(1.0f / state.l);
  float* out = store_place(a.out, unit, 0, o);
  each16<S>(0, a.vd, [&](auto lanes, uint64_t e) { lanes.store(out + e, S::mul(lanes.load(o + e), inverse)); });
  if (a.gate != nullptr) {
    const float* gate = a.gate + unit * a.vd;
    with_activation<S>(a.gate_act, [&](auto f) {
      each16<S>(0, a.vd, [&](auto lanes, uint64_t e) {
        lanes.store(out + e, S::mul(lanes.load(out + e), f(lanes.load(gate + e))));
      });
    });
  }
  store_rest<S>(a.out, unit, 0, out, a.vd);
}

// Calls body(block) for the queries [from, to) of a sequence and head in blocks of kQueryBlock.
template <class Body>
TW_INLINE inline void each_query_block(uint64_t sequence, uint64_t kv_head, uint64_t group, uint64_t from, uint64_t to,
                                       Body body) {
  for (uint64_t first = from; first < to; first += kQueryBlock)
    body(QueryBlock{sequence, kv_head, group, first, least(kQueryBlock, to - first)});
}

template <class S>
void attention_chunks(const AttentionArgs& a, Range range, std::byte* scratch) {
  AttentionWork work;
  prepare(work, scratch, a);
  const Span chunks = attended_chunks(a);
  const uint64_t count = chunks.end - chunks.begin;
  const uint64_t group = a.heads / a.kv_heads;
  const uint64_t blocks = query_blocks(a);
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t slot = item / blocks % count;
    const uint64_t head = item / blocks / count;
    const uint64_t first = item % blocks * kQueryBlock;
    const QueryBlock b{head / a.kv_heads, head % a.kv_heads, group, first, least(kQueryBlock, a.rows * group - first)};
    if (!attend_chunk<S>(a, b, chunks.begin + slot, work)) continue;
    for (uint64_t i = 0; i < b.count; ++i) {
      float* to = a.partials + (query_unit(a, b, i) * count + slot) * partial_floats(a.vd);
      to[0] = work.m[i];
      to[1] = work.l[i];
      for (uint64_t e = 0; e < work.wide; e += 16) S::store(to + 16 + e, S::load(work.values + i * work.wide + e));
    }
  }
}

template <class S>
void attention_merge(const AttentionArgs& a, Range range, std::byte* scratch) {
  AttentionWork work;
  prepare(work, scratch, a);
  const Span chunks = attended_chunks(a);
  for (uint64_t unit = range.begin; unit < range.end; ++unit) {
    const uint64_t row = unit / a.heads;
    const Span span = attended(a, row / a.rows, row % a.rows);
    AttentionState state = start<S>(a, unit, work.state, work.wide);
    for (uint64_t chunk = span.begin / kAttentionChunk; chunk * kAttentionChunk < span.end; ++chunk) {
      const uint64_t slot = unit * (chunks.end - chunks.begin) + chunk - chunks.begin;
      const float* from = a.partials + slot * partial_floats(a.vd);
      merge<S>(state, work.state, from[0], from[1], from + 16, work.wide);
    }
    finish<S>(a, unit, state, work.state);
  }
}

template <class S>
void attention_rows(const AttentionArgs& a, Range range, std::byte* scratch) {
  AttentionWork work;
  prepare(work, scratch, a);
  const uint64_t group = a.heads / a.kv_heads;
  const uint64_t tile = attention_tile_rows(a);
  const uint64_t tiles = (a.rows + tile - 1) / tile;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t sequence = item / tiles / a.kv_heads;
    const uint64_t first = item % tiles * tile;
    const uint64_t last = least(a.rows, first + tile);
    const uint64_t from = attended(a, sequence, first).begin / kAttentionChunk;
    const uint64_t to = attended(a, sequence, last - 1).end;
    each_query_block(sequence, item / tiles % a.kv_heads, group, first * group, last * group, [&](const QueryBlock& b) {
      AttentionState state[kQueryBlock];
      for (uint64_t i = 0; i < b.count; ++i)
        state[i] = start<S>(a, query_unit(a, b, i), work.state + i * work.wide, work.wide);
      for (uint64_t chunk = from; chunk * kAttentionChunk < to; ++chunk) {
        if (!attend_chunk<S>(a, b, chunk, work)) continue;
        for (uint64_t i = 0; i < b.count; ++i)
          if (work.end[i] != 0)
            merge<S>(state[i], work.state + i * work.wide, work.m[i], work.l[i], work.values + i * work.wide,
                     work.wide);
      }
      for (uint64_t i = 0; i < b.count; ++i) finish<S>(a, query_unit(a, b, i), state[i], work.state + i * work.wide);
    });
  }
}

}  // namespace tw::lane::cpu
