#include "gguf/format.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace tw::gguf {
namespace {

// In the order of the enum, so that a format is its own index.
constexpr std::array kFormats = {
    FormatInfo{Format::F32, "F32", 0, 1, 4, true},
    FormatInfo{Format::F16, "F16", 1, 1, 2, true},
    FormatInfo{Format::BF16, "BF16", 30, 1, 2, true},
    FormatInfo{Format::F64, "F64", 28, 1, 8, false},
    FormatInfo{Format::I8, "I8", 24, 1, 1, false},
    FormatInfo{Format::I16, "I16", 25, 1, 2, false},
    FormatInfo{Format::I32, "I32", 26, 1, 4, false},
    FormatInfo{Format::I64, "I64", 27, 1, 8, false},
    FormatInfo{Format::Q4_0, "Q4_0", 2, 32, 18, true},
    FormatInfo{Format::Q4_1, "Q4_1", 3, 32, 20, true},
    FormatInfo{Format::Q5_0, "Q5_0", 6, 32, 22, true},
    FormatInfo{Format::Q5_1, "Q5_1", 7, 32, 24, true},
    FormatInfo{Format::Q8_0, "Q8_0", 8, 32, 34, true},
    FormatInfo{Format::Q2_K, "Q2_K", 10, 256, 84, true},
    FormatInfo{Format::Q3_K, "Q3_K", 11, 256, 110, true},
    FormatInfo{Format::Q4_K, "Q4_K", 12, 256, 144, true},
    FormatInfo{Format::Q5_K, "Q5_K", 13, 256, 176, true},
    FormatInfo{Format::Q6_K, "Q6_K", 14, 256, 210, true},
    FormatInfo{Format::Q8_K, "Q8_K", 15, 256, 292, true},
    FormatInfo{Format::IQ1_S, "IQ1_S", 19, 256, 50, false},
    FormatInfo{Format::IQ1_M, "IQ1_M", 29, 256, 56, false},
    FormatInfo{Format::IQ2_XXS, "IQ2_XXS", 16, 256, 66, false},
    FormatInfo{Format::IQ2_XS, "IQ2_XS", 17, 256, 74, false},
    FormatInfo{Format::IQ2_S, "IQ2_S", 22, 256, 82, false},
    FormatInfo{Format::IQ3_XXS, "IQ3_XXS", 18, 256, 98, false},
    FormatInfo{Format::IQ3_S, "IQ3_S", 21, 256, 110, false},
    FormatInfo{Format::IQ4_NL, "IQ4_NL", 20, 32, 18, true},
    FormatInfo{Format::IQ4_XS, "IQ4_XS", 23, 256, 136, true},
    FormatInfo{Format::TQ1_0, "TQ1_0", 34, 256, 54, true},
    FormatInfo{Format::TQ2_0, "TQ2_0", 35, 256, 66, true},
    FormatInfo{Format::MXFP4, "MXFP4", 39, 32, 17, true},
    FormatInfo{Format::NVFP4, "NVFP4", 40, 64, 36, true},
};

constexpr bool in_enum_order() {
  for (size_t i = 0; i < kFormats.size(); ++i)
    if (static_cast<size_t>(kFormats[i].format) != i) return false;
  return kFormats.size() == kFormatCount;
}
static_assert(in_enum_order());

constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return upper(x) == upper(y); });
}

}  // namespace

std::span<const FormatInfo> all_formats() { return kFormats; }

const FormatInfo& info(Format format) { return kFormats.at(static_cast<size_t>(format)); }

std::string_view name(Format format) { return info(format).name; }

std::optional<Format> format_of_id(uint32_t id) {
  for (const FormatInfo& entry : kFormats)
    if (entry.id == id) return entry.format;
  return std::nullopt;
}

std::optional<Format> format_of_name(std::string_view name) {
  for (const FormatInfo& entry : kFormats)
    if (same_name(entry.name, name)) return entry.format;
  return std::nullopt;
}

uint64_t bytes_of(Format format, uint64_t values) {
  const FormatInfo& entry = info(format);
  TW_CHECK(values % entry.block == 0, "{} values are not whole blocks of {} ({} each)", values, entry.name,
           entry.block);
  return values / entry.block * entry.block_bytes;
}

}  // namespace tw::gguf
