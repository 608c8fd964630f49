#pragma once

// The certificate of a whole step: of each of its sections, and of the order between them. A section boundary is a
// barrier, so what is left to show is that every storage is written before it is read, that every read and in-place
// update is of the version that is current where it stands, and that a version is written whole by one section.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spatial/certify/certify.h"
#include "spatial/compose.h"

namespace tw::spatial {

// Checks beside those of the sections.
std::span<const CheckInfo> step_checks();

struct StepFailure {
  std::string_view check;
  std::optional<uint32_t> section;
  std::optional<StorageId> storage;
  std::string text;
};
// "versions section x (storage y 1): ..."
std::string to_text(const Composition& step, const StepFailure& failure);

struct StepVerdict {
  StepCertificate certificate;  // complete when ok()
  std::vector<StepFailure> failures;

  [[nodiscard]] bool ok() const { return failures.empty(); }
};
StepVerdict certify(const Composition& step, const Target& target);

// The small checker's look at a step: every section's certificate, and the storages counted again.
std::vector<std::string> recheck(const Composition& step, const Target& target, const StepCertificate& certificate);

}  // namespace tw::spatial
