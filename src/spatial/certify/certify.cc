#include "spatial/certify/certify.h"

#include <algorithm>
#include <array>

#include "spatial/certify/checks.h"
#include "spatial/certify/fingerprint.h"
#include "spatial/validate.h"

namespace tw::spatial {
namespace {

struct Row {
  CheckInfo info;
  Check check;
};
// Addresses come before the checks that walk them.
constexpr std::array kChecks{
    Row{{"structure", "The program is well-formed."}, check_structure},
    Row{{"algebra", "Every compute stage is a loop nest or a tile product, and computes what its page holds."},
        check_algebra},
    Row{{"capabilities", "The target has the tile, the precisions and the functions that the program uses."},
        check_capabilities},
    Row{{"local memory", "The pages of all buffers fit the local memory of a site."}, check_local_memory},
    Row{{"accumulator", "No compute stage writes a page larger than the accumulator."}, check_accumulator},
    Row{{"readers", "Every page that is read is written, and every queue has one stage that pops it."}, check_readers},
    Row{{"rates", "As many pages are popped as are pushed: an item, a sub-block, a block."}, check_rates},
    Row{{"liveness", "No stage waits for ever for a page or for room."}, check_liveness},
    Row{{"folds", "Stages of a fold read pages of their level, and the block count that is data is the plan's."},
        check_folds},
    Row{{"addresses", "Every tile address lies in its tensor, for every item and admitted index."}, check_addresses},
    Row{{"coverage", "Every tile of an output is written once, and no two items write one tile of a state."},
        check_coverage},
    Row{{"state order", "No tile of a state is read that another item, or no later step of this one, may write."},
        check_state_order},
    Row{{"reads", "Every operand is read inside its page wherever no index decides, and can be where one does."},
        check_reads},
    Row{{"indices", "No index wraps the precision it is held in."}, check_indices},
};

constexpr auto kInfos = [] {
  std::array<CheckInfo, kChecks.size()> infos{};
  for (size_t i = 0; i < infos.size(); ++i) infos[i] = kChecks[i].info;
  return infos;
}();

// Faults after which a program cannot be walked by its ids and sizes.
bool walkable(std::span<const Finding> structure) {
  constexpr std::array<std::string_view, 4> kFirst{"S1", "S2", "S3", "S4"};
  return std::none_of(structure.begin(), structure.end(), [&](const Finding& finding) {
    return std::find(kFirst.begin(), kFirst.end(), finding.code) != kFirst.end();
  });
}

Verdict run(const Program& program, const Target& target, std::string_view only) {
  Verdict verdict;
  std::vector<Finding> structure = validate(program);
  if (!walkable(structure)) {
    Report report(kChecks[0].info.name, verdict.certificate, verdict.failures);
    for (const Finding& finding : structure) report.add(finding);
    return verdict;
  }
  const CheckContext context = context_of(program, target, std::move(structure));
  for (const Row& row : kChecks) {
    if (!only.empty() && row.info.name != only) continue;
    const size_t before = verdict.failures.size();
    Report report(row.info.name, verdict.certificate, verdict.failures);
    row.check(context, report);
    if (verdict.failures.size() == before) verdict.certificate.checks.emplace_back(row.info.name);
  }
  return verdict;
}

}  // namespace

std::span<const CheckInfo> certificate_checks() { return kInfos; }

CheckContext context_of(const Program& program, const Target& target, std::vector<Finding> structure) {
  CheckContext context{program, target, std::move(structure), buffer_uses(program), {}, {}, {}, {}};
  context.malformed.resize(program.stages.size());
  context.reach.resize(program.stages.size());
  context.outside.resize(program.stages.size());
  for (const Finding& finding : context.structure)
    if (finding.stage) context.malformed[index(*finding.stage)] = true;
  for (uint32_t i = 0; i < program.stages.size(); ++i)
    if (const AccessPattern* pattern = program.stages[i].pattern()) {
      const auto tiles = to_signed(grid_of(program.at(*program.stages[i].tensor()), program.tile).tiles());
      context.reach[i] = tile_range(program, *pattern);
      context.outside[i] = !Interval{0, tiles - 1}.contains(context.reach[i]);
    }
  context.ranges = index_ranges(program, context.uses, context.malformed);
  return context;
}

Verdict certify(const Program& program, const Target& target) {
  Verdict verdict = run(program, target, {});
  verdict.certificate.program = program.name;
  verdict.certificate.fingerprint = fingerprint(program);
  verdict.certificate.target = target.name;
  return verdict;
}

std::vector<CheckFailure> run_check(std::string_view check, const Program& program, const Target& target) {
  return run(program, target, check).failures;
}

std::string to_text(const Program& program, const CheckFailure& failure) {
  std::string what = place_text(program, failure.stage, failure.buffer, failure.tensor);
  if (failure.item) what += fmt::format(", item {}", *failure.item);
  return fmt::format("{}: {}: {}", failure.check, what, failure.text);
}

Result<Certificate> certificate_of(const Program& program, const Target& target) {
  Verdict verdict = certify(program, target);
  if (verdict.ok()) return std::move(verdict.certificate);
  std::string reason =
      fmt::format("section {} fails the check of {}", program.name, to_text(program, verdict.failures.front()));
  if (verdict.failures.size() > 1) reason += fmt::format(" (and {} more)", verdict.failures.size() - 1);
  return refuse(RefusalKind::Conflict, program.subject(), std::move(reason));
}

}  // namespace tw::spatial
