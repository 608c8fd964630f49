#pragma once

// The product kernel over an instruction set: passes over a few panels, and within a panel strips of weights that all
// rows multiply before the next strip is read. Only for the units of one instruction set (product_scalar.cc, _avx2.cc,
// _avx512.cc).

#include <type_traits>

#include "lane/cpu/product.h"
#include "lane/cpu/product_block.h"
#include "lane/cpu/product_float.h"
#include "lane/cpu/product_row.h"
#include "lane/cpu/streams.h"

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

  // ---- packed runs ----

  // What a layout is multiplied by: `words` 1 and 2 at [words - 1], of unpack precise at [0] and `words` at [words].
  struct RunKernels {
    using Panels = void (*)(const std::byte* const* panels, uint64_t blocks, const TileInput& x, float* total);
    uint32_t blocks, bytes;  // of a run
    Term term;
    Panels row[2];
    Panels two_rows[2];  // null: row by row
    Panels streams;      // one row of one word by kStreams panels; null: panel by panel
    void (*unpack[3])(const std::byte* runs, uint32_t blocks, BlockWeights& out);
    void (*tiles[2])(BlockWeights& weights, uint32_t blocks, const TileInput& x, uint64_t rows, float* total);
    bool wide[2];  // tiles read the wide words
  };

  template <Layout L>
  static constexpr RunKernels run_kernels() {
    using Source = RunSource<S, L>;
    RunKernels kernels{};
    kernels.blocks = Source::kBlocks;
    kernels.bytes = Source::kBytes;
    kernels.term = Source::kTerm;
    kernels.row[0] = RowPanels<S, Source, 1, 1, 1>::run;
    kernels.row[1] = RowPanels<S, Source, 2, 1, 1>::run;
    kernels.unpack[0] = UnpackBlocks<S, Source, BlockForm::Wide>::run;
    if constexpr (S::kBlockRows > 1) {
      using One = BlockFormOf<S, Source, 1>;
      using Two = BlockFormOf<S, Source, 2>;
      kernels.two_rows[0] = RowPanels<S, Source, 1, 2, 1>::run;
      kernels.two_rows[1] = RowPanels<S, Source, 2, 2, 1>::run;
      kernels.streams = RowPanels<S, Source, 1, 1, kStreams>::run;
      kernels.unpack[1] = UnpackBlocks<S, Source, One::kForm>::run;
      kernels.unpack[2] = UnpackBlocks<S, Source, Two::kForm>::run;
      kernels.tiles[0] = block_tiles<S, One, S::kBlockRows>;
      kernels.tiles[1] = block_tiles<S, Two, S::kBlockRows>;
      kernels.wide[0] = One::kForm == BlockForm::Wide;
      kernels.wide[1] = Two::kForm == BlockForm::Wide;
    }
    return kernels;
  }

  static const RunKernels& runs_of(Layout layout) {
    static constexpr RunKernels kRuns[] = {
        run_kernels<Layout::Q8_0>(),    run_kernels<Layout::Q4_0>(),   run_kernels<Layout::Q4_1>(),
        run_kernels<Layout::Q5_0>(),    run_kernels<Layout::Q5_1>(),   run_kernels<Layout::IQ4_NL>(),
        run_kernels<Layout::MXFP4>(),   run_kernels<Layout::Q4_K>(),   run_kernels<Layout::Q5_K>(),
        run_kernels<Layout::Q6_K>(),    run_kernels<Layout::IQ4_XS>(), run_kernels<Layout::Q2_K>(),
        run_kernels<Layout::Q3_K>(),    run_kernels<Layout::Q8_K>(),   run_kernels<Layout::NVFP4>(),
        run_kernels<Layout::TQ2_0>(),   run_kernels<Layout::IQ1_S>(),  run_kernels<Layout::IQ1_M>(),
        run_kernels<Layout::IQ2_XXS>(), run_kernels<Layout::IQ2_XS>(), run_kernels<Layout::IQ3_XXS>(),
        run_kernels<Layout::IQ3_S>()};
    static_assert(sizeof kRuns / sizeof *kRuns == kRunLayouts);
    return kRuns[static_cast<int>(layout) - kFirstRunLayout];
  }

  static void few_rows(const RunKernels& kernels, const std::byte* panel, uint64_t blocks, int words, const Input& in,
                       float* total) {
    uint64_t r = 0;
    if (const auto two_rows = kernels.two_rows[words - 1])
      for (; in.rows - r >= 2; r += 2) two_rows(&panel, blocks, in.quant.at(r, 0), total + r * kPanel);
    for (; r < in.rows; ++r) kernels.row[words - 1](&panel, blocks, in.quant.at(r, 0), total + r * kPanel);
  }

  static void run_panel(const RunKernels& kernels, const std::byte* panel, uint64_t k, int words, const Input& in,
                        const Scratch& scratch) {
    const uint64_t all = k / kBlock;
    if (words != 0 && in.rows == 1) return kernels.row[words - 1](&panel, all, in.quant, scratch.total);
    if (words != 0) return few_rows(kernels, panel, all, words, in, scratch.total);
    for (uint64_t block = 0; block < all; block += kSegmentBlocks) {
      const auto blocks = static_cast<uint32_t>(least(kSegmentBlocks, all - block));
      unpack(kernels, panel, block, blocks, words, *scratch.unpacked);
      widen_blocks<S>(*scratch.unpacked, kernels.term, blocks, scratch.widened);
      precise_strip<S>(scratch.widened, blocks * kBlock, kRunStrip, in.x + block * kBlock, in.x_pitch, in.rows,
                       scratch.total64);
    }
  }

  static void unpack(const RunKernels& kernels, const std::byte* panel, uint64_t block, uint32_t blocks, int words,
                     BlockWeights& to) {
    kernels.unpack[words](panel + block / kernels.blocks * kernels.bytes, blocks, to);
  }

  // ---- packed runs unpacked for many rows ----

  struct Piece {
    const RunKernels* kernels;
    const std::byte* panel;
    BlockWeights* unpacked;
    float* total;
  };

  static bool in_pieces(const Packed& w, int words, uint64_t rows) {
    return S::kBlockRows > 1 && words != 0 && rows >= kBlockFrom && !is_float(w.layout);
  }
  static Piece piece(const Packed& w, uint64_t index, BlockWeights* unpacked, float* total) {
    return {&runs_of(w.layout), w.data + w.panel_offset(index), unpacked, total};
  }

  // The second-level cache holds kPassRows rows of a segment, however far apart they lie, until all pieces have
  // multiplied them.
  static void run_pieces(const Piece* pieces, uint64_t count, uint64_t k, int words, const TileInput& quant,
                         uint64_t rows) {
    const uint64_t all = k / kBlock;
    for (uint64_t block = 0; block < all; block += kSegmentBlocks) {
      const auto blocks = static_cast<uint32_t>(least(kSegmentBlocks, all - block));
      for (uint64_t p = 0; p < count; ++p)
        unpack(*pieces[p].kernels, pieces[p].panel, block, blocks, words, *pieces[p].unpacked);
      for (uint64_t r = 0; r < rows; r += kPassRows) {
        const uint64_t together = least(kPassRows, rows - r);
        for (uint64_t p = 0; p < count; ++p) {
          float* total = pieces[p].total + r * kPanel;
          if (block == 0) __builtin_memset(total, 0, together * kPanel * sizeof(float));
          pieces[p].kernels->tiles[words - 1](*pieces[p].unpacked, blocks, quant.at(r, block), together, total);
        }
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
  // Whether products of so many rows by w read the wide words of the activation; else they read the high ones, or none.
  static bool reads_wide(const Packed& w, int words, uint64_t rows) {
    if (words == 0 || is_float(w.layout)) return false;
    return in_pieces(w, words, rows) ? runs_of(w.layout).wide[words - 1] : words == 2;
  }

  // The sums of one panel, to the begin of scratch.
  static void panel(const Packed& w, uint64_t index, int words, const Input& in, const Scratch& scratch) {
    using FloatPanel = void (*)(const std::byte*, uint64_t, int, const Input&, const Scratch&);
    static constexpr FloatPanel kFloats[] = {float_panel<Layout::F32>, float_panel<Layout::F16>,
                                             float_panel<Layout::BF16>};
    if (in_pieces(w, words, in.rows)) {
      const Piece one = piece(w, index, scratch.unpacked, scratch.total);
      return run_pieces(&one, 1, w.k, words, in.quant, in.rows);
    }
    __builtin_memset(scratch.total, 0, in.rows * kPanel * sizeof(float));
    if (words == 0) __builtin_memset(scratch.total64, 0, in.rows * kPanel * sizeof(double));
    const std::byte* data = w.data + w.panel_offset(index);
    if (is_float(w.layout))
      kFloats[static_cast<int>(w.layout) - static_cast<int>(Layout::F32)](data, w.k, words, in, scratch);
    else
      run_panel(runs_of(w.layout), data, w.k, words, in, scratch);
  }

  // Outputs first.. from their sums, bias added.
  static void finish_panel(const Packed& w, const float* bias, uint64_t first, const float* total, float* to) {
    const int count = w.n - first < kPanel ? static_cast<int>(w.n - first) : static_cast<int>(kPanel);
    typename S::V sum = S::load(total);
    if (bias) sum = S::add(sum, count == 16 ? S::load(bias + first) : S::load(bias + first, count));
    if (count == 16)
      S::store(to, sum);
    else
      S::store(to, sum, count);
  }

  // The same of `panels` panels and every row: of row r to to + r * pitch.
  static void finish(const Packed& w, const float* bias, uint64_t first, uint64_t panels, float* to, uint64_t pitch,
                     uint64_t rows, int words, const Scratch& scratch) {
    constexpr uint64_t kRowsAhead = 8;  // rows lie on pages of their own: their lines are asked for before
    for (uint64_t r = 0; r < rows; ++r, to += pitch)
      for (uint64_t p = 0; p < panels; ++p) {
        __builtin_prefetch(to + kRowsAhead * pitch + p * kPanel, 1);
        const uint64_t at = (p * rows + r) * kPanel;
        float* total = scratch.total + at;
        if (words == 0)
          for (uint32_t l = 0; l < kPanel; ++l) total[l] = static_cast<float>(scratch.total64[at + l]);
        finish_panel(w, bias, first + p * kPanel, total, to + p * kPanel);
      }
  }

  // Scratch for the sums from row `row` on.
  static Scratch from_row(Scratch scratch, uint64_t row) {
    scratch.total += row * kPanel;
    scratch.total64 += row * kPanel;
    return scratch;
  }

  struct PanelOf {
    const ProductPart* part;
    uint64_t index;  // of all of the part
  };

  // The sums of `count` panels, at most kPassPanels, one after the other in scratch.
  static void multiply(const ProductArgs& args, const PanelOf* panels, uint64_t count, uint64_t rows,
                       const TileInput& quant, const Scratch& scratch) {
    Piece pieces[kPassPanels];
    uint64_t in_pass = 0;
    for (uint64_t p = 0; p < count; ++p) {
      const Packed& w = panels[p].part->w;
      const Scratch own = from_row(scratch, p * rows);
      if (in_pieces(w, args.words, rows))
        pieces[in_pass++] = piece(w, panels[p].index, scratch.unpacked + p, own.total);
      else
        multiply_alone(args, panels[p], rows, quant, own);
    }
    run_pieces(pieces, in_pass, args.parts[0].w.k, args.words, quant, rows);
  }

  static void multiply_alone(const ProductArgs& args, PanelOf panel_of, uint64_t rows, const TileInput& quant,
                             const Scratch& scratch) {
    const Packed& w = panel_of.part->w;
    const uint64_t at = args.x_offset + panel_of.index / w.group_panels() * panel_of.part->x_group;
    if (args.x_type == Dtype::F32) {
      const float* x = args.x ? static_cast<const float*>(args.x) + at : nullptr;
      return panel(w, panel_of.index, args.words, {x, args.x_pitch, quant, rows}, scratch);
    }
    for (uint64_t r = 0; r < rows; r += kWidenedRows) {
      const uint64_t count = least(kWidenedRows, rows - r);
      widen(args, at + r * args.x_pitch, count, w.k, scratch.widened_x);
      panel(w, panel_of.index, args.words, {scratch.widened_x, w.k, quant, count}, from_row(scratch, r));
    }
  }

  // `rows` rows of 16-bit x from element `at` on, as dense f32 rows of k.
  static void widen(const ProductArgs& args, uint64_t at, uint64_t rows, uint64_t k, float* to) {
    with_stored<S>(args.x_type, [&](auto stored) {
      const auto* x = static_cast<const typename decltype(stored)::Element*>(args.x) + at;
      for (uint64_t r = 0; r < rows; ++r) convert<S>(stored, x + r * args.x_pitch, StoredF32<S>{}, to + r * k, k);
    });
  }

  // Items from `item` of a part on, as many as a pass takes but at most `most` and of one group, multiplied and stored;
  // their count.
  static uint64_t pass(const ProductArgs& args, const ProductPart& part, uint64_t item, uint64_t most, uint64_t rows,
                       const TileInput& quant, const Scratch& scratch) {
    const uint64_t an_item = panels_an_item(part.y), of_group = part.w.group_panels();
    const uint64_t group_items = (of_group + an_item - 1) / an_item, group = item / group_items;
    const uint64_t count = least(least(most, kPassPanels / an_item), group_items - item % group_items);
    const uint64_t begin = item % group_items * an_item, panels = least(count * an_item, of_group - begin);
    PanelOf panels_of[kPassPanels];
    for (uint64_t p = 0; p < panels; ++p) panels_of[p] = {&part, group * of_group + begin + p};
    multiply(args, panels_of, panels, rows, quant, scratch);
    const uint64_t first = begin * kPanel, width = panels * kPanel, groups = part.w.groups;
    const bool direct = stores_directly(part.y);
    float* to = direct ? plain_unit(part.y, group) + first : scratch.block;
    finish(part.w, part.bias, first, panels, to, direct ? groups * part.y.unit_pitch : width, rows, args.words,
           scratch);
    if (!direct)
      for (uint64_t r = 0; r < rows; ++r)
        store_values<S>(part.y, r * groups + group, first, to + r * width, least(width, part.w.n - first));
    return count;
  }

  // ---- one row ----

  static Input row_input(const ProductArgs& args, const Packed& w) {
    const float* x = args.x ? static_cast<const float*>(args.x) + args.x_offset : nullptr;
    return {x, w.k, tile_input(args.quant, w.k), 1};
  }

  // The sums of `count` panels of the layout and depth of `w` by one row, to total[p][16].
  static void row_panels(const Packed& w, const std::byte* const* panels, int count, int words, const Input& in,
                         float* total) {
    if (is_float(w.layout)) return float_row_panels(w, panels, count, in.x, total);
    const RunKernels& kernels = runs_of(w.layout);
    const uint64_t blocks = w.k / kBlock;
    if (kernels.streams && words == 1 && count == kStreams) return kernels.streams(panels, blocks, in.quant, total);
    for (int p = 0; p < count; ++p) kernels.row[words - 1](panels + p, blocks, in.quant, total + p * int{kPanel});
  }
  static void float_row_panels(const Packed& w, const std::byte* const* panels, int count, const float* x,
                               float* total) {
    with_floats(w.layout, [&](auto layout) {
      constexpr Layout L = decltype(layout)::value;
      if (count == kStreams) return float_streams<S, L>(panels, w.k, x, total);
      __builtin_memset(total, 0, static_cast<size_t>(count) * kPanel * sizeof(float));
      for (int p = 0; p < count; ++p)
        float_strip<S, L>(panels[p], static_cast<uint32_t>(w.k), x, w.k, 1, total + p * int{kPanel});
    });
  }
  template <class Work>
  static void with_floats(Layout layout, Work work) {
    if (layout == Layout::F32) return work(std::integral_constant<Layout, Layout::F32>{});
    if (layout == Layout::F16) return work(std::integral_constant<Layout, Layout::F16>{});
    work(std::integral_constant<Layout, Layout::BF16>{});
  }

  // Items of a part by one row.
  static void row_items(const ProductArgs& args, const ProductPart& part, Range range, const Scratch& scratch) {
    const Packed& w = part.w;
    const Input in = row_input(args, w);
    const uint64_t panels = panels_an_item(part.y);
    const bool direct = stores_directly(part.y);
    float* const plain = direct ? plain_unit(part.y, 0) : nullptr;
    for_streams(range, kStreams, [&](const StreamItems& items) {
      for (uint64_t half = 0; half < panels; ++half) {
        const std::byte* at[kStreams];
        const int count = stream_panels(w, items, panels, half, at);
        row_panels(w, at, count, args.words, in, scratch.total);
        for (int i = 0; i < count; ++i) {
          const uint64_t first = (items[i] * panels + half) * kPanel;
          finish_panel(w, part.bias, first, scratch.total + i * int{kPanel},
                       direct ? plain + first : scratch.block + i * int{kBlock} + half * kPanel);
        }
      }
      for (int i = 0; !direct && i < items.count; ++i) {
        const uint64_t first = items[i] * panels * kPanel;
        store_values<S>(part.y, 0, first, scratch.block + i * int{kBlock}, least(panels * kPanel, w.n - first));
      }
    });
  }

  // ---- all ----
  static void run(const ProductArgs& args, Range range, std::byte* storage) {
    if (range.begin >= range.end) return;
    const Scratch scratch = product_scratch(args, storage);
    const TileInput quant = tile_input(args.quant, args.parts[0].w.k);
    const uint64_t rows = product_rows(args);
    for (uint64_t begin = range.begin; begin < range.end;) {
      const ProductItem at = product_item(args, begin);
      const ProductPart& part = args.parts[at.part];
      const uint64_t count = least(range.end - begin, items(part) - at.item);
      if (in_streams(args, part) && rows == 1)
        row_items(args, part, {at.item, at.item + count}, scratch);
      else
        for (uint64_t done = 0; done < count;)
          done += pass(args, part, at.item + done, count - done, rows, quant, scratch);
      begin += count;
    }
  }
};

}  // namespace tw::lane::cpu
