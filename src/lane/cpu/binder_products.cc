// Launches that multiply by weights.

#include "lane/cpu/binder.h"
#include "lane/cpu/moe.h"
#include "lane/cpu/product.h"

namespace tw::lane::cpu {

Result<void> Binder::bind(const Gemv& l) { return product({l.x, l.w, l.bias, l.k, l.m}, l.y, true); }
Result<void> Binder::bind(const GemvF32& l) { return product({l.x, l.w, l.bias, l.k, l.m}, l.y, false); }

Result<void> Binder::product(const ProductOperands& p, const Dst& y, bool quantized) {
  TW_TRY_VOID(own_result(y));
  auto& a = make<ProductArgs>();
  auto& part = make<ProductPart>();
  part.w = weights_.product(s_.at(p.w).name);
  set(part.bias, p.bias);
  set(part.y, y.buf);
  part.y_pitch = part.w.n;
  a.parts = &part;
  a.part_count = 1;
  a.rows = p.m;
  a.words = words();
  if (quantized && a.words != 0) {
    a.quant = quant(p.x);
  } else {
    set(a.x, p.x);
    a.x_pitch = p.k;
  }
  return turns(add(a, product_kernel(isa_), items));
}

Result<void> Binder::bind(const HeadGemv& l) {
  TW_TRY_VOID(own_result(l.y));
  if (l.part || present(l.upto)) return no_kernel("it reads parts of units or a part of the rows");
  auto& a = make<ProductArgs>();
  auto& part = make<ProductPart>();
  part.w = weights_.heads(s_.at(l.w).name);
  set(part.y, l.y.buf);
  part.y_pitch = l.heads * l.b;
  part.y_group = l.b;
  part.x_group = l.shared ? 0 : l.a;
  a.parts = &part;
  a.part_count = 1;
  a.rows = l.m;
  a.words = words() == 0 ? 0 : 1;
  set(a.x, l.x);
  a.x_pitch = l.shared ? l.a : l.heads * l.a;
  return turns(add(a, product_kernel(isa_), items));
}

Result<void> Binder::bind(const Moe& l) {
  TW_TRY_VOID(own_result(l.y));
  if (l.shared) return no_kernel("its shared expert is part of the launch");
  auto& a = make<MoeArgs>();
  a.spec = l.spec;
  a.rows = l.rows;
  a.d = l.d;
  a.words = words();
  if (l.reads_plain() || a.words == 0) set(a.x, l.x);
  a.x_pitch = l.d;
  if (l.reads_quantized() && a.words != 0) a.quant = quant(l.x);
  a.router = weights_.product(s_.at(l.router).name);
  a.gate = weights_.product(s_.at(l.gate).name);
  a.up = weights_.product(s_.at(l.up).name);
  a.down = weights_.product(s_.at(l.down).name);
  set(a.router_bias, l.router_bias);
  set(a.select_bias, l.select_bias);
  set(a.gate_bias, l.gate_bias);
  set(a.up_bias, l.up_bias);
  set(a.down_bias, l.down_bias);
  set(a.y, l.y.buf);
  a.y_pitch = l.d;
  shared(moe_work(a, nullptr).bytes, [&a](std::byte* memory) { a.work = moe_work(a, memory); });
  for (const MoePhase& phase : moe_kernels(isa_).phases) {
    add(a, phase.run, phase.items, moe_scratch_bytes(a)).take_turns = true;
  }
  return {};
}

Result<void> Binder::bind(const GemmParts&) { return no_kernel("the launch is a fused form"); }
Result<void> Binder::bind(const GemvGlu&) { return no_kernel("the launch is a fused form"); }
Result<void> Binder::bind(const GateProj&) { return no_kernel("the launch is a fused form"); }
Result<void> Binder::bind(const Fold&) { return no_kernel("the launch is a fused form"); }

}  // namespace tw::lane::cpu
