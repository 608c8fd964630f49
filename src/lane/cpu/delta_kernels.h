#pragma once

// The gated delta rule (delta.h), as templates over the instruction set.

#include "lane/cpu/delta_chunks.h"
#include "lane/cpu/delta_turned.h"
#include "lane/cpu/elementwise_kernels.h"
#include "lane/cpu/norm_kernels.h"

namespace tw::lane::cpu {

template <class S, bool kChannel, class Stored>
TW_INLINE inline void delta_blocks(const DeltaArgs& a, Stored stored, Range range) {
  if (a.rows == 1) return one_row_blocks<S, kChannel>(a, stored, range);
  for (uint64_t item = range.begin; item < range.end; ++item) {
    any_block<S, kChannel>(a, stored, block_of(a, item));
  }
}

template <class S>
void delta_update(const DeltaArgs& a, Range range, std::byte*) {
  const auto run = [&](auto stored) {
    if (a.channel_decay)
      delta_blocks<S, true>(a, stored, range);
    else
      delta_blocks<S, false>(a, stored, range);
  };
  if (a.state_type == Dtype::BF16)
    run(StoredBf16<S>{});
  else
    run(StoredF32<S>{});
}

// The memory of a head turned where it lies, block by block, and back.
template <class S>
TW_INLINE inline void turn_memory(float* state, uint64_t d, float* own, bool in) {
  for (uint64_t first = 0; first < d; first += kDeltaRows) {
    float* block = state + first * d;
    convert<S>(StoredF32<S>{}, block, StoredF32<S>{}, own, kDeltaRows * d);
    if (in)
      turn_in<S>(StoredF32<S>{}, own, d, block);
    else
      turn_out<S>(StoredF32<S>{}, own, d, block);
  }
}

// Whole chunks, then what is left row after row.
template <class S>
void delta_chunks(const DeltaArgs& a, Range range, std::byte* scratch) {
  static_assert(kDeltaChunkWidth <= kTurnedWidth && kDeltaChunk >= kDeltaRows);
  auto& chunk = *reinterpret_cast<DeltaChunk*>(scratch);
  const DeltaPitch pitch(a);
  const uint64_t whole = a.rows / kDeltaChunk * kDeltaChunk;
  const float scale = math::rsq(static_cast<float>(a.d));
  for (uint64_t item = range.begin; item < range.end; ++item) {
    const uint64_t sequence = item / a.value_heads, head = item % a.value_heads;
    float* state = delta_memory(StoredF32<S>{}, a, {sequence, head, 0, kDeltaRows, 0});
    turn_memory<S>(state, a.d, chunk.keys, true);
    for (uint64_t from = 0; from < whole; from += kDeltaChunk) {
      const DeltaRow row = delta_row(a, sequence * a.rows + from, head);
      chunk_triangles<S>(chunk, row, pitch, a.d);
      for (uint64_t first = 0; first < a.d; first += kDeltaRows)
        chunk_block<S>(chunk, state + first * a.d, row, pitch, a.d, first, scale);
    }
    turn_memory<S>(state, a.d, chunk.keys, false);
    for (uint64_t first = 0; whole < a.rows && first < a.d; first += kDeltaRows)
      any_block<S, false>(a, StoredF32<S>{}, {sequence, head, first, kDeltaRows, whole});
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
