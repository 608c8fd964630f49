#include "lane/cpu/pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/round.h"
#include "gguf/decode.h"
#include "lane/cpu/pack_blocks.h"
#include "lane/cpu/pack_small.h"
#include "lane/cpu/pack_transpose.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

constexpr std::array kWeightFormats = {
    WeightFormat{Format::F32, Layout::F32},         WeightFormat{Format::F16, Layout::F16},
    WeightFormat{Format::BF16, Layout::BF16},       WeightFormat{Format::Q4_0, Layout::Q4_0},
    WeightFormat{Format::Q4_1, Layout::Q4_1},       WeightFormat{Format::Q5_0, Layout::Q5_0},
    WeightFormat{Format::Q5_1, Layout::Q5_1},       WeightFormat{Format::Q8_0, Layout::Q8_0},
    WeightFormat{Format::Q2_K, Layout::Q2_K},       WeightFormat{Format::Q3_K, Layout::Q3_K},
    WeightFormat{Format::Q4_K, Layout::Q4_K},       WeightFormat{Format::Q5_K, Layout::Q5_K},
    WeightFormat{Format::Q6_K, Layout::Q6_K},       WeightFormat{Format::Q8_K, Layout::Q8_K},
    WeightFormat{Format::IQ1_S, Layout::IQ1_S},     WeightFormat{Format::IQ1_M, Layout::IQ1_M},
    WeightFormat{Format::IQ2_XXS, Layout::IQ2_XXS}, WeightFormat{Format::IQ2_XS, Layout::IQ2_XS},
    WeightFormat{Format::IQ2_S, Layout::IQ2_XS},    WeightFormat{Format::IQ3_XXS, Layout::IQ3_XXS},
    WeightFormat{Format::IQ3_S, Layout::IQ3_S},     WeightFormat{Format::IQ4_NL, Layout::IQ4_NL},
    WeightFormat{Format::IQ4_XS, Layout::IQ4_XS},   WeightFormat{Format::TQ1_0, Layout::TQ2_0},
    WeightFormat{Format::TQ2_0, Layout::TQ2_0},     WeightFormat{Format::MXFP4, Layout::MXFP4},
    WeightFormat{Format::NVFP4, Layout::NVFP4},
};

static_assert(static_cast<int>(Term::Scale) == static_cast<int>(gguf::RunForm::Scale) &&
              static_cast<int>(Term::ScaleMin) == static_cast<int>(gguf::RunForm::ScaleMin) &&
              static_cast<int>(Term::Halves) == static_cast<int>(gguf::RunForm::HalfScales) &&
              static_cast<int>(Term::HalvesMin) == static_cast<int>(gguf::RunForm::HalfScalesMin) &&
              static_cast<int>(Term::TwoScales) == static_cast<int>(gguf::RunForm::HalfBases));

struct PanelSource {
  const std::byte* row[kPanel] = {};  // null past the last output
  uint32_t count = 0;
};

PanelSource source_of(const graph::Rows& rows, const Packed& shape, uint64_t panel) {
  const uint64_t group = panel / shape.group_panels();
  const uint64_t first = panel % shape.group_panels() * kPanel;
  PanelSource source;
  source.count = static_cast<uint32_t>(std::min<uint64_t>(kPanel, shape.n - first));
  for (uint32_t r = 0; r < source.count; ++r) source.row[r] = rows.row(group * shape.n + first + r);
  return source;
}

// The fields of one run of all 16 rows, as the file's blocks give them. Rows past the last output stay zero.
template <Layout L>
struct RunRows {
  static constexpr RunShape kShape = run_shape(L);
  static constexpr int kWords = kShape.low_words + kShape.high_words;
  RunHeader headers[kPanel] = {};
  alignas(16) uint32_t words[kPanel][kWords] = {};
};

