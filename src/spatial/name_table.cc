#include "spatial/name_table.h"

namespace tw::spatial {
namespace {

template <class Names>
auto find(const Names& names, std::string_view name) {
  const auto at = names.find(name);
  return at == names.end() ? std::nullopt : std::optional(at->second);
}

template <class Names>
void append(const Names& names, std::vector<std::string_view>& all) {
  for (const auto& [name, id] : names) all.push_back(name);
}

}  // namespace

void NameTable::declare(const Tensor& tensor, TensorId id) {
  (tensor.result() ? results_ : sources_).emplace(tensor.name, id);
}
void NameTable::declare(const Buffer& buffer, BufferId id) { buffers_.emplace(buffer.name, id); }

std::optional<BufferId> NameTable::buffer(std::string_view name) const { return find(buffers_, name); }

std::optional<TensorId> NameTable::source(std::string_view name) const {
  const std::optional<TensorId> id = find(sources_, name);
  return id ? id : find(results_, name);
}

std::optional<TensorId> NameTable::result(std::string_view name) const {
  const std::optional<TensorId> id = find(results_, name);
  return id ? id : find(sources_, name);
}

std::vector<std::string_view> NameTable::buffers() const {
  std::vector<std::string_view> all;
  append(buffers_, all);
  return all;
}

std::vector<std::string_view> NameTable::tensors() const {
  std::vector<std::string_view> all;
  append(sources_, all);
  append(results_, all);
  return all;
}

}  // namespace tw::spatial
