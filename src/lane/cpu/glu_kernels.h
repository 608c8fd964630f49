#pragma once

// Products through a gate (glu.h), as a template over the instruction set.

#include "base/math_contract.h"
#include "lane/cpu/glu.h"
#include "lane/cpu/product_kernel.h"
#include "lane/cpu/reduce.h"

namespace tw::lane::cpu {

template <class S>
struct GluOf {
  using Product = ProductOf<S>;
  using V = typename S::V;

  static V act(const graph::MoeAct& kind, V g, V u) {
    if (kind.kind == graph::MoeAct::Kind::SwiGlu) return S::mul(math::silu<S>(g), u);
    if (kind.kind == graph::MoeAct::Kind::GeGlu) return S::mul(math::gelu<S>(g), u);
    const V limit = S::set(kind.limit);
    g = S::min(g, limit);
    u = S::min(S::max(u, S::neg(limit)), limit);
    const V gate = S::mul(g, math::sigmoid<S>(S::mul(S::set(kind.slope), g)));
    return S::mul(gate, S::add(u, S::set(1.0f)));
  }

  // out[i] = act(gates[i], ups[i]); out may be gates.
  static void activate(const graph::MoeAct& kind, const float* gates, const float* ups, float* out, uint64_t count) {
    each16<S>(0, count, [&](auto lanes, uint64_t i) {
      lanes.store(out + i, act(kind, lanes.load(gates + i), lanes.load(ups + i)));
    });
  }

  static void run(const GluArgs& args, Range range, std::byte* storage) {
    if (range.begin >= range.end) return;
    const uint64_t rows = args.product.rows;
    float* gates = reinterpret_cast<float*>(storage);
    float* ups = gates + rows * kBlock;
    const ProductScratch scratch = product_scratch(args.product, reinterpret_cast<std::byte*>(ups + rows * kBlock));
    const TileInput quant = tile_input(args.product.quant, args.product.parts[0].w.k);
    const uint64_t panels = panels_an_item(args.out);
    const uint64_t n = args.product.parts[0].w.n;
    for (uint64_t item = range.begin; item < range.end; ++item) {
      const uint64_t first = item * panels * kPanel;
      Product::outputs(args.product, args.product.parts[0], 0, item * panels, panels, quant, gates, scratch);
      Product::outputs(args.product, args.product.parts[1], 0, item * panels, panels, quant, ups, scratch);
      const uint64_t count = least(panels * kPanel, n - first);
      for (uint64_t r = 0; r < rows; ++r) {
        float* values = gates + r * kBlock;
        activate(args.act, values, ups + r * kBlock, values, count);
        store_values<S>(args.out, r, first, values, count);
      }
    }
  }
};

}  // namespace tw::lane::cpu
