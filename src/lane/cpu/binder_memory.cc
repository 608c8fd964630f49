// Launches over carried memory, tables and parts.

#include "lane/cpu/binder.h"
#include "lane/cpu/gather_rows.h"

namespace tw::lane::cpu {

namespace {

// Rows up to which an attention shares each chunk of the cache out instead of each tile of rows.
constexpr uint64_t kFewRows = 8;

uint64_t gather_rows_items(const GatherRowsArgs& a) { return a.rows; }

}  // namespace

Result<void> Binder::bind(const Gather& l) {
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

Result<void> Binder::bind(const View&) { return {}; }

// Rows into a cache in the lane's layout, or into a plain table.
Result<void> Binder::bind(const SetRow& l) {
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

Result<void> Binder::bind(const Attention& l) {
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

Result<void> Binder::bind(const Conv& l) {
  auto& a = make<ConvArgs>();
  set(a.x, l.x);
  set(a.w, l.w);
  set(a.ring, l.ring);
  set(a.y, l.y);
  if (l.taps > kMaxConvTaps) return no_kernel(fmt::format("it has {} taps, the kernel takes {}", l.taps, kMaxConvTaps));
  a.rows = l.rows, a.chan = l.chan, a.taps = l.taps;
  a.l2_width = l.l2_width, a.l2_eps = l.l2_eps, a.silu = l.silu;
  return done(add(a, kernels_.conv, items));
}

Result<void> Binder::bind(const Decay& l) {
  auto& a = make<GatesArgs>();
  set(a.x, l.x);
  set(a.bias, l.bias);
  set(a.rate, l.rate);
  set(a.decay, l.y);
  a.rows = l.n / l.heads, a.heads = l.heads;
  return done(add(a, kernels_.gates, items));
}

Result<void> Binder::bind(const Gates& l) {
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

Result<void> Binder::bind(const Delta& l) {
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

Result<void> Binder::bind(const Slice& l) {
  auto& a = make<CopyArgs>();
  set(a.x, l.x);
  set(a.y, l.y);
  a.x_type = s_.at(l.x).dtype;
  a.x_offset = l.from, a.x_pitch = l.every, a.y_pitch = l.width, a.units = l.groups, a.width = l.width;
  return done(add(a, kernels_.copy, items));
}

Result<void> Binder::bind(const Join& l) {
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

Result<void> Binder::bind(const Transpose& l) {
  auto& a = make<TransposeArgs>();
  set(a.x, l.x);
  set(a.y, l.y);
  a.rows = l.rows, a.cols = l.cols;
  return done(add(a, kernels_.transpose, items));
}

Result<void> Binder::bind(const ConvParts&) { return no_kernel("the launch is a fused form"); }

}  // namespace tw::lane::cpu
