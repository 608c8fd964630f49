#pragma once

// The product kernel over an instruction set: panels, and within a panel strips of weights that all rows multiply
// before the next strip is read. Only for the units of one instruction set (product_scalar.cc, _avx2.cc, _avx512.cc).

#include "lane/cpu/product.h"
#include "lane/cpu/product_block.h"
#include "lane/cpu/product_float.h"
#include "lane/cpu/product_row.h"
#include "lane/cpu/product_tile.h"

namespace tw::lane::cpu {

template <class S>
struct ProductOf {
  using Scratch = ProductScratch;

  // What one panel is multiplied by.
  struct Input {
    const float* x;
    uint64_t x_pitch;
    TileInput quant;
    uint64_t rows;
  };

  template <class Source, int kWords>
  static void segment_rows(Source source, uint32_t blocks, const TileInput& x, uint64_t rows, const Scratch& scratch) {
    float* total = scratch.total;
    uint64_t r = 0;
    if constexpr (S::kBlockRows > 1) {
      if (rows >= kBlockFrom)
        return block_segment<S, Source, kWords>(source, blocks, x, rows, total, *scratch.unpacked);
      for (; rows - r >= 2; r += 2)
        SegmentTile<S, Source, kWords, 2>::run(source, blocks, x.at(r, 0), total + r * kPanel);
    }
    for (; r < rows; ++r) SegmentTile<S, Source, kWords, 1>::run(source, blocks, x.at(r, 0), total + r * kPanel);
  }

  // ---- packed runs ----
  template <Layout L>
  static void run_panel(const std::byte* panel, uint64_t k, int words, const Input& in, const Scratch& scratch) {
    using Source = RunSource<S, L>;
    if (in.rows == 1 && words == 1) return RowPanel<S, Source, 1>::run(panel, k / kBlock, in.quant, scratch.total);
    if (in.rows == 1 && words == 2) return RowPanel<S, Source, 2>::run(panel, k / kBlock, in.quant, scratch.total);
    for (uint64_t block = 0; block < k / kBlock; block += kSegmentBlocks) {
      const uint64_t left = k / kBlock - block;
      const auto blocks = static_cast<uint32_t>(left < kSegmentBlocks ? left : kSegmentBlocks);
      const Source source{panel + block / Source::kBlocks * Source::kBytes};
      if (words == 0) {
        Widen<S, Source>::run(source, blocks, scratch.widened);
        precise_strip<S>(scratch.widened, blocks * kBlock, kRunStrip, in.x + block * kBlock, in.x_pitch, in.rows,
                         scratch.total64);
      } else if (words == 1) {
        segment_rows<Source, 1>(source, blocks, in.quant.at(0, block), in.rows, scratch);
      } else {
        segment_rows<Source, 2>(source, blocks, in.quant.at(0, block), in.rows, scratch);
      }
    }
  }

  // ---- floating-point weights ----
  template <Layout L>
  static void float_panel(const std::byte* panel, uint64_t k, int words, const Input& in, const Scratch& scratch) {
    for (uint64_t t = 0; t < k; t += kFloatStrip) {
      const auto values = static_cast<uint32_t>(k - t < kFloatStrip ? k - t : kFloatStrip);
      const std::byte* w = panel + t * kPanel * FloatWeights<S, L>::kValueBytes;
      if (words == 0) {
        widen_floats<S, L>(w, values, scratch.widened);
        precise_strip<S>(scratch.widened, values, kFloatSegment, in.x + t, in.x_pitch, in.rows, scratch.total64);
      } else {
        float_strip<S, L>(w, values, in.x + t, in.x_pitch, in.rows, scratch.total);
      }
    }
  }

  // ---- all ----
  static void panel(const Packed& w, uint64_t index, int words, const Input& in, const Scratch& scratch) {
    using Panel = void (*)(const std::byte*, uint64_t, int, const Input&, const Scratch&);
    static constexpr Panel kPanels[] = {
        float_panel<Layout::F32>,  float_panel<Layout::F16>,   float_panel<Layout::BF16>, run_panel<Layout::Q8_0>,
        run_panel<Layout::Q4_0>,   run_panel<Layout::Q4_1>,    run_panel<Layout::Q5_0>,   run_panel<Layout::Q5_1>,
        run_panel<Layout::IQ4_NL>, run_panel<Layout::MXFP4>,   run_panel<Layout::Q4_K>,   run_panel<Layout::Q5_K>,
        run_panel<Layout::Q6_K>,   run_panel<Layout::IQ4_XS>,  run_panel<Layout::Q2_K>,   run_panel<Layout::Q3_K>,
        run_panel<Layout::Q8_K>,   run_panel<Layout::NVFP4>,   run_panel<Layout::TQ2_0>,  run_panel<Layout::IQ1_S>,
        run_panel<Layout::IQ1_M>,  run_panel<Layout::IQ2_XXS>, run_panel<Layout::IQ2_XS>, run_panel<Layout::IQ3_XXS>,
        run_panel<Layout::IQ3_S>};
    kPanels[static_cast<int>(w.layout) - static_cast<int>(Layout::F32)](w.data + w.panel_offset(index), w.k, words, in,
                                                                        scratch);
  }