template <Layout L>
void put_headers(const RunRows<L>& rows, std::byte* run) {
  constexpr RunShape kShape = run_shape(L);
  const auto* subs = reinterpret_cast<const std::byte*>(rows.headers[0].sub);
  const auto* sub_mins = reinterpret_cast<const std::byte*>(rows.headers[0].sub_min);
  for (uint32_t r = 0; r < kPanel; ++r) {
    const RunHeader& header = rows.headers[r];
    std::memcpy(run + kShape.scale_bytes() * r, &header.scale, kShape.scale_bytes());
    if constexpr (kShape.min) std::memcpy(run + kShape.min_at() + 2 * r, &header.min, sizeof header.min);
  }
  turn_bytes<kShape.subs * kShape.blocks>(subs, sizeof(RunHeader), run + kShape.subs_at());
  turn_bytes<kShape.sub_mins * kShape.blocks>(sub_mins, sizeof(RunHeader), run + kShape.sub_mins_at());
}

// Sixteen rows of super-blocks at once are more than the machine follows by itself.
inline void fetch_ahead(const std::byte* at, uint64_t bytes) {
  constexpr uint64_t kLine = 64, kAhead = 512;
  for (uint64_t line = 0; line < bytes; line += kLine)
    _mm_prefetch(reinterpret_cast<const char*>(at + kAhead + line), _MM_HINT_T0);
}

template <Layout L, class File>
void pack_runs(const PanelSource& source, uint64_t file_run_bytes, uint64_t k, std::byte* out) {
  constexpr RunShape kShape = run_shape(L);
  RunRows<L> rows;
  const uint64_t runs = k / kShape.values();
  for (uint64_t run = 0; run < runs; ++run, out += kShape.bytes()) {
    const uint64_t at = run * file_run_bytes;
    for (uint32_t r = 0; r < source.count; ++r) {
      if constexpr (kShape.blocks > 1) fetch_ahead(source.row[r] + at, file_run_bytes);
      File::header(source.row[r] + at, rows.headers[r]);
    }
    put_headers(rows, out);
    std::byte* block = out + kShape.blocks_at();
    for (int b = 0; b < kShape.blocks; ++b, block += kShape.block_bytes()) {
      for (uint32_t r = 0; r < source.count; ++r)
        File::words(source.row[r] + at, b, rows.words[r], rows.words[r] + kShape.low_words);
      turn_words<rows.kWords>(reinterpret_cast<const std::byte*>(rows.words), sizeof rows.words[0], block);
    }
  }
}

using PackRuns = void (*)(const PanelSource&, uint64_t, uint64_t, std::byte*);

struct FormatPacker {
  Format format;
  PackRuns pack;
};
constexpr FormatPacker kPackers[] = {
    {Format::Q8_0, pack_runs<Layout::Q8_0, FileQ8_0>},
    {Format::Q4_0, pack_runs<Layout::Q4_0, FileQ4_0>},
    {Format::Q4_1, pack_runs<Layout::Q4_1, FileQ4_1>},
    {Format::Q5_0, pack_runs<Layout::Q5_0, FileQ5_0>},
    {Format::Q5_1, pack_runs<Layout::Q5_1, FileQ5_1>},
    {Format::IQ4_NL, pack_runs<Layout::IQ4_NL, FileQ4_0>},
    {Format::MXFP4, pack_runs<Layout::MXFP4, FileMXFP4>},
    {Format::Q4_K, pack_runs<Layout::Q4_K, FileQ4_K>},
    {Format::Q5_K, pack_runs<Layout::Q5_K, FileQ5_K>},
    {Format::Q6_K, pack_runs<Layout::Q6_K, FileQ6_K>},
    {Format::IQ4_XS, pack_runs<Layout::IQ4_XS, FileIQ4_XS>},
    {Format::Q2_K, pack_runs<Layout::Q2_K, FileQ2_K>},
    {Format::Q3_K, pack_runs<Layout::Q3_K, FileQ3_K>},
    {Format::Q8_K, pack_runs<Layout::Q8_K, FileQ8_K>},
    {Format::NVFP4, pack_runs<Layout::NVFP4, FileNVFP4>},
    {Format::TQ1_0, pack_runs<Layout::TQ2_0, FileTernary<gguf::BlockTQ1_0>>},
    {Format::TQ2_0, pack_runs<Layout::TQ2_0, FileTernary<gguf::BlockTQ2_0>>},
    {Format::IQ1_S, pack_runs<Layout::IQ1_S, FileIQ1_S>},
    {Format::IQ1_M, pack_runs<Layout::IQ1_M, FileIQ1_M>},
    {Format::IQ2_XXS, pack_runs<Layout::IQ2_XXS, FileIQ2_XXS>},
    {Format::IQ2_XS, pack_runs<Layout::IQ2_XS, FileIQ2Halves<gguf::BlockIQ2_XS>>},
    {Format::IQ2_S, pack_runs<Layout::IQ2_XS, FileIQ2Halves<gguf::BlockIQ2_S>>},
    {Format::IQ3_XXS, pack_runs<Layout::IQ3_XXS, FileIQ3_XXS>},
    {Format::IQ3_S, pack_runs<Layout::IQ3_S, FileIQ3_S>},
};

