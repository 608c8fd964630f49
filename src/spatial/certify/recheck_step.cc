#include <fmt/format.h>

#include <algorithm>

#include "spatial/certify/certify_step.h"
#include "spatial/certify/recheck.h"

namespace tw::spatial {

std::vector<std::string> recheck(const Composition& step, const Target& target, const StepCertificate& certificate) {
  std::vector<std::string> faults;
  if (certificate.name != step.name || certificate.target != target.name ||
      certificate.sections.size() != step.sections.size() || certificate.storages.size() != step.storages.size())
    return {fmt::format("the certificate is of {} for {}, not of {} for {}", certificate.name, certificate.target,
                        step.name, target.name)};
  std::vector<int64_t> producer(step.storages.size(), -1);
  std::vector<uint64_t> readers(step.storages.size());
  for (size_t s = 0; s < step.sections.size(); ++s) {
    const ComposedSection& section = step.sections[s];
    for (std::string& fault : recheck(section.program, target, certificate.sections[s]))
      faults.push_back(fmt::format("section {}: {}", section.program.name, fault));
    for (size_t t = 0; t < section.storages.size(); ++t) {
      const Tensor& tensor = section.program.tensors[t];
      const uint32_t id = index(section.storages[t]);
      const bool filled = producer[id] >= 0 || !std::holds_alternative<ExternalInit>(step.storages[id].init);
      if (tensor.role != TensorRole::Output) ++readers[id];
      if (!filled && !tensor.result())
        faults.push_back(fmt::format("section {} reads {} before it is there", section.program.name, tensor.name));
      if (tensor.role == TensorRole::Output && producer[id] >= 0)
        faults.push_back(fmt::format("section {} writes a version of {} again", section.program.name, tensor.name));
    }
    // What a section writes is there after it.
    for (size_t t = 0; t < section.storages.size(); ++t)
      if (const uint32_t id = index(section.storages[t]); section.program.tensors[t].result() && producer[id] < 0)
        producer[id] = static_cast<int64_t>(s);
  }
  for (size_t i = 0; i < step.storages.size(); ++i)
    if (certificate.storages[i] != StorageEvidence{producer[i], readers[i]})
      faults.push_back(fmt::format("storage {} {} is first written by section {} and read {} times, not {} and {}",
                                   step.storages[i].name, step.storages[i].version, producer[i], readers[i],
                                   certificate.storages[i].producer, certificate.storages[i].readers));
  return faults;
}

}  // namespace tw::spatial
