#pragma once

// The gated delta rule in chunks of kDeltaChunk rows (Order::FastDelta), as a template over the instruction set.
// A chunk's rows act on each other through two triangles, and on the memory through products that read it once a
// chunk. A vector lane is a memory row, or a row of the chunk; every sum is one chain, so that any tile of them will
// do.

#include "lane/cpu/delta_rows.h"

namespace tw::lane::cpu {

// Rows of the chunk that a register tile takes together: as many chains as hide the latency of an fma.
template <class S>
inline constexpr uint64_t kChunkTile = S::kTileVectors >= 8 ? 8 : 4;

// to[16 (first + r)] = the chains over j of lanes[pitch j ..] times values[kDeltaChunk j + first + r].
template <class S>
TW_INLINE inline void chunk_chains(const float* lanes, uint64_t pitch, const float* values, uint64_t d, uint64_t first,
                                   float* to) {
  constexpr uint64_t kRows = kChunkTile<S>;
  typename S::V sums[kRows];
#pragma GCC unroll 8
  for (auto& sum : sums) sum = S::zero();
  values += first;
  for (uint64_t j = 0; j < d; ++j, lanes += pitch, values += kDeltaChunk) {
    const auto lane = S::load(lanes);
#pragma GCC unroll 8
    for (uint64_t r = 0; r < kRows; ++r) sums[r] = S::fma(lane, S::set(values[r]), sums[r]);
  }
#pragma GCC unroll 8
  for (uint64_t r = 0; r < kRows; ++r) S::store(to + 16 * (first + r), sums[r]);
}

// The rows' vectors of d values, `pitch` apart, turned.
template <class S>
TW_INLINE inline void turn_rows(const float* rows, uint64_t pitch, uint64_t d, float* to) {
  alignas(64) float square[256], turned[256];
  for (uint64_t t = 0; t < kDeltaChunk; t += 16) {
    for (uint64_t j = 0; j < d; j += 16) {
      for (uint64_t i = 0; i < 16; ++i) S::store(square + 16 * i, S::load(rows + (t + i) * pitch + j));
      S::transpose(square, turned);
      for (uint64_t i = 0; i < 16; ++i) S::store(to + (j + i) * kDeltaChunk + t, S::load(turned + 16 * i));
    }
  }
}

// The triangles and decays of the chunk that begins at `row`.
template <class S>
[[gnu::noinline]] void chunk_triangles(DeltaChunk& c, const DeltaRow& row, const DeltaPitch& pitch, uint64_t d) {
  turn_rows<S>(row.k, pitch.keys, d, c.keys);
  turn_rows<S>(row.q, pitch.keys, d, c.queries);
  alignas(64) float between[kDeltaChunk] = {};  // G[t][i]
  for (uint64_t half = 0; half < kDeltaChunk; half += 16) {
    alignas(64) float by_key[16 * kDeltaChunk], by_query[16 * kDeltaChunk];
    for (uint64_t t = half; t < kDeltaChunk; t += kChunkTile<S>) {
      chunk_chains<S>(c.keys + half, kDeltaChunk, c.keys, d, t, by_key);
      chunk_chains<S>(c.keys + half, kDeltaChunk, c.queries, d, t, by_query);
    }
    for (uint64_t t = half; t < kDeltaChunk; ++t) {
      const float alpha = row.alpha[t * pitch.alphas], beta = row.beta[t * pitch.betas];
      S::store(between + half, S::mul(S::set(alpha), S::load(between + half)));
      if (t < half + 16) between[t] = 1.0f;
      const auto decay = S::load(between + half);
      const auto error = S::mul(S::mul(S::set(beta), decay), S::load(by_key + 16 * t));
      S::store(c.errors + t * kDeltaChunk + half, S::neg(error));
      S::store(c.outputs + t * kDeltaChunk + half, S::mul(decay, S::load(by_query + 16 * t)));
    }
    S::store(c.rest + half, S::load(between + half));
  }
  float decay = 1.0f;
  for (uint64_t t = 0; t < kDeltaChunk; ++t) c.decay[t] = decay = row.alpha[t * pitch.alphas] * decay;
}

// sums[r] = fma(triangle[first + r][i], values[i], sums[r]) for i ascending: below `first` for all rows, then up to the
// row itself. ended(r, sum): row first + r below its diagonal; it gives the value of that row.
template <class S, class Ended>
TW_INLINE inline void triangle_rows(const float* triangle, const float* values, uint64_t first,
                                    typename S::V (&sums)[kChunkTile<S>], Ended ended) {
  constexpr uint64_t kRows = kChunkTile<S>;
  triangle += first * kDeltaChunk;
  for (uint64_t i = 0; i < first; ++i) {
    const auto value = S::load(values + 16 * i);
#pragma GCC unroll 8
    for (uint64_t r = 0; r < kRows; ++r) sums[r] = S::fma(S::set(triangle[r * kDeltaChunk + i]), value, sums[r]);
  }
#pragma GCC unroll 8
  for (uint64_t i = 0; i < kRows; ++i) {
    const auto value = ended(i, sums[i]);
#pragma GCC unroll 8
    for (uint64_t r = i + 1; r < kRows; ++r)
      sums[r] = S::fma(S::set(triangle[r * kDeltaChunk + first + i]), value, sums[r]);
  }
}

// 16 memory rows from `first` on, turned in `tile`, through the chunk that begins at `row`.
template <class S>
[[gnu::noinline]] void chunk_block(DeltaChunk& c, float* tile, const DeltaRow& row, const DeltaPitch& pitch, uint64_t d,
                                   uint64_t first, float scale) {
  using V = typename S::V;
  constexpr uint64_t kRows = kChunkTile<S>;
  for (uint64_t t = 0; t < kDeltaChunk; t += kRows) chunk_chains<S>(tile, 16, c.queries, d, t, c.seen);
  for (uint64_t t = 0; t < kDeltaChunk; t += kRows) chunk_chains<S>(tile, 16, c.keys, d, t, c.changes);
  for (uint64_t t = 0; t < kDeltaChunk; t += kRows) {
    V sums[kRows];
    for (uint64_t r = 0; r < kRows; ++r) {
      const V error = S::fma(S::set(-c.decay[t + r]), S::load(c.changes + 16 * (t + r)),
                             S::load(row.v + (t + r) * pitch.values + first));
      sums[r] = S::mul(S::set(row.beta[(t + r) * pitch.betas]), error);
    }
    triangle_rows<S>(c.errors, c.changes, t, sums, [&](uint64_t r, V sum) {
      S::store(c.changes + 16 * (t + r), sum);
      S::store(c.left + 16 * (t + r), S::mul(S::set(c.rest[t + r]), sum));
      return sum;
    });
    for (uint64_t r = 0; r < kRows; ++r) sums[r] = S::mul(S::set(c.decay[t + r]), S::load(c.seen + 16 * (t + r)));
    triangle_rows<S>(c.outputs, c.changes, t, sums, [&](uint64_t r, V sum) {
      const V change = S::load(c.changes + 16 * (t + r));
      const V o = S::fma(S::set(c.outputs[(t + r) * kDeltaChunk + t + r]), change, sum);
      S::store(row.o + (t + r) * pitch.values + first, S::mul(o, S::set(scale)));
      return change;
    });
  }
  const V decay = S::set(c.decay[kDeltaChunk - 1]);
  for (uint64_t j = 0; j < d; j += kRows) {
    V sums[kRows];
#pragma GCC unroll 8
    for (uint64_t n = 0; n < kRows; ++n) sums[n] = S::mul(decay, S::load(tile + 16 * (j + n)));
    const float* keys = c.keys + j * kDeltaChunk;
    for (uint64_t t = 0; t < kDeltaChunk; ++t) {
      const V change = S::load(c.left + 16 * t);
#pragma GCC unroll 8
      for (uint64_t n = 0; n < kRows; ++n) sums[n] = S::fma(change, S::set(keys[n * kDeltaChunk + t]), sums[n]);
    }
#pragma GCC unroll 8
    for (uint64_t n = 0; n < kRows; ++n) S::store(tile + 16 * (j + n), sums[n]);
  }
}

}  // namespace tw::lane::cpu
