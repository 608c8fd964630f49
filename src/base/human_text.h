#pragma once

// Numbers as people read them.

#include <cstdint>
#include <string>

namespace tw {

// "3.4 MiB".
std::string human_bytes(uint64_t bytes);
// "3.25 M".
std::string human_count(uint64_t count);

}  // namespace tw
