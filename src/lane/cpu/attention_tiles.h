#pragma once

// The register tiles of attention (attention.h): a few queries by a few vectors, of positions for the scores, of
// outputs for the sums of values. Templates over the instruction set.

#include "base/math_contract.h"
#include "lane/cpu/attention.h"
#include "lane/cpu/reduce.h"
#include "lane/cpu/stored.h"

namespace tw::lane::cpu {

template <int N>
struct Count {
  static constexpr int kValue = N;
};

// Calls body(Count<n>); 1 <= n <= kMost.
template <int kMost, class Body>
TW_INLINE inline void with_count(uint64_t n, Body body) {
  if constexpr (kMost > 1) {
    if (n < kMost) return with_count<kMost - 1>(n, body);
  }
  body(Count<kMost>{});
}

// Calls body(i, Count<W>) over [i, end): the given width as often as it fits, then smaller ones.
template <int W, class Body>
TW_INLINE inline void each_width(uint64_t i, uint64_t end, Body body) {
  for (; i + W <= end; i += W) body(i, Count<W>{});
  if constexpr (W > 1) {
    if (i < end) each_width<W == 3 ? 2 : W / 2>(i, end, body);
  }
}

// Vectors beside N queries in a tile: as many sums as the registers hold.
template <class S>
constexpr int tile_width(int queries) {
  const int width = S::kTileVectors / queries;
  return width > 4 ? 4 : width;
}

// Asks for the lines of `kBytes` bytes from `at` on.
template <int kBytes>
TW_INLINE inline void fetch_ahead(const std::byte* at) {
#pragma GCC unroll 4
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(at + i);
}

// use(h, p, held(h), passing(p)) of all pairs: the held are made first and stay in registers, the others pass by one at
// a time.
template <class V, int kHeld, int kPassing, class Held, class Passing, class Use>
TW_INLINE inline void each_pair(Held held, Passing passing, Use use) {
  V all[kHeld];
#pragma GCC unroll 8
  for (int h = 0; h < kHeld; ++h) all[h] = held(h);
#pragma GCC unroll 8
  for (int p = 0; p < kPassing; ++p) {
    const V own = passing(p);
#pragma GCC unroll 8
    for (int h = 0; h < kHeld; ++h) use(h, p, all[h], own);
  }
}

// sum[n][w] = fma(factor(n), vector(w), sum[n][w]), the fewer of the two kinds held: where registers do not suffice,
// g++ puts sums into memory, and their chains wait for it.
template <class S, int N, int W, class Factor, class Vector>
TW_INLINE inline void add_outer(typename S::V (&sum)[N][W], Factor factor, Vector vector) {
  using V = typename S::V;
  if constexpr (N < W)
    each_pair<V, N, W>(factor, vector, [&](int n, int w, V f, V v) { sum[n][w] = S::fma(f, v, sum[n][w]); });
  else
    each_pair<V, W, N>(vector, factor, [&](int w, int n, V v, V f) { sum[n][w] = S::fma(f, v, sum[n][w]); });
}

// Scores of N queries with W blocks of 16 positions: CC(64) over hd, times scale. keys: block-major, `stride` apart.
// Between segments the sums wait in `scores`. next: what is read later, as many bytes as the keys have.
template <class S, int N, int W, class Stored>
[[gnu::noinline]] void score_tile(Stored, const typename Stored::Element* keys, uint64_t stride, const float* const* q,
                                  uint64_t hd, float scale, float* scores, const std::byte* next) {
  using V = typename S::V;
  constexpr int kBytes = W * 16 * static_cast<int>(sizeof(typename Stored::Element));
  const float* query[N];
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) query[n] = q[n];
  for (uint64_t segment = 0; segment < hd; segment += 64) {
    V chain[N][W];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n)
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) chain[n][w] = S::zero();
    const uint64_t end = least(hd, segment + 64);
    for (uint64_t e = segment; e < end; ++e) {
      fetch_ahead<kBytes>(next + e * kBytes);
      const auto key = [&](int w) {
        return Stored::load(keys + static_cast<uint64_t>(w) * stride + e * kPositionBlock);
      };
      const auto value = [&](int n) { return S::set(query[n][e]); };
      add_outer<S, N, W>(chain, value, key);
    }
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n)
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) {
        float* to = scores + n * kAttentionChunk + w * 16;
        const V total = S::add(segment == 0 ? S::zero() : S::load(to), chain[n][w]);
        S::store(to, end == hd ? S::mul(total, S::set(scale)) : total);
      }
  }
}

