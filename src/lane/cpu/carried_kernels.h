#pragma once

// Kernels over carried memory: the causal convolution (conv.h) and the gated delta rule (delta.h). Only for the units
// that instantiate them, carried_*.cc.

#include "lane/cpu/conv.h"
#include "lane/cpu/delta.h"
#include "lane/cpu/elementwise_kernels.h"
#include "lane/cpu/move_kernels.h"
#include "lane/cpu/norm_kernels.h"

namespace tw::lane::cpu {

// Channels that a convolution takes along all rows together.
inline constexpr uint64_t kConvPiece = 256;

// One row of `count` channels: chain over taps ascending, kTaps of them (0: `taps`). from: the rows E[r + 1 + t].
template <class S, int kTaps>
TW_INLINE inline void conv_row(const ConvArgs& a, const float* const* from, const float* w, float* y, uint64_t count) {
  const uint64_t taps = kTaps != 0 ? kTaps : a.taps;
  each16<S>(0, count, [&](auto lanes, uint64_t c) {
    auto sum = S::zero();
#pragma GCC unroll 4
    for (uint64_t t = 0; t < taps; ++t) sum = S::fma(lanes.load(from[t] + c), lanes.load(w + t * a.chan + c), sum);
    if (a.silu) sum = math::silu<S>(sum);
    lanes.store(y + c, sum);
  });
}

// Channels [begin, begin + count) of a sequence, row after row, then their ring. The last rows of E are kept apart, as
// y may be x.
template <class S>
TW_INLINE inline void conv_piece(const ConvArgs& a, uint64_t sequence, uint64_t begin, uint64_t count) {
  constexpr uint64_t kRowsAhead = 8;
  const float* x = a.x + sequence * a.rows * a.chan + begin;
  float* ring = a.ring + sequence_begin(a.rings, sequence, a.taps * a.chan) + begin;
  float* y = a.y + sequence * a.rows * a.chan + begin;
  float history[kMaxConvTaps][kConvPiece];  // E[i] in row i mod taps
  for (uint64_t t = 0; t < a.taps; ++t)
    convert<S>(StoredF32<S>{}, ring + t * a.chan, StoredF32<S>{}, history[t], count);
  const float* from[kMaxConvTaps];
  for (uint64_t t = 0; t < a.taps; ++t) from[t] = history[t];
  for (uint64_t r = 0; r < a.rows; ++r) {
    float* newest = history[r % a.taps];
    for (uint64_t c = 0; c < count; c += 16) __builtin_prefetch(x + (r + kRowsAhead) * a.chan + c);
    convert<S>(StoredF32<S>{}, x + r * a.chan, StoredF32<S>{}, newest, count);
    for (uint64_t t = 0; t + 1 < a.taps; ++t) from[t] = from[t + 1];
    from[a.taps - 1] = newest;
    float* out = y + r * a.chan;
    if (a.taps == 4)
      conv_row<S, 4>(a, from, a.w + begin, out, count);
    else
      conv_row<S, 0>(a, from, a.w + begin, out, count);
    if (a.l2_width != 0 && count == a.l2_width)
      scale_row<S>(out, math::rsq(sum_of_squares<S>(out, count) + a.l2_eps), nullptr, nullptr, out, count);
  }
  for (uint64_t t = 0; t < a.taps; ++t)
    convert<S>(StoredF32<S>{}, history[(a.rows + t) % a.taps], StoredF32<S>{}, ring + t * a.chan, count);
}

template <class S>
void conv(const ConvArgs& a, Range range, std::byte*) {
  const uint64_t block = conv_block(a);
  const uint64_t blocks = (a.chan + block - 1) / block;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t sequence = item / blocks;
    const uint64_t begin = item % blocks * block;
    const uint64_t end = least(a.chan, begin + block);
    for (uint64_t c = begin; c < end; c += kConvPiece) conv_piece<S>(a, sequence, c, least(kConvPiece, end - c));
    if (a.l2_width == 0 || block <= kConvPiece) continue;
    for (uint64_t r = 0; r < a.rows; ++r) {
      float* head = a.y + (sequence * a.rows + r) * a.chan + begin;
      scale_row<S>(head, math::rsq(sum_of_squares<S>(head, block) + a.l2_eps), nullptr, nullptr, head, block);
    }
  }
}

