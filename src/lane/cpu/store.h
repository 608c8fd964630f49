#pragma once

// Where a kernel's result goes: a lane::Dst bound to memory, in the plain form, the quantized form, or both. Kernels
// that can land anywhere store through store_values.

#include <cstddef>
#include <cstdint>

#include "lane/cpu/move.h"
#include "lane/cpu/quant.h"
#include "lane/cpu/quant_kernels.h"
#include "lane/cpu/stored.h"
#include "lane/types.h"

namespace tw::lane::cpu {

// Value e of unit u is element (R - 1) * row_pitch + u * unit_pitch + unit_offset + e of the buffer in row-major order,
// R = *position, or `fixed` without one. Rounded to the type when stored plain.
// With sequence_units, a batch into a table a sequence: units s * sequence_units .. are the units 0 .. of sequence s,
// R = position[s], in the table of `size` elements that begins by `tables`; plain only.
struct Store {
  // How the plain elements lie. Caches have rows of row_pitch values, heads of head_width.
  enum class Form : uint8_t {
    Rows,       // row-major
    KeyBlocks,  // [head][block of 16 rows][width][16]
    ValueRows,  // [head][row][width]
  };

  void* data = nullptr;  // null: the plain form is not wanted
  QuantView quant;       // scale null: the quantized form is not wanted
  int words = 1;         // of the quantized form
  Dtype type = Dtype::F32;
  Form form = Form::Rows;
  const int32_t* position = nullptr;
  uint32_t fixed = 1;
  uint64_t row_pitch = 0;
  uint64_t unit_pitch = 0, unit_offset = 0;
  uint64_t head_width = 0, head_stride = 0;
  uint64_t sequence_units = 0, size = 0;
  SlotTable tables;
};

// A unit of a store of one sequence, and where that sequence's table begins.
struct StoreUnit {
  uint64_t unit = 0, sequence = 0, table = 0;
};
TW_INLINE inline StoreUnit store_unit(const Store& store, uint64_t unit) {
  if (store.sequence_units == 0) return {unit, 0, 0};
  const uint64_t sequence = unit / store.sequence_units;
  return {unit % store.sequence_units, sequence, sequence_begin(store.tables, sequence, store.size)};
}

// Plain f32 units that begin every `pitch` values.
TW_INLINE constexpr Store store_rows(float* y, uint64_t pitch) {
  Store store;
  store.data = y;
  store.unit_pitch = pitch;
  return store;
}

// The element of its sequence's table where a unit begins, in row-major order.
TW_INLINE inline uint64_t store_begin(const Store& store, const StoreUnit& at) {
  const uint64_t row =
      (store.position != nullptr ? static_cast<uint64_t>(store.position[at.sequence]) : store.fixed) - 1;
  return row * store.row_pitch + at.unit * store.unit_pitch + store.unit_offset;
}

TW_INLINE constexpr bool stores_plain(const Store& store) { return store.data != nullptr; }
TW_INLINE constexpr bool stores_quantized(const Store& store) { return store.quant.scale != nullptr; }

// Whether the plain result is f32 values in order.
TW_INLINE constexpr bool stores_in_place(const Store& store) {
  return stores_plain(store) && store.type == Dtype::F32 && store.form == Store::Form::Rows;
}
// Whether the result is f32 values in order and nothing else, which a kernel may write itself at plain_unit.
TW_INLINE constexpr bool stores_directly(const Store& store) {
  return stores_in_place(store) && !stores_quantized(store);
}
TW_INLINE inline float* plain_unit(const Store& store, uint64_t unit) {
  const StoreUnit at = store_unit(store, unit);
  return static_cast<float*>(store.data) + at.table + store_begin(store, at);
}

// Where a kernel puts the values of unit `unit` from `first` on together: in the plain result itself where those are
// f32 in order, else in `own`. store_rest then does what is left.
TW_INLINE inline float* store_place(const Store& store, uint64_t unit, uint64_t first, float* own) {
  return stores_in_place(store) ? plain_unit(store, unit) + first : own;
}

// `count` values to elements at, at + 1, ... (in row-major order) of the cache that begins at `table`.
template <class S, class Stored>
void store_cache(const Store& store, Stored stored, typename Stored::Element* table, uint64_t at, const float* values,
                 uint64_t count) {
  using Element = typename Stored::Element;
  while (count > 0) {
    const uint64_t row = at / store.row_pitch;
    const uint64_t e = at % store.row_pitch % store.head_width;
    const uint64_t head = at % store.row_pitch / store.head_width;
    const uint64_t piece = least(count, store.head_width - e);
    Element* to = table + head * store.head_stride;
    if (store.form == Store::Form::ValueRows) {
      convert<S>(StoredF32<S>{}, values, stored, to + row * store.head_width + e, piece);
    } else {
      const uint64_t block = row / kPositionBlock * store.head_width;
      store_every<S>(stored, to + (block + e) * kPositionBlock + row % kPositionBlock, kPositionBlock, values, piece);
    }
    at += piece;
    values += piece;
    count -= piece;
  }
}

// Values first .. first + count of unit `unit`. A quantized result wants whole blocks: first and the unit's beginning
// multiples of 32, and count one too. plain false: the plain values are there already.
template <class S>
void store_values(const Store& store, uint64_t unit, uint64_t first, const float* values, uint64_t count,
                  bool plain = true) {
  const StoreUnit place = store_unit(store, unit);
  const uint64_t at = store_begin(store, place) + first;
  if (plain && stores_plain(store)) {
    with_stored<S>(store.type, [&](auto stored) {
      auto* table = static_cast<typename decltype(stored)::Element*>(store.data) + place.table;
      if (store.form == Store::Form::Rows)
        convert<S>(StoredF32<S>{}, values, stored, table + at, count);
      else
        store_cache<S>(store, stored, table, at, values, count);
    });
  }
  if (!stores_quantized(store)) return;
  for (uint64_t i = 0; i < count; i += kQuantBlock)
    quantize_block<S>(values + i, kQuantBlock, store.quant, (at + i) / kQuantBlock, store.words);
}

// The values of unit `unit` from `first` on, put together at store_place(store, unit, first, own).
template <class S>
TW_INLINE inline void store_rest(const Store& store, uint64_t unit, uint64_t first, const float* values,
                                 uint64_t count) {
  if (!stores_directly(store)) store_values<S>(store, unit, first, values, count, !stores_in_place(store));
}

}  // namespace tw::lane::cpu
