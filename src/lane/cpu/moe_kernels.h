#pragma once

// The phases of the mixture that use vectors (moe.h), as templates over the instruction set.

#include "lane/cpu/glu_kernels.h"
#include "lane/cpu/moe.h"
#include "lane/cpu/norm_kernels.h"
#include "lane/cpu/product_kernel.h"
#include "lane/cpu/quant_kernels.h"

namespace tw::lane::cpu {

template <class S>
struct MoeOf {
  using Product = ProductOf<S>;
  using V = typename S::V;

  static void logits(const MoeArgs& args, Range range, std::byte* scratch) {
    ProductPart part;
    part.w = args.router;
    part.bias = args.router_bias;
    part.y = store_rows(args.work.scores, args.spec.experts);
    ProductArgs product;
    product.parts = &part;
    product.part_count = 1;
    product.rows = args.rows;
    product.words = args.words;
    product.x = args.x;
    product.x_pitch = args.x_pitch;
    product.quant = args.quant;
    Product::run(product, range, scratch);
  }

  static void choose(const MoeArgs& args, Range range, std::byte* scratch) {
    const uint64_t experts = args.spec.experts;
    for (uint64_t row = range.begin; row < range.end; ++row) {
      float* scores = args.work.scores + row * experts;
      if (args.spec.score == graph::ScoreKind::Softmax) {
        SoftmaxArgs softmax_args;
        softmax_args.x = softmax_args.y = scores;
        softmax_args.rows = 1;
        softmax_args.cols = experts;
        softmax<S>(softmax_args, {0, 1}, nullptr);
      } else {
        each16<S>(0, experts,
                  [&](auto lanes, uint64_t e) { lanes.store(scores + e, math::sigmoid<S>(lanes.load(scores + e))); });
      }
      moe_choose_row(args, row, reinterpret_cast<uint8_t*>(scratch));
    }
  }

  static void gather(const MoeArgs& args, Range range, std::byte*) {
    const MoeWork& work = args.work;
    for (uint64_t slot = range.begin; slot < range.end; ++slot) {
      const uint64_t pick = work.pick_of[slot];
      const uint64_t row = pick / args.spec.used;
      const V factor = S::set(args.spec.weigh_inputs ? work.pick_scores[pick] * args.spec.scale : 1.0f);
      if (work.input) {
        const float* from = args.x + row * args.x_pitch;
        float* to = work.input + slot * args.d;
        each16<S>(0, args.d,
                  [&](auto lanes, uint64_t i) { lanes.store(to + i, S::mul(factor, lanes.load(from + i))); });
      }
      if (!work.input_quant.scale) continue;
      const uint64_t blocks = args.d / kBlock;
      if (args.spec.weigh_inputs)
        quantize(work.input, work.input_quant, args.rows * args.spec.used, args.d, args.words,
                 {slot * blocks, (slot + 1) * blocks});
      else
        copy_quantized(args, row, slot);
    }
  }

  static void hidden(const MoeArgs& args, Range range, std::byte* storage) {
    float* gates = reinterpret_cast<float*>(storage);
    float* ups = gates + args.rows * kBlock;
    std::byte* rest = reinterpret_cast<std::byte*>(ups + args.rows * kBlock);
    const uint64_t bound = moe_active_bound(args);
    const uint64_t experts_end = moe_expert_hidden_items(args);
    for (uint64_t item = range.begin; item < least(range.end, experts_end); ++item) {
      if (item % bound >= *args.work.active_count) continue;
      const Expert expert = expert_at(args, item % bound);
      const uint64_t block = item / bound;
      const Input input = input_of(args.work.input, args.d, args.work.input_quant, expert);
      expert_block(args, args.gate, args.gate_bias, expert, input, block, gates, rest);
      expert_block(args, args.up, args.up_bias, expert, input, block, ups, rest);
      activate(args, expert, block, gates, ups);
    }
    if (range.end > experts_end) moe_shared_hidden(args, past(range, experts_end), storage, GluOf<S>::run);
  }

  static void down(const MoeArgs& args, Range range, std::byte* storage) {
    const uint64_t bound = moe_active_bound(args);
    const uint64_t experts_end = moe_expert_down_items(args);
    for (uint64_t item = range.begin; item < least(range.end, experts_end); ++item) {
      if (item % bound >= *args.work.active_count) continue;
      const Expert expert = expert_at(args, item % bound);
      const Input input = input_of(args.work.hidden, args.spec.hidden, args.work.hidden_quant, expert);
      const uint64_t panel = item / bound;
      expert_panel(args, args.down, args.down_bias, expert, input, panel,
                   args.work.output + expert.slot * args.d + panel * kPanel, args.d, storage);
    }
    if (range.end > experts_end) moe_shared_down(args, past(range, experts_end), storage, Product::run);
  }

  static void combine(const MoeArgs& args, Range range, std::byte*) {
    const uint32_t used = args.spec.used;
    for (uint64_t row = range.begin; row < range.end; ++row) {
      const float* factors = args.work.factors + row * used;
      const uint32_t* slots = args.work.slots + row * used;
      const float* shared = args.with_shared ? args.work.shared_output + row * args.d : nullptr;
      float* direct = stores_directly(args.y) ? plain_unit(args.y, row) : nullptr;
      each16<S>(0, args.d, [&](auto lanes, uint64_t i) {
        const auto value = [&](uint32_t pick) { return lanes.load(args.work.output + slots[pick] * args.d + i); };
        V y = S::mul(S::set(factors[0]), value(0));
        for (uint32_t pick = 1; pick < used; ++pick) y = S::fma(S::set(factors[pick]), value(pick), y);
        if (shared) y = S::add(y, lanes.load(shared + i));
        if (direct) return lanes.store(direct + i, y);
        float values[kPanel];
        S::store(values, y);
        store_values<S>(args.y, row, i, values, least(kPanel, args.d - i));
      });
    }
  }

