// Reading takes memory in proportion to the file, whatever the file claims.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "gguf/checkpoint.h"
#include "gguf/file_builder.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TW_COUNTS_MEMORY 0  // the sanitizers have allocators of their own
#else
#define TW_COUNTS_MEMORY 1
#endif

namespace {

std::atomic<size_t> live = 0;
std::atomic<size_t> peak = 0;

}  // namespace

#if TW_COUNTS_MEMORY
// Replaces the allocation functions of this program by ones that count.
void* operator new(size_t size) {
  void* memory = std::malloc(size);
  if (!memory) throw std::bad_alloc();
  const size_t now = live += malloc_usable_size(memory);
  peak = std::max(peak.load(), now);
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory) live -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
#endif

namespace tw::gguf {
namespace {

constexpr size_t kSlack = 4096;  // messages and the like

size_t peak_of_reading(const std::vector<std::byte>& bytes) {
  const size_t before = live;
  peak = before;
  (void)Checkpoint::parse(bytes, "measured").ok();
  return peak - before;
}

#define SKIP_UNLESS_COUNTED() \
  if (!TW_COUNTS_MEMORY) GTEST_SKIP() << "memory is not counted under a sanitizer"

TEST(ReadingMemory, IsNotTakenForWhatAFileOnlyClaims) {
  SKIP_UNLESS_COUNTED();
  for (uint64_t count : {uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX / 8, UINT64_MAX}) {
    EXPECT_LT(peak_of_reading(FileBuilder(count, 0).zeros(136).bytes()), kSlack);
    EXPECT_LT(peak_of_reading(FileBuilder(0, count).zeros(136).bytes()), kSlack);
    EXPECT_LT(peak_of_reading(FileBuilder(0, 1).string("a", "").number(count).zeros(99).bytes()), kSlack);
    for (const ValueType type : {ValueType::U8, ValueType::Bool, ValueType::String, ValueType::F64}) {
      EXPECT_LT(peak_of_reading(FileBuilder(0, 1).array("a", type, count).zeros(111).bytes()), kSlack);
    }
  }
}

// The worst that a file can do is 8 bytes of memory for each byte of an array of u8, and less than 16 for what is made
// of the shortest keys, tensors and strings.
TEST(ReadingMemory, IsASmallMultipleOfTheFile) {
  SKIP_UNLESS_COUNTED();
  constexpr int kCount = 10000;
  FileBuilder keys(0, kCount);
  for (int i = 0; i < kCount; ++i) keys.key(std::to_string(i), ValueType::Bool).raw("\1");
  FileBuilder tensors(kCount, 0);
  for (int i = 0; i < kCount; ++i) tensors.tensor(std::to_string(i), {1}, static_cast<uint64_t>(i) * 32);
  tensors.pad(32).zeros(size_t{kCount} * 32);
  FileBuilder strings(0, 1);
  strings.array("a", ValueType::String, kCount).zeros(size_t{kCount} * 8);
  FileBuilder small_numbers(0, 1);
  small_numbers.array("a", ValueType::U8, kCount).zeros(kCount);
  for (const FileBuilder* file : {&keys, &tensors, &strings, &small_numbers}) {
    ASSERT_TRUE(Checkpoint::parse(file->bytes(), "full").ok());
    EXPECT_LT(peak_of_reading(file->bytes()), 16 * file->size() + kSlack);
  }
}

}  // namespace
}  // namespace tw::gguf
