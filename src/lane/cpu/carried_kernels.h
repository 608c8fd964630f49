#pragma once

// Kernels over carried memory: the causal convolution (conv.h) and the gated delta rule (delta.h).

#include "lane/cpu/conv.h"
#include "lane/cpu/delta.h"
#include "lane/cpu/elementwise_kernels.h"
#include "lane/cpu/move_kernels.h"
#include "lane/cpu/norm_kernels.h"

namespace tw::lane::cpu {

// 16 channels from c on, every row, then their ring. Chain over taps ascending.
template <class S, class Lanes>
TW_INLINE inline void conv_channels(const ConvArgs& a, Lanes lanes, const float* x, float* ring, float* y, uint64_t c) {
  typename S::V window[kMaxConvTaps];  // of row r: E[r + 1 .. r + taps]
  for (uint64_t t = 0; t < a.taps; ++t) window[t] = lanes.load(ring + t * a.chan + c);
  for (uint64_t r = 0; r < a.rows; ++r) {
    for (uint64_t t = 0; t + 1 < a.taps; ++t) window[t] = window[t + 1];
    window[a.taps - 1] = lanes.load(x + r * a.chan + c);
    auto acc = S::zero();
    for (uint64_t t = 0; t < a.taps; ++t) acc = S::fma(window[t], lanes.load(a.w + t * a.chan + c), acc);
    if (a.silu) acc = math::silu<S>(acc);
    lanes.store(y + r * a.chan + c, acc);
  }
  for (uint64_t t = 0; t < a.taps; ++t) lanes.store(ring + t * a.chan + c, window[t]);
}

template <class S>
void conv(const ConvArgs& a, Range range, std::byte*) {
  const uint64_t block = conv_block(a);
  const uint64_t blocks = (a.chan + block - 1) / block;
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t sequence = item / blocks;
    const uint64_t begin = item % blocks * block;
    const uint64_t end = least(a.chan, begin + block);
    const float* x = a.x + sequence * a.rows * a.chan;
    float* ring = a.ring + sequence_begin(a.rings, sequence, a.taps * a.chan);
    float* y = a.y + sequence * a.rows * a.chan;
    each16<S>(begin, end, [&](auto lanes, uint64_t c) { conv_channels<S>(a, lanes, x, ring, y, c); });
    if (a.l2_width == 0) continue;
    for (uint64_t r = 0; r < a.rows; ++r) {
      float* head = y + r * a.chan + begin;
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

// N memory rows from row i on through one step. LT of both dots in pieces of 1024 columns.
template <class S, bool kChannel, int N, class Stored>
TW_INLINE inline void delta_rows(Stored, typename Stored::Element* state, const DeltaRow& row, uint64_t d, uint64_t i) {
  using V = typename S::V;
  const V alpha = S::set(row.alpha[0]);
  const auto decayed = [&](V s, uint64_t j, auto lanes) {
    return S::mul(kChannel ? lanes.load(row.alpha + j) : alpha, s);
  };
  float u[N] = {};
  for (uint64_t begin = 0; begin < d; begin += 1024) {
    V sums[2][N];
    for (int n = 0; n < N; ++n) sums[0][n] = sums[1][n] = S::zero();
    const uint64_t end = least(d, begin + 1024);
    for (uint64_t j = begin; j < end; j += 32) {
      for (int half = 0; half < 2; ++half) {
        const uint64_t at = j + 16 * static_cast<uint64_t>(half);
        const auto dot = [&](auto lanes, auto load) {
          const V k = lanes.load(row.k + at);
          for (int n = 0; n < N; ++n) {
            V s = load(state + (i + static_cast<uint64_t>(n)) * d + at);
            if (kChannel) s = decayed(s, at, lanes);
            sums[half][n] = S::fma(s, k, sums[half][n]);
          }
        };
        if (at + 16 <= end) {
          dot(Whole<S>{}, [](const auto* p) { return Stored::load(p); });
        } else {
          const int count = at < end ? static_cast<int>(end - at) : 0;
          dot(Some<S>{count}, [count](const auto* p) { return Stored::load(p, count); });
        }
      }
    }
    for (int n = 0; n < N; ++n) u[n] += S::tree(S::add(sums[0][n], sums[1][n]));
  }
  V c[N];
  for (int n = 0; n < N; ++n) {
    const float v = row.v[i + static_cast<uint64_t>(n)];
    c[n] = S::set(row.beta * (kChannel ? v - u[n] : math::fma(-row.alpha[0], u[n], v)));
  }
  float o[N] = {};
  for (uint64_t begin = 0; begin < d; begin += 1024) {
    V sums[2][N];
    for (int n = 0; n < N; ++n) sums[0][n] = sums[1][n] = S::zero();
    const uint64_t end = least(d, begin + 1024);
    for (uint64_t j = begin; j < end; j += 32) {
      for (int half = 0; half < 2; ++half) {
        const uint64_t at = j + 16 * static_cast<uint64_t>(half);
        // What is stored is read back: the rounding of a 16-bit memory, and +0 beyond the row's end.
        const auto step = [&](auto lanes, auto load, auto store) {
          const V k = lanes.load(row.k + at);
          const V q = lanes.load(row.q + at);
          for (int n = 0; n < N; ++n) {
            auto* p = state + (i + static_cast<uint64_t>(n)) * d + at;
            store(p, S::fma(c[n], k, decayed(load(p), at, lanes)));
            sums[half][n] = S::fma(load(p), q, sums[half][n]);
          }
        };
        if (at + 16 <= end) {
          step(
              Whole<S>{}, [](const auto* p) { return Stored::load(p); }, [](auto* p, V s) { Stored::store(p, s); });
        } else {
          const int count = at < end ? static_cast<int>(end - at) : 0;
          step(
              Some<S>{count}, [count](const auto* p) { return Stored::load(p, count); },
              [count](auto* p, V s) { Stored::store(p, s, count); });
        }
      }
    }
    for (int n = 0; n < N; ++n) o[n] += S::tree(S::add(sums[0][n], sums[1][n]));
  }
  const float scale = math::rsq(static_cast<float>(d));
  for (int n = 0; n < N; ++n) row.o[i + static_cast<uint64_t>(n)] = o[n] * scale;
}

template <class S, bool kChannel, class Stored>
TW_INLINE inline void delta_block(const DeltaArgs& a, Stored stored, uint64_t sequence, uint64_t head, uint64_t block) {
  constexpr int kTogether = S::kTileVectors / 3;
  const uint64_t square = a.d * a.d;
  auto* state = static_cast<typename Stored::Element*>(a.state) +
                sequence_begin(a.states, sequence, a.value_heads * square) + head * square;
  const uint64_t begin = block * kDeltaRows;
  const uint64_t end = least(a.d, begin + kDeltaRows);
  for (uint64_t r = 0; r < a.rows; ++r) {
    const DeltaRow row = delta_row(a, sequence * a.rows + r, head);
    uint64_t i = begin;
    for (; i + kTogether <= end; i += kTogether) delta_rows<S, kChannel, kTogether>(stored, state, row, a.d, i);
    for (; i < end; ++i) delta_rows<S, kChannel, 1>(stored, state, row, a.d, i);
  }
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
