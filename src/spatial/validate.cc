#include "spatial/validate.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/check.h"
#include "spatial/validate_rules.h"

namespace tw::spatial {
namespace {

constexpr std::array kCodes{
    FindingCode{"S1",
                "Names are there and unique; a tensor's stands twice only as an input and the result replacing it."},
    FindingCode{"S2",
                "Extents, pages, depths, plans and the tile are at least one and not beyond what is addressable."},
    FindingCode{"S3", "Ids are of the program."},
    FindingCode{"S4", "A stage has the pages that its kind takes."},
    FindingCode{"S5", "An init fits its tensor."},
    FindingCode{"S6", "A page holds exactly the block that is moved."},
    FindingCode{"S7", "Movement does not convert."},
    FindingCode{"S8", "A load reads an input, param or state; a store writes an output or state."},
    FindingCode{"S9",
                "An address names a variable once and cannot wrap; its index page holds integers within a bound from 0 "
                "or above."},
    FindingCode{"S10", "An iteration space has each axis once, K only reduced, one pool, and a fold with a landing."},
    FindingCode{"S11", "Parallel rows fit the tile, parallel columns the page."},
    FindingCode{"S12",
                "A map has terms on axes of the space, cannot wrap, and is moved by integers of operands that end."},
    FindingCode{"S13",
                "A body is a tree over operands of the stage and axes of the space; operand bounds are integers."},
    FindingCode{"S14", "Every operand is used, but for the ones that a reduction is scaled by."},
    FindingCode{"S15", "A real value never lands in an integer page; a position always does."},
    FindingCode{"S16", "A tile product has pages of its own size."},
    FindingCode{"S17", "A page is written before it is read."},
    FindingCode{"S18", "A page that is written is read."},
    FindingCode{"S19", "A queue has one reader, or several compute stages of one chain behind a load."},
    FindingCode{"S20", "Scratch is written and read by compute stages alone."},
    FindingCode{"S21", "A buffer has one writer; a carry has one that starts it and one that updates what it reads."},
    FindingCode{"S22",
                "Stages of a fold read only pages of their level or an earlier one, and carries not before the body."},
    FindingCode{"S23", "A fold's block count is the plan's, whether it is data or not."},
    FindingCode{"S24", "The edges are those that follow from the stages."},
    FindingCode{"S25", "There are items, and each owns tiles of the result."},
    FindingCode{"S26", "The plan has as many items as there are, and sub-blocks that divide what an item owns."},
};

}  // namespace

std::span<const FindingCode> finding_codes() { return kCodes; }

std::vector<Finding> validate(const Program& program) {
  Findings out;
  check_names(program, out);
  check_sizes(program, out);
  check_ids(program, out);
  // The rest indexes by id and divides by sizes.
  if (!out.empty()) return out.take();
  check_inits(program, out);
  check_movement(program, out);
  check_compute(program, out);
  check_flow(program, out);
  check_fold(program, out);
  check_edges(program, out);
  check_work(program, out);
  return out.take();
}

std::string place_text(const Program& program, std::optional<StageId> stage, std::optional<BufferId> buffer,
                       std::optional<TensorId> tensor) {
  if (stage && buffer) return fmt::format("stage {} (buffer {})", program.at(*stage).name, program.at(*buffer).name);
  if (stage) return fmt::format("stage {}", program.at(*stage).name);
  if (buffer) return fmt::format("buffer {}", program.at(*buffer).name);
  if (tensor) return fmt::format("tensor {}", program.at(*tensor).name);
  return fmt::format("program {}", program.name);
}

std::string to_text(const Program& program, const Finding& finding) {
  return fmt::format("{} {}: {}", finding.code, place_text(program, finding.stage, finding.buffer, finding.tensor),
                     finding.text);
}

Refusal to_refusal(const Program& program, std::span<const Finding> findings) {
  TW_CHECK(!findings.empty(), "program {} has no finding", program.name);
  std::string reason = fmt::format("section {} is ill-formed: {}", program.name, to_text(program, findings[0]));
  if (findings.size() > 1) reason += fmt::format(" (and {} more)", findings.size() - 1);
  return refuse(RefusalKind::Malformed, program.subject(), std::move(reason));
}

Result<void> check_target(const Program& program, const Target& target) {
  const auto no = [&](RefusalKind kind, std::string reason, std::string remedy) {
    return refuse(kind, program.subject(), std::move(reason), std::move(remedy));
  };
  if (program.target != target.name || program.tile != target.tile)
    return no(RefusalKind::Conflict,
              fmt::format("section {} was lowered for target {} of {}x{} tiles, not for {} of {}x{}", program.name,
                          program.target, program.tile.rows, program.tile.cols, target.name, target.tile.rows,
                          target.tile.cols),
              "Lower the op for this target.");
  for (const Stage& stage : program.stages)
    for (const BufferId out : stage.outs)
      if (stage.compute() && program.at(out).page_tiles > target.accumulator_tiles)
        return no(RefusalKind::TooLarge,
                  fmt::format("stage {} writes a page of {} tiles, the accumulator of target {} holds {}", stage.name,
                              program.at(out).page_tiles, target.name, target.accumulator_tiles),
                  "Use a form that works in blocks, or a target with a larger accumulator.");
  if (!target.has(program.accumulator))
    return no(RefusalKind::Missing,
              fmt::format("section {} accumulates in {}, which target {} does not have", program.name,
                          name(program.accumulator), target.name),
              "Accumulate in what the target's file names.");
  for (const Buffer& buffer : program.buffers)
    if (!target.has(buffer.dtype))
      return no(
          RefusalKind::Missing,
          fmt::format("buffer {} is {}, which target {} does not have", buffer.name, name(buffer.dtype), target.name),
          "Choose a target that lists the precision.");
  for (const Capability capability : required_capabilities(program))
    if (!target.has(capability))
      return no(RefusalKind::Missing,
                fmt::format("section {} needs {}, which target {} does not have", program.name, name(capability),
                            target.name),
                "Choose a target that lists the capability.");
  for (const Stage& stage : program.stages)
    for (const BufferId in : stage.ins)
      if (stage.matmul() && !target.matmul_operands.contains(program.at(in).dtype))
        return no(RefusalKind::Missing,
                  fmt::format("stage {} multiplies tiles of {}, which target {} does not", stage.name,
                              name(program.at(in).dtype), target.name),
                  "Choose a target that lists the precision among its matmul_operands.");
  return {};
}

}  // namespace tw::spatial
