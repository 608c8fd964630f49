#pragma once

// The gated delta rule row after row (delta.h), a vector lane being a column of the memory, as templates over the
// instruction set.

#include <type_traits>

#include "base/math_contract.h"
#include "lane/cpu/delta.h"
#include "lane/cpu/reduce.h"
#include "lane/cpu/stored.h"

namespace tw::lane::cpu {

// One row's vectors of a head.
struct DeltaRow {
  const float* q;
  const float* k;
  const float* v;
  const float* alpha;  // one value, or d with a decay a channel
  const float* beta;
  float* o;
};

TW_INLINE inline DeltaRow delta_row(const DeltaArgs& a, uint64_t row, uint64_t head) {
  const uint64_t group = a.value_heads / a.key_heads;
  const uint64_t key = a.key_head_of == graph::KeyHeadOf::Modulo ? head % a.key_heads : head / group;
  const uint64_t key_at = (row * a.key_heads + key) * a.d;
  const uint64_t unit = row * a.value_heads + head;
  return {a.q + key_at,  a.k + key_at,    a.v + unit * a.d, a.alpha + unit * (a.channel_decay ? a.d : 1),
          a.beta + unit, a.o + unit * a.d};
}

// From a head's row to its next.
struct DeltaPitch {
  explicit DeltaPitch(const DeltaArgs& a)
      : keys(a.key_heads * a.d),
        values(a.value_heads * a.d),
        betas(a.value_heads),
        alphas(a.channel_decay ? values : betas) {}
  TW_INLINE DeltaRow after(const DeltaRow& row) const {
    return {row.q + keys, row.k + keys, row.v + values, row.alpha + alphas, row.beta + betas, row.o + values};
  }
  uint64_t keys, values, betas, alphas;
};

// 16 columns of a memory row, or the first `count` of them. What `rounded` answers is what a load gives after the
// store.
template <class S, class Stored>
struct WholeMemory {
  using Element = typename Stored::Element;
  TW_INLINE auto load(const Element* p) const { return Stored::load(p); }
  TW_INLINE auto load_plain(const float* p) const { return S::load(p); }
  TW_INLINE auto rounded(Element* p, typename S::V v) const {
    Stored::store(p, v);
    if constexpr (sizeof(Element) == sizeof(float)) return v;
    return Stored::load(p);
  }
};
template <class S, class Stored>
struct SomeMemory {
  using Element = typename Stored::Element;
  int count;
  TW_INLINE auto load(const Element* p) const { return Stored::load(p, count); }
  TW_INLINE auto load_plain(const float* p) const { return S::load(p, count); }
  TW_INLINE auto rounded(Element* p, typename S::V v) const {
    Stored::store(p, v, count);
    return Stored::load(p, count);
  }
};

// Calls body(memory, column, Half<0 or 1>) for the vectors of a memory row in the order of a lane tree, and ended()
// after each of its pieces. kWhole: the row is one piece of whole vectors, so that its sums stay in registers.
template <int half>
struct Half {
  static constexpr int kValue = half;
};
template <class S, bool kWhole, class Stored, class Body, class Ended>
TW_INLINE inline void each_column(Stored, uint64_t d, Body body, Ended ended) {
  if constexpr (kWhole) {
    for (uint64_t j = 0; j < d; j += 32) {
      body(WholeMemory<S, Stored>{}, j, Half<0>{});
      body(WholeMemory<S, Stored>{}, j + 16, Half<1>{});
    }
    return ended();
  }
  for (uint64_t begin = 0; begin < d; begin += 1024) {
    const uint64_t end = least(d, begin + 1024);
    uint64_t j = begin;
    for (; j + 32 <= end; j += 32) {
      body(WholeMemory<S, Stored>{}, j, Half<0>{});
      body(WholeMemory<S, Stored>{}, j + 16, Half<1>{});
    }
    if (j < end) {
      const auto low = static_cast<int>(least(16, end - j));
      body(SomeMemory<S, Stored>{low}, j, Half<0>{});
      body(SomeMemory<S, Stored>{static_cast<int>(end - j) - low}, j + 16, Half<1>{});
    }
    ended();
  }
}

// u of one memory row, LT. The row that lies a block further on is asked for.
template <class S, bool kChannel, class Stored>
TW_INLINE inline float delta_dot(Stored stored, const typename Stored::Element* state, const DeltaRow& row,
                                 uint64_t d) {
  float u = 0;
  typename S::V low = S::zero(), high = S::zero();
  each_column<S, false>(
      stored, d,
      [&](auto memory, uint64_t j, auto half) {
        auto s = memory.load(state + j);
        __builtin_prefetch(state + j + kDeltaRows * d);
        if constexpr (kChannel) s = S::mul(memory.load_plain(row.alpha + j), s);
        auto& sum = decltype(half)::kValue == 0 ? low : high;
        sum = S::fma(s, memory.load_plain(row.k + j), sum);
      },
      [&] {
        u += S::tree(S::add(low, high));
        low = high = S::zero();
      });
  return u;
}

// The dot u that is taken on the way through a memory row: none, of the row itself for its next step, or of the row of
// a later block for that one's step.
enum class DotOf : uint8_t { None, Itself, Later };

// One memory row through one step, so that it is read and written once, and a dot on the way. later: DotOf::Later's
// row.
struct DeltaDots {
  float o, u;
};
template <class S, bool kChannel, DotOf kDot, bool kWhole, class Stored>
TW_INLINE inline DeltaDots delta_step(Stored stored, typename Stored::Element* state,
                                      const typename Stored::Element* later, const DeltaRow& row, const DeltaRow& next,
                                      float factor, uint64_t d) {
  using V = typename S::V;
  const float *q = row.q, *k = row.k, *alpha = row.alpha, *next_k = next.k, *next_alpha = next.alpha;
  const float decay = alpha[0];
  DeltaDots dots{0, 0};
  V o_low = S::zero(), o_high = S::zero(), u_low = S::zero(), u_high = S::zero();
  each_column<S, kWhole>(
      stored, d,
      [&](auto memory, uint64_t j, auto half) {
        constexpr bool kLow = decltype(half)::kValue == 0;
        V s = memory.load(state + j);
        if constexpr (kChannel)
          s = S::mul(memory.load_plain(alpha + j), s);
        else
          s = S::mul(S::set(decay), s);
        s = memory.rounded(state + j, S::fma(S::set(factor), memory.load_plain(k + j), s));
        V& o = kLow ? o_low : o_high;
        o = S::fma(s, memory.load_plain(q + j), o);
        if constexpr (kDot == DotOf::None) return;
        if constexpr (kDot == DotOf::Later) {
          s = memory.load(later + j);
          __builtin_prefetch(later + j + kDeltaRows * d);
        }
        if constexpr (kChannel) s = S::mul(memory.load_plain(next_alpha + j), s);
        V& u = kLow ? u_low : u_high;
        u = S::fma(s, memory.load_plain(next_k + j), u);
      },
      [&] {
        dots.o += S::tree(S::add(o_low, o_high));
        o_low = o_high = S::zero();
        if constexpr (kDot == DotOf::None) return;
        dots.u += S::tree(S::add(u_low, u_high));
        u_low = u_high = S::zero();
      });
  return dots;
}

// A step of `rows` memory rows (up to kDeltaRows) from row `first` on. u: of this step, then of the next; with
// DotOf::Later of the block at `later`, in as many of its rows.
template <class S, bool kChannel, DotOf kDot, class Stored>
[[gnu::noinline]] void delta_steps(Stored stored, typename Stored::Element* state,
                                   const typename Stored::Element* later, const DeltaRow& row, const DeltaRow& next,
                                   uint64_t d, uint64_t first, uint64_t rows, float* u) {
  static_assert(kDeltaRows == 16);
  const auto count = static_cast<int>(rows);
  const auto v = S::load(row.v + first, count), dot = S::load(u), beta = S::set(*row.beta);
  alignas(64) float c[kDeltaRows], o[kDeltaRows] = {};
  if constexpr (kChannel)
    S::store(c, S::mul(beta, S::sub(v, dot)));
  else
    S::store(c, S::mul(beta, S::fma(S::set(-row.alpha[0]), dot, v)));
  const auto steps = [&](auto whole) {
    constexpr bool kWhole = decltype(whole)::value;
    for (uint64_t i = 0; i < rows; ++i) {
      const DeltaDots dots =
          delta_step<S, kChannel, kDot, kWhole>(stored, state + i * d, later + i * d, row, next, c[i], d);
      o[i] = dots.o;
      u[i] = dots.u;
    }
  };
  if (d % 32 == 0 && d <= 1024)
    steps(std::true_type{});
  else
    steps(std::false_type{});
  S::store(row.o + first, S::mul(S::load(o), S::set(math::rsq(static_cast<float>(d)))), count);
}

// kDeltaRows memory rows of a head from `first` on, or as many as it has, and the row of the sequence that is their
// next.
struct DeltaBlock {
  uint64_t sequence, head, first, rows, from;
};
TW_INLINE inline DeltaBlock block_of(const DeltaArgs& a, uint64_t item) {
  const uint64_t blocks = (a.d + kDeltaRows - 1) / kDeltaRows;
  const uint64_t head = item / blocks;
  const uint64_t first = item % blocks * kDeltaRows;
  return {head / a.value_heads, head % a.value_heads, first, least(kDeltaRows, a.d - first), 0};
}
template <class Stored>
TW_INLINE inline auto* delta_memory(Stored, const DeltaArgs& a, const DeltaBlock& b) {
  const uint64_t square = a.d * a.d;
  return static_cast<typename Stored::Element*>(a.state) +
         sequence_begin(a.states, b.sequence, a.value_heads * square) + b.head * square + b.first * a.d;
}
TW_INLINE inline DeltaRow first_row(const DeltaArgs& a, const DeltaBlock& b) {
  return delta_row(a, b.sequence * a.rows + b.from, b.head);
}

// Calls step(row, next) for the rows of a block's head, the last being its own next.
template <class Step>
TW_INLINE inline void each_delta_row(const DeltaArgs& a, const DeltaBlock& block, Step step) {
  const DeltaPitch pitch(a);
  const uint64_t rows = a.rows - block.from, d = a.d, first = block.first;
  DeltaRow row = first_row(a, block);
  for (uint64_t r = 1; r < rows; ++r) {
    const DeltaRow next = pitch.after(row);
    // The vectors of a head lie a row of all heads apart.
    const DeltaRow later = pitch.after(next);
    for (uint64_t j = 0; j < d; j += 16) {
      __builtin_prefetch(later.k + j);
      __builtin_prefetch(later.q + j);
    }
    __builtin_prefetch(later.v + first);
    __builtin_prefetch(later.o + first, 1);
    step(row, next);
    row = next;
  }
  step(row, row);
}

// u of the block's memory rows from `begin` on.
template <class S, bool kChannel, class Stored>
TW_INLINE inline void delta_dots(Stored stored, const typename Stored::Element* state, const DeltaRow& row, uint64_t d,
                                 uint64_t begin, uint64_t rows, float* u) {
  for (uint64_t i = begin; i < rows; ++i) u[i] = delta_dot<S, kChannel>(stored, state + i * d, row, d);
}

// Blocks of one row each. The dots of a block are taken on the way through the one before, so that memory is read
// evenly.
template <class S, bool kChannel, class Stored>
TW_INLINE inline void one_row_blocks(const DeltaArgs& a, Stored stored, Range range) {
  if (range.begin == range.end) return;
  const uint64_t d = a.d;
  DeltaBlock block = block_of(a, range.begin);
  DeltaRow row = first_row(a, block);
  alignas(64) float u[kDeltaRows] = {};
  auto* state = delta_memory(stored, a, block);
  delta_dots<S, kChannel>(stored, state, row, d, 0, block.rows, u);
  for (uint64_t item = range.begin + 1; item < range.end; ++item) {
    const DeltaBlock later = block_of(a, item);
    const DeltaRow next = first_row(a, later);
    auto* memory = delta_memory(stored, a, later);
    if (later.rows >= block.rows) {
      delta_steps<S, kChannel, DotOf::Later>(stored, state, memory, row, next, d, block.first, block.rows, u);
      delta_dots<S, kChannel>(stored, memory, next, d, block.rows, later.rows, u);
    } else {
      delta_steps<S, kChannel, DotOf::None>(stored, state, state, row, row, d, block.first, block.rows, u);
      delta_dots<S, kChannel>(stored, memory, next, d, 0, later.rows, u);
    }
    block = later;
    row = next;
    state = memory;
  }
  delta_steps<S, kChannel, DotOf::None>(stored, state, state, row, row, d, block.first, block.rows, u);
}

// A block through the rows: it stays near, the vectors of the rows pass by.
template <class S, bool kChannel, class Stored>
TW_INLINE inline void delta_block(const DeltaArgs& a, Stored stored, const DeltaBlock& block) {
  const DeltaRow begin = first_row(a, block);
  auto* state = delta_memory(stored, a, block);
  alignas(64) float u[kDeltaRows] = {};
  delta_dots<S, kChannel>(stored, state, begin, a.d, 0, block.rows, u);
  each_delta_row(a, block, [&](const DeltaRow& row, const DeltaRow& next) {
    delta_steps<S, kChannel, DotOf::Itself>(stored, state, state, row, next, a.d, block.first, block.rows, u);
  });
}

}  // namespace tw::lane::cpu
