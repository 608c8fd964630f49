#pragma once

// Attention (docs/numerics.md). Per row and query head, over the chunks of kAttentionChunk absolute positions that hold
// attended ones:
//   s_j = CC(64)(q . k_j) * scale, soft-capped;  m_c = MAX s_j;  w_j = exp(s_j - m_c);  l_c = LT(w) by lane j mod 32;
//   o_c[e] = chain of fma(w_j, v_j[e]) over the attended j ascending
//   state (sink, 1, 0) with a sink, else the first chunk's; merge of a chunk: M = max(m, m_c), f = exp(m - M),
//   g = exp(m_c - M), l = fma(l_c, g, l * f), o[e] = fma(o_c[e], g, o[e] * f)
//   out[e] = o[e] * (1 / l), times act(gate[e]) with a gate
//
// Two ways with the same bits. Few rows (decode): attention_chunks computes (sequence, key/value head, chunk) for
// kQueryBlock of the rows and query heads of the group, so that the cache is read once for them, into `partials`; after
// a barrier attention_merge combines them per (row, head). Many rows: attention_rows does a tile of rows of one head
// group whole.

#include <cstddef>
#include <cstdint>

#include "graph/op.h"
#include "lane/cpu/move.h"
#include "lane/cpu/simd.h"
#include "lane/cpu/store.h"

namespace tw::lane::cpu {

inline constexpr uint64_t kAttentionChunk = 128;
// Rows up to which an attention shares each chunk of the cache out instead of each tile of rows.
inline constexpr uint64_t kFewAttentionRows = 8;
// Query vectors (rows times heads of a group) for which the keys and values of a chunk are fetched once, and those of
// them in one register tile.
inline constexpr uint64_t kQueryBlock = 48;
inline constexpr uint64_t kQueryTile = 6;

// Queries and keys in two pieces: of a query or key of hd values the first `own` lie where q and k say (query u at
// q + u * q_pitch, keys `own` wide), the rest at q_tail + u * q_tail_pitch + q_tail_offset and k_tail + j *
// k_tail_pitch + k_tail_offset (elements), for all key/value heads alike. own 0: in one piece.
struct SplitView {
  uint64_t own = 0, q_pitch = 0;
  const float* q_tail = nullptr;
  const void* k_tail = nullptr;
  Dtype k_tail_type = Dtype::F32;
  uint64_t q_tail_pitch = 0, q_tail_offset = 0;
  uint64_t k_tail_pitch = 0, k_tail_offset = 0;
};

// Row r of sequence s attends n = position[s] + r positions (at most `length`; without a position all `length`), of
// which the window keeps some. q: sequences * rows rows of heads * hd; gate: of heads * vd; values may be a part of the
// key rows. Requires heads % kv_heads == 0, and one sequence with a split.
struct AttentionArgs {
  const float* q = nullptr;
  CacheView k;
  CacheView v;
  uint64_t v_offset = 0;  // element of `v` where the first position's values begin
  SplitView split;
  const int32_t* position = nullptr;  // optional, one a sequence, 1-based
  const float* sinks = nullptr;       // optional, one a head
  const float* gate = nullptr;        // optional
  Store out;                          // a unit a row and head
  float* partials = nullptr;          // attention_partials(...) floats, for attention_chunks and attention_merge
  uint64_t sequences = 1, rows = 1, heads = 1, kv_heads = 1, hd = 0, vd = 0, length = 0;
  graph::Window window;
  float scale = 1, softcap = 0;
  graph::ActivationKind gate_act = graph::ActivationKind::Sigmoid;
};

// Positions [begin, end), 0-based.
struct Span {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What row `row` of sequence `sequence` attends.
TW_INLINE constexpr Span attended(const AttentionArgs& a, uint64_t sequence, uint64_t row) {
  uint64_t n = a.length;
  if (a.position != nullptr) {
    const uint64_t wanted = static_cast<uint64_t>(a.position[sequence]) + row;
    n = wanted < n ? wanted : n;
  }
  const uint64_t size = a.window.size;
  if (n == 0 || size == 0 || a.window.kind == graph::Window::Kind::None) return {0, n};
  if (a.window.kind == graph::Window::Kind::Sliding) return {n > size ? n - size : 0, n};
  return {(n - 1) / size * size, n};
}

// The chunks that some row attends.
TW_INLINE constexpr Span attended_chunks(const AttentionArgs& a) {
  Span all{UINT64_MAX, 0};
  for (uint64_t s = 0; s < a.sequences; ++s) {
    const uint64_t begin = attended(a, s, 0).begin / kAttentionChunk;
    const uint64_t end = (attended(a, s, a.rows - 1).end + kAttentionChunk - 1) / kAttentionChunk;
    if (begin < all.begin) all.begin = begin;
    if (end > all.end) all.end = end;
  }
  return all.begin < all.end ? all : Span{0, 0};
}

// Floats of a row of vd results, padded to whole vectors.
TW_INLINE constexpr uint64_t attention_wide(uint64_t vd) { return (vd + 15) / 16 * 16; }
// A partial result: m, l, 14 unused, then a row.
TW_INLINE constexpr uint64_t partial_floats(uint64_t vd) { return 16 + attention_wide(vd); }
TW_INLINE constexpr uint64_t attention_partials(uint64_t sequences, uint64_t rows, uint64_t heads, uint64_t vd,
                                                uint64_t length) {
  return sequences * rows * heads * ((length + kAttentionChunk - 1) / kAttentionChunk) * partial_floats(vd);
}

// Rows a tile of attention_rows covers.
TW_INLINE constexpr uint64_t attention_tile_rows(const AttentionArgs& a) {
  const uint64_t group = a.heads / a.kv_heads;
  return group >= kQueryBlock ? 1 : kQueryBlock / group;
}

// Blocks of the queries of a sequence and key/value head.
TW_INLINE constexpr uint64_t query_blocks(const AttentionArgs& a) {
  return (a.rows * (a.heads / a.kv_heads) + kQueryBlock - 1) / kQueryBlock;
}
TW_INLINE constexpr uint64_t attention_chunks_items(const AttentionArgs& a) {
  const Span chunks = attended_chunks(a);
  return a.sequences * a.kv_heads * (chunks.end - chunks.begin) * query_blocks(a);
}
TW_INLINE constexpr uint64_t attention_merge_items(const AttentionArgs& a) { return a.sequences * a.rows * a.heads; }
TW_INLINE constexpr uint64_t attention_rows_items(const AttentionArgs& a) {
  const uint64_t tile = attention_tile_rows(a);
  return a.sequences * a.kv_heads * ((a.rows + tile - 1) / tile);
}

// Scratch bytes of a thread, 64-byte aligned, for attention_chunks, attention_merge and attention_rows.
TW_INLINE constexpr size_t attention_scratch_bytes(const AttentionArgs& a) {
  const uint64_t keys = a.k.blocked && a.split.own == 0 ? 0 : a.hd * kAttentionChunk;
  const uint64_t queries = a.split.own == 0 ? 0 : kQueryBlock * a.hd;
  return sizeof(float) * ((kQueryTile + 16) * kAttentionChunk + kQueryBlock * attention_wide(a.vd) + keys + queries);
}

}  // namespace tw::lane::cpu
