#include "spatial/certify/certify_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace tw::spatial {
namespace {

constexpr std::array kStepChecks{
    CheckInfo{"sections", "Every section has a certificate."},
    CheckInfo{"storages", "Every tensor of a section is declared as its storage is."},
    CheckInfo{"versions", "What a section reads or updates is the current version; what it writes whole is the next."},
    CheckInfo{"producers", "What is read has been filled or written by an earlier section; no param is written."},
    CheckInfo{"carried", "What one step leaves for the next is the last version, taken up as the first."},
};

class StepChecks {
 public:
  StepChecks(const Composition& step, StepVerdict& verdict)
      : step_(step), verdict_(verdict), whole_(step.storages.size()) {
    verdict_.certificate.storages.resize(step.storages.size());
  }

  // False where a section cannot be walked by its storages.
  bool storages() {
    bool sound = true;
    for (uint32_t s = 0; s < step_.sections.size(); ++s) {
      const ComposedSection& section = step_.sections[s];
      if (section.storages.size() != section.program.tensors.size()) {
        fail("storages", s, {},
             fmt::format("has {} storages for {} tensors", section.storages.size(), section.program.tensors.size()));
        sound = false;
        continue;
      }
      for (size_t t = 0; t < section.storages.size(); ++t)
        sound = storage(s, section.program.tensors[t], section.storages[t]) && sound;
    }
    return sound;
  }

  void walk() {
    for (uint32_t s = 0; s < step_.sections.size(); ++s) {
      // Reads first: a section that reads and rewrites a name reads the version before.
      each_tensor(s, [&](const Tensor& tensor, StorageId id) {
        if (tensor.role != TensorRole::Output) read(s, tensor, id);
      });
      each_tensor(s, [&](const Tensor& tensor, StorageId id) {
        if (tensor.role == TensorRole::Output) write_whole(s, tensor, id);
      });
    }
  }

  void carried() {
    std::unordered_map<std::string_view, CarriedStorage> ends;
    for (uint32_t i = 0; i < step_.storages.size(); ++i) {
      const auto [at, fresh] = ends.emplace(step_.storages[i].name, CarriedStorage{StorageId{i}, StorageId{i}});
      if (!fresh) at->second.last = StorageId{i};
    }
    std::unordered_map<std::string_view, CarriedStorage> listed;
    for (const CarriedStorage& pair : step_.carried) {
      if (index(pair.first) >= step_.storages.size() || index(pair.last) >= step_.storages.size()) {
        fail("carried", {}, {},
             fmt::format("storage {} becomes storage {}, there are {}", index(pair.last), index(pair.first),
                         step_.storages.size()));
        continue;
      }
      const CarriedStorage& end = ends.at(step_.at(pair.last).name);
      if (pair != end)
        fail("carried", {}, pair.last,
             fmt::format("becomes {} {}, expected the last version, {}, to become the first", step_.at(pair.first).name,
                         step_.at(pair.first).version, step_.at(end.last).version));
      listed.emplace(step_.at(pair.last).name, pair);
    }
    for (uint32_t i = 0; i < step_.storages.size(); ++i) {
      const Storage& storage = step_.storages[i];
      if (storage.role == StepRole::State && storage.version > 0 && !listed.contains(storage.name))
        fail("carried", {}, StorageId{i}, "is a later version of a state, and nothing carries it to the next step");
    }
  }

 private:
  template <class Visit>
  void each_tensor(uint32_t s, Visit&& visit) {
    const ComposedSection& section = step_.sections[s];
    for (size_t t = 0; t < section.storages.size(); ++t) visit(section.program.tensors[t], section.storages[t]);
  }

  void fail(std::string_view check, std::optional<uint32_t> section, std::optional<StorageId> storage,
            std::string text) {
    verdict_.failures.push_back({check, section, storage, std::move(text)});
  }

