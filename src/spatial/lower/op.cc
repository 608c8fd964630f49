#include "spatial/lower/op.h"

#include <fmt/format.h>

namespace tw::spatial::lower {

Result<Precision> element_of(const OpView& op, const OpTensor& tensor) {
  if (tensor.dtype) return *tensor.dtype;
  return tensor.integer ? integer_element(op.target, op.subject()) : real_element(op.target, op.subject());
}

std::string over_a_page(const Target& target, uint64_t tiles) {
  return fmt::format("{} tiles exceed a page of {}", tiles, target.accumulator_tiles);
}

std::string within_a_page(const Target& target, uint64_t tiles) {
  return fmt::format("{} tile{} a page of {}", tiles, tiles == 1 ? " fits" : "s fit", target.accumulator_tiles);
}

NumericsClaim claim(bool exactly, std::string_view what, Precision precision) {
  return exactly ? exact() : approx(fmt::format("{} in {}", what, name(precision)));
}

NumericsClaim moved(std::string_view what, Precision from, Precision to) {
  const PrecisionTraits &a = traits(from), &b = traits(to);
  return claim(from == to || (a.kind == b.kind && a.bits < b.bits), what, to);
}

}  // namespace tw::spatial::lower
