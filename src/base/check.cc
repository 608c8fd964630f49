#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tw {

void fail_check(const char* condition, const char* file, int line, std::string_view message) {
  fmt::print(stderr, "tilewright: internal check failed: {} ({}:{}): {}\n", condition, file, line, message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace tw
