#pragma once

// Memory for what is read whole in every step: in huge pages where the system gives them, so that filling it takes a
// fault for 2 MiB and reading it few table entries.

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw::lane::cpu {

inline constexpr uint64_t kHugePage = uint64_t{2} << 20;

// Asks for huge pages for the whole ones in `bytes` from `start` on, which is at a huge page's boundary. Advice: where
// it is not taken, pages are small.
void want_huge_pages(std::byte* start, uint64_t bytes);

// Whether the system counts all of the memory when it gives it, and so may say no at once, or none of it before it is
// used.
enum class Room : uint8_t { Reserved, OnUse };

class LargeMemory {
 public:
  // Zeroed memory at a huge page's boundary that takes no room until it is touched; empty when the system has none.
  static LargeMemory allocate(uint64_t bytes, Room room = Room::Reserved);

  LargeMemory() = default;
  LargeMemory(LargeMemory&& other) noexcept;
  LargeMemory& operator=(LargeMemory&& other) noexcept;
  ~LargeMemory();

  [[nodiscard]] std::byte* data() const { return bytes_.data(); }
  [[nodiscard]] uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  explicit LargeMemory(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

}  // namespace tw::lane::cpu
