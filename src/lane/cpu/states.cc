#include "lane/cpu/states.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/round.h"

namespace tw::lane::cpu {

namespace {

constexpr uint64_t kCacheLine = 64;

// Zeroed memory that takes no pages until it is written.
std::shared_ptr<void> map_zeroed(uint64_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  return {data, [bytes](void* mapped) { munmap(mapped, bytes); }};
}

// Whole pages are given back to the system, which hands out zeroed ones; what is left of the ends is cleared.
void clear(std::byte* data, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = round_up(at, page), last = (at + bytes) / page * page;
  if (first >= last || madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) {
    std::memset(data, 0, bytes);
    return;
  }
  std::memset(data, 0, first - at);
  std::memset(reinterpret_cast<void*>(last), 0, at + bytes - last);
}

}  // namespace

Result<void> States::prepare(const Schedule& schedule) {
  for (const Buffer& buffer : schedule.buffers) {
    if (buffer.fill != Fill::State || !buffer.plain) continue;
    const std::string name(base_name(buffer));
    const uint64_t bytes = round_up(lane::sequence_bytes(buffer), kCacheLine);
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) {
      const uint64_t held = states_[found->second].bytes;
      TW_CHECK(held == bytes, "the state {} takes {} bytes in one form and {} in another", name, held, bytes);
      continue;
    }
    auto memory = map_zeroed(bytes * slots_);
    if (memory == nullptr) {
      return refuse(RefusalKind::TooLarge, name,
                    fmt::format("the machine gives no room for {} bytes in each of {} sequences", bytes, slots_),
                    "Ask for a shorter context (-c) or fewer sequences.");
    }
    by_name_[name] = states_.size();
    states_.push_back({name, bytes, static_cast<std::byte*>(memory.get())});
    memory_.push_back(std::move(memory));
  }
  return {};
}

const States::State& States::of(const Buffer& buffer) const {
  const auto found = by_name_.find(std::string(base_name(buffer)));
  TW_CHECK(found != by_name_.end(), "the state {} was not prepared", buffer.name);
  return states_[found->second];
}

void States::zero(uint32_t slot) {
  for (const State& state : states_) clear(state.data + slot * state.bytes, state.bytes);
}

void States::fill(uint32_t slot, std::byte byte) {
  for (const State& state : states_) std::fill_n(state.data + slot * state.bytes, state.bytes, byte);
}

std::vector<std::byte> States::bytes(uint32_t slot) const {
  std::vector<std::byte> all;
  for (const State& state : states_) {
    const std::byte* from = state.data + slot * state.bytes;
    all.insert(all.end(), from, from + state.bytes);
  }
  return all;
}

}  // namespace tw::lane::cpu