PackRuns packer_of(Format format) {
  const auto* found = std::ranges::find(kPackers, format, &FormatPacker::format);
  TW_CHECK(found != std::end(kPackers), "no packer of {}", gguf::name(format));
  return found->pack;
}

// Transposes k x 16: T is the storage type of one value. Panels that are not full go value by value, as do the inputs
// past the last whole square.
template <class T>
void pack_floats(const PanelSource& source, uint64_t k, std::byte* out) {
  constexpr uint64_t kSquare = 16 / sizeof(T);
  const uint64_t whole = source.count == kPanel ? k / kSquare * kSquare : 0;
  for (uint64_t t = 0; t < whole; t += kSquare) turn_square<T>(source.row, t * sizeof(T), out + t * kPanel * sizeof(T));
  if (source.count < kPanel) std::memset(out, 0, k * kPanel * sizeof(T));
  for (uint64_t t = whole; t < k; ++t)
    for (uint32_t r = 0; r < source.count; ++r)
      std::memcpy(out + (t * kPanel + r) * sizeof(T), source.row[r] + t * sizeof(T), sizeof(T));
}

void pack_widened(const PanelSource& source, Format format, uint64_t k, std::byte* out) {
  std::vector<float> values(k * kPanel);
  PanelSource widened;
  widened.count = source.count;
  for (uint32_t r = 0; r < source.count; ++r) {
    gguf::dequantize(format, source.row[r], values.data() + r * k, k);
    widened.row[r] = reinterpret_cast<const std::byte*>(values.data() + r * k);
  }
  pack_floats<float>(widened, k, out);
}

void pack_panel(const PanelSource& source, const Packed& shape, std::byte* out) {
  if (is_run(shape.layout)) {
    const gguf::FormatInfo& info = gguf::info(shape.format);
    packer_of(shape.format)(source, info.block_bytes, shape.k, out);
  } else if (shape.layout == Layout::F32 && shape.format != Format::F32) {
    pack_widened(source, shape.format, shape.k, out);
  } else if (shape.layout == Layout::F32) {
    pack_floats<uint32_t>(source, shape.k, out);
  } else {
    pack_floats<uint16_t>(source, shape.k, out);
  }
}

}  // namespace

std::span<const WeightFormat> weight_formats() { return kWeightFormats; }

Layout layout_of(Format format) {
  const auto* found = std::ranges::find(kWeightFormats, format, &WeightFormat::format);
  return found == kWeightFormats.end() ? Layout::None : found->layout;
}

bool is_weight_format(Format format) { return layout_of(format) != Layout::None; }

uint64_t Packed::group_panels() const { return (n + kPanel - 1) / kPanel; }

uint64_t Packed::panels() const { return groups * group_panels(); }

