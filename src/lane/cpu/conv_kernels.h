#pragma once

// The causal convolution (conv.h), as a template over the instruction set.

#include "lane/cpu/conv.h"
#include "lane/cpu/elementwise_kernels.h"
#include "lane/cpu/move_kernels.h"
#include "lane/cpu/norm_kernels.h"

namespace tw::lane::cpu {

// Channels that a convolution takes along all rows together.
inline constexpr uint64_t kConvPiece = 256;

// One row of `count` channels: chain over taps ascending, kTaps of them (0: `taps`). from: the rows E[r + 1 + t], of
// which the last is filled with x on the way, as y may be x.
template <class S, int kTaps>
TW_INLINE inline void conv_row(const ConvArgs& a, const float* x, float* const* from, const float* w, float* y,
                               uint64_t count) {
  const uint64_t taps = kTaps != 0 ? kTaps : a.taps;
  each16<S>(0, count, [&](auto lanes, uint64_t c) {
    const auto newest = lanes.load(x + c);
    lanes.store(from[taps - 1] + c, newest);
    auto sum = S::zero();
#pragma GCC unroll 4
    for (uint64_t t = 0; t + 1 < taps; ++t) sum = S::fma(lanes.load(from[t] + c), lanes.load(w + t * a.chan + c), sum);
    sum = S::fma(newest, lanes.load(w + (taps - 1) * a.chan + c), sum);
    if (a.silu) sum = math::silu<S>(sum);
    lanes.store(y + c, sum);
  });
}

template <class S>
TW_INLINE inline void l2_run(const ConvArgs& a, float* y) {
  scale_row<S>(y, math::rsq(sum_of_squares<S>(y, a.l2_width) + a.l2_eps), nullptr, nullptr, y, a.l2_width);
}

// Channels [begin, begin + count) of a sequence, row after row, then their ring. Whole runs of l2_width are scaled.
template <class S>
TW_INLINE inline void conv_piece(const ConvArgs& a, uint64_t sequence, uint64_t begin, uint64_t count) {
  constexpr uint64_t kRowsAhead = 4;
  const float* x = a.x + sequence * a.rows * a.chan + begin;
  float* ring = a.ring + sequence_begin(a.rings, sequence, a.taps * a.chan) + begin;
  float* y = a.y + sequence * a.rows * a.chan + begin;
  alignas(64) float history[kMaxConvTaps][kConvPiece];
  float* from[kMaxConvTaps];
  for (uint64_t t = 0; t < a.taps; ++t) {
    from[t] = history[t];
    convert<S>(StoredF32<S>{}, ring + t * a.chan, StoredF32<S>{}, history[t], count);
  }
  for (uint64_t r = 0; r < a.rows; ++r, x += a.chan, y += a.chan) {
    for (uint64_t c = 0; c < count; c += 16) {
      __builtin_prefetch(x + kRowsAhead * a.chan + c);
      __builtin_prefetch(y + kRowsAhead * a.chan + c, 1);
    }
    float* oldest = from[0];
    for (uint64_t t = 0; t + 1 < a.taps; ++t) from[t] = from[t + 1];
    from[a.taps - 1] = oldest;
    if (a.taps == 4)
      conv_row<S, 4>(a, x, from, a.w + begin, y, count);
    else
      conv_row<S, 0>(a, x, from, a.w + begin, y, count);
    if (a.l2_width != 0 && a.l2_width <= count)
      for (uint64_t c = 0; c < count; c += a.l2_width) l2_run<S>(a, y + c);
  }
  for (uint64_t t = 0; t < a.taps; ++t) convert<S>(StoredF32<S>{}, from[t], StoredF32<S>{}, ring + t * a.chan, count);
}

template <class S>
void conv(const ConvArgs& a, Range range, std::byte*) {
  const uint64_t block = conv_block(a);
  const uint64_t blocks = (a.chan + block - 1) / block;
  const uint64_t together = block < kConvPiece ? kConvPiece / block : 1;
  for (uint64_t item = range.begin; item < range.end;) {
    const uint64_t sequence = item / blocks;
    const uint64_t own = item % blocks;
    const uint64_t count = least(least(together, blocks - own), range.end - item);
    const uint64_t begin = own * block;
    const uint64_t end = least(a.chan, begin + count * block);
    for (uint64_t c = begin; c < end; c += kConvPiece) conv_piece<S>(a, sequence, c, least(kConvPiece, end - c));
    item += count;
    if (a.l2_width <= kConvPiece) continue;
    for (uint64_t r = 0; r < a.rows; ++r) l2_run<S>(a, a.y + (sequence * a.rows + r) * a.chan + begin);
  }
}

template <class S>
void conv_parts(const ConvPartsArgs& a, Range range, std::byte* scratch) {
  each_part(a.parts, a.count, range, [&](const ConvArgs& part, Range own) { conv<S>(part, own, scratch); });
}

}  // namespace tw::lane::cpu
