#pragma once

// Attention (attention.h), as templates over the instruction set: blocks of queries, the keys they need, the merges.
// Only for the units that instantiate them, attention_*.cc.

#include "lane/cpu/attention_tiles.h"
#include "lane/cpu/elementwise_kernels.h"
#include "lane/cpu/move_kernels.h"

namespace tw::lane::cpu {

// Up to kQueryBlock query vectors of one sequence and key/value head, and what a thread holds of them. Query i is of
// row (first + i) / group of the sequence and head kv_head * group + (first + i) % group.
struct QueryBlock {
  uint64_t sequence, kv_head, count;
  uint64_t unit[kQueryBlock];  // its place in rows * heads of all sequences
  Span span[kQueryBlock];      // what its row attends
  const float* q[kQueryBlock];
  float* o[kQueryBlock];  // rows of results
  // Of the present chunk: the attended positions, counted from its first (none: end 0), and (m, l).
  uint32_t begin[kQueryBlock], end[kQueryBlock];
  float m[kQueryBlock], l[kQueryBlock];
  // The state that chunks are merged into, if there is one yet, and the factors of the merge.
  bool fresh[kQueryBlock];
  float state_m[kQueryBlock], state_l[kQueryBlock];
  float f[kQueryBlock], g[kQueryBlock];
};

// Working arrays of a thread (attention_scratch_bytes).
struct AttentionWork {
  float* scores;   // kQueryTile x kAttentionChunk: scores, then weights
  float* tails;    // kAttentionChunk x 16: the last values of a position, where their number is no multiple of 16
  float* state;    // kQueryBlock x wide: o
  float* keys;     // kAttentionChunk x hd, blocked: keys that do not lie in blocks, or in two pieces
  float* queries;  // kQueryBlock x hd: queries that lie in two pieces
  uint64_t wide;

