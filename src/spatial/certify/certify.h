#pragma once

// The certificate of a section for a target: that it fits a site, that every page that is pushed is popped and nothing
// waits for ever, that every tile of a result is written exactly once, that nothing is read or written outside, and
// that no index wraps. Each check stands by itself in a table. Linear in the stages, the edges and the tiles moved.
//
// Freedom from deadlock is that of three engines (loads, compute, stores), each of which runs its stages in the order
// of the nest in issue.h and waits for pages and for room. If that nest as one sequence never lacks either, no engine
// can be stuck: of the actions not done, the first in the sequence has all it waits for.
//
// Addresses hold for every index within its bound. Distinctness of what items write is that of a dry run: each index at
// its low bound.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spatial/certify/certificate.h"
#include "spatial/program.h"

namespace tw::spatial {

struct CheckInfo {
  std::string_view name;
  std::string_view claim;
};
// In the order in which they run.
std::span<const CheckInfo> certificate_checks();

// What a check found: what it is about, and by how much.
struct CheckFailure {
  std::string_view check;
  std::optional<StageId> stage;
  std::optional<BufferId> buffer;
  std::optional<TensorId> tensor;
  std::optional<uint64_t> item;
  std::string text;
};
// "rates stage load_a (buffer in_a), item 3: ..."
std::string to_text(const Program& program, const CheckFailure& failure);

struct Verdict {
  Certificate certificate;  // complete when ok()
  std::vector<CheckFailure> failures;

  [[nodiscard]] bool ok() const { return failures.empty(); }
};
Verdict certify(const Program& program, const Target& target);
// One check alone, by its name; what it relies on (ids in range) is looked at first.
std::vector<CheckFailure> run_check(std::string_view check, const Program& program, const Target& target);

// The certificate, or its failures as a refusal; the subject is the result's name.
Result<Certificate> certificate_of(const Program& program, const Target& target);

}  // namespace tw::spatial
