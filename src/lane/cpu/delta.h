#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/op.h"
#include "lane/cpu/simd.h"
#include "lane/cpu/slot_table.h"
#include "lane/cpu/store.h"
#include "lane/types.h"

namespace tw::lane::cpu {

// The gated delta rule, row after row; per value head and memory row i of d values:
//   one decay a head:    u = LT(S[i] k),       c = beta * fma(-alpha, u, v[i]),  S[i][j] = fma(c, k[j], alpha *
//   S[i][j]) one decay a channel: D[j] = alpha[j] * S[i][j], u = LT(D k), c = beta * (v[i] - u), S[i][j] = fma(c, k[j],
//   D[j]) o[i] = LT(S[i] q) * rsq(d)
// A bf16 memory is rounded after every row, and the later steps read what was stored. Then (delta_norm)
//   out = ((o * rsq(LT(o^2) / d + eps)) * norm) * gate(z), the gate's value rounded first.
// Two kernels with a barrier between: delta_update writes o, which may be the plain values of `out`; delta_norm
// finishes it into `out`, a unit a row and value head. q, k: rows of key_heads * d; v, z, o, out: rows of value_heads *
// d; beta: rows of value_heads; alpha: the same, or of value_heads * d with channel_decay; state: value_heads * d * d.
// Sequences lie back to back in all of them, in state by the table. Items of delta_update: sequences * value_heads *
// blocks of kDeltaRows memory rows; of delta_norm: sequences * rows * value_heads.
struct DeltaArgs {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* z = nullptr;
  const float* beta = nullptr;
  const float* alpha = nullptr;
  const float* norm = nullptr;
  void* state = nullptr;
  float* o = nullptr;
  Store out;
  uint64_t sequences = 1, rows = 1, value_heads = 1, key_heads = 1, d = 0;
  float eps = 0;
  Dtype state_type = Dtype::F32;  // F32 or BF16
  bool channel_decay = false;
  graph::KeyHeadOf key_head_of = graph::KeyHeadOf::Modulo;
  graph::GateKind gate = graph::GateKind::Silu;
  SlotTable states;
};
inline constexpr uint64_t kDeltaRows = 16;
TW_INLINE constexpr uint64_t delta_update_items(const DeltaArgs& a) {
  return a.sequences * a.value_heads * ((a.d + kDeltaRows - 1) / kDeltaRows);
}
TW_INLINE constexpr uint64_t delta_norm_items(const DeltaArgs& a) { return a.sequences * a.rows * a.value_heads; }

// The same by Order::FastDelta: whole chunks of kDeltaChunk rows, what is left row after row. For an f32 memory, one
// decay a head, and d a multiple of 32 up to kDeltaChunkWidth. Items of delta_chunks: sequences * value_heads.
TW_INLINE constexpr uint64_t delta_chunks_items(const DeltaArgs& a) { return a.sequences * a.value_heads; }

// What a thread holds of a chunk. The vectors are turned: value j of row t at [j * kDeltaChunk + t].
struct DeltaChunk {
  static constexpr uint64_t kSquare = kDeltaChunk * kDeltaChunk;
  alignas(64) float keys[kDeltaChunkWidth * kDeltaChunk], queries[kDeltaChunkWidth * kDeltaChunk];
  // Row t of the triangles at [t * kDeltaChunk]: what row i <= t adds to row t, of the errors (negative) and of o.
  alignas(64) float errors[kSquare], outputs[kSquare];
  float decay[kDeltaChunk];             // of the memory from before the chunk to after row t
  alignas(64) float rest[kDeltaChunk];  // from after row t to after the chunk
  // A vector a row, of 16 memory rows: S k, then the changes c; S q; the changes as they are at the chunk's end.
  alignas(64) float changes[16 * kDeltaChunk], seen[16 * kDeltaChunk], left[16 * kDeltaChunk];
};
TW_INLINE constexpr size_t delta_chunks_scratch_bytes() { return sizeof(DeltaChunk); }

}  // namespace tw::lane::cpu
