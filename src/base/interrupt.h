#pragma once

// A flag that someone else sets, from a signal handler or another thread, to end what takes long.

#include <atomic>

namespace tw {

// Null is never set.
inline bool is_set(const std::atomic<bool>* flag) { return flag != nullptr && flag->load(std::memory_order_relaxed); }

}  // namespace tw
