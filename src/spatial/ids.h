#pragma once

// Positions inside one program: ids are dense and mean nothing in another program.

#include <cstdint>

namespace tw::spatial {

enum class TensorId : uint32_t {};
enum class BufferId : uint32_t {};
enum class StageId : uint32_t {};

constexpr uint32_t index(TensorId id) { return static_cast<uint32_t>(id); }
constexpr uint32_t index(BufferId id) { return static_cast<uint32_t>(id); }
constexpr uint32_t index(StageId id) { return static_cast<uint32_t>(id); }

}  // namespace tw::spatial
