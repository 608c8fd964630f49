#pragma once

// The checks behind certify(). What several of them need of a program is worked out once, in CheckContext.

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "spatial/certify/certify.h"
#include "spatial/certify/index_ranges.h"
#include "spatial/certify/tiles.h"
#include "spatial/issue.h"
#include "spatial/validate.h"

namespace tw::spatial {

struct CheckContext {
  const Program& program;
  const Target& target;
  std::vector<Finding> structure;  // validate()'s
  std::vector<BufferUses> uses;    // by buffer
  std::vector<bool> malformed;     // by stage: validate() found a fault in what it computes or moves
  std::vector<Interval> reach;     // by stage: tiles a movement touches over all items
  std::vector<bool> outside;       // by stage: a movement that leaves its tensor
  IndexRanges ranges;
};
// Requires that the ids of the program are in range.
CheckContext context_of(const Program& program, const Target& target, std::vector<Finding> structure);

// Collects the failures of one check and the evidence of all.
class Report {
 public:
  Report(std::string_view check, Certificate& evidence, std::vector<CheckFailure>& failures)
      : certificate(evidence), check_(check), failures_(failures) {}

  Certificate& certificate;

  void add(std::string text) { put({}, {}, {}, {}, std::move(text)); }
  void add(StageId stage, std::string text) { put(stage, {}, {}, {}, std::move(text)); }
  void add(BufferId buffer, std::string text) { put({}, buffer, {}, {}, std::move(text)); }
  void add(TensorId tensor, std::string text) { put({}, {}, tensor, {}, std::move(text)); }
  void add(StageId stage, BufferId buffer, std::string text) { put(stage, buffer, {}, {}, std::move(text)); }
  void add_item(StageId stage, uint64_t item, std::string text) { put(stage, {}, {}, item, std::move(text)); }
  void add_item(TensorId tensor, uint64_t item, std::string text) { put({}, {}, tensor, item, std::move(text)); }
  void add(const Finding& finding) {
    put(finding.stage, finding.buffer, finding.tensor, {}, fmt::format("{} ({})", finding.text, finding.code));
  }
  [[nodiscard]] std::string_view check() const { return check_; }

 private:
  void put(std::optional<StageId> stage, std::optional<BufferId> buffer, std::optional<TensorId> tensor,
           std::optional<uint64_t> item, std::string text) {
    failures_.push_back({check_, stage, buffer, tensor, item, std::move(text)});
  }

  std::string_view check_;
  std::vector<CheckFailure>& failures_;
};

using Check = void (*)(const CheckContext&, Report&);

// Reports what validate() found of the rules that the report's check claims; the rest is check_structure's.
void report_claimed(const CheckContext& context, Report& report);

void check_structure(const CheckContext&, Report&);
void check_algebra(const CheckContext&, Report&);
void check_capabilities(const CheckContext&, Report&);
void check_local_memory(const CheckContext&, Report&);
void check_accumulator(const CheckContext&, Report&);
void check_readers(const CheckContext&, Report&);
void check_rates(const CheckContext&, Report&);
void check_liveness(const CheckContext&, Report&);
void check_folds(const CheckContext&, Report&);
void check_addresses(const CheckContext&, Report&);
void check_coverage(const CheckContext&, Report&);
void check_state_order(const CheckContext&, Report&);
void check_reads(const CheckContext&, Report&);
void check_indices(const CheckContext&, Report&);

}  // namespace tw::spatial
