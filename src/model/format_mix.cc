#include "model/format_mix.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

#include "base/contains.h"

namespace tw::model {

namespace {

constexpr FormatMix kMixes[] = {
    {"Q4_K_M", gguf::Format::Q4_K, gguf::Format::Q6_K, gguf::Format::Q4_K},
    {"Q5_K_M", gguf::Format::Q5_K, gguf::Format::Q6_K, gguf::Format::Q5_K},
    {"MXFP4_MOE", gguf::Format::Q8_0, gguf::Format::Q8_0, gguf::Format::MXFP4},
};

// Every row must be whole blocks; K-quants whose rows are not fall back as quantizers do.
gguf::Format fitting(gguf::Format format, uint64_t row_length) {
  if (row_length % gguf::info(format).block == 0) return format;
  return row_length % gguf::info(gguf::Format::Q8_0).block == 0 ? gguf::Format::Q8_0 : gguf::Format::F16;
}

// The layer of "blk.7.ffn_down.weight".
uint32_t layer_of(std::string_view tensor) {
  uint32_t layer = 0;
  if (tensor.starts_with("blk.")) std::from_chars(tensor.data() + 4, tensor.data() + tensor.size(), layer);
  return layer;
}

// The first and last eighths of the layers, and every third between.
bool sensitive_layer(uint32_t layer, uint32_t layers) {
  const uint32_t eighth = layers / 8;
  return layer < eighth || layer >= layers - eighth || (layer - eighth) % 3 == 2;
}

}  // namespace

Result<FormatMix> find_mix(std::string_view name, bool (*allowed)(gguf::Format)) {
  for (const FormatMix& mix : kMixes) {
    if (mix.name == name) return mix;
  }
  if (const std::optional<gguf::Format> format = gguf::format_of_name(name); format && allowed(*format)) {
    return FormatMix{gguf::name(*format), *format, *format, *format};
  }
  std::string known;
  for (const gguf::FormatInfo& entry : gguf::all_formats()) {
    if (allowed(entry.format)) known += fmt::format("{} ", entry.name);
  }
  for (const FormatMix& mix : kMixes) known += fmt::format("{} ", mix.name);
  return refuse(RefusalKind::Usage, fmt::format("format {}", name), "cannot be made",
                fmt::format("It is one of: {}", known.substr(0, known.size() - 1)));
}

gguf::Format matrix_format(const FormatMix& mix, std::string_view tensor, uint64_t row_length, bool head,
                           uint32_t layers) {
  const bool experts = contains(tensor, "_exps.");
  const bool careful = contains(tensor, "attn_v.") || contains(tensor, "ffn_down");
  const bool better =
      (head || (careful && sensitive_layer(layer_of(tensor), layers))) && !(experts && mix.experts != mix.base);
  return fitting(better ? mix.better : experts ? mix.experts : mix.base, row_length);
}

}  // namespace tw::model
