#include "model/requantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/contains.h"
#include "base/interrupt.h"
#include "gguf/writer.h"
#include "model/format_mix.h"

namespace tw::model {

namespace {

bool can_quantize(gguf::Format format) { return gguf::info(format).quantizes; }

// Parts of names of two-dimensional tensors that are no matrices of a product in quantized form, or that the choice of
// experts is too sensitive to.
constexpr std::string_view kKept[] = {"norm", "ffn_gate_inp", "ssm_conv1d", "shortconv.conv", "rope_freqs", "_bias"};

bool is_matrix(const gguf::TensorInfo& tensor) {
  if (tensor.shape.size() < 2 || tensor.rows() < 2 || !tensor.name.ends_with(".weight")) return false;
  switch (tensor.format) {
    case gguf::Format::F64:
    case gguf::Format::I8:
    case gguf::Format::I16:
    case gguf::Format::I32:
    case gguf::Format::I64: return false;
    default: break;
  }
  return std::none_of(std::begin(kKept), std::end(kKept),
                      [&](std::string_view part) { return contains(tensor.name, part); });
}

// Widens and narrows a tensor row by row, or as many rows as there is time for.
void convert(const gguf::TensorInfo& tensor, const std::byte* from, gguf::Format format, std::vector<std::byte>& to,
             const std::atomic<bool>* interrupted) {
  const uint64_t length = tensor.row_length();
  std::vector<float> row(length);
  const uint64_t row_bytes = gguf::bytes_of(format, length);
  to.resize(row_bytes * tensor.rows());
  for (uint64_t r = 0; r < tensor.rows() && !is_set(interrupted); ++r) {
    gguf::dequantize(tensor.format, from + r * tensor.row_bytes(), row.data(), length);
    gguf::quantize(format, row.data(), to.data() + r * row_bytes, length);
  }
}

Result<uint32_t> layers_of(const gguf::Checkpoint& checkpoint) {
  TW_TRY(const std::string architecture, checkpoint.get_string("general.architecture"));
  TW_TRY(const auto layers, checkpoint.find_u64(architecture + ".block_count"));
  return static_cast<uint32_t>(std::min<uint64_t>(layers.value_or(0), 1U << 20));
}

bool is_same_file(const gguf::Checkpoint& checkpoint, const std::filesystem::path& out) {
  std::error_code error;
  return std::filesystem::equivalent(checkpoint.label(), out, error);
}

}  // namespace

Result<Requantized> requantize(const gguf::Checkpoint& checkpoint, std::string_view format,
                               const std::filesystem::path& out,
                               const std::function<void(uint64_t, uint64_t)>& progress,
                               const std::atomic<bool>* interrupted) {
  TW_TRY(const FormatMix mix, find_mix(format, can_quantize));
  if (is_same_file(checkpoint, out)) {
    return refuse(RefusalKind::Usage, out.string(), "is the file that is read", "Name another file to write.");
  }
  TW_TRY(const uint32_t layers, layers_of(checkpoint));
  const bool tied = checkpoint.find_tensor("output.weight") == nullptr;
  gguf::FileSpec file;
  file.alignment = checkpoint.alignment();
  for (const gguf::Entry& entry : checkpoint.entries()) {
    const bool of_parts = entry.key.starts_with("split.");  // the result is one file
    if (!of_parts && entry.key != "general.file_type") file.metadata.emplace_back(entry.key, entry.value);
  }
  Requantized done;
  for (const gguf::TensorInfo& tensor : checkpoint.tensors()) {
    const bool head = tensor.name == "output.weight" || (tied && tensor.name == "token_embd.weight");
    const bool rewritten = is_matrix(tensor);
    const gguf::Format to =
        rewritten ? matrix_format(mix, tensor.name, tensor.row_length(), head, layers) : tensor.format;
    file.tensors.push_back({tensor.name, to, tensor.shape});
    ++(rewritten ? done.matrices : done.kept);
    done.bytes_before += tensor.bytes;
    done.bytes_after += gguf::bytes_of(to, tensor.values());
  }
  std::vector<std::byte> bytes;
  const auto source = [&](size_t index) -> Result<std::span<const std::byte>> {
    const gguf::TensorInfo& tensor = checkpoint.tensors()[index];
    if (progress) progress(index + 1, file.tensors.size());
    const bool same = file.tensors[index].format == tensor.format;
    if (!same) {
      convert(tensor, checkpoint.bytes(tensor).data(), file.tensors[index].format, bytes, interrupted);
      checkpoint.forget_pages(tensor);
    }
    if (is_set(interrupted)) return refuse(RefusalKind::Interrupted, out.string(), "was interrupted, nothing is left");
    if (same) return checkpoint.bytes(tensor);
    return std::span<const std::byte>(bytes);
  };
  TW_TRY_VOID(gguf::write(out, file, source));
  return done;
}

}  // namespace tw::model