  // The sums of outputs first.., bias added, of row r to to + r * pitch.
  static void finish(const Packed& w, const float* bias, uint64_t first, float* to, uint64_t pitch, uint64_t rows,
                     int words, const Scratch& scratch) {
    const int count = w.n - first < kPanel ? static_cast<int>(w.n - first) : static_cast<int>(kPanel);
    for (uint64_t r = 0; r < rows; ++r, to += pitch) {
      float* total = scratch.total + r * kPanel;
      if (words == 0)
        for (uint32_t l = 0; l < kPanel; ++l) total[l] = static_cast<float>(scratch.total64[r * kPanel + l]);
      typename S::V sum = S::load(total);
      if (bias) sum = S::add(sum, count == 16 ? S::load(bias + first) : S::load(bias + first, count));
      if (count == 16)
        S::store(to, sum);
      else
        S::store(to, sum, count);
    }
  }

  static void clear(uint64_t rows, int words, const Scratch& scratch) {
    __builtin_memset(scratch.total, 0, rows * kPanel * sizeof(float));
    if (words == 0) __builtin_memset(scratch.total64, 0, rows * kPanel * sizeof(double));
  }

  // The sums of panel `index` of all of the part, in scratch.
  static void multiply(const ProductArgs& args, const ProductPart& part, uint64_t index, uint64_t rows,
                       const TileInput& quant, const Scratch& scratch) {
    clear(rows, args.words, scratch);
    const uint64_t at = args.x_offset + index / part.w.group_panels() * part.x_group;
    if (args.x_type == Dtype::F32) {
      const float* x = args.x ? static_cast<const float*>(args.x) + at : nullptr;
      return panel(part.w, index, args.words, {x, args.x_pitch, quant, rows}, scratch);
    }
    for (uint64_t r = 0; r < rows; r += kWidenedRows) {
      const uint64_t count = rows - r < kWidenedRows ? rows - r : kWidenedRows;
      widen(args, at + r * args.x_pitch, count, part.w.k, scratch.widened_x);
      Scratch slab = scratch;
      slab.total += r * kPanel;
      slab.total64 += r * kPanel;
      panel(part.w, index, args.words, {scratch.widened_x, part.w.k, quant, count}, slab);
    }
  }

  // `rows` rows of 16-bit x from element `at` on, as dense f32 rows of k.
  static void widen(const ProductArgs& args, uint64_t at, uint64_t rows, uint64_t k, float* to) {
    with_stored<S>(args.x_type, [&](auto stored) {
      const auto* x = static_cast<const typename decltype(stored)::Element*>(args.x) + at;
      for (uint64_t r = 0; r < rows; ++r) convert<S>(stored, x + r * args.x_pitch, StoredF32<S>{}, to + r * k, k);
    });
  }

  // `panels` panels (1 or 2, as many as there are) of group `group` from its panel `first` on, finished: row r to
  // to + 32 r.
  static void outputs(const ProductArgs& args, const ProductPart& part, uint64_t group, uint64_t first, uint64_t panels,
                      const TileInput& quant, float* to, const Scratch& scratch) {
    const uint64_t rows = product_rows(args), of_group = part.w.group_panels();
    for (uint64_t p = 0; p < panels && first + p < of_group; ++p) {
      multiply(args, part, group * of_group + first + p, rows, quant, scratch);
      finish(part.w, part.bias, (first + p) * kPanel, to + p * kPanel, kBlock, rows, args.words, scratch);
    }
  }

  // One item of a part: multiplied and stored.
  static void item(const ProductArgs& args, const ProductPart& part, uint64_t index, uint64_t rows,
                   const TileInput& quant, const Scratch& scratch) {
    const uint64_t groups = part.w.groups, of_group = part.w.group_panels();
    if (stores_quantized(part.y)) {
      const uint64_t pairs = (of_group + 1) / 2, group = index / pairs, first = index % pairs * 2;
      outputs(args, part, group, first, 2, quant, scratch.block, scratch);
      const uint64_t count = least(kBlock, part.w.n - first * kPanel);
      for (uint64_t r = 0; r < rows; ++r)
        store_values<S>(part.y, r * groups + group, first * kPanel, scratch.block + r * kBlock, count);
      return;
    }
    const uint64_t group = index / of_group, first = index % of_group * kPanel;
    multiply(args, part, index, rows, quant, scratch);
    if (stores_directly(part.y)) {
      float* to = plain_unit(part.y, group) + first;
      return finish(part.w, part.bias, first, to, groups * part.y.unit_pitch, rows, args.words, scratch);
    }
    finish(part.w, part.bias, first, scratch.total, kPanel, rows, args.words, scratch);
    for (uint64_t r = 0; r < rows; ++r)
      store_values<S>(part.y, r * groups + group, first, scratch.total + r * kPanel, least(kPanel, part.w.n - first));
  }

  static void run(const ProductArgs& args, Range range, std::byte* storage) {
    if (range.begin >= range.end) return;
    const Scratch scratch = product_scratch(args, storage);
    const TileInput quant = tile_input(args.quant, args.parts[0].w.k);
    const uint64_t rows = product_rows(args);
    ProductItem at = product_item(args, range.begin);
    for (uint64_t i = range.begin; i < range.end; ++i, ++at.item) {
      if (at.item == items(args.parts[at.part])) at = product_item(args, i);
      item(args, args.parts[at.part], at.item, rows, quant, scratch);
    }
  }
};

}  // namespace tw::lane::cpu
