#include <algorithm>
#include <array>

#include "spatial/certify/checks.h"

namespace tw::spatial {
namespace {

// Rules of the validator that a check of the certificate claims; the others are check_structure's.
struct Claimed {
  std::string_view code;
  std::string_view check;
};
constexpr std::array<Claimed, 14> kClaimed{{{"S10", "algebra"},
                                            {"S13", "algebra"},
                                            {"S15", "algebra"},
                                            {"S16", "algebra"},
                                            {"S17", "readers"},
                                            {"S18", "readers"},
                                            {"S19", "readers"},
                                            {"S20", "readers"},
                                            {"S21", "readers"},
                                            {"S22", "folds"},
                                            {"S23", "folds"},
                                            {"S11", "reads"},
                                            {"S12", "reads"},
                                            {"S25", "coverage"}}};

std::string_view check_of(std::string_view code) {
  const auto at = std::find_if(kClaimed.begin(), kClaimed.end(), [&](const Claimed& c) { return c.code == code; });
  return at == kClaimed.end() ? std::string_view("structure") : at->check;
}

// The largest buffers, up to three: what to shrink.
std::string largest_buffers(const Program& program) {
  std::vector<BufferId> order;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) order.push_back(BufferId{i});
  const auto bytes = [&](BufferId id) { return program.page_bytes(id) * program.at(id).depth; };
  const size_t shown = std::min<size_t>(3, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](BufferId a, BufferId b) { return bytes(a) != bytes(b) ? bytes(a) > bytes(b) : a < b; });
  std::string text;
  for (size_t i = 0; i < shown; ++i)
    text += fmt::format("{}{} {} pages of {} bytes", i == 0 ? "" : ", ", program.at(order[i]).name,
                        program.at(order[i]).depth, program.page_bytes(order[i]));
  return text;
}

}  // namespace

void report_claimed(const CheckContext& context, Report& report) {
  for (const Finding& finding : context.structure)
    if (check_of(finding.code) == report.check()) report.add(finding);
}

void check_structure(const CheckContext& context, Report& report) { report_claimed(context, report); }

void check_algebra(const CheckContext& context, Report& report) {
  if (!is_closed_algebra(context.program))
    report.add(fmt::format("uses {} shapes, expected Generic and MatmulTiles alone",
                           fmt::join(compute_shapes(context.program), ", ")));
  report_claimed(context, report);
}

void check_capabilities(const CheckContext& context, Report& report) {
  const Program& program = context.program;
  const Target& target = context.target;
  if (program.target != target.name || program.tile != target.tile)
    report.add(fmt::format("was lowered for {} of {}x{} tiles, not for {} of {}x{}", program.target, program.tile.rows,
                           program.tile.cols, target.name, target.tile.rows, target.tile.cols));
  if (!target.has(program.accumulator))
    report.add(fmt::format("accumulates in {}, which target {} does not have", name(program.accumulator), target.name));
  for (uint32_t i = 0; i < program.buffers.size(); ++i)
    if (!target.has(program.buffers[i].dtype))
      report.add(BufferId{i},
                 fmt::format("is {}, which target {} does not have", name(program.buffers[i].dtype), target.name));
  for (const Capability capability : required_capabilities(program))
    if (!target.has(capability))
      report.add(fmt::format("needs {}, which target {} does not have", name(capability), target.name));
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    if (!program.stages[i].matmul()) continue;
    for (const BufferId in : program.stages[i].ins)
      if (!target.matmul_operands.contains(program.at(in).dtype))
        report.add(
            StageId{i}, in,
            fmt::format("multiplies tiles of {}, which target {} does not", name(program.at(in).dtype), target.name));
  }
}

void check_local_memory(const CheckContext& context, Report& report) {
  const Program& program = context.program;
  Certificate& certificate = report.certificate;
  certificate.footprint = footprint(program);
  certificate.local_bytes = context.target.local_bytes;
  certificate.buffers.resize(program.buffers.size());
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    certificate.buffers[i].page_bytes = program.page_bytes(BufferId{i});
    certificate.buffers[i].depth = program.buffers[i].depth;
  }
  if (certificate.footprint > certificate.local_bytes)
    report.add(fmt::format("needs {} bytes, {} more than the {} of a site of {}; the largest: {}",
                           certificate.footprint, certificate.footprint - certificate.local_bytes,
                           certificate.local_bytes, context.target.name, largest_buffers(program)));
}

void check_accumulator(const CheckContext& context, Report& report) {
  const Program& program = context.program;
  Certificate& certificate = report.certificate;
  certificate.accumulator_tiles = context.target.accumulator_tiles;
  for (uint32_t i = 0; i < program.stages.size(); ++i) {
    if (!program.stages[i].compute()) continue;
    const BufferId page = program.stages[i].outs[0];
    const uint64_t tiles = program.at(page).page_tiles;
    certificate.widest_computed_page = std::max(certificate.widest_computed_page, tiles);
    if (tiles > context.target.accumulator_tiles)
      report.add(StageId{i}, page,
                 fmt::format("writes a page of {} tiles, {} more than the {} of the accumulator", tiles,
                             tiles - context.target.accumulator_tiles, context.target.accumulator_tiles));
  }
}

}  // namespace tw::spatial
