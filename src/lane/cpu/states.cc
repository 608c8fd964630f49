#include "lane/cpu/states.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/round.h"

namespace tw::lane::cpu {

namespace {

constexpr uint64_t kCacheLine = 64;
// Of the states of one sequence. Their heads lie apart, so that the first positions touch every huge page of a long
// cache.
constexpr uint64_t kMostTogether = uint64_t{128} << 20;

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
  std::vector<size_t> made;
  for (const Buffer& buffer : schedule.buffers) {
    if (buffer.fill != Fill::State || !buffer.plain) continue;
    const std::string name(base_name(buffer));
    const uint64_t bytes = round_up(lane::sequence_bytes(buffer), kCacheLine);
    const auto [found, is_new] = by_name_.try_emplace(name, states_.size());
    if (is_new) {
      made.push_back(states_.size());
      states_.push_back({.name = name, .bytes = bytes});
      continue;
    }
    const uint64_t held = states_[found->second].bytes;
    TW_CHECK(held == bytes, "the state {} takes {} bytes in one form and {} in another", name, held, bytes);
  }
  uint64_t all = 0;
  for (const size_t i : made) all += states_[i].bytes;
  if (all == 0) return {};
  return slots_ == 1 && all <= kMostTogether ? place_together(made, all) : place_apart(made);
}

Result<void> States::place_together(const std::vector<size_t>& made, uint64_t all) {
  LargeMemory block = LargeMemory::allocate(all, Room::OnUse);
  if (block.empty()) return no_room(states_[made.front()].name, all);
  std::byte* at = block.data();
  for (const size_t i : made) {
    states_[i].data = std::exchange(at, at + states_[i].bytes);
    states_[i].together = true;
  }
  blocks_.push_back(std::move(block));
  return {};
}

Result<void> States::place_apart(const std::vector<size_t>& made) {
  for (const size_t i : made) {
    State& state = states_[i];
    auto memory = map_zeroed(state.bytes * slots_);
    if (memory == nullptr) return no_room(state.name, state.bytes * slots_);
    state.data = static_cast<std::byte*>(memory.get());
    memory_.push_back(std::move(memory));
  }
  return {};
}

Refusal States::no_room(const std::string& name, uint64_t bytes) const {
  return refuse(RefusalKind::TooLarge, name,
                fmt::format("the machine gives no room for {} bytes in {} sequences", bytes, slots_),
                "Ask for a shorter context (-c) or fewer sequences.");
}

const States::State& States::of(const Buffer& buffer) const {
  const auto found = by_name_.find(std::string(base_name(buffer)));
  TW_CHECK(found != by_name_.end(), "the state {} was not prepared", buffer.name);
  return states_[found->second];
}

void States::zero(uint32_t slot) {
  for (const LargeMemory& block : blocks_) clear(block.data(), block.size());
  for (const State& state : states_)
    if (!state.together) clear(state.data + slot * state.bytes, state.bytes);
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
