#include "spatial/evaluate/composed.h"

#include <algorithm>

namespace tw::spatial::evaluate {

Result<Step> compile(const Composition& composition) {
  std::vector<Program> sections;
  sections.reserve(composition.sections.size());
  for (const ComposedSection& section : composition.sections) sections.push_back(section.program);
  return Step::compile(sections);
}

Result<void> declare(const Composition& composition, Memory& memory) {
  for (const Storage& storage : composition.storages) {
    if (storage.version != 0 || std::holds_alternative<ExternalInit>(storage.init)) continue;
    const Tensor tensor{storage.name, TensorRole::Input, storage.rows, storage.cols, storage.dtype, storage.init};
    TW_TRY_VOID(memory.declare(tensor));
  }
  return {};
}

std::vector<std::vector<uint64_t>> items_by_site(const Placement& placement) {
  std::vector<std::vector<uint64_t>> sections;
  for (const SectionPlacement& section : placement) {
    std::vector<uint64_t>& items = sections.emplace_back();
    uint64_t most = 0;
    for (const SiteShare& share : section) most = std::max(most, share.count);
    for (uint64_t turn = 0; turn < most; ++turn)
      for (const SiteShare& share : section)
        if (turn < share.count) items.push_back(share.first + turn);
  }
  return sections;
}

Result<StepRun> evaluate(const Composition& composition, const Placement& placement, Memory& memory) {
  TW_TRY(Step step, compile(composition));
  TW_TRY_VOID(declare(composition, memory));
  return step.run(memory, {.items = items_by_site(placement)});
}

}  // namespace tw::spatial::evaluate