template <class S>
void conv_parts(const ConvPartsArgs& a, Range range, std::byte* scratch) {
  each_part(a.parts, a.count, range, [&](const ConvArgs& part, Range own) { conv<S>(part, own, scratch); });
}

// One row's vectors of a head.
struct DeltaRow {
  const float* q;
  const float* k;
  const float* v;
  const float* alpha;  // one value, or d with a decay a channel
  float beta;
  float* o;
};

TW_INLINE inline DeltaRow delta_row(const DeltaArgs& a, uint64_t row, uint64_t head) {
  const uint64_t group = a.value_heads / a.key_heads;
  const uint64_t key = a.key_head_of == graph::KeyHeadOf::Modulo ? head % a.key_heads : head / group;
  const uint64_t key_at = (row * a.key_heads + key) * a.d;
  const uint64_t unit = row * a.value_heads + head;
  return {a.q + key_at, a.k + key_at,    a.v + unit * a.d, a.alpha + unit * (a.channel_decay ? a.d : 1),
          a.beta[unit], a.o + unit * a.d};
}

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
// after each of its pieces.
template <int half>
struct Half {
  static constexpr int kValue = half;
};
template <class S, class Stored, class Body, class Ended>
TW_INLINE inline void each_column(uint64_t d, Body body, Ended ended) {
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
TW_INLINE inline float delta_dot(Stored, const typename Stored::Element* state, const DeltaRow& row, uint64_t d) {
  float u = 0;
  typename S::V low = S::zero(), high = S::zero();
  each_column<S, Stored>(
      d,
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

// One memory row through one step, and u of the next step on the way: the row is read and written once a step.
struct DeltaDots {
  float o, u;
};
template <class S, bool kChannel, bool kNext, class Stored>
TW_INLINE inline DeltaDots delta_step(Stored, typename Stored::Element* state, const DeltaRow& row,
                                      const DeltaRow& next, float factor, uint64_t d) {
  using V = typename S::V;
  const float *q = row.q, *k = row.k, *alpha = row.alpha, *next_k = next.k, *next_alpha = next.alpha;
  const float decay = alpha[0];
  DeltaDots dots{0, 0};
  V o_low = S::zero(), o_high = S::zero(), u_low = S::zero(), u_high = S::zero();
  each_column<S, Stored>(
      d,
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
        if constexpr (kNext) {
          if constexpr (kChannel) s = S::mul(memory.load_plain(next_alpha + j), s);
          V& u = kLow ? u_low : u_high;
          u = S::fma(s, memory.load_plain(next_k + j), u);
        }
      },
      [&] {
        dots.o += S::tree(S::add(o_low, o_high));
        o_low = o_high = S::zero();
        if constexpr (!kNext) return;
        dots.u += S::tree(S::add(u_low, u_high));
        u_low = u_high = S::zero();
      });
  return dots;
}

// A step of `rows` memory rows (up to kDeltaRows) from row `first` on; u: of this step, then of the next.
template <class S, bool kChannel, bool kNext, class Stored>
[[gnu::noinline]] void delta_steps(Stored stored, typename Stored::Element* state, const DeltaRow& row,
                                   const DeltaRow& next, uint64_t d, uint64_t first, uint64_t rows, float* u) {
  static_assert(kDeltaRows == 16);
  const auto count = static_cast<int>(rows);
  const auto v = S::load(row.v + first, count), dot = S::load(u), beta = S::set(row.beta);
  alignas(64) float c[kDeltaRows], o[kDeltaRows] = {};
  if constexpr (kChannel)
    S::store(c, S::mul(beta, S::sub(v, dot)));
  else
    S::store(c, S::mul(beta, S::fma(S::set(-row.alpha[0]), dot, v)));
  for (uint64_t i = 0; i < rows; ++i) {
    const DeltaDots dots = delta_step<S, kChannel, kNext>(stored, state + i * d, row, next, c[i], d);
    o[i] = dots.o;
    u[i] = dots.u;
  }
  S::store(row.o + first, S::mul(S::load(o), S::set(math::rsq(static_cast<float>(d)))), count);
}

// kDeltaRows memory rows of a head through all rows: they stay near, the vectors of the rows pass by.
template <class S, bool kChannel, class Stored>
TW_INLINE inline void delta_block(const DeltaArgs& a, Stored stored, uint64_t sequence, uint64_t head, uint64_t block) {
  const uint64_t square = a.d * a.d;
  const uint64_t first = block * kDeltaRows;
  const uint64_t rows = least(kDeltaRows, a.d - first);
  auto* state = static_cast<typename Stored::Element*>(a.state) +
                sequence_begin(a.states, sequence, a.value_heads * square) + head * square + first * a.d;
  DeltaRow row = delta_row(a, sequence * a.rows, head);
  alignas(64) float u[kDeltaRows] = {};
  for (uint64_t i = 0; i < rows; ++i) u[i] = delta_dot<S, kChannel>(stored, state + i * a.d, row, a.d);
  for (uint64_t r = 1; r < a.rows; ++r) {
    const DeltaRow next = delta_row(a, sequence * a.rows + r, head);
    // The vectors of a head lie a row of all heads apart.
    const DeltaRow later = delta_row(a, sequence * a.rows + least(r + 1, a.rows - 1), head);
    for (uint64_t j = 0; j < a.d; j += 16) {
      __builtin_prefetch(later.k + j);
      __builtin_prefetch(later.q + j);
    }
    __builtin_prefetch(later.v + first);
    delta_steps<S, kChannel, true>(stored, state, row, next, a.d, first, rows, u);
    row = next;
  }
  delta_steps<S, kChannel, false>(stored, state, row, row, a.d, first, rows, u);
}

template <class S>
void delta_update(const DeltaArgs& a, Range range, std::byte*) {
  const uint64_t blocks = (a.d + kDeltaRows - 1) / kDeltaRows;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t head = item / blocks % a.value_heads;
    const uint64_t sequence = item / blocks / a.value_heads;
    const auto run = [&](auto stored) {
      if (a.channel_decay)
        delta_block<S, true>(a, stored, sequence, head, item % blocks);
      else
        delta_block<S, false>(a, stored, sequence, head, item % blocks);
    };
    if (a.state_type == Dtype::BF16)
      run(StoredBf16<S>{});
    else
      run(StoredF32<S>{});
  }
}

template <class S>
void delta_norm(const DeltaArgs& a, Range range, std::byte*) {
  const auto act = a.gate == graph::GateKind::Silu ? graph::ActivationKind::Silu : graph::ActivationKind::Sigmoid;
  for (uint64_t unit = range.begin; unit < range.end; ++unit) {
    float* o = a.o + unit * a.d;
    float* out = store_place(a.out, unit, 0, o);
    const float* z = a.z + unit * a.d;
    scale_row<S>(o, inverse_root_mean(sum_of_squares<S>(o, a.d), a.d, a.eps), a.norm, nullptr, out, a.d);
    with_activation<S>(act, [&](auto f) {
      each16<S>(0, a.d, [&](auto lanes, uint64_t i) {
        lanes.store(out + i, S::mul(lanes.load(out + i), f(lanes.load(z + i))));
      });
    });
    store_rest<S>(a.out, unit, 0, out, a.d);
  }
}

}  // namespace tw::lane::cpu

#define TW_CARRIED_KERNELS(S)                                           \
  template void conv<S>(const ConvArgs&, Range, std::byte*);            \
  template void conv_parts<S>(const ConvPartsArgs&, Range, std::byte*); \
  template void delta_update<S>(const DeltaArgs&, Range, std::byte*);   \
  template void delta_norm<S>(const DeltaArgs&, Range, std::byte*);
