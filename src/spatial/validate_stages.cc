#include <algorithm>
#include <array>

#include "spatial/names.h"
#include "spatial/validate_rules.h"

namespace tw::spatial {
namespace {

// Offsets and addresses beyond this could wrap where they are added up in 64 bits.
__extension__ using Wide = __int128;
constexpr Wide kMostReach = Wide{1} << 62;

// ---- movement ----

// The greatest value of every loop variable in the program.
LoopPoint last_point(const Program& program) {
  const BlockPlan& plan = program.work.plan;
  LoopPoint last{0, 0, plan.per_site_m, plan.per_site_n, plan.num_blocks};
  for (const WorkItem& item : program.work.items) {
    last[0] = std::max(last[0], item.y);
    last[1] = std::max(last[1], item.x);
  }
  return last;
}

// Whether the address of every tile of the block, at every point up to the last and any index, fits 62 bits.
bool cannot_wrap(const AccessPattern& pattern, const LoopPoint& last) {
  const TileAddr& origin = pattern.origin;
  Wide reach = Wide{origin.base} + Wide{pattern.stride_h} * pattern.block_h + Wide{pattern.stride_w} * pattern.block_w;
  for (const Step& step : origin.steps) reach += Wide{step.stride} * last[static_cast<size_t>(step.var)];
  if (const auto& index = origin.indirect; index && index->high > 0)
    reach += Wide{index->tile_stride} * (static_cast<uint64_t>(index->high) / index->elems_per_tile);
  return reach < kMostReach;
}

void check_address(const Program& program, StageId id, const TileAddr& addr, Findings& out) {
  std::array<int, kLoopVars> named{};
  for (const Step& step : addr.steps)
    if (++named.at(static_cast<size_t>(step.var)) == 2)
      out.add("S9", id, fmt::format("names {} twice in its address", enum_name(step.var)));
  if (!addr.indirect) return;
  const IndirectTile& indirect = *addr.indirect;
  if (const Buffer& page = program.at(indirect.index); !is_integer(page.dtype))
    out.add("S9", id, indirect.index, fmt::format("its index is {}, expected an integer", name(page.dtype)));
  if (indirect.low < 0 || indirect.low > indirect.high || indirect.high > (int64_t{1} << 40))
    out.add("S9", id,
            fmt::format("its index may be {} to {}, expected a range from 0 or above", indirect.low, indirect.high));
}

void check_move(const Program& program, StageId id, const LoopPoint& last, Findings& out) {
  const Stage& stage = program.at(id);
  const AccessPattern& pattern = *stage.pattern();
  const Tensor& tensor = program.at(*stage.tensor());
  const BufferId page = stage.load() ? stage.outs[0] : stage.ins[0];
  const Buffer& buffer = program.at(page);
  if (buffer.page_tiles != pattern.tiles())
    out.add("S6", id, page,
            fmt::format("moves {} x {} tiles, the page has {}", pattern.block_h, pattern.block_w, buffer.page_tiles));
  if (buffer.dtype != tensor.dtype)
    out.add("S7", id, page,
            fmt::format("tensor {} is {}, the page {}", tensor.name, name(tensor.dtype), name(buffer.dtype)));
  if (stage.load() && tensor.role == TensorRole::Output)
    out.add("S8", id, fmt::format("loads {}, which is an output", tensor.name));
  if (stage.store() && !tensor.result())
    out.add("S8", id, fmt::format("stores {}, which is neither an output nor state", tensor.name));
  check_address(program, id, pattern.origin, out);
  if (!cannot_wrap(pattern, last)) out.add("S9", id, "its address can wrap");
}

// ---- compute ----

bool known_fold(const Generic& g) {
  const bool row = g.reduces(Axis::Row), column = g.reduces(Axis::Col), k = g.reduces(Axis::K);
  return !column || (!row && !k);
}

void check_space(const Program& program, StageId id, const Generic& g, Findings& out) {
  std::array<int, kAxes> seen{};
  int reduced = 0;
  for (const Iter& iter : g.iters) {
    if (++seen.at(static_cast<size_t>(iter.axis)) == 2)
      out.add("S10", id, fmt::format("iterates the {} axis twice", enum_name(iter.axis)));
    if (iter.axis == Axis::K && !iter.reduce) out.add("S10", id, "iterates the k axis in parallel");
    if (iter.reduce && iter.reduce != g.pool()) out.add("S10", id, "reduces by two different pools");
    reduced += iter.reduce ? 1 : 0;
  }
  if (!known_fold(g)) out.add("S10", id, "reduces columns together with another axis");
  if (g.pool() == Pool::ArgMax && reduced > 1) out.add("S10", id, "takes the position of a maximum over several axes");
  const Iter* rows = g.iter(Axis::Row);
  if (rows && !rows->reduce && rows->extent > program.tile.rows)
    out.add("S11", id, fmt::format("has {} parallel rows, a tile has {}", rows->extent, program.tile.rows));
  const Iter* columns = g.iter(Axis::Col);
  const uint64_t width = program.width(program.at(id).outs[0]);
  if (columns && !columns->reduce && columns->extent > width)
    out.add("S11", id, fmt::format("has {} parallel columns, its page {}", columns->extent, width));
}

// Whether the affine part of a map, at every point of the space, fits 62 bits, so that adding an index cannot wrap.
bool cannot_wrap(const Generic& g, const ElemAccess& map) {
  Wide low = map.base, high = map.base;
  for (int a = 0; a < kAxes; ++a) {
    const Wide reach = Wide{map.coef[a]} * static_cast<Wide>(g.extent(static_cast<Axis>(a)) - 1);
    (reach < 0 ? low : high) += reach;
  }
  if (map.indirect) {
    const Wide reach = Wide{map.indirect->stride} * static_cast<Wide>(map.indirect->modulus);
    (reach < 0 ? low : high) += reach;
  }
  return low > -kMostReach && high < kMostReach;
}

// Whether following the indices from operand i comes to one that is not indexed, or that only checks itself.
bool index_ends(const Generic& g, uint32_t operand) {
  for (size_t steps = 0; steps <= g.ins.size(); ++steps) {
    const std::optional<IndirectTerm>& term = g.ins[operand].indirect;
    if (!term || (term->operand == operand && term->stride == 0)) return true;
    if (term->operand >= g.ins.size()) return true;  // reported by itself
    operand = term->operand;
  }
  return false;
}

void check_map(const Program& program, StageId id, const Generic& g, uint32_t operand, Findings& out) {
  const ElemAccess& map = g.ins[operand];
  for (int a = 0; a < kAxes; ++a)
    if (map.coef[a] != 0 && !g.iter(static_cast<Axis>(a)))
      out.add("S12", id,
              fmt::format("operand {} moves with the {} axis, which is not iterated", operand,
                          enum_name(static_cast<Axis>(a))));
  if (!cannot_wrap(g, map)) out.add("S12", id, fmt::format("the offset of operand {} can wrap", operand));
  if (!map.indirect) return;
  const IndirectTerm& term = *map.indirect;
  if (term.operand >= g.ins.size()) {
    out.add("S12", id, fmt::format("operand {} is indexed by operand {} of {}", operand, term.operand, g.ins.size()));
    return;
  }
  if (term.modulus < 1) out.add("S12", id, fmt::format("the index of operand {} may be nothing", operand));
  if (const Buffer& page = program.at(program.at(id).ins[term.operand]); !is_integer(page.dtype))
    out.add("S12", id, fmt::format("operand {} is indexed by {} values, expected integers", operand, name(page.dtype)));
  if (!index_ends(g, operand))
    out.add("S12", id, fmt::format("the indices of operand {} go round in a circle", operand));
}

// Operands and axes that the body names. False when it names one that is not there.
bool check_body(const Program& program, StageId id, const Generic& g, Findings& out) {
  if (!g.body.well_formed()) {
    out.add("S13", id, "its body is no tree");
    return false;
  }
  bool good = true;
  const auto operand_known = [&](int64_t operand) {
    if (operand >= 0 && operand < static_cast<int64_t>(g.ins.size())) return true;
    out.add("S13", id, fmt::format("its body reads operand {} of {}", operand, g.ins.size()));
    return good = false;
  };
  for (const Node& node : g.body.nodes()) {
    if (const auto* n = std::get_if<OperandNode>(&node)) operand_known(n->operand);
    if (const auto* n = std::get_if<ShrNode>(&node); n && n->by > 63)
      out.add("S13", id, fmt::format("its body shifts by {} bits", n->by));
    if (const auto* n = std::get_if<RsqrtNode>(&node); n && n->over < 1)
      out.add("S13", id, "its body takes a mean over nothing");
    const auto* n = std::get_if<SelectNode>(&node);
    if (!n) continue;
    if (!g.iter(n->cond.axis))
      out.add("S13", id,
              fmt::format("its body selects on the {} axis, which is not iterated", enum_name(n->cond.axis)));
    if (!n->cond.by_operand || !operand_known(n->cond.bound)) continue;
    if (const Buffer& page = program.at(program.at(id).ins[static_cast<size_t>(n->cond.bound)]);
        !is_integer(page.dtype))
      out.add("S13", id,
              fmt::format("its body selects by operand {}, which is {}, expected an integer", n->cond.bound,
                          name(page.dtype)));
  }
  return good;
}

// An operand is used by the body, by a predicate, as an index, or stands beside a reduction of reals as its scaler.
void check_used(const Program& program, StageId id, const Generic& g, Findings& out) {
  std::vector<bool> used(g.ins.size());
  const OperandUses uses = operand_uses(g.body);
  for (const uint32_t operand : uses.values) used[operand] = true;
  for (const uint32_t operand : uses.bounds) used[operand] = true;
  for (uint32_t i = 0; i < g.ins.size(); ++i)
    if (const auto& term = g.ins[i].indirect; term && term->operand < used.size() && term->operand != i)
      used[term->operand] = true;
  const bool scaled = g.pool() == Pool::Sum || g.pool() == Pool::Max;
  for (uint32_t i = 0; i < g.ins.size(); ++i)
    if (!used[i] && !(scaled && g.ins[i] == fixed(0) && is_real(program.at(program.at(id).ins[i]).dtype)))
      out.add("S14", id, program.at(id).ins[i], fmt::format("operand {} is never read", i));
}

void check_kind(const Program& program, StageId id, const Generic& g, Findings& out) {
  const Buffer& page = program.at(program.at(id).outs[0]);
  if (g.pool() == Pool::ArgMax) {
    if (!is_integer(page.dtype))
      out.add("S15", id, fmt::format("writes positions as {}, expected an integer", name(page.dtype)));
    return;
  }
  if (is_integer(page.dtype) && !computes_integers(program, program.at(id)))
    out.add("S15", id, fmt::format("computes reals and writes {}", name(page.dtype)));
  if (computes_integers(program, program.at(id))) return;
  for (const Node& node : g.body.nodes())
    if (std::holds_alternative<ShrNode>(node)) out.add("S15", id, "shifts a real");
}

void check_generic(const Program& program, StageId id, const Generic& g, Findings& out) {
  check_space(program, id, g, out);
  if (g.ins.size() != program.at(id).ins.size()) {
    out.add("S12", id, fmt::format("has {} maps for {} operands", g.ins.size(), program.at(id).ins.size()));
    return;
  }
  for (uint32_t i = 0; i < g.ins.size(); ++i) check_map(program, id, g, i, out);
  if (!check_body(program, id, g, out)) return;
  check_used(program, id, g, out);
  check_kind(program, id, g, out);
}

void check_matmul(const Program& program, StageId id, const MatmulTiles& m, Findings& out) {
  const Stage& stage = program.at(id);
  const TileShape tile = program.tile;
  if (m.inner < 1 || m.inner % tile.rows != 0 || m.inner % tile.cols != 0)
    out.add(
        "S16", id,
        fmt::format("contracts {} elements at a time, expected whole tiles of {}x{}", m.inner, tile.rows, tile.cols));
  const std::array pages{std::pair{stage.ins[0], uint64_t{m.rows} * (m.inner / tile.cols)},
                         std::pair{stage.ins[1], uint64_t{m.inner / tile.rows} * m.cols},
                         std::pair{stage.outs[0], uint64_t{m.rows} * m.cols}};
  for (const auto& [page, tiles] : pages)
    if (tiles < 1 || program.at(page).page_tiles != tiles)
      out.add("S16", id, page, fmt::format("the page has {} tiles, expected {}", program.at(page).page_tiles, tiles));
  if (is_integer(program.at(stage.ins[0]).dtype) != is_integer(program.at(stage.ins[1]).dtype))
    out.add("S16", id, "multiplies integers with reals");
  if (is_integer(program.at(stage.outs[0]).dtype) && !computes_integers(program, stage))
    out.add("S15", id, fmt::format("computes reals and writes {}", name(program.at(stage.outs[0]).dtype)));
}

}  // namespace

void check_movement(const Program& program, Findings& out) {
  const LoopPoint last = last_point(program);
  for (uint32_t i = 0; i < program.stages.size(); ++i)
    if (program.stages[i].pattern()) check_move(program, StageId{i}, last, out);
}

void check_compute(const Program& program, Findings& out) {
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    if (const Generic* generic = program.stages[i].generic()) check_generic(program, StageId{i}, *generic, out);
    if (const MatmulTiles* matmul = program.stages[i].matmul()) check_matmul(program, StageId{i}, *matmul, out);
  }
}

}  // namespace tw::spatial
