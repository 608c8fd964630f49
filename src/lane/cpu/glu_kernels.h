#pragma once

// Products through a gate (glu.h), as a template over the instruction set.

#include "base/math_contract.h"
#include "lane/cpu/glu.h"
#include "lane/cpu/product_kernel.h"
#include "lane/cpu/reduce.h"
#include "lane/cpu/streams.h"

namespace tw::lane::cpu {

template <class S>
struct GluOf {
  using Product = ProductOf<S>;
  using V = typename S::V;

  // The activations of g and u, each step rounded.
  struct SwiGlu {
    TW_INLINE V operator()(V g, V u) const { return S::mul(math::silu<S>(g), u); }
  };
  struct GeGlu {
    TW_INLINE V operator()(V g, V u) const { return S::mul(math::gelu<S>(g), u); }
  };
  struct ClampedSwiGlu {
    float limit, slope;
    TW_INLINE V operator()(V g, V u) const {
      const V most = S::set(limit);
      g = S::min(g, most);
      u = S::min(S::max(u, S::neg(most)), most);
      const V gate = S::mul(g, math::sigmoid<S>(S::mul(S::set(slope), g)));
      return S::mul(gate, S::add(u, S::set(1.0f)));
    }
  };

  template <class Act>
  static void each(Act act, const float* gates, const float* ups, float* out, uint64_t count) {
    each16<S>(0, count,
              [&](auto lanes, uint64_t i) { lanes.store(out + i, act(lanes.load(gates + i), lanes.load(ups + i))); });
  }

  static constexpr uint64_t kStoredRows = 16;  // that are activated together

  // out[i] = act(gates[i], ups[i]); out may be gates.
  static void activate(const graph::MoeAct& kind, const float* gates, const float* ups, float* out, uint64_t count) {
    switch (kind.kind) {
      case graph::MoeAct::Kind::SwiGlu: return each(SwiGlu{}, gates, ups, out, count);
      case graph::MoeAct::Kind::GeGlu: return each(GeGlu{}, gates, ups, out, count);
      case graph::MoeAct::Kind::ClampedSwiGlu:
        return each(ClampedSwiGlu{kind.limit, kind.slope}, gates, ups, out, count);
    }
  }

  // gates = act(gates, ups) of the first `count` values of each row, rows kBlock apart. Whole rows are activated
  // together: one by one each would wait for its own exp before the next begins.
  static void activate_rows(const graph::MoeAct& kind, float* gates, const float* ups, uint64_t rows, uint64_t count) {
    if (count == kBlock) return activate(kind, gates, ups, gates, rows * kBlock);
    for (uint64_t end = rows * kBlock, i = 0; i < end; i += kBlock)
      activate(kind, gates + i, ups + i, gates + i, count);
  }

  // Items of one row: of several at once first all gates, then all ups, as one set of panels where both are alike.
  static void row_items(const GluArgs& args, Range range, float* gates, float* ups, const ProductScratch& scratch) {
    const ProductPart &gate = args.product.parts[0], &up = args.product.parts[1];
    const auto in = Product::row_input(args.product, gate.w);
    const uint64_t panels = panels_an_item(args.out);
    constexpr int kItems = kStreams / 2;
    for_streams(range, kItems, [&](const StreamItems& items) {
      for (uint64_t half = 0; half < panels; ++half) {
        const std::byte* at[kStreams];
        const int count = stream_panels(gate.w, items, panels, half, at);
        stream_panels(up.w, items, panels, half, at + count);
        const bool alike = gate.w.layout == up.w.layout;
        Product::row_panels(gate.w, at, alike ? 2 * count : count, args.product.words, in, scratch.total);
        float* up_total = scratch.total + count * int{kPanel};
        if (!alike) Product::row_panels(up.w, at + count, count, args.product.words, in, up_total);
        for (int i = 0; i < count; ++i) {
          const uint64_t first = (items[i] * panels + half) * kPanel,
                         to = static_cast<uint64_t>(i) * kBlock + half * kPanel;
          Product::finish_panel(gate.w, gate.bias, first, scratch.total + i * int{kPanel}, gates + to);
          Product::finish_panel(up.w, up.bias, first, up_total + i * int{kPanel}, ups + to);
        }
      }
      for (int i = 0; i < items.count; ++i) store(args, items[i], 0, 1, gates + i * int{kBlock}, ups + i * int{kBlock});
    });
  }

  // An item's outputs of the rows [r, r + rows) from its gates and ups, kBlock a row.
  static void store(const GluArgs& args, uint64_t item, uint64_t r, uint64_t rows, float* gates, const float* ups) {
    const uint64_t outputs = panels_an_item(args.out) * kPanel, first = item * outputs;
    const uint64_t count = least(outputs, args.product.parts[0].w.n - first);
    activate_rows(args.act, gates, ups, rows, count);
    for (uint64_t i = 0; i < rows; ++i) store_values<S>(args.out, r + i, first, gates + i * kBlock, count);
  }

  static void run(const GluArgs& args, Range range, std::byte* storage) {
    if (range.begin >= range.end) return;
    const uint64_t rows = args.product.rows;
    const ProductPart* parts = args.product.parts;
    float* gates = reinterpret_cast<float*>(storage);
    float* ups = gates + glu_slots(args) * kBlock;
    const ProductScratch scratch =
        product_scratch(args.product, reinterpret_cast<std::byte*>(ups + glu_slots(args) * kBlock));
    const TileInput quant = tile_input(args.product.quant, parts[0].w.k);
    if (in_streams(args.product, parts[0]) && in_streams(args.product, parts[1]))
      return row_items(args, range, gates, ups, scratch);
    const uint64_t panels = panels_an_item(args.out);
    for (uint64_t item = range.begin; item < range.end; ++item) {
      const uint64_t panel = item * panels, count = least(panels, parts[0].w.panels() - panel);
      typename Product::PanelOf both[kPassPanels];
      for (uint64_t p = 0; p < count; ++p) {
        both[p] = {&parts[0], panel + p};
        both[count + p] = {&parts[1], panel + p};
      }
      Product::multiply(args.product, both, 2 * count, rows, quant, scratch);
      const int words = args.product.words;
      Product::finish(parts[0].w, parts[0].bias, panel * kPanel, count, gates, kBlock, rows, words, scratch);
      Product::finish(parts[1].w, parts[1].bias, panel * kPanel, count, ups, kBlock, rows, words,
                      Product::from_row(scratch, count * rows));
      for (uint64_t r = 0; r < rows; r += kStoredRows)
        store(args, item, r, least(kStoredRows, rows - r), gates + r * kBlock, ups + r * kBlock);
    }
  }
};

}  // namespace tw::lane::cpu
