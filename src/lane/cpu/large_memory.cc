#include "lane/cpu/large_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "base/round.h"

namespace tw::lane::cpu {

void want_huge_pages(std::byte* start, uint64_t bytes) { madvise(start, bytes / kHugePage * kHugePage, MADV_HUGEPAGE); }

LargeMemory LargeMemory::allocate(uint64_t bytes, Room room) {
  if (bytes == 0 || bytes > UINT64_MAX / 4) return {};
  // What is smaller than a huge page, or left of the last one, lies in ordinary pages.
  const uint64_t size = round_up(bytes, static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  const uint64_t spare = size < kHugePage ? 0 : kHugePage;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (room == Room::OnUse ? MAP_NORESERVE : 0);
  void* mapped = mmap(nullptr, size + spare, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) return {};
  auto* start = static_cast<std::byte*>(mapped);
  if (spare != 0) {
    const uint64_t before =
        round_up(reinterpret_cast<uintptr_t>(start), kHugePage) - reinterpret_cast<uintptr_t>(start);
    if (before != 0) munmap(start, before);
    start += before;
    if (spare != before) munmap(start + size, spare - before);
    want_huge_pages(start, size);
  }
  return LargeMemory({start, size});
}

LargeMemory::LargeMemory(LargeMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

LargeMemory& LargeMemory::operator=(LargeMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

LargeMemory::~LargeMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace tw::lane::cpu
