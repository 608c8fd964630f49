#include "spatial/lower/row_chain.h"

#include <fmt/format.h>

namespace tw::spatial::lower {

std::vector<RowGroup> row_groups(uint64_t rows, const Target& target) {
  if (rows <= target.tile.rows) return {{.rows = rows}};
  std::vector<RowGroup> groups;
  for (uint64_t r = 0; r < rows; ++r) groups.push_back({.first = r, .suffix = fmt::format("_{}", r), .depth = 1});
  return groups;
}

RowView RowChain::values(const std::string& stage, const std::string& page, const std::vector<RowView>& of,
                         const std::vector<BufferId>& numbers, Expr body) {
  const BufferId out = b_.scratch(page + group_.suffix, b_.target().tiles(width_), group_.depth);
  GenericStage s = b_.compute(stage + group_.suffix, {spatial::rows(group_.rows), cols(width_)});
  for (const RowView& view : of) s.operand(view.page, view.map());
  for (const BufferId one : numbers) s.operand(one, row_of(tile_width()));
  s.write(out, std::move(body));
  return {out, 0, b_.width(out)};
}

BufferId RowChain::fold(const std::string& stage, const std::string& page, RowView of, Pool pool) {
  const BufferId out = b_.scratch(page + group_.suffix, 1, group_.depth);
  GenericStage s = b_.compute(stage + group_.suffix, {spatial::rows(group_.rows), reduce_cols(width_, pool)});
  const Expr value = s.read(of.page, of.map());
  s.scaler(ones_);
  s.write(out, value);
  return out;
}

BufferId RowChain::number(const std::string& stage, const std::string& page, const std::vector<BufferId>& numbers,
                          Expr body, const std::vector<std::pair<BufferId, ElemAccess>>& others) {
  const BufferId out = b_.scratch(page + group_.suffix, 1, group_.depth);
  GenericStage s =
      b_.compute(stage + group_.suffix, {spatial::rows(group_.rows), cols(static_cast<uint64_t>(tile_width()))});
  for (const BufferId one : numbers) s.operand(one, row_of(tile_width()));
  for (const auto& [other, map] : others) s.operand(other, map);
  s.write(out, std::move(body));
  return out;
}

}  // namespace tw::spatial::lower
