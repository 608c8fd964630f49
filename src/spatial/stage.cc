#include "spatial/stage.h"

#include <algorithm>

namespace tw::spatial {

const Iter* Generic::iter(Axis axis) const {
  const auto at = std::find_if(iters.begin(), iters.end(), [axis](const Iter& it) { return it.axis == axis; });
  return at == iters.end() ? nullptr : &*at;
}

uint64_t Generic::extent(Axis axis) const {
  const Iter* it = iter(axis);
  return it ? it->extent : 1;
}

bool Generic::reduces(Axis axis) const {
  const Iter* it = iter(axis);
  return it && it->reduce;
}

std::optional<Pool> Generic::pool() const {
  for (const Iter& it : iters)
    if (it.reduce) return it.reduce;
  return std::nullopt;
}

Landing landing(const Generic& generic) {
  if (generic.reduces(Axis::Col)) return Landing::AcrossRow;
  return generic.reduces(Axis::Row) ? Landing::DownColumn : Landing::Point;
}

ElemAccess out_map(const Generic& generic, int64_t width) {
  switch (landing(generic)) {
    case Landing::AcrossRow: return row_of(width);
    case Landing::DownColumn: return col();
    case Landing::Point: break;
  }
  return ident(width);
}

const Generic* Stage::generic() const {
  const Compute* stage = compute();
  return stage ? std::get_if<Generic>(&stage->op) : nullptr;
}

const MatmulTiles* Stage::matmul() const {
  const Compute* stage = compute();
  return stage ? std::get_if<MatmulTiles>(&stage->op) : nullptr;
}

const AccessPattern* Stage::pattern() const {
  if (const Load* stage = load()) return &stage->pattern;
  if (const Store* stage = store()) return &stage->pattern;
  return nullptr;
}

std::optional<TensorId> Stage::tensor() const {
  if (const Load* stage = load()) return stage->tensor;
  if (const Store* stage = store()) return stage->tensor;
  return std::nullopt;
}

bool Stage::reads(BufferId buffer) const { return std::find(ins.begin(), ins.end(), buffer) != ins.end(); }
bool Stage::writes(BufferId buffer) const { return std::find(outs.begin(), outs.end(), buffer) != outs.end(); }

}  // namespace tw::spatial
