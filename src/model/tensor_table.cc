#include "model/tensor_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace tw::model {

namespace {

std::vector<uint64_t> resolve_shape(std::string_view shape, const Dims& dims) {
  std::vector<uint64_t> out;
  for (size_t from = 0; from < shape.size();) {
    const size_t to = std::min(shape.find(' ', from), shape.size());
    const auto found = dims.find(shape.substr(from, to - from));
    TW_CHECK(found != dims.end(), "no dimension {} for the shape \"{}\"", shape.substr(from, to - from), shape);
    out.push_back(found->second);
    from = to + 1;
  }
  return out;
}

// A trailing dimension of 1 says nothing.
std::vector<uint64_t> trimmed(std::vector<uint64_t> shape) {
  while (shape.size() > 1 && shape.back() == 1) shape.pop_back();
  return shape;
}

std::string subject(const gguf::Checkpoint& checkpoint, std::string_view tensor) {
  return fmt::format("{}: tensor {}", checkpoint.label(), tensor);
}

bool is_float_format(gguf::Format format) {
  using gguf::Format;
  return format != Format::I8 && format != Format::I16 && format != Format::I32 && format != Format::I64;
}

// The block a tensor's name puts it in.
std::optional<uint32_t> block_of(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  uint32_t block = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + 4, end, block);
  if (error != std::errc{} || rest == end || *rest != '.') return std::nullopt;
  return block;
}

Refusal refuse_unknown(const gguf::Checkpoint& checkpoint, std::string_view architecture, const Layout& layout,
                       const gguf::TensorInfo& tensor) {
  const std::optional<uint32_t> block = block_of(tensor.name);
  if (block && *block >= layout.blocks)
    return refuse(RefusalKind::Malformed, subject(checkpoint, tensor.name),
                  fmt::format("it belongs to block {}, and the model has {} blocks", *block, layout.blocks));
  if (tensor.name.ends_with(".scale") || tensor.name.ends_with(".input_scale"))
    return refuse(RefusalKind::Unsupported, subject(checkpoint, tensor.name),
                  fmt::format("architecture {} here has no scales beside its weights", architecture));
  return refuse(
      RefusalKind::Unsupported, subject(checkpoint, tensor.name),
      fmt::format("architecture {} has no use for this tensor, so the step would leave it out", architecture));
}

}  // namespace

std::string tensor_name(std::string_view pattern, uint32_t layer) {
  std::string name(pattern);
  if (const size_t star = name.find('*'); star != std::string::npos) name.replace(star, 1, std::to_string(layer));
  return name;
}

std::vector<WantedTensor> wanted_tensors(const Layout& layout, std::span<const TensorTable> tables) {
  std::vector<WantedTensor> out;
  const auto add = [&](const TensorSpec& spec, const Dims& dims, uint32_t layer) {
    out.push_back(
        {&spec, tensor_name(spec.pattern, layer), tensor_name(spec.unless, layer), resolve_shape(spec.shape, dims)});
  };
  const auto has = [](const std::vector<Part>& parts, Part part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  for (const TensorTable table : tables)
    for (const TensorSpec& spec : table)
      if (has(layout.parts, spec.part)) add(spec, layout.dims, 0);
  for (uint32_t layer = 0; layer < layout.layers.size(); ++layer)
    for (const TensorTable table : tables)
      for (const TensorSpec& spec : table)
        if (has(layout.layers[layer].parts, spec.part)) add(spec, layout.layers[layer].dims, layer);
  return out;
}

Result<uint64_t> check_tensors(const gguf::Checkpoint& checkpoint, std::string_view architecture, const Layout& layout,
                               std::span<const TensorTable> tables) {
  uint64_t values = 0;
  std::unordered_set<std::string> known;
  for (const WantedTensor& wanted : wanted_tensors(layout, tables)) {
    const bool replaced = !wanted.unless.empty() && checkpoint.find_tensor(wanted.unless) != nullptr;
    const gguf::TensorInfo* found = checkpoint.find_tensor(wanted.name);
    if (found == nullptr) {
      if (replaced || wanted.spec->need == Need::Optional) continue;
      return refuse(RefusalKind::Missing, subject(checkpoint, wanted.name),
                    fmt::format("the file has no such tensor; expected shape [{}] ({})", fmt::join(wanted.shape, ", "),
                                wanted.spec->shape));
    }
    if (replaced)
      return refuse(RefusalKind::Conflict, subject(checkpoint, wanted.name),
                    fmt::format("the file also has {}, which holds the same weights", wanted.unless));
    if (trimmed(found->shape) != trimmed(wanted.shape))
      return refuse(RefusalKind::Malformed, subject(checkpoint, wanted.name),
                    fmt::format("its shape is [{}]; expected [{}] ({})", fmt::join(found->shape, ", "),
                                fmt::join(wanted.shape, ", "), wanted.spec->shape));
    if (!is_float_format(found->format))
      return refuse(RefusalKind::Unsupported, subject(checkpoint, wanted.name),
                    fmt::format("its format is {}; expected a format of real numbers", gguf::name(found->format)));
    values += found->values();
    known.insert(wanted.name);
  }
  for (const gguf::TensorInfo& tensor : checkpoint.tensors()) {
    const std::optional<uint32_t> block = block_of(tensor.name);
    const bool idle = block && *block >= layout.layers.size() && *block < layout.blocks;
    if (!idle && !known.contains(tensor.name)) return refuse_unknown(checkpoint, architecture, layout, tensor);
  }
  return values;
}

}  // namespace tw::model