  TW_INLINE AttentionWork(std::byte* scratch, const AttentionArgs& a)
      : scores(reinterpret_cast<float*>(scratch)),
        tails(scores + kQueryTile * kAttentionChunk),
        state(tails + 16 * kAttentionChunk),
        keys(state + kQueryBlock * attention_wide(a.vd)),
        queries(keys + a.hd * kAttentionChunk),
        wide(attention_wide(a.vd)) {}
};

// Sets begin and end of every query for a chunk; answers the union (end 0: nobody attends).
TW_INLINE inline Span chunk_spans(QueryBlock& b, uint64_t chunk) {
  Span all{kAttentionChunk, 0};
  const uint64_t from = chunk * kAttentionChunk;
  for (uint64_t i = 0; i < b.count; ++i) {
    const Span row = b.span[i];
    const uint64_t begin = row.begin > from ? row.begin - from : 0;
    const uint64_t end = row.end > from ? least(row.end - from, kAttentionChunk) : 0;
    const bool some = begin < end;
    b.begin[i] = some ? static_cast<uint32_t>(begin) : 0;
    b.end[i] = some ? static_cast<uint32_t>(end) : 0;
    if (!some) continue;
    all.begin = least(all.begin, begin);
    if (end > all.end) all.end = end;
  }
  return all;
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

// The block of `count` queries from `first` on; queries in two pieces are put together.
template <class S>
TW_INLINE inline void gather_queries(const AttentionArgs& a, QueryBlock& b, uint64_t sequence, uint64_t kv_head,
                                     uint64_t first, uint64_t count, const AttentionWork& work) {
  const uint64_t group = a.heads / a.kv_heads;
  b.sequence = sequence, b.kv_head = kv_head, b.count = count;
  uint64_t row = first / group, member = first % group;
  for (uint64_t i = 0; i < count; ++i, ++member) {
    if (member == group) member = 0, ++row;
    const uint64_t unit = (sequence * a.rows + row) * a.heads + kv_head * group + member;
    b.unit[i] = unit;
    b.span[i] = attended(a, sequence, row);
    b.q[i] = a.q + unit * a.hd;
    if (a.split.own == 0) {
      for (uint64_t e = 0; e < a.hd; e += 16) __builtin_prefetch(b.q[i] + e);
      continue;
    }
    float* to = work.queries + i * a.hd;
    const float* tail = a.split.q_tail + unit * a.split.q_tail_pitch + a.split.q_tail_offset;
    convert<S>(StoredF32<S>{}, a.q + unit * a.split.q_pitch, StoredF32<S>{}, to, a.split.own);
    convert<S>(StoredF32<S>{}, tail, StoredF32<S>{}, to + a.split.own, a.hd - a.split.own);
    b.q[i] = to;
  }
}

// The keys of a chunk into work.keys; `keys`: of the key/value head, from the first position on.
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

// Positions that the queries [i, i + count) attend: some of them, all of them.
struct TileSpans {
  Span any, all;
};
TW_INLINE inline TileSpans tile_spans(const QueryBlock& b, uint64_t i, uint64_t count) {
  TileSpans spans{{kAttentionChunk, 0}, {0, kAttentionChunk}};
  for (uint64_t n = i; n < i + count; ++n) {
    if (b.begin[n] > spans.all.begin) spans.all.begin = b.begin[n];
    spans.all.end = least(spans.all.end, b.end[n]);
    if (b.end[n] == 0) continue;
    spans.any.begin = least(spans.any.begin, b.begin[n]);
    if (b.end[n] > spans.any.end) spans.any.end = b.end[n];
  }
  if (spans.all.begin >= spans.all.end) spans.all = {spans.any.end, spans.any.end};
  return spans;
}

TW_INLINE inline const std::byte* bytes_at(const void* p) { return static_cast<const std::byte*>(p); }

// Scores of `count` queries with the blocks that hold the positions `any`. keys: of the chunk, blocked.
template <class S, class Stored>
TW_INLINE inline void score(Stored stored, const typename Stored::Element* keys, const float* const* q, uint64_t count,
                            const AttentionArgs& a, Span any, float* scores, const std::byte* next) {
  const uint64_t stride = kPositionBlock * a.hd;
  with_count<kQueryTile>(count, [&](auto queries) {
    constexpr int N = decltype(queries)::kValue;
    each_width<tile_width<S>(N)>(any.begin / 16, (any.end + 15) / 16, [&](uint64_t block, auto width) {
      score_tile<S, N, decltype(width)::kValue>(stored, keys + block * stride, stride, q, a.hd, a.scale,
                                                scores + block * 16, next + block * stride * sizeof *keys);
    });
  });
}

// All vd outputs of `count` queries; tails: the last vd % 16 values of the chunk's positions.
template <class S, class Stored>
TW_INLINE inline void add_values(Stored stored, const typename Stored::Element* v, uint64_t stride, const float* tails,
                                 const ValueTile& tile, uint64_t count, uint64_t vd, const std::byte* next) {
  with_count<kQueryTile>(count, [&](auto queries) {
    constexpr int N = decltype(queries)::kValue;
    each_width<tile_width<S>(N)>(0, vd / 16, [&](uint64_t vector, auto width) {
      value_tile<S, N, decltype(width)::kValue>(stored, v + vector * 16, stride, tile, vector * 16,
                                                next + vector * 16 * kAttentionChunk * sizeof *v);
    });
    if (vd % 16 != 0) value_tile<S, N, 1>(StoredF32<S>{}, tails, 16, tile, vd / 16 * 16, bytes_at(tails));
  });
}

// Takes (m, l) of the chunk into the states of the queries [i, i + count) that attend it, and sets the factors for o.
// The first chunk of a query without a sink is its state.
template <class S>
TW_INLINE inline void merge(QueryBlock& b, uint64_t i, uint64_t count) {
  static_assert(kQueryTile <= 8);
  alignas(64) float factors[16] = {};
  for (uint64_t n = 0; n < count; ++n) {
    if (b.fresh[i + n] || b.end[i + n] == 0) continue;
    const float most = math::max(b.state_m[i + n], b.m[i + n]);
    factors[n] = b.state_m[i + n] - most;
    factors[n + 8] = b.m[i + n] - most;
    b.state_m[i + n] = most;
  }
  S::store(factors, math::exp<S>(S::load(factors)));
  for (uint64_t n = 0; n < count; ++n) {
    if (b.end[i + n] == 0) continue;
    b.f[i + n] = factors[n];
    b.g[i + n] = factors[n + 8];
    if (b.fresh[i + n]) {
      b.state_m[i + n] = b.m[i + n];
      b.state_l[i + n] = b.l[i + n];
    } else {
      b.state_l[i + n] = math::fma(b.l[i + n], factors[n + 8], b.state_l[i + n] * factors[n]);
    }
  }
}

// The keys and values of one chunk for a key/value head. Not blocked, or in two pieces: the keys lie packed in the
// thread's memory and are F32. next_*: what a tile fetches while it reads the one and the other.
struct ChunkOf {
  const void* keys = nullptr;
  Dtype key_type = Dtype::F32;
  const void* values = nullptr;
  const std::byte* next_for_keys = nullptr;
  const std::byte* next_for_values = nullptr;
};

// Whether the keys are read where they lie, in blocks.
TW_INLINE inline bool reads_blocks(const AttentionArgs& a) { return a.k.blocked && a.split.own == 0; }

TW_INLINE constexpr uint64_t element_bytes(Dtype type) { return type == Dtype::F32 ? 4 : 2; }

// Where the keys and values of a chunk begin. Keys: in blocks; else of the head's first position.
TW_INLINE inline const std::byte* keys_of(const AttentionArgs& a, uint64_t sequence, uint64_t kv_head, uint64_t chunk) {
  const uint64_t at = cache_begin(a.k, sequence) + kv_head * a.k.head_stride;
  const uint64_t block = reads_blocks(a) ? chunk * kAttentionChunk * a.hd : 0;
  return static_cast<const std::byte*>(a.k.data) + (at + block) * element_bytes(a.k.type);
}
TW_INLINE inline const std::byte* values_of(const AttentionArgs& a, uint64_t sequence, uint64_t kv_head,
                                            uint64_t chunk) {
  const uint64_t at = cache_begin(a.v, sequence) + kv_head * a.v.head_stride + a.v_offset;
  return static_cast<const std::byte*>(a.v.data) +
         (at + chunk * kAttentionChunk * a.v.position_stride) * element_bytes(a.v.type);
}

// One chunk for the queries [i, i + count) of the block.
template <class S>
TW_INLINE inline void attend_tile(const AttentionArgs& a, QueryBlock& b, uint64_t i, uint64_t count,
                                  const ChunkOf& chunk, const AttentionWork& work) {
  const TileSpans spans = tile_spans(b, i, count);
  if (spans.any.end == 0) return;
  with_stored<S>(chunk.key_type, [&](auto stored) {
    const auto* keys = static_cast<const typename decltype(stored)::Element*>(chunk.keys);
    score<S>(stored, keys, b.q + i, count, a, spans.any, work.scores, chunk.next_for_keys);
  });
  for (uint64_t n = 0; n < count; ++n)
    if (b.end[i + n] != 0)
      weigh<S>(work.scores + n * kAttentionChunk, b.begin[i + n], b.end[i + n], a.softcap, b.m[i + n], b.l[i + n]);
  merge<S>(b, i, count);
  const ValueTile tile{work.scores, b.begin + i, b.end + i, spans.any, spans.all,
                       b.o + i,     b.fresh + i, b.f + i,   b.g + i};
  with_stored<S>(a.v.type, [&](auto stored) {
    const auto* values = static_cast<const typename decltype(stored)::Element*>(chunk.values);
    add_values<S>(stored, values, a.v.position_stride, work.tails, tile, count, a.vd, chunk.next_for_values);
  });
  for (uint64_t n = i; n < i + count; ++n)
    if (b.end[n] != 0) b.fresh[n] = false;
}

// Merges o_c, m_c and l_c of a chunk into o and the state of every query of the block that attends it. The queries go
// in tiles of nearly equal size; the first one has the values fetched while it reads the keys, and `next` (optional,
// the keys that the thread reads after this chunk) while it reads the values.
template <class S>
[[gnu::noinline]] void attend_chunk(const AttentionArgs& a, QueryBlock& b, uint64_t chunk, const std::byte* next,
                                    const AttentionWork& work) {
  const Span any = chunk_spans(b, chunk);
  if (any.end == 0) return;
  ChunkOf of;
  of.values = values_of(a, b.sequence, b.kv_head, chunk);
  with_stored<S>(a.v.type, [&](auto stored) {
    const uint64_t whole = a.vd / 16 * 16;
    if (whole == a.vd) return;
    const auto* values = static_cast<const typename decltype(stored)::Element*>(of.values);
    for (uint64_t j = any.begin; j < any.end; ++j)
      S::store(work.tails + j * 16,
               stored.load(values + j * a.v.position_stride + whole, static_cast<int>(a.vd - whole)));
  });
  of.keys = keys_of(a, b.sequence, b.kv_head, chunk);
  of.key_type = a.k.type;
  if (!reads_blocks(a)) {
    with_stored<S>(a.k.type, [&](auto stored) {
      const auto* keys = static_cast<const typename decltype(stored)::Element*>(of.keys);
      pack_keys<S>(stored, keys, a, chunk, any, work);
    });
    of.keys = work.keys;
    of.key_type = Dtype::F32;
  }
  // Later tiles have the keys' next block fetched again, from a cache that holds all of the chunk to a nearer one.
  const std::byte* const keys = bytes_at(of.keys) + kPositionBlock * a.hd * element_bytes(of.key_type);
  const std::byte* const values = bytes_at(of.values);
  of.next_for_keys = a.v.position_stride == a.vd ? values : keys;
  of.next_for_values = next != nullptr ? next : values;
  const uint64_t tiles = (b.count + kQueryTile - 1) / kQueryTile;
  for (uint64_t t = 0; t < tiles; ++t) {
    const uint64_t i = b.count * t / tiles;
    attend_tile<S>(a, b, i, b.count * (t + 1) / tiles - i, of, work);
    of.next_for_keys = keys, of.next_for_values = values;
  }
}

// out[e] = o[e] * (1 / l), gated. o, `vd` floats padded to 16, is used up.
template <class S>
[[gnu::noinline]] void finish(const AttentionArgs& a, uint64_t unit, float l, float* o) {
  const auto inverse = S::set(1.0f / l);
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

// Item of attention_chunks: a chunk, by its place among the `chunks` that are attended, for a block of the queries of a
// key/value head.
struct ChunkItem {
  uint64_t sequence, kv_head, slot, block;
};
TW_INLINE inline ChunkItem chunk_item(const AttentionArgs& a, Span chunks, uint64_t item) {
  const uint64_t blocks = query_blocks(a), count = chunks.end - chunks.begin;
  const uint64_t head = item / blocks / count;
  return {head / a.kv_heads, head % a.kv_heads, item / blocks % count, item % blocks};
}

template <class S>
void attention_chunks(const AttentionArgs& a, Range range, std::byte* scratch) {
  const AttentionWork work(scratch, a);
  const Span chunks = attended_chunks(a);
  const uint64_t queries = a.rows * (a.heads / a.kv_heads);
  QueryBlock b;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const ChunkItem own = chunk_item(a, chunks, item);
    const uint64_t first = own.block * kQueryBlock;
    gather_queries<S>(a, b, own.sequence, own.kv_head, first, least(kQueryBlock, queries - first), work);
    float* partial[kQueryBlock];
    for (uint64_t i = 0; i < b.count; ++i) {
      partial[i] = a.partials + (b.unit[i] * (chunks.end - chunks.begin) + own.slot) * partial_floats(a.vd);
      b.o[i] = partial[i] + 16;
      b.fresh[i] = true;
    }
    const std::byte* next = nullptr;
    if (item + 1 < range.end && reads_blocks(a)) {
      const ChunkItem other = chunk_item(a, chunks, item + 1);
      next = keys_of(a, other.sequence, other.kv_head, chunks.begin + other.slot);
    }
    attend_chunk<S>(a, b, chunks.begin + own.slot, next, work);
    for (uint64_t i = 0; i < b.count; ++i)
      if (!b.fresh[i]) partial[i][0] = b.m[i], partial[i][1] = b.l[i];
  }
}

template <class S>
void attention_merge(const AttentionArgs& a, Range range, std::byte* scratch) {
  const AttentionWork work(scratch, a);
  const Span chunks = attended_chunks(a);
  for (uint64_t unit = range.begin; unit < range.end; ++unit) {
    const uint64_t row = unit / a.heads;
    const Span span = attended(a, row / a.rows, row % a.rows);
    float m = 0, l = 0;
    bool any = a.sinks != nullptr;
    if (any) {
      m = a.sinks[unit % a.heads], l = 1;
      for (uint64_t e = 0; e < work.wide; e += 16) S::store(work.state + e, S::zero());
    }
    for (uint64_t chunk = span.begin / kAttentionChunk; chunk * kAttentionChunk < span.end; ++chunk) {
      const float* from =
          a.partials + (unit * (chunks.end - chunks.begin) + chunk - chunks.begin) * partial_floats(a.vd);
      if (!any) {
        m = from[0], l = from[1], any = true;
        for (uint64_t e = 0; e < work.wide; e += 16) S::store(work.state + e, S::load(from + 16 + e));
        continue;
      }
      const float most = math::max(m, from[0]);
      const float f = math::exp(m - most), g = math::exp(from[0] - most);
      m = most;
      l = math::fma(from[1], g, l * f);
      for (uint64_t e = 0; e < work.wide; e += 16)
        S::store(work.state + e, S::fma(S::load(from + 16 + e), S::set(g), S::mul(S::load(work.state + e), S::set(f))));
    }
    finish<S>(a, unit, l, work.state);
  }
}

// The rows [first, last) of a sequence and the heads of a group, in blocks of queries.
template <class S>
TW_INLINE inline void attend_rows(const AttentionArgs& a, uint64_t sequence, uint64_t kv_head, uint64_t first,
                                  uint64_t last, const AttentionWork& work) {
  const uint64_t group = a.heads / a.kv_heads;
  QueryBlock b;
  for (uint64_t query = first * group; query < last * group; query += kQueryBlock) {
    gather_queries<S>(a, b, sequence, kv_head, query, least(kQueryBlock, last * group - query), work);
    for (uint64_t i = 0; i < b.count; ++i) {
      b.o[i] = work.state + i * work.wide;
      b.fresh[i] = a.sinks == nullptr;
      b.state_m[i] = b.fresh[i] ? 0 : a.sinks[b.unit[i] % a.heads];
      b.state_l[i] = b.fresh[i] ? 0 : 1;
      for (uint64_t e = 0; e < work.wide; e += 16) S::store(b.o[i] + e, S::zero());
    }
    const uint64_t from = b.span[0].begin / kAttentionChunk;
    const uint64_t to = b.span[b.count - 1].end;
    for (uint64_t chunk = from; chunk * kAttentionChunk < to; ++chunk) {
      const bool more = reads_blocks(a) && (chunk + 1) * kAttentionChunk < to;
      attend_chunk<S>(a, b, chunk, more ? keys_of(a, sequence, kv_head, chunk + 1) : nullptr, work);
    }
    for (uint64_t i = 0; i < b.count; ++i) finish<S>(a, b.unit[i], b.state_l[i], b.o[i]);
  }
}

template <class S>
void attention_rows(const AttentionArgs& a, Range range, std::byte* scratch) {
  const AttentionWork work(scratch, a);
  const uint64_t tile = attention_tile_rows(a);
  const uint64_t tiles = (a.rows + tile - 1) / tile;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t first = item % tiles * tile;
    attend_rows<S>(a, item / tiles / a.kv_heads, item / tiles % a.kv_heads, first, least(a.rows, first + tile), work);
  }
}

}  // namespace tw::lane::cpu

#define TW_ATTENTION_KERNELS(S)                                               \
  template void attention_chunks<S>(const AttentionArgs&, Range, std::byte*); \
  template void attention_merge<S>(const AttentionArgs&, Range, std::byte*);  \
  template void attention_rows<S>(const AttentionArgs&, Range, std::byte*);
