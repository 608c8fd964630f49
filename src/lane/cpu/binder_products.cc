// Launches that multiply by weights, and those that fold what follows into them.

#include "lane/cpu/binder.h"
#include "lane/cpu/glu.h"
#include "lane/cpu/moe.h"
#include "lane/cpu/product.h"

namespace tw::lane::cpu {

namespace {

constexpr std::string_view kNotFloat = "its weights are quantized and it reads its activation as f32";
constexpr std::string_view kFloat = "its weights are floating-point and it reads its activation quantized";

}  // namespace

Result<void> Binder::set_part(ProductPart& part, const Packed& w, BufferId bias, const Dst& y, uint64_t rows,
                              OutForms forms) {
  part.w = w;
  set(part.bias, bias);
  return set_store(part.y, y, rows * w.groups, w.n, forms);
}

void Binder::set_input(ProductArgs& a, BufferId x, uint64_t k, uint64_t rows) {
  a.rows = rows;
  a.words = words();
  bool plain = false, quantized = false;
  for (uint32_t p = 0; p < a.part_count; ++p) {
    (a.words == 0 || is_float(a.parts[p].w.layout) ? plain : quantized) = true;
  }
  if (plain) set(a.x, x);
  a.x_pitch = k;
  if (quantized) a.quant = quant(x);
}

Result<void> Binder::rows_of_batch(bool batch, uint64_t rows, const Dst& y) const {
  if (!batch || rows < 2 || !y.row || !present(y.row->param)) return {};
  return no_kernel("it sets a row in the table of each sequence of a batch");
}

Result<void> Binder::bind(const Gemv& l) {
  const Packed& w = weights_.product(s_.at(l.w).name);
  if (is_float(w.layout) && words() != 0) return no_kernel(kFloat);
  TW_TRY_VOID(rows_of_batch(l.batch, l.m, l.y));
  auto& a = make<ProductArgs>();
  auto& part = make<ProductPart>();
  TW_TRY_VOID(set_part(part, w, l.bias, l.y, l.m, l.out));
  a.parts = &part;
  a.part_count = 1;
  set_input(a, l.x, l.k, l.m);
  return turns(add(a, product_kernel(isa_), items), in_streams(a, a.parts[0]) ? kStreams : 1);
}

Result<void> Binder::bind(const GemvF32& l) {
  const Packed& w = weights_.product(s_.at(l.w).name);
  if (!is_float(w.layout) && words() != 0) return no_kernel(kNotFloat);
  TW_TRY_VOID(rows_of_batch(l.batch, l.m, l.y));
  auto& a = make<ProductArgs>();
  auto& part = make<ProductPart>();
  TW_TRY_VOID(set_part(part, w, l.bias, l.y, l.m, {}));
  a.parts = &part;
  a.part_count = 1;
  set_input(a, l.x, l.k, l.m);
  return turns(add(a, product_kernel(isa_), items), in_streams(a, a.parts[0]) ? kStreams : 1);
}

Result<void> Binder::bind(const GemmParts& l) {
  auto& a = make<ProductArgs>();
  auto& parts = make<std::vector<ProductPart>>();
  parts.resize(l.parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    const GemmPart& from = l.parts[p];
    TW_TRY_VOID(rows_of_batch(l.batch, l.m, from.y));
    TW_TRY_VOID(set_part(parts[p], weights_.product(s_.at(from.w).name), from.bias, from.y, l.m, {}));
  }
  a.parts = parts.data();
  a.part_count = static_cast<uint32_t>(parts.size());
  set_input(a, l.x, l.k, l.m);
  return turns(add(a, product_kernel(isa_), items), in_streams(a, a.parts[0]) ? kStreams : 1);
}

Result<void> Binder::bind(const GemvGlu& l) {
  auto& a = make<GluArgs>();
  auto& parts = make<std::vector<ProductPart>>();
  parts.resize(2);
  parts[0].w = weights_.product(s_.at(l.wg).name);
  parts[1].w = weights_.product(s_.at(l.wu).name);
  set(parts[0].bias, l.bg);
  set(parts[1].bias, l.bu);
  a.product.parts = parts.data();
  a.product.part_count = 2;
  set_input(a.product, l.x, l.k, l.m);
  a.act = l.act;
  Dst out;
  out.buf = l.out;
  TW_TRY_VOID(set_store(a.out, out, l.m, l.n, l.forms));
  return turns(add(a, glu_kernel(isa_), items), in_streams(a.product, parts[0]) ? kStreams / 2 : 1);
}

Result<void> Binder::bind(const HeadGemv& l) {
  TW_TRY_VOID(rows_of_batch(l.batch, l.m, l.y));
  const Buffer& x = s_.at(span_of(s_, l.x).root);
  if (x.layout.kind != lane::Layout::Kind::RowMajor) {
    return no_kernel(fmt::format("it reads {}, which is laid out as a cache", x.name));
  }
  auto& a = make<ProductArgs>();
  auto& part = make<ProductPart>();
  TW_TRY_VOID(set_part(part, weights_.heads(s_.at(l.w).name), kNoBuffer, l.y, l.m, {}));
  const Part units = l.part.value_or(Part{l.a, 0});
  part.x_group = l.shared ? 0 : units.pitch;
  a.parts = &part;
  a.part_count = 1;
  set_input(a, l.x, l.shared ? units.pitch : l.heads * units.pitch, l.m);
  a.x_type = x.dtype;
  a.x_offset = units.offset;
  set(a.upto, l.upto);
  a.upto_count = l.upto_count;
  return turns(add(a, product_kernel(isa_), items), in_streams(a, a.parts[0]) ? kStreams : 1);
}

// The two products hand over to the gates in shared memory.
Result<void> Binder::bind(const GateProj& l) {
  auto& a = make<ProductArgs>();
  auto& parts = make<std::vector<ProductPart>>();
  auto& gates = make<GatesArgs>();
  parts.resize(2);
  parts[0].w = weights_.product(s_.at(l.wb).name);
  parts[1].w = weights_.product(s_.at(l.wa).name);
  for (const ProductPart& part : parts) {
    if (!is_float(part.w.layout) && words() != 0) return no_kernel(kNotFloat);
  }
  a.parts = parts.data();
  a.part_count = 2;
  set_input(a, l.x, l.k, 1);
  set(gates.bias, l.bias);
  set(gates.rate, l.rate);
  set(gates.beta, l.beta);
  set(gates.decay, l.decay);
  gates.rows = 1, gates.heads = l.heads;
  shared(2 * l.heads * sizeof(float), [&parts, &gates, heads = l.heads](std::byte* memory) {
    auto* sums = reinterpret_cast<float*>(memory);
    parts[0].y = store_rows(sums, heads);
    parts[1].y = store_rows(sums + heads, heads);
    gates.b = sums;
    gates.x = sums + heads;
  });
  add(a, product_kernel(isa_), items).take_turns = true;
  const size_t at = d_.calls.size();
  add(gates, kernels_.gates, items);
  follow(at, Follow::Last);
  return {};
}

Result<void> Binder::bind(const Moe& l) {
  TW_TRY_VOID(rows_of_batch(l.batch, l.rows, l.y));
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
  set(a.expert_scale, l.expert_scale);
  set(a.gate_bias, l.gate_bias);
  set(a.up_bias, l.up_bias);
  set(a.down_bias, l.down_bias);
  if (l.shared) {
    a.with_shared = true;
    a.shared.gate = weights_.product(s_.at(l.shared->wg).name);
    a.shared.up = weights_.product(s_.at(l.shared->wu).name);
    a.shared.down = weights_.product(s_.at(l.shared->wd).name);
  }
  TW_TRY_VOID(set_store(a.y, l.y, l.rows, l.d));
  shared(moe_work(a, nullptr).bytes, [&a](std::byte* memory) { a.work = moe_work(a, memory); });
  const size_t first = d_.calls.size(), scratch = moe_scratch(a, nullptr).bytes;
  const MoeKernels& kernels = moe_kernels(isa_);
  for (int i = 0; i < kMoePhases; ++i) {
    const MoePhase& phase = kernels.phases[i];
    Call& call = add(a, phase.run, phase.items, scratch);
    call.take_turns = true;
    call.varies = phase.varies;
    // The choice of one row is sooner made by the thread that ends the logits than waited for.
    if (i == kMoeGroup) follow(first + (l.rows == 1 ? kMoeChoose : kMoeGroup), Follow::Last);
  }
  return {};
}

// ---- folds ----

void Binder::follow(size_t at, Follow how) {
  TW_CHECK(at > 0 && at < d_.calls.size(), "call {} of {} follows nothing", at, d_.calls.size());
  Call& leader = d_.calls[at - 1];
  leader.follow = how;
  const auto first = d_.calls.begin() + static_cast<ptrdiff_t>(at);
  leader.followers.insert(leader.followers.end(), first, d_.calls.end());
  d_.calls.erase(first, d_.calls.end());
}

namespace {

// Rows that a launch makes one item of its last call after the other.
struct MadeRows {
  BufferId buffer = kNoBuffer;
  uint64_t rows = 0, cols = 0;
};
MadeRows made_rows(const Launch& launch) {
  if (const auto* gather = std::get_if<Gather>(&launch)) return {gather->out, gather->rows, gather->cols};
  if (const auto* moe = std::get_if<Moe>(&launch))
    return moe->y.own() ? MadeRows{moe->y.buf, moe->rows, moe->d} : MadeRows{};
  if (const auto* fold = std::get_if<Fold>(&launch)) {
    const auto* sum = std::get_if<Binary>(&fold->then());
    const MadeRows inner = made_rows(fold->first());
    if (sum != nullptr && sum->n == inner.rows * inner.cols) return {sum->out, inner.rows, inner.cols};
  }
  return {};
}

// Whether row r of what `then` makes reads row r of `made` alone. A norm of heads makes several rows of one.
bool row_by_row(const MadeRows& made, const Norm& then) {
  if (made.rows == 0 || then.rows % made.rows != 0) return false;
  const uint64_t each = then.rows / made.rows;
  if (then.x == made.buffer && each * (then.part ? then.part->pitch : then.cols) != made.cols) return false;
  if (then.add == made.buffer && each * then.cols != made.cols) return false;
  return then.x == made.buffer || then.add == made.buffer;
}
bool row_by_row(const MadeRows& made, const Binary& then) {
  if (made.rows == 0 || then.n != made.rows * made.cols) return false;
  return then.row == 0 || (then.row == made.cols && then.b != made.buffer);
}
template <class L>
bool row_by_row(const MadeRows&, const L&) {
  return false;
}

bool can_lead(const Launch& launch) {
  if (const auto* fold = std::get_if<Fold>(&launch)) {
    return std::holds_alternative<Moe>(fold->first()) && std::holds_alternative<Binary>(fold->then());
  }
  return std::holds_alternative<Gemv>(launch) || std::holds_alternative<GemvF32>(launch) ||
         std::holds_alternative<GemmParts>(launch) || std::holds_alternative<Gather>(launch) ||
         std::holds_alternative<Moe>(launch);
}

}  // namespace

Result<void> Binder::bind(const Fold& l) {
  if (!can_lead(l.first())) return no_kernel(fmt::format("nothing is folded into a {}", kind_of(l.first())));
  TW_TRY_VOID(bind_launch(l.first()));
  const size_t at = d_.calls.size();
  TW_TRY_VOID(bind_launch(l.then()));
  if (d_.calls.size() == at) return no_kernel(fmt::format("a {} runs no kernel", kind_of(l.then())));
  const MadeRows made = made_rows(l.first());
  const Call& leader = d_.calls[at - 1];
  bool each = leader.followers.empty() || leader.follow == Follow::Each;
  each = each && std::visit([&](const auto& then) { return row_by_row(made, then); }, l.then());
  each = each && d_.calls.size() == at + 1 && leader.count(leader) == made.rows &&
         cut_by_rows(d_.calls[at], l.then(), made.rows);
  follow(at, each ? Follow::Each : Follow::Last);
  return {};
}

// Makes the items of a call a whole number of each of the rows, if it can be.
bool Binder::cut_by_rows(Call& call, const Launch& launch, uint64_t rows) {
  if (const auto* sum = std::get_if<Binary>(&launch); sum != nullptr && sum->row == 0) {
    if (sum->forms.quantized && sum->n / rows % kQuantBlock != 0) return false;
    auto& a = *static_cast<BinaryArgs*>(call.args);
    a.row = a.b_pitch = a.n / rows;
    a.scalar = false;
  }
  if (const auto* norm = std::get_if<Norm>(&launch)) return call.count(call) == norm->rows;
  return call.count(call) % rows == 0;
}

}  // namespace tw::lane::cpu
