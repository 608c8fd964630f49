#include "lane/cpu/store.h"

#include <gtest/gtest.h>

#include "base/half.h"
#include "lane/cpu/simd_scalar.h"
#include "lane/cpu/testing/schedule_runner.h"

namespace tw::lane::cpu {
namespace {

// A table of kRows rows of kHeads * kWidth values, and what lies at (row, column) of it.
constexpr uint64_t kRows = 48, kHeads = 3, kWidth = 20, kCols = kHeads * kWidth;

struct Form {
  Store::Form form;
  uint64_t at(uint64_t row, uint64_t col) const {
    const uint64_t head = col / kWidth, e = col % kWidth;
    if (form == Store::Form::Rows) return row * kCols + col;
    if (form == Store::Form::ValueRows) return head * kRows * kWidth + row * kWidth + e;
    return head * kRows * kWidth + row / 16 * 16 * kWidth + e * 16 + row % 16;
  }
};

// The table's stored elements as f32 patterns, after `units` runs of `width` values were stored in pieces.
template <class Element, class Narrow>
void expect_stored(Dtype type, Form form, Store store, uint64_t units, uint64_t width, uint64_t first_row,
                   Narrow narrow) {
  const Element nothing{77};
  std::vector<Element> table(kRows * kCols, nothing), want = table;
  store.data = table.data();
  store.type = type;
  store.form = form.form;
  store.row_pitch = kCols;
  store.head_width = kWidth;
  store.head_stride = kRows * kWidth;
  const std::vector<float> values = test_values(units * width, 3);
  for (uint64_t u = 0; u < units; ++u)
    for (uint64_t e = 0; e < width; e += 16) {
      const uint64_t count = std::min<uint64_t>(16, width - e);
      store_values<Scalar>(store, u, e, values.data() + u * width + e, count);
    }
  for (uint64_t u = 0; u < units; ++u)
    for (uint64_t e = 0; e < width; ++e) {
      const uint64_t flat = u * store.unit_pitch + store.unit_offset + e;
      want[form.at(first_row + flat / kCols, flat % kCols)] = narrow(values[u * width + e]);
    }
  EXPECT_EQ(table, want);
}

void expect_lands_in_every_type(Form form, const Store& store, uint64_t units, uint64_t width, uint64_t first_row) {
  expect_stored<float>(Dtype::F32, form, store, units, width, first_row, [](float x) { return x; });
  expect_stored<uint16_t>(Dtype::F16, form, store, units, width, first_row, f32_to_f16);
  expect_stored<uint16_t>(Dtype::BF16, form, store, units, width, first_row, f32_to_bf16);
}

constexpr Form kForms[] = {{Store::Form::Rows}, {Store::Form::KeyBlocks}, {Store::Form::ValueRows}};

TEST(Store, PutsWholeRowsFromThePositionOn) {
  const int32_t position = 14;  // over the end of a block of 16
  for (const Form& form : kForms) {
    Store store;
    store.position = &position;
    store.unit_pitch = kCols;
    expect_lands_in_every_type(form, store, 5, kCols, 13);
    store.position = nullptr;
    store.fixed = 33;
    expect_lands_in_every_type(form, store, 2, kCols, 32);
  }
}

TEST(Store, PutsUnitsIntoPartsOfTheSelectedRows) {
  const int32_t position = 8;
  for (const Form& form : kForms) {
    Store store;
    store.position = &position;
    store.unit_pitch = kWidth;  // the last 7 values of every head
    store.unit_offset = 13;
    expect_lands_in_every_type(form, store, 4 * kHeads, 7, 7);
  }
}

TEST(Store, ALongUnitCoversSeveralRows) {
  for (const Form& form : kForms) {
    Store store;
    store.fixed = 16;
    store.unit_pitch = 2 * kCols;
    expect_lands_in_every_type(form, store, 1, 2 * kCols, 15);
  }
}

TEST(Store, QuantizesWholeBlocksAsTheQuantizerDoes) {
  constexpr uint64_t kUnits = 3, kLong = 96;
  const std::vector<float> values = test_values(kUnits * kLong, 4);
  for (const int words : {1, 2}) {
    TestMemory want_bytes(quant_bytes(kUnits * kLong, words)), bytes(quant_bytes(kUnits * kLong, words));
    const QuantView want = quant_view(want_bytes.data(), kUnits * kLong, words);
    quant<Scalar>({values.data(), want, kUnits, kLong, kLong, words}, {0, kUnits * kLong / 32}, nullptr);
    std::vector<float> plain(values.size());
    Store store = store_rows(plain.data(), kLong);
    store.quant = quant_view(bytes.data(), kUnits * kLong, words);
    store.words = words;
    for (uint64_t u = 0; u < kUnits; ++u)
      for (uint64_t e = 0; e < kLong; e += 32) store_values<Scalar>(store, u, e, values.data() + u * kLong + e, 32);
    EXPECT_EQ(plain, values);
    for (uint64_t b = 0; b < values.size() / 32; ++b) {
      EXPECT_EQ(store.quant.scale[b], want.scale[b]);
      EXPECT_EQ(store.quant.sum_high[b], want.sum_high[b]);
      EXPECT_EQ(store.quant.sum_half[b], want.sum_half[b]);
      for (uint64_t i = b * 32; i < (b + 1) * 32; ++i) {
        ASSERT_EQ(store.quant.high[i], want.high[i]);
        ASSERT_EQ(store.quant.wide[i], want.wide[i]);
      }
    }
  }
}

TEST(TestSchedule, RunsAProductAndReadsBackEveryForm) {
  TestSchedule schedule(Numerics::Int8);
  const BufferId x = schedule.input("x", 2, 64, test_values(128, 1));
  Gemv product;
  product.x = x;
  product.w = schedule.weight("w", gguf::Format::Q8_0, 5, 64, 2);
  product.y.buf = schedule.computed("y", 2, 5);
  product.k = 64, product.n = 5, product.m = 2;
  schedule.add(Quant{x, 128});
  schedule.add(product);
  const RunResult one = schedule.run(Isa::Scalar), two = schedule.run(best_isa(), 2);
  EXPECT_EQ(one.plain(product.y.buf).size(), 10U);
  EXPECT_EQ(one.plain(product.y.buf), two.plain(product.y.buf));
  EXPECT_EQ(one.quantized(x), two.quantized(x));
  EXPECT_EQ(one.plain(x), test_values(128, 1));
}

}  // namespace
}  // namespace tw::lane::cpu