 private:
  // The items of `range` from `begin` on, counted from there.
  static Range past(Range range, uint64_t begin) {
    return {range.begin > begin ? range.begin - begin : 0, range.end - begin};
  }

  using Input = typename Product::Input;
  struct Expert {
    uint64_t index, slot, count;  // its slots are [slot, slot + count)
  };

  static Expert expert_at(const MoeArgs& args, uint64_t active) {
    const MoeWork& work = args.work;
    return {work.active[active], work.first[active], work.first[active + 1] - work.first[active]};
  }

  static Input input_of(const float* plain, uint64_t width, const QuantView& q, const Expert& expert) {
    TileInput quant{};
    if (q.scale) quant = tile_input(q, width).at(expert.slot, 0);
    return {plain ? plain + expert.slot * width : nullptr, width, quant, expert.count};
  }

  // Panel `panel` of the expert's matrix by its rows, to `to` (row pitch `pitch`).
  static void expert_panel(const MoeArgs& args, const Packed& w, const float* bias, const Expert& expert,
                           const Input& input, uint64_t panel, float* to, uint64_t pitch, std::byte* storage) {
    ProductPart part;
    part.w = w;
    ProductArgs product;
    product.parts = &part;
    product.part_count = 1;
    product.rows = args.rows;
    product.words = args.words;
    const ProductScratch scratch = product_scratch(product, storage);
    Product::clear(expert.count, args.words, scratch);
    Product::panel(w, expert.index * w.group_panels() + panel, args.words, input, scratch);
    Product::finish(w, bias ? bias + expert.index * w.n : nullptr, panel * kPanel, to, pitch, expert.count, args.words,
                    scratch);
  }

  // Outputs [32 block, 32 block + 32) to rows of 32.
  static void expert_block(const MoeArgs& args, const Packed& w, const float* bias, const Expert& expert,
                           const Input& input, uint64_t block, float* to, std::byte* storage) {
    for (uint64_t half = 0; half < 2; ++half)
      if (2 * block + half < w.group_panels())
        expert_panel(args, w, bias, expert, input, 2 * block + half, to + half * kPanel, kBlock, storage);
  }

  static void activate(const MoeArgs& args, const Expert& expert, uint64_t block, const float* gates,
                       const float* ups) {
    const uint64_t hidden = args.spec.hidden;
    const uint64_t width = least(kBlock, hidden - block * kBlock);
    for (uint64_t r = 0; r < expert.count; ++r) {
      float* to = args.work.hidden + (expert.slot + r) * hidden + block * kBlock;
      GluOf<S>::activate(args.spec.act, gates + r * kBlock, ups + r * kBlock, to, width);
      if (!args.work.hidden_quant.scale) continue;
      const uint64_t at = (expert.slot + r) * (hidden / kBlock) + block;
      quantize(args.work.hidden, args.work.hidden_quant, args.rows * args.spec.used, hidden, args.words, {at, at + 1});
    }
  }

  // Blocks `blocks` of dense rows of `cols` values.
  static void quantize(const float* x, const QuantView& to, uint64_t rows, uint64_t cols, int words, Range blocks) {
    QuantArgs quant_args;
    quant_args.x = x;
    quant_args.to = to;
    quant_args.rows = rows;
    quant_args.cols = quant_args.pitch = cols;
    quant_args.words = words;
    quant<S>(quant_args, blocks, nullptr);
  }

  static void copy_quantized(const MoeArgs& args, uint64_t row, uint64_t slot) {
    const QuantView& from = args.quant;
    const QuantView& to = args.work.input_quant;
    const uint64_t d = args.d, blocks = args.d / kBlock;
    __builtin_memcpy(to.high + slot * d, from.high + row * d, d);
    __builtin_memcpy(to.scale + slot * blocks, from.scale + row * blocks, blocks * sizeof(float));
    __builtin_memcpy(to.sum_high + slot * blocks, from.sum_high + row * blocks, blocks * sizeof(int32_t));
    __builtin_memcpy(to.sum_half + slot * blocks, from.sum_half + row * blocks, blocks * sizeof(int32_t));
    __builtin_memcpy(to.wide + slot * d, from.wide + row * d, d * sizeof(int16_t));
    if (args.words != 2) return;
    __builtin_memcpy(to.low + slot * d, from.low + row * d, d);
    __builtin_memcpy(to.sum_low + slot * blocks, from.sum_low + row * blocks, blocks * sizeof(int32_t));
  }
};

template <class S>
constexpr MoeKernels moe_kernels_of() {
  using Moe = MoeOf<S>;
  return {{{Moe::logits, moe_logits_items},
           {Moe::choose, moe_row_items},
           {moe_group, moe_one_item},
           {Moe::gather, moe_slot_items},
           {Moe::hidden, moe_hidden_items},
           {Moe::down, moe_down_items},
           {Moe::combine, moe_row_items}}};
}

}  // namespace tw::lane::cpu
