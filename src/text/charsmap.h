#pragma once

// The precompiled character map of SentencePiece: replacements of character sequences, found by a double-array trie.
// Layout: u32 little-endian size of the trie in bytes, the trie's units (u32 each), then replacement texts that end in
// 0. A unit holds, from bit 0: label (8 bits), has-leaf (bit 8), and the offset to its children in bits 10 to 30,
// shifted left by 8 when bit 9 is set; a value unit has bit 31 set and the place of a replacement in the rest.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tw::text {

class Charsmap {
 public:
  // An empty map replaces nothing.
  static Result<Charsmap> parse(std::string_view bytes);

  struct Replacement {
    size_t consumed;        // bytes of the text
    std::string_view with;  // lives as long as the map
  };
  // The longest sequence at the start of `text` that the map replaces. A unit that points outside ends the search.
  [[nodiscard]] std::optional<Replacement> match(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace tw::text
