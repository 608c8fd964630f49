#pragma once

// Cuts text into words by the rules of a pre-tokenizer, compiled once.

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "text/pretokenizer_table.h"

namespace tw::text {

class PreTokenizer {
 public:
  explicit PreTokenizer(std::span<const SplitRule> rules);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // The words, in order; together they are `text`. Bytes that are not UTF-8 are words of their own. May be called from
  // several threads at once.
  [[nodiscard]] std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Compiled;
  std::vector<Compiled> rules_;
};

}  // namespace tw::text
