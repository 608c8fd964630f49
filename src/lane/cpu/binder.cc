#include "lane/cpu/binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "lane/cpu/barriers.h"
#include "lane/cpu/gather_rows.h"
#include "lane/cpu/kernels.h"
#include "lane/cpu/moe.h"
#include "lane/cpu/product.h"
#include "lane/uses.h"

namespace tw::lane::cpu {

namespace {

// Rows up to which an attention shares each chunk of the cache out instead of each tile of rows.
constexpr uint64_t kFewRows = 8;

uint64_t gather_rows_items(const GatherRowsArgs& a) { return a.rows; }

class Binder {
 public:
  Binder(Program::Data& data, Isa isa, const WeightStore& weights, States& states)
      : d_(data), s_(data.schedule), isa_(isa), kernels_(kernels(isa)), weights_(weights), states_(states) {}

  Result<void> run() {
    d_.arena = Aligned(s_.arena_bytes);
    std::vector<bool> uses_shared;
    std::vector<size_t> first_call;
    for (uint32_t at = 0; at < s_.launches.size(); ++at) {
      launch_ = at;
      shared_here_ = 0;
      first_call.push_back(d_.calls.size());
      TW_TRY_VOID(std::visit([this](const auto& l) { return bind(l); }, s_.launches[at].launch));
      uses_shared.push_back(shared_here_ != 0);
      shared_bytes_ = std::max(shared_bytes_, shared_here_);
    }
    const std::vector<bool> barriers = barriers_before(s_, uses_shared);
    for (size_t at = 0; at < barriers.size(); ++at) {
      if (first_call[at] < d_.calls.size() && d_.calls[first_call[at]].launch == at) {
        d_.calls[first_call[at]].barrier = barriers[at];
      }
    }
    d_.shared = Aligned(shared_bytes_);
    for (const auto& place : shared_users_) place(d_.shared.get());
    for (uint32_t t = 0; t < d_.threads; ++t) d_.scratch.emplace_back(scratch_bytes_);
    bind_io();
    return {};
  }

 private:
  // ---- products ----

  Result<void> bind(const Gemv& l) { return product({l.x, l.w, l.bias, l.k, l.m}, l.y, true); }
  Result<void> bind(const GemvF32& l) { return product({l.x, l.w, l.bias, l.k, l.m}, l.y, false); }

