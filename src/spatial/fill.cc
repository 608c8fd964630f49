#include "spatial/fill.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace tw::spatial {
namespace {

template <class... Fs>
struct Cases : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Cases(Fs...) -> Cases<Fs...>;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

uint64_t magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

std::vector<int64_t> pattern(const PatternFill& fill, uint64_t elements) {
  TW_CHECK(fill.modulus > 0, "a pattern of modulus 0");
  std::vector<int64_t> values(elements);
  for (uint64_t e = 0; e < elements; ++e) values[e] = static_cast<int64_t>(e % fill.modulus) + fill.shift;
  return values;
}

template <class T>
std::vector<T> overridden(T base, const std::vector<std::pair<uint64_t, T>>& at, uint64_t elements) {
  std::vector<T> values(elements, base);
  for (const auto& [element, value] : at) {
    TW_CHECK(element < elements, "element {} of {} is overridden", element, elements);
    values[element] = value;
  }
  return values;
}

}  // namespace

Init init_of(const Fill& fill, uint64_t elements) {
  return std::visit(
      Cases{[](const UnknownFill&) -> Init { return ExternalInit{}; },
            [](const GivenFill&) -> Init { return GivenInit{}; },
            [](const IntegerInit& f) -> Init { return f.value == 0 ? Init{ZeroInit{}} : Init{f}; },
            [](const RealInit& f) -> Init { return f == RealInit{} ? Init{ZeroInit{}} : Init{f}; },
            [&](const PatternFill& f) -> Init { return integer_values(pattern(f, elements)); },
            [&](const IntegerOverrides& f) -> Init { return integer_values(overridden(f.base, f.at, elements)); },
            [&](const RealOverrides& f) -> Init { return real_values(overridden(f.base, f.at, elements)); }},
      fill);
}

uint64_t magnitude_of(const Fill& fill) {
  return std::visit(
      Cases{[](const UnknownFill& f) { return f.magnitude; }, [](const GivenFill& f) { return f.magnitude; },
            [](const IntegerInit& f) { return magnitude(f.value); }, [](const RealInit&) { return uint64_t{0}; },
            [](const PatternFill& f) {
              return std::max(magnitude(f.shift), magnitude(static_cast<int64_t>(f.modulus - 1) + f.shift));
            },
            [](const IntegerOverrides& f) {
              uint64_t most = magnitude(f.base);
              for (const auto& [element, value] : f.at) most = std::max(most, magnitude(value));
              return most;
            },
            [](const RealOverrides&) { return uint64_t{0}; }},
      fill);
}

uint64_t index_space(uint64_t span, uint64_t per_unit, const Fill& fill) {
  const uint64_t bound = magnitude_of(fill);
  uint64_t reach = 0;
  if (bound == kMost || __builtin_mul_overflow(bound + 1, per_unit, &reach)) reach = kMost;
  return std::max(span, reach);
}

}  // namespace tw::spatial
