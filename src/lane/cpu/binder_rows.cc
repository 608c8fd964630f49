// Launches over rows and elements.

#include "lane/cpu/binder.h"

namespace tw::lane::cpu {

Result<void> Binder::bind(const Norm& l) {
  if (l.into || l.forms.quantized) return no_kernel("its result lands in a part or quantized");
  auto& a = make<NormArgs>();
  set(a.x, l.x);
  if (l.part && l.part->offset != 0) return no_kernel("it reads a part that begins inside a unit");
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
  set(a.out, l.out);
  a.out_pitch = l.cols;
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
  if (l.forms.quantized) return no_kernel("its result lands quantized");
  auto& a = make<BinaryArgs>();
  set(a.a, l.a);
  set(a.b, l.b);
  set(a.out, l.out);
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
  if (l.forms.quantized) return no_kernel("its result lands quantized");
  auto& a = make<SwiGluArgs>();
  set(a.g, l.g);
  set(a.u, l.u);
  set(a.out, l.out);
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
  TW_TRY_VOID(own_result(l.y));
  auto& a = make<RopeArgs>();
  set(a.x, l.x);
  if (l.part && l.part->offset != 0) return no_kernel("it reads a part that begins inside a unit");
  a.x_pitch = l.part ? l.part->pitch : l.width;
  set(a.cos, l.cos);
  set(a.sin, l.sin);
  set(a.position, l.position);
  if (l.norm) {
    a.normed = true;
    a.eps = l.norm->eps;
    set(a.norm_weight, l.norm->w);
  }
  set(a.y, l.y.buf);
  a.y_pitch = l.width;
  a.heads = l.heads, a.per_row = l.per_row, a.width = l.width, a.half = l.half;
  return done(add(a, kernels_.rope, items));
}

Result<void> Binder::bind(const ArgMax& l) {
  if (l.advance) return no_kernel("it advances the step, which the runtime does");
  auto& a = make<ArgMaxArgs>();
  set(a.x, l.x);
  set(a.out, l.out);
  a.rows = l.rows, a.n = l.n;
  shared(a.best, l.rows * argmax_pieces(l.n) * sizeof(Best));
  add(a, kernels_.argmax_scan, argmax_scan_items);
  return done(add(a, kernels_.argmax_merge, argmax_merge_items));
}

Result<void> Binder::bind(const RopeParts&) { return no_kernel("the launch is a fused form"); }

}  // namespace tw::lane::cpu
