#include "spatial/access.h"

#include <algorithm>

namespace tw::spatial {

bool TileAddr::names(LoopVar var) const {
  return std::any_of(steps.begin(), steps.end(), [var](const Step& step) { return step.var == var; });
}

uint64_t affine_address(const TileAddr& addr, const LoopPoint& at) {
  uint64_t tile = addr.base;
  for (const Step& step : addr.steps) tile += step.stride * at[static_cast<size_t>(step.var)];
  return tile;
}

ElemAccess ElemAccess::plus(uint32_t operand, int64_t stride, uint64_t modulus) const {
  ElemAccess map = *this;
  map.indirect = IndirectTerm{operand, stride, modulus};
  return map;
}

ElemAccess ElemAccess::shifted(int64_t by) const {
  ElemAccess map = *this;
  map.base += by;
  return map;
}

}  // namespace tw::spatial
