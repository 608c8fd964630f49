// Launches over rows and elements.

#include "lane/cpu/binder.h"

namespace tw::lane::cpu {

Result<void> Binder::bind(const Norm& l) {
  auto& a = make<NormArgs>();
  set(a.x, l.x, l.part ? l.part->offset : 0);
  a.x_pitch = l.part ? l.part->pitch : l.cols;
  set(a.add, l.add);
  if (l.pre) {
    a.pre = true;
    a.pre_eps = l.pre->eps;
    set(a.pre_weight, l.pre->w);
  }
  set(a.weight, l.w);
  set(a.bias, l.bias);
  set(a.sum, l.sum);
  if (l.into) {
    TW_TRY_VOID(set_store(a.out, *l.into, l.rows, l.cols));
    if (l.forms.quantized) TW_TRY_VOID(set_store(a.quantized, Dst{l.out}, l.rows, l.cols, {false, true}));
  } else {
    TW_TRY_VOID(set_store(a.out, Dst{l.out}, l.rows, l.cols, l.forms));
  }
  a.rows = l.rows, a.cols = l.cols, a.eps = l.eps, a.kind = l.norm;
  return done(add(a, kernels_.norm, items));
}

Result<void> Binder::bind(const L2Norm& l) {
  auto& a = make<L2NormArgs>();
  set(a.x, l.x);
  set(a.y, l.y);
  a.rows = l.rows, a.cols = l.cols, a.eps = l.eps;
  return done(add(a, kernels_.l2_norm, items));
}

Result<void> Binder::bind(const Softmax& l) {
  auto& a = make<SoftmaxArgs>();
  set(a.x, l.x);
  set(a.sinks, l.sinks);
  set(a.y, l.y);
  a.rows = l.rows, a.cols = l.cols, a.sink_a_row = l.sink_a_row;
  return done(add(a, kernels_.softmax, items));
}

Result<void> Binder::bind(const Quant& l) {
  auto& a = make<QuantArgs>();
  set(a.x, l.x);
  a.to = quant(l.x);
  a.rows = 1, a.cols = l.n, a.pitch = l.n, a.words = words();
  return done(add(a, kernels_.quant, items));
}

Result<void> Binder::bind(const Binary& l) {
  auto& a = make<BinaryArgs>();
  set(a.a, l.a);
  set(a.b, l.b);
  if (l.forms.quantized && l.row % kQuantBlock != 0) {
    return no_kernel(fmt::format("it quantizes rows of {} values that are not whole blocks of {}", l.row, kQuantBlock));
  }
  TW_TRY_VOID(set_store(a.out, Dst{l.out}, 1, l.n, l.forms));
  a.n = l.n, a.row = l.row, a.scalar = l.scalar, a.op = l.op;
  a.gated = l.gate.has_value();
  if (l.gate) a.act = *l.gate;
  return done(add(a, kernels_.binary, items));
}

Result<void> Binder::bind(const Scale& l) {
  auto& a = make<ScaleArgs>();
  set(a.x, l.x);
  set(a.y, l.y);
  a.n = l.n, a.factor = l.factor;
  return done(add(a, kernels_.scale, items));
}

Result<void> Binder::bind(const SwiGlu& l) {
  auto& a = make<SwiGluArgs>();
  set(a.g, l.g);
  set(a.u, l.u);
  TW_TRY_VOID(set_store(a.out, Dst{l.out}, 1, l.n, l.forms));
  a.n = l.n;
  return done(add(a, kernels_.swiglu, items));
}

Result<void> Binder::bind(const Unary& l) {
  auto& a = make<UnaryArgs>();
  set(a.x, l.x);
  set(a.y, l.y);
  a.n = l.n, a.cap = l.cap, a.act = l.act;
  return done(add(a, kernels_.unary, items));
}

Result<void> Binder::bind(const Rope& l) {
  auto& a = make<RopeArgs>();
  const RopeParts tables{
      .cos = l.cos, .sin = l.sin, .position = l.position, .width = l.width, .half = l.half, .sequences = l.sequences};
  TW_TRY_VOID(rope_side(a, tables, {l.x, l.part, l.norm, l.y, l.heads, l.per_row, l.next_sequence}));
  return done(add(a, kernels_.rope, items));
}

Result<void> Binder::bind(const RopeParts& l) {
  auto& sides = make<std::vector<RopeArgs>>();
  sides.resize(l.sides.size());
  for (size_t s = 0; s < sides.size(); ++s) TW_TRY_VOID(rope_side(sides[s], l, l.sides[s]));
  auto& a = make<RopePartsArgs>();
  a.sides = sides.data(), a.count = sides.size();
  return done(add(a, kernels_.rope_parts, items));
}

// One rotation with the tables of `l`. `a` stays where it is.
Result<void> Binder::rope_side(RopeArgs& a, const RopeParts& l, const RopeSide& side) {
  set(a.x, side.x, side.part ? side.part->offset : 0);
  a.x_pitch = side.part ? side.part->pitch : l.width;
  set(a.cos, l.cos);
  set(a.sin, l.sin);
  set(a.position, l.position);
  if (side.norm) {
    a.normed = true;
    a.eps = side.norm->eps;
    set(a.norm_weight, side.norm->w);
  }
  const uint64_t tables = side.next_sequence != 0 ? side.heads / side.per_row : 1;
  TW_TRY_VOID(set_store(a.y, side.y, side.heads, l.width, {}, tables));
  a.position_a_row = l.sequences;
  a.heads = side.heads, a.per_row = side.per_row, a.width = l.width, a.half = l.half;
  return {};
}

Result<void> Binder::bind(const ArgMax& l) {
  auto& a = make<ArgMaxArgs>();
  set(a.x, l.x);
  set(a.out, l.out);
  a.rows = l.rows, a.n = l.n;
  if (l.advance) {
    using Kind = graph::Form::Kind;
    set(a.token, l.advance->token, l.advance->item);
    set(a.position, l.advance->position);
    a.consumed = s_.form.kind == Kind::Chunk ? static_cast<int32_t>(s_.form.rows) : 1;
    a.sequences = s_.form.kind == Kind::Batch ? l.rows : 1;
  }
  shared(a.best, l.rows * argmax_pieces(l.n) * sizeof(Best));
  add(a, kernels_.argmax_scan, argmax_scan_items);
  return done(add(a, kernels_.argmax_merge, argmax_merge_items));
}

}  // namespace tw::lane::cpu
