#pragma once

// TW_CHECK: what only a bug can cause. Always on; prints the condition, the place and a message, then aborts.

#include <fmt/format.h>

#include <string_view>

namespace tw {
[[noreturn]] void fail_check(const char* condition, const char* file, int line, std::string_view message);
}  // namespace tw

// TW_CHECK(condition, format, values...)
#define TW_CHECK(condition, ...)                                                    \
  do {                                                                              \
    if (!(condition)) [[unlikely]]                                                  \
      ::tw::fail_check(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
  } while (false)