// What N queries do with the values of a chunk. Positions count from the chunk's first.
struct ValueTile {
  const float* weights;         // N x kAttentionChunk
  const uint32_t *begin, *end;  // attended by each query; none: end 0
  Span any, all;                // by one of them, by all of them (empty: begin == end)
  float* const* o;              // rows of results
  const bool* fresh;            // the result becomes o_c, else it is merged as fma(o_c, g, o * f)
  const float *f, *g;
};

// o_c of N queries, W vectors of outputs from e on, merged into the results. next: what is read later, as many bytes as
// the values have.
template <class S, int N, int W, class Stored>
[[gnu::noinline]] void value_tile(Stored, const typename Stored::Element* v, uint64_t stride, const ValueTile& t,
                                  uint64_t e, const std::byte* next) {
  using V = typename S::V;
  constexpr int kBytes = W * 16 * static_cast<int>(sizeof(typename Stored::Element));
  V sum[N][W];
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n)
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) sum[n][w] = S::zero();
  // Positions that not all attend.
  const auto some = [&](uint64_t from, uint64_t to) {
    for (uint64_t j = from; j < to; ++j) {
      const auto* p = v + j * stride;
      V value[W];
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) value[w] = Stored::load(p + w * 16);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        if (j < t.begin[n] || j >= t.end[n]) continue;
        const V weight = S::set(t.weights[static_cast<uint64_t>(n) * kAttentionChunk + j]);
#pragma GCC unroll 4
        for (int w = 0; w < W; ++w) sum[n][w] = S::fma(weight, value[w], sum[n][w]);
      }
    }
  };
  some(t.any.begin, t.all.begin);
  const auto* p = v + t.all.begin * stride;
  const float* weights = t.weights + t.all.begin;
  for (uint64_t j = t.all.end - t.all.begin; j > 0; --j, p += stride, ++weights, next += kBytes) {
    fetch_ahead<kBytes>(next);
    const auto value = [&](int w) { return Stored::load(p + w * 16); };
    const auto weight = [&](int n) { return S::set(weights[static_cast<uint64_t>(n) * kAttentionChunk]); };
    add_outer<S, N, W>(sum, weight, value);
  }
  some(t.all.end, t.any.end);
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) {
    if (t.end[n] == 0) continue;
    float* o = t.o[n] + e;
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      V result = sum[n][w];
      if (!t.fresh[n]) result = S::fma(result, S::set(t.g[n]), S::mul(S::load(o + w * 16), S::set(t.f[n])));
      S::store(o + w * 16, result);
    }
  }
}

// Scores at j .. j + 15 outside [begin, end) become -infinity.
template <class S>
TW_INLINE inline void leave_out(float* s, uint64_t j, uint64_t begin, uint64_t end) {
  const auto none = S::set(-__builtin_inff());
  const auto before = [j](uint64_t place) { return place <= j ? 0 : static_cast<int>(least(place - j, 16)); };
  S::store(s + j, S::leading(before(begin), none, S::leading(before(end), S::load(s + j), none)));
}

template <class S>
[[gnu::noinline]] void cap_scores(float* s, uint64_t begin, uint64_t end, float softcap) {
  for (uint64_t j = begin / 16 * 16; j < end; j += 16)
    S::store(s + j, math::softcap<S>(S::load(s + j), S::set(softcap)));
}

// Scores become weights: soft cap, m_c = MAX, w = exp(s - m_c), l_c = LT by lane j mod 32. What a query does not attend
// weighs +0: a sum that starts from +0 is the same with it, and one that is a NaN stays one.
template <class S>
[[gnu::noinline]] void weigh(float* s, uint64_t begin, uint64_t end, float softcap, float& m, float& l) {
  if (softcap > 0) cap_scores<S>(s, begin, end, softcap);
  const uint64_t first = begin / 32 * 32, last = (end + 31) / 32 * 32;
  if (begin != first) leave_out<S>(s, first, begin, end), leave_out<S>(s, first + 16, begin, end);
  if (end != last) leave_out<S>(s, last - 32, begin, end), leave_out<S>(s, last - 16, begin, end);
  auto most = S::load(s + first);
  auto most_high = S::load(s + first + 16);
  for (uint64_t j = first + 32; j < last; j += 32) {
    most = S::max(most, S::load(s + j));
    most_high = S::max(most_high, S::load(s + j + 16));
  }
  m = S::most(S::max(most, most_high));
  const auto largest = S::set(m);
  const auto weight = [&](uint64_t j) {
    const auto w = math::exp<S>(S::sub(S::load(s + j), largest));
    S::store(s + j, w);
    return w;
  };
  auto low = S::zero(), high = S::zero();
  for (uint64_t j = first; j < last; j += 32) {
    low = S::add(low, weight(j));
    high = S::add(high, weight(j + 16));
  }
  l = S::tree(S::add(low, high));
}

}  // namespace tw::lane::cpu
