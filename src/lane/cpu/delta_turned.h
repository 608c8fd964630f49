#pragma once

// The gated delta rule row after row with blocks of the memory turned, as templates over the instruction set.

#include "lane/cpu/delta_rows.h"

namespace tw::lane::cpu {

// With many rows a block of kDeltaRows memory rows is turned, so that a vector lane is a memory row and the lane trees
// need no horizontal sums: column j of the block in tile[16 j ..]. For widths of whole trees whose block stays in the
// first cache beside the rows' vectors.
inline constexpr uint64_t kTurnedWidth = 256;
inline constexpr uint64_t kTurnedFrom = 4;  // rows from which on turning pays
TW_INLINE inline bool turns(const DeltaArgs& a, const DeltaBlock& block) {
  return a.rows - block.from >= kTurnedFrom && a.d % 32 == 0 && a.d <= kTurnedWidth;
}

// The square of columns [column, column + 16) of a block, into the tile and back.
template <class S, class Stored>
TW_INLINE inline void turn_in(Stored, const typename Stored::Element* state, uint64_t d,
                              typename Stored::Element* tile) {
  static_assert(kDeltaRows == 16);
  alignas(64) float square[256], turned[256];
  for (uint64_t column = 0; column < d; column += 16) {
    for (uint64_t i = 0; i < 16; ++i) S::store(square + 16 * i, Stored::load(state + i * d + column));
    S::transpose(square, turned);
    for (uint64_t j = 0; j < 16; ++j) Stored::store(tile + 16 * (column + j), S::load(turned + 16 * j));
  }
}
template <class S, class Stored>
TW_INLINE inline void turn_out(Stored, const typename Stored::Element* tile, uint64_t d,
                               typename Stored::Element* state) {
  alignas(64) float square[256], turned[256];
  for (uint64_t column = 0; column < d; column += 16) {
    for (uint64_t j = 0; j < 16; ++j) S::store(square + 16 * j, Stored::load(tile + 16 * (column + j)));
    S::transpose(square, turned);
    for (uint64_t i = 0; i < 16; ++i) Stored::store(state + i * d + column, S::load(turned + 16 * i));
  }
}

// A lane of the trees of o and of the next step's u, for 16 memory rows.
template <class S>
struct DeltaSums {
  typename S::V o, u;
};
template <class S>
TW_INLINE inline DeltaSums<S> sum_of(const DeltaSums<S>& x, const DeltaSums<S>& y) {
  return {S::add(x.o, y.o), S::add(x.u, y.u)};
}

// One step of the columns = l mod 32 of a turned block. kPieces: d / 32, 0 for any.
template <class S, bool kChannel, int kPieces, class Stored>
TW_INLINE inline DeltaSums<S> turned_lane(Stored, typename Stored::Element* tile, DeltaRow row, DeltaRow next,
                                          typename S::V decay, typename S::V c, uint64_t d, uint64_t l) {
  const WholeMemory<S, Stored> memory;
  const uint64_t pieces = kPieces != 0 ? kPieces : d / 32;
  DeltaSums<S> sums{S::zero(), S::zero()};
#pragma GCC unroll 4
  for (uint64_t p = 0; p < pieces; ++p) {
    const uint64_t j = l + 32 * p;
    auto s = memory.load(tile + 16 * j);
    s = S::mul(kChannel ? S::set(row.alpha[j]) : decay, s);
    s = memory.rounded(tile + 16 * j, S::fma(c, S::set(row.k[j]), s));
    sums.o = S::fma(s, S::set(row.q[j]), sums.o);
    if constexpr (kChannel) s = S::mul(S::set(next.alpha[j]), s);
    sums.u = S::fma(s, S::set(next.k[j]), sums.u);
  }
  return sums;
}

// A step of a turned block. u: of this step, then of the next.
template <class S, bool kChannel, int kPieces, class Stored>
[[gnu::noinline]] void turned_step(Stored stored, typename Stored::Element* tile, const DeltaRow& of_row,
                                   const DeltaRow& of_next, float scale, uint64_t d, uint64_t first, float* u) {
  const DeltaRow row = of_row, next = of_next;  // known not to change with the tile
  const auto decay = S::set(row.alpha[0]);
  const auto v = S::load(row.v + first), dot = S::load(u), beta = S::set(*row.beta);
  const auto c = kChannel ? S::mul(beta, S::sub(v, dot)) : S::mul(beta, S::fma(S::neg(decay), dot, v));
  const auto lane = [&](uint64_t l) {
    return turned_lane<S, kChannel, kPieces>(stored, tile, row, next, decay, c, d, l);
  };
  DeltaSums<S> tree[8];
  for (uint64_t l = 0; l < 8; ++l) {
    const auto even = sum_of<S>(lane(l), lane(l + 16));
    tree[l] = sum_of<S>(even, sum_of<S>(lane(l + 8), lane(l + 24)));
  }
  for (uint64_t half = 4; half > 0; half /= 2)
    for (uint64_t l = 0; l < half; ++l) tree[l] = sum_of<S>(tree[l], tree[l + half]);
  S::store(row.o + first, S::mul(tree[0].o, S::set(scale)));
  S::store(u, tree[0].u);
}

// A block through the rows, turned.
template <class S, bool kChannel, class Stored>
TW_INLINE inline void turned_block(const DeltaArgs& a, Stored stored, const DeltaBlock& block) {
  const uint64_t d = a.d;
  const DeltaRow begin = first_row(a, block);
  auto* state = delta_memory(stored, a, block);
  alignas(64) typename Stored::Element tile[kDeltaRows * kTurnedWidth];
  alignas(64) float u[kDeltaRows];
  delta_dots<S, kChannel>(stored, state, begin, d, 0, kDeltaRows, u);
  turn_in<S>(stored, state, d, tile);
  const float scale = math::rsq(static_cast<float>(d));
  each_delta_row(a, block, [&](const DeltaRow& row, const DeltaRow& next) {
    if (d == 128)
      turned_step<S, kChannel, 4>(stored, tile, row, next, scale, d, block.first, u);
    else
      turned_step<S, kChannel, 0>(stored, tile, row, next, scale, d, block.first, u);
  });
  turn_out<S>(stored, tile, d, state);
}

template <class S, bool kChannel, class Stored>
TW_INLINE inline void any_block(const DeltaArgs& a, Stored stored, const DeltaBlock& block) {
  if (turns(a, block))
    turned_block<S, kChannel>(a, stored, block);
  else
    delta_block<S, kChannel>(a, stored, block);
}

}  // namespace tw::lane::cpu