uint64_t Packed::panel_bytes() const {
  if (is_run(layout)) return k / run_shape(layout).values() * run_shape(layout).bytes();
  return k * kPanel * (layout == Layout::F32 ? 4 : 2);
}

uint64_t Packed::panel_offset(uint64_t index) const { return index * panel_bytes(); }

uint64_t Packed::bytes() const { return panels() * panel_bytes(); }

Packed describe(Format format, uint64_t n, uint64_t k, uint64_t groups) {
  const Layout layout = layout_of(format);
  TW_CHECK(layout != Layout::None, "{} is not a format of weights", gguf::name(format));
  TW_CHECK(k % gguf::info(format).block == 0, "a row of {} values is not whole blocks of {}", k, gguf::name(format));
  const Term term = gguf::is_quantized(format) ? static_cast<Term>(gguf::run_form(format)) : Term::Scale;
  return {format, layout, term, groups, n, k, nullptr};
}

Packed describe_heads(Format format, uint64_t heads, uint64_t n, uint64_t k) {
  Packed shape = describe(format, n, k, heads);
  if (!is_float(shape.layout)) shape.layout = Layout::F32;
  return shape;
}

uint64_t packed_bytes(Format format, uint64_t n, uint64_t k, uint64_t groups) {
  return describe(format, n, k, groups).bytes();
}

void pack(const graph::Rows& rows, const Packed& shape, std::byte* out, uint64_t begin, uint64_t end) {
  TW_CHECK(rows.row_values == shape.k, "rows of {} values for products over {}", rows.row_values, shape.k);
  TW_CHECK(rows.count >= shape.groups * shape.n, "{} rows for {} outputs", rows.count, shape.groups * shape.n);
  TW_CHECK(rows.format == shape.format, "rows of {} for {}", gguf::name(rows.format), gguf::name(shape.format));
  for (uint64_t panel = begin; panel < end; ++panel)
    pack_panel(source_of(rows, shape, panel), shape, out + shape.panel_offset(panel));
}

void pack_input_rows(const graph::Rows& rows, const Packed& shape, std::byte* out, uint64_t begin, uint64_t end) {
  TW_CHECK(shape.layout == Layout::F32, "rows that are inputs pack to f32");
  TW_CHECK(rows.row_values == shape.n, "rows of {} values for {} outputs", rows.row_values, shape.n);
  TW_CHECK(rows.count >= shape.groups * shape.k, "{} rows for {} inputs", rows.count, shape.groups * shape.k);
  const uint32_t block = gguf::info(rows.format).block;
  const uint32_t block_bytes = gguf::info(rows.format).block_bytes;
  const uint64_t group_panels = shape.group_panels();
  std::vector<float> values(kPanel + 2 * uint64_t{block});
  for (uint64_t panel = begin; panel < end; ++panel) {
    const uint64_t first = panel % group_panels * kPanel;
    const uint64_t count = std::min<uint64_t>(kPanel, shape.n - first);
    const uint64_t first_block = first / block;
    const uint64_t blocks = ceil_div(first + count, block) - first_block;
    std::byte* to = out + shape.panel_offset(panel);
    if (count < kPanel) std::memset(to, 0, shape.panel_bytes());
    for (uint64_t t = 0; t < shape.k; ++t, to += kPanel * sizeof(float)) {
      const std::byte* row = rows.row(panel / group_panels * shape.k + t);
      gguf::dequantize(rows.format, row + first_block * block_bytes, values.data(), blocks * block);
      std::memcpy(to, values.data() + (first - first_block * block), count * sizeof(float));
    }
  }
}

graph::Rows rows_of_values(const float* values, uint64_t rows, uint64_t cols) {
  graph::Rows result;
  result.data = reinterpret_cast<const std::byte*>(values);
  result.row_bytes = cols * sizeof(float);
  result.row_values = cols;
  result.count = rows;
  return result;
}

}  // namespace tw::lane::cpu
