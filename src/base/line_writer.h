#pragma once

// Text that grows piece by piece and line by line: what printers of text forms derive from.

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace tw {

class LineWriter {
 protected:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    put(format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  std::string out_;
};

}  // namespace tw
