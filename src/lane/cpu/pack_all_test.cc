#include "lane/cpu/pack_all.h"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>

#include "lane/cpu/product_test_data.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

// Matrices of several formats, one with its rows in another order and one whose rows hold inputs.
struct Matrices {
  Matrices() {
    for (const auto& [format, n, groups] : {std::tuple<Format, uint64_t, uint64_t>{Format::Q8_0, 70, 1},
                                            {Format::Q4_K, 33, 3},
                                            {Format::F16, 16, 1},
                                            {Format::Q3_K, 5, 2}}) {
      rows.push_back(std::make_unique<TestRows>(format, n * groups, 512, n));
      add(describe(format, n, 512, groups));
    }
    rows.push_back(std::make_unique<TestRows>(Format::Q8_0, 40, 512, 1));
    add(describe(Format::Q8_0, 40, 512));
    items.back().rows.order.resize(40);
    std::iota(items.back().rows.order.rbegin(), items.back().rows.order.rend(), 0U);
    rows.push_back(std::make_unique<TestRows>(Format::Q8_0, 96, 64, 2));
    add(describe_heads(Format::F32, 2, 64, 48));
    items.back().input_rows = true;
  }
  void add(const Packed& shape) {
    PackItem item;
    item.rows = rows.back()->rows();
    item.shape = shape;
    item.of_file = true;
    items.push_back(std::move(item));
  }
  std::vector<std::unique_ptr<TestRows>> rows;
  std::vector<PackItem> items;
};

TEST(PackAll, GivesEachMatrixAsItIsPackedAlone) {
  for (const unsigned threads : {1U, 3U}) {
    Matrices m;
    Pool pool(threads);
    const auto memory = pack_all(m.items, pool, {});
    ASSERT_TRUE(memory.ok());
    for (const PackItem& item : m.items) {
      const TestMemory alone(item.shape.bytes());
      (item.input_rows ? pack_input_rows : pack)(item.rows, item.shape, alone.data(), 0, item.shape.panels());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(item.shape.data) % kPackAlign, 0U);
      EXPECT_TRUE(std::equal(alone.data(), alone.data() + item.shape.bytes(), item.shape.data))
          << gguf::name(item.rows.format) << " " << threads;
    }
  }
}

TEST(PackAll, TellsOfBytesThatLieInTheFileAndOfAllOfThem) {
  Matrices m;
  Pool pool(2);
  std::mutex mutex;
  uint64_t last = 0, total = 0;
  std::vector<std::span<const std::byte>> let_go;
  Preparation preparation;
  preparation.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_LE(last, done);
    EXPECT_LE(done, all);
    last = done, total = all;
  };
  preparation.packed = [&](std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex);
    let_go.push_back(bytes);
  };
  ASSERT_TRUE(pack_all(m.items, pool, preparation).ok());
  uint64_t expected = 0;
  for (const PackItem& item : m.items) expected += item.rows.count * item.rows.row_bytes;
  EXPECT_EQ(last, expected);
  EXPECT_EQ(total, expected);
  for (const PackItem& item : m.items) {
    const std::span<const std::byte> all(item.rows.data, item.rows.count * item.rows.row_bytes);
    const auto is_all = [&](std::span<const std::byte> bytes) {
      return bytes.data() == all.data() && bytes.size() == all.size();
    };
    EXPECT_TRUE(std::any_of(let_go.begin(), let_go.end(), is_all)) << gguf::name(item.rows.format);
  }
}

TEST(PackAll, EndsEarlyWhenInterrupted) {
  Matrices m;
  Pool pool(2);
  const std::atomic<bool> interrupted{true};
  Preparation preparation;
  preparation.interrupted = &interrupted;
  const auto memory = pack_all(m.items, pool, preparation);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.refusal().kind, RefusalKind::Interrupted);
}

}  // namespace
}  // namespace tw::lane::cpu
