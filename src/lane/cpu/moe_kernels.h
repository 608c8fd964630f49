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

  static void hidden(const MoeArgs& args, Range range, std::byte* storage) {
    const MoeScratch scratch = moe_scratch(args, storage);
    const uint64_t blocks = (args.spec.hidden + kBlock - 1) / kBlock;
    const uint64_t experts_end = moe_expert_hidden_items(args);
    const uint64_t end = least(range.end, experts_end);
    for (uint64_t item = range.begin; item < end;) {
      const Expert expert = expert_at(args, item / blocks);
      const Input input = expert_input(args, expert, scratch);
      const uint64_t of_expert = least(end, (item / blocks + 1) * blocks);
      for (; item < of_expert; ++item) {
        expert_block(args, args.gate, args.gate_bias, expert, input, item % blocks, scratch.gates, scratch);
        expert_block(args, args.up, args.up_bias, expert, input, item % blocks, scratch.ups, scratch);
        activate(args, expert, item % blocks, scratch);
      }
    }
    if (range.end > experts_end) moe_shared_hidden(args, past(range, experts_end), storage, GluOf<S>::run);
  }

  static void down(const MoeArgs& args, Range range, std::byte* storage) {
    const MoeScratch scratch = moe_scratch(args, storage);
    const uint64_t panels = args.down.group_panels(), pass = moe_pass_panels(args);
    const uint64_t end = least(range.end, panels);
    for (uint64_t begin = range.begin; begin < end; begin += pass)
      down_pass(args, {begin, least(begin + pass, end)}, scratch);
    if (range.end > panels) moe_shared_down(args, past(range, panels), storage, Product::run);
  }

  static void combine(const MoeArgs& args, Range range, std::byte*) {
    for (uint64_t row = range.begin; row < range.end; ++row) {
      float* sums = args.work.sums + row * args.d;
      const float* shared = args.with_shared ? args.work.shared_output + row * args.d : nullptr;
      float* to = store_place(args.y, row, 0, sums);
      each16<S>(0, args.d, [&](auto lanes, uint64_t i) {
        const V sum = lanes.load(sums + i);
        lanes.store(to + i, shared ? S::add(sum, lanes.load(shared + i)) : sum);
      });
      store_rest<S>(args.y, row, 0, to, args.d);
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

  // ---- what an expert reads ----

  // The inputs of its slots, together: where they lie when they are rows that follow each other, else in scratch.
  static Input expert_input(const MoeArgs& args, const Expert& expert, const MoeScratch& scratch) {
    const auto row_of = [&](uint64_t slot) { return args.work.pick_of[slot] / args.spec.used; };
    const uint64_t first = row_of(expert.slot);
    const bool there = !args.spec.weigh_inputs && row_of(expert.slot + expert.count - 1) - first + 1 == expert.count;
    if (!there) gather(args, expert, scratch);
    Input input{nullptr, args.d, {}, expert.count};
    if (scratch.input) input.x = scratch.input;
    if (scratch.input && there) input.x = args.x + first * args.x_pitch, input.x_pitch = args.x_pitch;
    if (scratch.input_quant.scale)
      input.quant = there ? tile_input(args.quant, args.d).at(first, 0) : tile_input(scratch.input_quant, args.d);
    return input;
  }

  static void gather(const MoeArgs& args, const Expert& expert, const MoeScratch& scratch) {
    const MoeWork& work = args.work;
    const bool wide = Product::reads_wide(args.gate, args.words, expert.count) ||
                      Product::reads_wide(args.up, args.words, expert.count);
    for (uint64_t i = 0; i < expert.count; ++i) {
      const uint64_t pick = work.pick_of[expert.slot + i];
      const uint64_t row = pick / args.spec.used;
      if (scratch.input) {
        const V factor = S::set(args.spec.weigh_inputs ? work.pick_scores[pick] * args.spec.scale : 1.0f);
        const float* from = args.x + row * args.x_pitch;
        float* to = scratch.input + i * args.d;
        each16<S>(0, args.d,
                  [&](auto lanes, uint64_t t) { lanes.store(to + t, S::mul(factor, lanes.load(from + t))); });
      }
      if (!scratch.input_quant.scale) continue;
      if (args.spec.weigh_inputs)
        quantize(scratch.input + i * args.d, args.d, scratch.input_quant, i * args.d, args.words);
      else
        copy_quantized(args, row, scratch.input_quant, i, wide);
    }
  }

  // What kernels read of a row: its 16-bit words too where `wide`.
  static void copy_quantized(const MoeArgs& args, uint64_t row, const QuantView& to, uint64_t at, bool wide) {
    const QuantView& from = args.quant;
    const uint64_t d = args.d, blocks = args.d / kBlock;
    __builtin_memcpy(to.high + at * d, from.high + row * d, d);
    if (wide) __builtin_memcpy(to.wide + at * d, from.wide + row * d, d * sizeof(int16_t));
    __builtin_memcpy(to.scale + at * blocks, from.scale + row * blocks, blocks * sizeof(float));
    __builtin_memcpy(to.sum_high + at * blocks, from.sum_high + row * blocks, blocks * sizeof(int32_t));
    __builtin_memcpy(to.sum_half + at * blocks, from.sum_half + row * blocks, blocks * sizeof(int32_t));
    if (args.words == 2)
      __builtin_memcpy(to.sum_low + at * blocks, from.sum_low + row * blocks, blocks * sizeof(int32_t));
  }

  // `count` values, whole blocks, to value `at` of `to`.
  static void quantize(const float* x, uint64_t count, const QuantView& to, uint64_t at, int words) {
    for (uint64_t i = 0; i < count; i += kBlock) quantize_block<S>(x + i, kBlock, to, (at + i) / kBlock, words);
  }

  // ---- products ----

  // Asks for a panel that is multiplied soon: it comes from memory while others are multiplied.
  static void fetch_panel(const Packed& w, uint64_t index) {
    const std::byte* panel = w.data + w.panel_offset(index);
    for (uint64_t line = 0; line < w.panel_bytes(); line += 64) __builtin_prefetch(panel + line);
  }

  // Panel `index` of the matrices by the expert's rows, to `to` of [rows][16].
  static void expert_panel(const MoeArgs& args, const Packed& w, uint64_t index, const Input& input, float* to,
                           const MoeScratch& scratch) {
    ProductScratch product = scratch.product;
    product.total = to;
    Product::panel(w, index, args.words, input, product);
  }

  // Outputs [32 block, 32 block + 32) to rows of 32.
  static void expert_block(const MoeArgs& args, const Packed& w, const float* bias, const Expert& expert,
                           const Input& input, uint64_t block, float* to, const MoeScratch& scratch) {
    const float* of_expert = bias ? bias + expert.index * w.n : nullptr;
    for (uint64_t panel = 2 * block; panel < least(2 * block + 2, w.group_panels()); ++panel) {
      const uint64_t index = expert.index * w.group_panels() + panel;
      if (expert.count >= kBlockFrom) fetch_ahead(args, w, index);
      expert_panel(args, w, index, input, scratch.product.total, scratch);
      Product::finish(w, of_expert, panel * kPanel, 1, to + panel % 2 * kPanel, kBlock, expert.count, args.words,
                      scratch.product);
    }
  }

  // From a gate panel on the up panel of the same place is next but one, from an up panel on the gate panel after the
  // next; the next expert's follow the last.
  static void fetch_ahead(const MoeArgs& args, const Packed& w, uint64_t index) {
    if (&w == &args.gate) return fetch_panel(args.up, index);
    if (index + 2 < args.gate.panels()) fetch_panel(args.gate, index + 2);
  }

  // act(gates, ups) of the block to the hidden values of the expert's slots.
  static void activate(const MoeArgs& args, const Expert& expert, uint64_t block, const MoeScratch& scratch) {
    const MoeWork& work = args.work;
    const uint64_t hidden = args.spec.hidden;
    const uint64_t width = least(kBlock, hidden - block * kBlock);
    GluOf<S>::activate_rows(args.spec.act, scratch.gates, scratch.ups, expert.count, width);
    for (uint64_t r = 0; r < expert.count; ++r) {
      float* values = scratch.gates + r * kBlock;
      const uint64_t at = (expert.slot + r) * hidden + block * kBlock;
      if (work.hidden_quant.scale)
        quantize_block<S>(values, kBlock, work.hidden_quant, at / kBlock, args.words);
      else
        __builtin_memcpy(work.hidden + at, values, width * sizeof(float));
    }
  }

  // The outputs of every slot at `panels`, then their sums.
  static void down_pass(const MoeArgs& args, Range panels, const MoeScratch& scratch) {
    const MoeWork& work = args.work;
    const Packed& w = args.down;
    const uint64_t slots = args.rows * args.spec.used, active = *work.active_count;
    const auto outputs = [&](uint64_t panel) { return scratch.outputs + (panel - panels.begin) * slots * kPanel; };
    for (uint64_t a = 0; a < active; ++a) {
      const Expert expert = expert_at(args, a);
      const Input input = hidden_input(args, expert);
      for (uint64_t panel = panels.begin; panel < panels.end; ++panel) {
        if (expert.count >= kBlockFrom && a + 1 < active) fetch_panel(w, work.active[a + 1] * w.group_panels() + panel);
        float* to = outputs(panel) + expert.slot * kPanel;
        expert_panel(args, w, expert.index * w.group_panels() + panel, input, to, scratch);
        const float* bias = args.down_bias ? args.down_bias + expert.index * w.n : nullptr;
        if (bias || args.words == 0) {
          ProductScratch product = scratch.product;
          product.total = to;
          Product::finish(w, bias, panel * kPanel, 1, to, kPanel, expert.count, args.words, product);
        }
      }
    }
    for (uint64_t panel = panels.begin; panel < panels.end; ++panel) sum_slots(args, panel, outputs(panel));
  }

  static Input hidden_input(const MoeArgs& args, const Expert& expert) {
    const MoeWork& work = args.work;
    const uint64_t width = args.spec.hidden;
    TileInput quant{};
    if (work.hidden_quant.scale) quant = tile_input(work.hidden_quant, width).at(expert.slot, 0);
    return {work.hidden ? work.hidden + expert.slot * width : nullptr, width, quant, expert.count};
  }

  // outputs: [slots][16] of `panel`.
  static void sum_slots(const MoeArgs& args, uint64_t panel, const float* outputs) {
    const uint32_t used = args.spec.used;
    const uint64_t width = least(kPanel, args.d - panel * kPanel);
    for (uint64_t row = 0; row < args.rows; ++row) {
      const float* factors = args.work.factors + row * used;
      const uint32_t* slots = args.work.slots + row * used;
      const auto output = [&](uint32_t pick) { return S::load(outputs + uint64_t{slots[pick]} * kPanel); };
      V y = S::mul(S::set(factors[0]), output(0));
      for (uint32_t pick = 1; pick < used; ++pick) y = S::fma(S::set(factors[pick]), output(pick), y);
      float* to = args.work.sums + row * args.d + panel * kPanel;
      if (width == kPanel)
        S::store(to, y);
      else
        S::store(to, y, static_cast<int>(width));
    }
  }
};

template <class S>
constexpr MoeKernels moe_kernels_of() {
  using Moe = MoeOf<S>;
  return {{{Moe::logits, moe_logits_items},
           {Moe::choose, moe_row_items},
           {moe_group, moe_one_item},
           {Moe::hidden, moe_hidden_items, true},
           {Moe::down, moe_down_items},
           {Moe::combine, moe_row_items}}};
}

}  // namespace tw::lane::cpu
