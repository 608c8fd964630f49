#pragma once

// Which tensor or buffer a name means in the text form: the first declared under it. Where a name stands for an input
// and the result that replaces it, what reads means the input and what stores the result.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spatial/ids.h"
#include "spatial/program.h"

namespace tw::spatial {

class NameTable {
 public:
  void declare(const Tensor& tensor, TensorId id);
  void declare(const Buffer& buffer, BufferId id);

  [[nodiscard]] std::optional<BufferId> buffer(std::string_view name) const;
  [[nodiscard]] std::optional<TensorId> source(std::string_view name) const;
  [[nodiscard]] std::optional<TensorId> result(std::string_view name) const;

  // The names there are, for messages.
  [[nodiscard]] std::vector<std::string_view> buffers() const;
  [[nodiscard]] std::vector<std::string_view> tensors() const;

 private:
  template <class Id>
  using Names = std::map<std::string, Id, std::less<>>;

  Names<TensorId> sources_;
  Names<TensorId> results_;
  Names<BufferId> buffers_;
};

}  // namespace tw::spatial
