#pragma once

// Sizes are measured on built sections, never predicted: a size that decides something is the size of what is used.

#include <cstdint>
#include <utility>

#include "base/result.h"
#include "spatial/program.h"

namespace tw::spatial {

// The section if it fits a site's local memory, else its refusal.
Result<Program> within(Result<Program> section, const Target& target);

// The refusal of a section that does not fit, with both numbers.
Refusal too_large(const Program& section, const Target& target);

// build(pages): the section with `pages` pages in its once-an-item buffers. Two if that fits a site, else one; whether
// one fits is not looked at.
template <class Build>
Result<Program> paged(const Target& target, Build&& build) {
  Result<Program> two = build(uint32_t{2});
  if (!two || fits(*two, target)) return two;
  return build(uint32_t{1});
}

struct Fitting {
  uint64_t chunk = 1;
  Program section;
};
// The largest divisor of n whose built section, build(divisor), fits a site. When none does, the refusal of build(1),
// or that it is too large.
template <class Build>
Result<Fitting> fitting_chunk(const Target& target, uint64_t n, Build&& build) {
  for (uint64_t chunk = n; chunk > 1; --chunk) {
    if (n % chunk != 0) continue;
    Result<Program> section = build(chunk);
    if (section && fits(*section, target)) return Fitting{chunk, std::move(*section)};
  }
  TW_TRY(Program section, within(build(uint64_t{1}), target));
  return Fitting{1, std::move(section)};
}

}  // namespace tw::spatial
