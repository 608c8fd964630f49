#include "model/synth.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/interrupt.h"
#include "gguf/writer.h"
#include "model/format_mix.h"
#include "model/registry.h"
#include "model/synth_shape.h"
#include "model/synth_vocabulary.h"
#include "model/synth_weights.h"

namespace tw::model {

namespace {

float factor_of(const SynthShape& shape, std::string_view name) {
  return static_cast<float>(std::max<uint64_t>(shape_value(shape, name), 1));
}

// Spread so that the residual begins with deviation 1 (unless the head is tied), a product of normed rows has it, and
// the logits have about 2.
float deviation_of(const WantedTensor& tensor, const SynthShape& shape) {
  const auto k = static_cast<float>(tensor.shape[0]);
  const bool embedding = tensor.name == "token_embd.weight", tied = shape_value(shape, "tied") != 0;
  if (embedding && !tied) return 1 / factor_of(shape, "embedding_scale");
  if (embedding || tensor.name == "output.weight") return 2 * factor_of(shape, "logit_scale") / std::sqrt(k);
  return 1 / std::sqrt(k);
}

// One value of a tensor that is F32 in every file; u is uniform in [-1, 1), `along` from 0 to 1 over the tensor.
float small_value(Content content, float u, float along, float width) {
  switch (content) {
    case Content::Norm: return 1 + 0.1F * u;
    case Content::Bias: return 0.2F * u;
    case Content::Router: return 3 * std::sqrt(3 / width) * u;  // a few experts are clearly best for a token
    case Content::Vector: return std::sqrt(3 / width) * u;
    case Content::Taps: return 0.8F * u;
    case Content::Rate: return -std::exp(1.5F * u);
    case Content::Step: return 2 * u - 2;
    case Content::Frequencies: return along < 0.5F ? 1.0F : 1 + 31 * (2 * along - 1);
    case Content::Matrix: break;
  }
  TW_CHECK(false, "content {}", static_cast<int>(content));
}

void fill_small(const WantedTensor& tensor, RandomStream& random, std::vector<std::byte>& bytes) {
  const size_t count = bytes.size() / sizeof(float);
  for (size_t i = 0; i < count; ++i) {
    const float along = static_cast<float>(i) / static_cast<float>(count);
    const float value = small_value(tensor.spec->content, random.uniform(), along, static_cast<float>(tensor.shape[0]));
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
}

// Which of a family's tensors the file gets: the required ones, and the optional ones the shape switches on.
bool is_written(const WantedTensor& tensor, const SynthShape& shape) {
  if (tensor.spec->need == Need::Required) return true;
  if (tensor.name == "output.weight") return shape_value(shape, "tied") == 0;
  return !tensor.spec->written_with.empty() && shape_value(shape, tensor.spec->written_with) != 0;
}

// The layout that the family reads from the metadata, by the same way as from a file.
Result<Layout> read_layout(const FamilyInfo& family, const gguf::FileSpec& spec) {
  TW_TRY(const std::vector<std::byte> bytes, gguf::write_bytes({.metadata = spec.metadata}, {}));
  TW_TRY(const gguf::Checkpoint checkpoint, gguf::Checkpoint::parse(bytes, "shape"));
  TW_TRY(const Hyper hyper, Hyper::read(checkpoint, family.architecture, family.keys));
  TW_TRY(const Decoder decoder, family.configure(hyper, checkpoint));
  return layout_of(decoder);
}

}  // namespace

Result<void> synthesize(const SynthSpec& spec, const std::filesystem::path& out, const std::atomic<bool>* interrupted) {
  const FamilyInfo* family = find_family(spec.architecture);
  if (family == nullptr) return refuse_architecture("--arch", spec.architecture);
  TW_TRY(const FormatMix mix, find_mix(spec.format, can_fill));
  TW_TRY(const SynthShape shape, parse_shape(*family, spec.shape));
  gguf::FileSpec file{.metadata = shape_metadata(*family, shape)};
  TW_TRY(const Layout layout, read_layout(*family, file));
  TW_TRY(auto vocabulary, vocabulary_metadata(family->pre_tokenizer, shape_value(shape, "vocabulary")));
  file.metadata.insert(file.metadata.end(), vocabulary.begin(), vocabulary.end());

  const bool tied = shape_value(shape, "tied") != 0;
  std::vector<WantedTensor> written;
  for (const WantedTensor& tensor : wanted_tensors(layout, family->tensors)) {
    if (!is_written(tensor, shape)) continue;
    const bool head = tensor.name == "output.weight" || (tied && tensor.name == "token_embd.weight");
    const gguf::Format format =
        tensor.spec->content == Content::Matrix
            ? matrix_format(mix, tensor.name, tensor.shape[0], head, static_cast<uint32_t>(layout.layers.size()))
            : gguf::Format::F32;
    file.tensors.push_back({tensor.name, format, tensor.shape});
    written.push_back(tensor);
  }
  if (spec.holes) return gguf::write_holes(out, file);
  std::vector<std::byte> bytes;
  return gguf::write(out, file, [&](size_t index) -> Result<std::span<const std::byte>> {
    if (is_set(interrupted)) return refuse(RefusalKind::Interrupted, out.string(), "was interrupted, nothing is left");
    const WantedTensor& tensor = written[index];
    const gguf::Format format = file.tensors[index].format;
    uint64_t values = 1;
    for (const uint64_t dimension : tensor.shape) values *= dimension;
    bytes.resize(gguf::bytes_of(format, values));
    RandomStream random(spec.seed, tensor.name);
    if (tensor.spec->content == Content::Matrix)
      fill_blocks(format, deviation_of(tensor, shape), random, bytes);
    else
      fill_small(tensor, random, bytes);
    return std::span<const std::byte>(bytes);
  });
}

}  // namespace tw::model