  bool storage(uint32_t s, const Tensor& tensor, StorageId id) {
    if (index(id) >= step_.storages.size()) {
      fail("storages", s, {},
           fmt::format("holds {} in storage {}, there are {}", tensor.name, index(id), step_.storages.size()));
      return false;
    }
    const Storage& held = step_.at(id);
    if (held.name != tensor.name || held.rows != tensor.rows || held.cols != tensor.cols || held.dtype != tensor.dtype)
      fail("storages", s, id,
           fmt::format("{} of {}x{} {} holds {} of {}x{} {}", held.name, held.rows, held.cols, name(held.dtype),
                       tensor.name, tensor.rows, tensor.cols, name(tensor.dtype)));
    return true;
  }

  void read(uint32_t s, const Tensor& tensor, StorageId id) {
    const auto [current, fresh] = current_.try_emplace(tensor.name, id);
    if (current->second != id)
      fail("versions", s, id,
           fmt::format("uses version {}, the current one is {}", step_.at(id).version,
                       step_.at(current->second).version));
    if (fresh && step_.at(id).version != 0)
      fail("versions", s, id, fmt::format("uses version {} before any was written", step_.at(id).version));
    StorageEvidence& evidence = verdict_.certificate.storages[index(id)];
    const bool updates = tensor.role == TensorRole::State;
    if (std::holds_alternative<ExternalInit>(step_.at(id).init) && evidence.producer < 0 && !updates)
      fail("producers", s, id, "is read, nothing fills it, and no section before writes it");
    ++evidence.readers;
    if (updates) wrote(s, id);
  }

  void write_whole(uint32_t s, const Tensor& tensor, StorageId id) {
    const auto current = current_.find(tensor.name);
    const uint32_t next = current == current_.end() ? 0 : step_.at(current->second).version + 1;
    if (step_.at(id).version != next || whole_[index(id)])
      fail("versions", s, id,
           fmt::format("writes version {}{}, the next one is {}", step_.at(id).version,
                       whole_[index(id)] ? " again" : "", next));
    whole_[index(id)] = true;
    current_[tensor.name] = id;
    wrote(s, id);
  }

  void wrote(uint32_t s, StorageId id) {
    StorageEvidence& evidence = verdict_.certificate.storages[index(id)];
    if (evidence.producer < 0) evidence.producer = s;
    if (step_.at(id).role == StepRole::Param || step_.at(id).role == StepRole::Input)
      fail("producers", s, id, fmt::format("is an {} and is written", name(step_.at(id).role)));
  }

  const Composition& step_;
  StepVerdict& verdict_;
  std::vector<bool> whole_;  // by storage: written whole
  std::unordered_map<std::string_view, StorageId> current_;
};

}  // namespace

std::span<const CheckInfo> step_checks() { return kStepChecks; }

std::string to_text(const Composition& step, const StepFailure& failure) {
  std::string what = fmt::format("step {}", step.name);
  if (failure.section) what = fmt::format("section {}", step.sections[*failure.section].program.name);
  if (failure.storage)
    what += fmt::format(" (storage {} {})", step.at(*failure.storage).name, step.at(*failure.storage).version);
  return fmt::format("{}: {}: {}", failure.check, what, failure.text);
}

StepVerdict certify(const Composition& step, const Target& target) {
  StepVerdict verdict;
  verdict.certificate.name = step.name;
  verdict.certificate.target = target.name;
  for (uint32_t s = 0; s < step.sections.size(); ++s) {
    const Program& program = step.sections[s].program;
    Verdict section = certify(program, target);
    for (const CheckFailure& failure : section.failures)
      verdict.failures.push_back({"sections", s, {}, to_text(program, failure)});
    verdict.certificate.sections.push_back(std::move(section.certificate));
  }
  StepChecks checks(step, verdict);
  if (!checks.storages()) return verdict;
  checks.walk();
  checks.carried();
  return verdict;
}

}  // namespace tw::spatial