  struct ProductOperands {
    BufferId x, w, bias;
    uint64_t k, m;
  };
  Result<void> product(const ProductOperands& p, const Dst& y, bool quantized) {
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

  Result<void> bind(const HeadGemv& l) {
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

  Result<void> bind(const Moe& l) {
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

  // ---- rows ----

  Result<void> bind(const Norm& l) {
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

  Result<void> bind(const L2Norm& l) {
    auto& a = make<L2NormArgs>();
    set(a.x, l.x);
    set(a.y, l.y);
    a.rows = l.rows, a.cols = l.cols, a.eps = l.eps;
    return done(add(a, kernels_.l2_norm, items));
  }

  Result<void> bind(const Softmax& l) {
    auto& a = make<SoftmaxArgs>();
    set(a.x, l.x);
    set(a.sinks, l.sinks);
    set(a.y, l.y);
    a.rows = l.rows, a.cols = l.cols, a.sink_a_row = l.sink_a_row;
    return done(add(a, kernels_.softmax, items));
  }

  Result<void> bind(const Quant& l) {
    auto& a = make<QuantArgs>();
    set(a.x, l.x);
    a.to = quant(l.x);
    a.rows = 1, a.cols = l.n, a.pitch = l.n, a.words = words();
    return done(add(a, kernels_.quant, items));
  }

  Result<void> bind(const Binary& l) {
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

  Result<void> bind(const Scale& l) {
    auto& a = make<ScaleArgs>();
    set(a.x, l.x);
    set(a.y, l.y);
    a.n = l.n, a.factor = l.factor;
    return done(add(a, kernels_.scale, items));
  }

  Result<void> bind(const SwiGlu& l) {
    if (l.forms.quantized) return no_kernel("its result lands quantized");
    auto& a = make<SwiGluArgs>();
    set(a.g, l.g);
    set(a.u, l.u);
    set(a.out, l.out);
    a.n = l.n;
    return done(add(a, kernels_.swiglu, items));
  }

  Result<void> bind(const Unary& l) {
    auto& a = make<UnaryArgs>();
    set(a.x, l.x);
    set(a.y, l.y);
    a.n = l.n, a.cap = l.cap, a.act = l.act;
    return done(add(a, kernels_.unary, items));
  }

  Result<void> bind(const Rope& l) {
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

  Result<void> bind(const ArgMax& l) {
    if (l.advance) return no_kernel("it advances the step, which the runtime does");
    auto& a = make<ArgMaxArgs>();
    set(a.x, l.x);
    set(a.out, l.out);
    a.rows = l.rows, a.n = l.n;
    shared(a.best, l.rows * argmax_pieces(l.n) * sizeof(Best));
    add(a, kernels_.argmax_scan, argmax_scan_items);
    return done(add(a, kernels_.argmax_merge, argmax_merge_items));
  }

  // ---- memory ----

  Result<void> bind(const Gather& l) {
    if (l.format) {
      auto& a = make<GatherRowsArgs>();
      a.table = &weights_.rows(s_.at(l.table).name);
      if (present(l.index)) {
        set(a.index, l.index);
      } else {
        auto& fixed = make<int32_t>();
        fixed = static_cast<int32_t>(l.fixed);
        a.index = &fixed;
      }
      set(a.out, l.out);
      a.rows = l.rows, a.scale = l.scale;
      return done(add(a, Kernel<GatherRowsArgs>{gather_rows}, gather_rows_items));
    }
    auto& a = make<GatherArgs>();
    set(a.table, l.table);
    a.type = s_.at(l.table).dtype;
    set(a.index, l.index);
    a.fixed = l.fixed;
    set(a.out, l.out);
    a.rows = l.rows, a.cols = l.cols, a.scale = l.scale;
    return done(add(a, kernels_.gather, items));
  }

  Result<void> bind(const View&) { return {}; }

  // Rows into a cache in the lane's layout, or into a plain table.
  Result<void> bind(const SetRow& l) {
    if (l.next_sequence != 0 || l.forms.quantized)
      return no_kernel("it sets rows of several sequences or quantized rows");
    const Buffer& table = s_.at(l.table);
    auto& a = make<CacheWriteArgs>();
    set(a.src, l.src);
    a.to = cache_view(l.table, table.layout.heads == 0 ? 1 : table.layout.heads,
                      table.layout.heads == 0 ? l.cols : table.layout.width, a.to.data);
    set(a.position, l.at.param);
    a.fixed = l.at.fixed;
    a.rows = l.count;
    a.kv_heads = table.layout.heads == 0 ? 1 : table.layout.heads;
    a.width = l.cols / a.kv_heads;
    return done(add(a, kernels_.cache_write, items));
  }

  Result<void> bind(const Attention& l) {
    if (l.split || l.next_sequence != 0 || l.forms.quantized) {
      return no_kernel("its keys are in two pieces, it spans sequences, or its result lands quantized");
    }
    auto& a = make<AttentionArgs>();
    const uint64_t kv_heads = l.heads / l.group;
    set(a.q, l.q);
    a.k = cache_view(l.k, kv_heads, l.hd, a.k.data);
    a.v = cache_view(l.v, kv_heads, l.vd, a.v.data);
    if (!a.v.blocked && s_.at(l.v).layout.kind == lane::Layout::Kind::RowMajor) {
      if (l.v_offset != 0) return no_kernel("its values begin inside a row");
      a.v.position_stride = l.v_stride;
    }
    set(a.position, l.position);
    set(a.sinks, l.sinks);
    set(a.gate, l.gate);
    if (l.gate_offset != 0) return no_kernel("its gate begins inside a tensor");
    set(a.out, l.out);
    a.rows = l.rows, a.heads = l.heads, a.kv_heads = kv_heads, a.hd = l.hd, a.vd = l.vd, a.length = l.len;
    a.window = l.window, a.scale = l.scale, a.softcap = l.softcap, a.gate_act = l.gate_act;
    const size_t scratch = attention_scratch_bytes(l.hd, l.vd);
    if (l.rows > kFewRows) return turns(add(a, kernels_.attention_rows, attention_rows_items, scratch));
    shared(a.partials, attention_partials(1, l.rows, l.heads, l.vd, l.len) * sizeof(float));
    add(a, kernels_.attention_chunks, attention_chunks_items, scratch).take_turns = true;
    return done(add(a, kernels_.attention_merge, attention_merge_items));
  }

  Result<void> bind(const Conv& l) {
    auto& a = make<ConvArgs>();
    set(a.x, l.x);
    set(a.w, l.w);
    set(a.ring, l.ring);
    set(a.y, l.y);
    if (l.taps > kMaxConvTaps)
      return no_kernel(fmt::format("it has {} taps, the kernel takes {}", l.taps, kMaxConvTaps));
    a.rows = l.rows, a.chan = l.chan, a.taps = l.taps;
    a.l2_width = l.l2_width, a.l2_eps = l.l2_eps, a.silu = l.silu;
    return done(add(a, kernels_.conv, items));
  }

  Result<void> bind(const Decay& l) {
    auto& a = make<GatesArgs>();
    set(a.x, l.x);
    set(a.bias, l.bias);
    set(a.rate, l.rate);
    set(a.decay, l.y);
    a.rows = l.n / l.heads, a.heads = l.heads;
    return done(add(a, kernels_.gates, items));
  }

  Result<void> bind(const Gates& l) {
    auto& a = make<GatesArgs>();
    set(a.b, l.br);
    set(a.x, l.ar);
    set(a.bias, l.bias);
    set(a.rate, l.rate);
    set(a.beta, l.beta);
    set(a.decay, l.decay);
    a.rows = l.n / l.heads, a.heads = l.heads;
    return done(add(a, kernels_.gates, items));
  }

  Result<void> bind(const Delta& l) {
    if (l.sequences != 1 || l.forms.quantized) return no_kernel("it spans sequences or its result lands quantized");
    auto& a = make<DeltaArgs>();
    set(a.q, l.q);
    set(a.k, l.k);
    set(a.v, l.v);
    set(a.z, l.z);
    set(a.beta, l.beta);
    set(a.alpha, l.alpha);
    set(a.norm, l.norm);
    set(a.state, l.state);
    set(a.out, l.out);
    a.rows = l.rows, a.value_heads = l.value_heads, a.key_heads = l.key_heads, a.d = l.d, a.eps = l.eps;
    a.state_type = s_.at(l.state).dtype;
    a.channel_decay = l.channel_decay, a.key_head_of = l.key_head_of, a.gate = l.gate;
    add(a, kernels_.delta_update, delta_update_items).take_turns = true;
    return done(add(a, kernels_.delta_norm, delta_norm_items));
  }

  Result<void> bind(const Slice& l) {
    auto& a = make<CopyArgs>();
    set(a.x, l.x);
    set(a.y, l.y);
    a.x_type = s_.at(l.x).dtype;
    a.x_offset = l.from, a.x_pitch = l.every, a.y_pitch = l.width, a.units = l.groups, a.width = l.width;
    return done(add(a, kernels_.copy, items));
  }

  Result<void> bind(const Join& l) {
    TW_TRY_VOID(own_result(l.y));
    const uint64_t both = l.ha + l.hb;
    const auto half = [&](BufferId from, uint64_t width, uint64_t offset) -> Call& {
      auto& a = make<CopyArgs>();
      set(a.x, from);
      set(a.y, l.y.buf);
      a.x_pitch = width, a.y_offset = offset, a.y_pitch = both, a.units = l.rows * l.heads, a.width = width;
      return add(a, kernels_.copy, items);
    };
    half(l.a, l.ha, 0);
    half(l.b, l.hb, l.ha).barrier = false;
    return {};
  }

  Result<void> bind(const Transpose& l) {
    auto& a = make<TransposeArgs>();
    set(a.x, l.x);
    set(a.y, l.y);
    a.rows = l.rows, a.cols = l.cols;
    return done(add(a, kernels_.transpose, items));
  }

  // Launches that no plan of this lane has: the fused forms.
  template <class L>
  Result<void> bind(const L&) {
    return no_kernel("the launch is a fused form");
  }

  // ---- calls ----

  template <class Args>
  Args& make() {
    auto args = std::make_shared<Args>();
    d_.args.push_back(args);
    return *args;
  }

  template <class Args>
  Call& add(Args& args, Kernel<Args> kernel, uint64_t (*count)(const Args&), size_t scratch = 0) {
    TW_CHECK(kernel != nullptr, "the table of kernels has a gap");
    Call call;
    call.kernel = reinterpret_cast<void (*)()>(kernel);
    call.items = reinterpret_cast<void (*)()>(count);
    call.args = &args;
    call.launch = launch_;
    call.run = [](const Call& c, Range range, std::byte* storage) {
      reinterpret_cast<Kernel<Args>>(c.kernel)(*static_cast<const Args*>(c.args), range, storage);
    };
    call.count = [](const Call& c) {
      return reinterpret_cast<uint64_t (*)(const Args&)>(c.items)(*static_cast<const Args*>(c.args));
    };
    if constexpr (requires { scratch_bytes(args); }) scratch = scratch_bytes(args);
    scratch_bytes_ = std::max(scratch_bytes_, scratch);
    d_.calls.push_back(call);
    return d_.calls.back();
  }
  static Result<void> done(Call&) { return {}; }
  static Result<void> turns(Call& call) {
    call.take_turns = true;
    return {};
  }

  [[nodiscard]] Refusal no_kernel(std::string_view why) const {
    return refuse(RefusalKind::Unsupported,
                  fmt::format("launch {} ({})", launch_, kind_of(s_.launches[launch_].launch)),
                  fmt::format("the CPU lane has no kernel for it: {}", why));
  }
  [[nodiscard]] Result<void> own_result(const Dst& dst) const {
    if (dst.own()) return {};
    return no_kernel("its result lands in rows or parts of a buffer");
  }

  // ---- operands ----

  [[nodiscard]] int words() const {
    return s_.numerics == Numerics::Precise ? 0 : s_.numerics == Numerics::Int8 ? 1 : 2;
  }

  // Sets an argument to where the plain form of a buffer lies.
  template <class T>
  void set(T*& field, BufferId id) {
    if (!present(id)) return;
    const lane::Span span = span_of(s_, id);
    const Buffer& root = s_.at(span.root);
    const uint64_t offset = span.from * bytes_of(root.dtype);
    using Bare = std::remove_const_t<T>;
    if (root.fill == Fill::Constant) {
      field = reinterpret_cast<T*>(const_cast<float*>(weights_.values(root.name) + span.from));
    } else if (root.fill == Fill::State) {
      const States::State& state = states_.of(root);
      auto** slot = reinterpret_cast<void**>(const_cast<Bare**>(&field));
      d_.state_pointers.push_back({slot, &state, root.sequence.value_or(0), offset});
    } else {
      TW_CHECK(root.plain_at.has_value(), "{} has no place in the arena", root.name);
      field = reinterpret_cast<T*>(d_.arena.get() + *root.plain_at + offset);
    }
  }

  // Memory that a launch's kernels hand results over in: `place` gets its start once it is there.
  void shared(uint64_t bytes, std::function<void(std::byte*)> place) {
    TW_CHECK(shared_here_ == 0, "a launch asked for shared memory twice");
    shared_here_ = bytes;
    shared_users_.push_back(std::move(place));
  }
  template <class T>
  void shared(T*& field, uint64_t bytes) {
    shared(bytes, [&field](std::byte* memory) { field = reinterpret_cast<T*>(memory); });
  }

  [[nodiscard]] QuantView quant(BufferId id) const {
    const Buffer& home = s_.at(quantized_home(s_, id));
    TW_CHECK(home.quantized_at.has_value(), "{} has no quantized form", home.name);
    QuantView view = quant_view(d_.arena.get() + *home.quantized_at, home.size(), words());
    const uint64_t from = quantized_offset(s_, id), block = from / kQuantBlock;
    view.high += from;
    view.scale += block;
    view.sum_high += block;
    if (view.low != nullptr) {
      view.low += from;
      view.wide += from;
      view.sum_low += block;
    }
    return view;
  }

  // The view of a cache whose data pointer is set through `data`, the view's own field.
  CacheView cache_view(BufferId id, uint64_t kv_heads, uint64_t width, const void*& data) {
    const Buffer& buffer = s_.at(id);
    CacheView view;
    switch (buffer.layout.kind) {
      case lane::Layout::Kind::KeyBlocks: view = key_cache(nullptr, buffer.dtype, buffer.rows, kv_heads, width); break;
      case lane::Layout::Kind::ValueRows:
        view = value_cache(nullptr, buffer.dtype, buffer.rows, kv_heads, width);
        break;
      case lane::Layout::Kind::RowMajor: view = cache_rows(nullptr, buffer.dtype, buffer.rows, kv_heads, width); break;
    }
    set(data, id);
    view.data = data;
    return view;
  }

  void bind_io() {
    set(d_.tokens, s_.io.tokens);
    for (const ScheduleIo::Sequence& io : s_.io.sequences) {
      Program::Data::SequencePlaces places;
      set(places.position, io.position);
      set(places.logits, io.logits);
      set(places.next, io.next);
      places.logits_size = s_.at(io.logits).size();
      places.next_size = s_.at(io.next).size();
      d_.sequences.push_back(places);
    }
  }

  Program::Data& d_;
  const Schedule& s_;
  Isa isa_;
  const Kernels& kernels_;
  const WeightStore& weights_;
  States& states_;
  uint32_t launch_ = 0;
  size_t scratch_bytes_ = 0;
  uint64_t shared_here_ = 0, shared_bytes_ = 0;
  std::vector<std::function<void(std::byte*)>> shared_users_;
};

}  // namespace

Result<void> bind_schedule(Program::Data& data, Isa isa, const WeightStore& weights, States& states) {
  return Binder(data, isa, weights, states).run();
}

}  // namespace tw::lane::cpu
