// Launches over carried memory, tables and parts.

#include "lane/cpu/binder.h"
#include "lane/cpu/gather_rows.h"
#include "lane/cpu/quant_rows.h"

namespace tw::lane::cpu {

namespace {

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
  const bool batch = l.next_sequence != 0;
  if (batch && (l.forms.quantized || !present(l.at.param)))
    return no_kernel("it sets rows of several sequences quantized or at a fixed row");
  const Buffer& table = s_.at(l.table);
  if (l.forms.plain) {
    auto& a = make<CacheWriteArgs>();
    set(a.src, l.src);
    a.kv_heads = table.layout.heads == 0 ? 1 : table.layout.heads;
    a.width = l.cols / a.kv_heads;
    a.to = cache_view(l.table, a.kv_heads, a.width, a.to.data);
    set(a.position, l.at.param);
    a.fixed = l.at.fixed;
    a.rows = batch ? 1 : l.count;
    a.sequences = batch ? l.count : 1;
    add(a, kernels_.cache_write, items);
  }
  if (!l.forms.quantized) return {};
  if (l.cols % kQuantBlock != 0) {
    return no_kernel(
        fmt::format("it sets quantized rows of {} values that are not whole blocks of {}", l.cols, kQuantBlock));
  }
  auto& a = make<QuantRowsArgs>();
  a.from = quant(l.src);
  a.to = quant(l.table);
  set(a.position, l.at.param);
  a.fixed = l.at.fixed;
  a.rows = l.count, a.cols = l.cols, a.words = words();
  add(a, Kernel<QuantRowsArgs>{quant_rows}, quant_rows_items).barrier = false;  // the two forms lie apart
  return {};
}

Result<void> Binder::bind(const Attention& l) {
  auto& a = make<AttentionArgs>();
  const bool batch = l.next_sequence != 0;
  if (batch && l.split) return no_kernel("it spans sequences with keys in two pieces");
  const uint64_t kv_heads = l.heads / l.group;
  set(a.q, l.q);
  a.k = cache_view(l.k, kv_heads, l.split ? l.split->own : l.hd, a.k.data);
  a.v = cache_view(l.v, kv_heads, l.vd, a.v.data);
  const Buffer& values = s_.at(l.v);
  const bool whole_rows = l.v_offset == 0 && l.v_stride == kv_heads * l.vd;
  if (values.layout.kind == lane::Layout::Kind::RowMajor) {
    a.v.position_stride = l.v_stride;
    a.v_offset = l.v_offset;
  } else if (values.layout.kind != lane::Layout::Kind::ValueRows || !whole_rows) {
    return no_kernel(fmt::format("its values are parts of {}, which is laid out as a cache of keys or of whole values",
                                 values.name));
  }
  TW_TRY_VOID(attention_split(a, l));
  set(a.position, l.position);
  set(a.sinks, l.sinks);
  set(a.gate, l.gate, l.gate_offset);
  TW_TRY_VOID(set_store(a.out, Dst{l.out}, l.rows * l.heads, l.vd, l.forms));
  a.sequences = batch ? l.rows : 1, a.rows = batch ? 1 : l.rows;
  a.heads = l.heads, a.kv_heads = kv_heads, a.hd = l.hd, a.vd = l.vd, a.length = l.len;
  a.window = l.window, a.scale = l.scale, a.softcap = l.softcap, a.gate_act = l.gate_act;
  const size_t scratch = attention_scratch_bytes(a);
  if (!attends_by_chunks(a)) return turns(add(a, kernels_.attention_rows, attention_rows_items, scratch));
  shared(a.partials, attention_partials(a.sequences, a.rows, l.heads, l.vd, l.len) * sizeof(float));
  Call& chunks = add(a, kernels_.attention_chunks, attention_chunks_items, scratch);
  chunks.take_turns = chunks.varies = true;
  return done(add(a, kernels_.attention_merge, attention_merge_items, scratch));
}

// Few rows: each chunk of the caches is shared out, unless there are sequences enough for every thread to have several
// of their heads, and no partial results to keep for all of them.
bool Binder::attends_by_chunks(const AttentionArgs& a) const {
  constexpr uint64_t kHeadsAThread = 4;
  return a.rows <= kFewAttentionRows && (a.sequences == 1 || a.sequences * a.kv_heads < kHeadsAThread * d_.threads);
}

// Queries and keys in two pieces; nothing to do for whole ones.
Result<void> Binder::attention_split(AttentionArgs& a, const Attention& l) {
  if (!l.split) return {};
  const SplitKeys& split = *l.split;
  const Buffer& tails = s_.at(span_of(s_, split.k_tail).root);
  if (tails.layout.kind != lane::Layout::Kind::RowMajor)
    return no_kernel(fmt::format("the ends of its keys lie in {}, which is laid out as a cache", tails.name));
  if (split.own == 0 || split.own >= l.hd)
    return no_kernel(fmt::format("the first piece of its keys has {} of {} values", split.own, l.hd));
  a.split.own = split.own;
  a.split.q_pitch = split.q_pitch;
  set(a.split.q_tail, split.q_tail);
  a.split.q_tail_pitch = split.q_part.pitch, a.split.q_tail_offset = split.q_part.offset;
  set(a.split.k_tail, split.k_tail);
  a.split.k_tail_type = tails.dtype;
  a.split.k_tail_pitch = split.k_part.pitch, a.split.k_tail_offset = split.k_part.offset;
  return {};
}

Result<void> Binder::bind(const Conv& l) {
  auto& a = make<ConvArgs>();
  set(a.x, l.x);
  set(a.w, l.w);
  a.rings = set_sequences(a.ring, l.ring);
  set(a.y, l.y);
  if (l.taps > kMaxConvTaps) return no_kernel(fmt::format("it has {} taps, the kernel takes {}", l.taps, kMaxConvTaps));
  a.sequences = l.sequences, a.rows = l.rows, a.chan = l.chan, a.taps = l.taps;
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
  auto& a = make<DeltaArgs>();
  set(a.q, l.q);
  set(a.k, l.k);
  set(a.v, l.v);
  set(a.z, l.z);
  set(a.beta, l.beta);
  set(a.alpha, l.alpha);
  set(a.norm, l.norm);
  a.states = set_sequences(a.state, l.state);
  const uint64_t units = l.sequences * l.rows * l.value_heads;
  TW_TRY_VOID(set_store(a.out, Dst{l.out}, units, l.d, l.forms));
  if (l.forms.plain)
    set(a.o, l.out);
  else
    shared(a.o, units * l.d * sizeof(float));
  a.sequences = l.sequences, a.rows = l.rows, a.value_heads = l.value_heads, a.key_heads = l.key_heads, a.d = l.d,
  a.eps = l.eps;
  a.state_type = s_.at(l.state).dtype;
  a.channel_decay = l.channel_decay, a.key_head_of = l.key_head_of, a.gate = l.gate;
  if (l.chunk)
    add(a, kernels_.delta_chunks, delta_chunks_items, delta_chunks_scratch_bytes()).take_turns = true;
  else
    add(a, kernels_.delta_update, delta_update_items).take_turns = true;
  return done(add(a, kernels_.delta_norm, delta_norm_items));
}

Result<void> Binder::bind(const Slice& l) {
  const Buffer& source = s_.at(l.x);
  if (source.layout.kind != lane::Layout::Kind::RowMajor)
    return no_kernel(fmt::format("it reads {}, which is laid out as a cache", source.name));
  auto& a = make<CopyArgs>();
  set(a.x, l.x);
  set(a.y, l.y);
  a.x_type = source.dtype;
  a.x_offset = l.from, a.x_pitch = l.every, a.y_pitch = l.width, a.units = l.groups, a.width = l.width;
  return done(add(a, kernels_.copy, items));
}

Result<void> Binder::bind(const Join& l) {
  auto& a = make<JoinArgs>();
  set(a.a, l.a);
  set(a.b, l.b);
  a.units = l.rows * l.heads, a.ha = l.ha, a.hb = l.hb;
  TW_TRY_VOID(set_store(a.y, l.y, a.units, l.ha + l.hb, {}, l.next_sequence != 0 ? l.rows : 1));
  return done(add(a, kernels_.join, items));
}

Result<void> Binder::bind(const Transpose& l) {
  auto& a = make<TransposeArgs>();
  set(a.x, l.x);
  set(a.y, l.y);
  a.rows = l.rows, a.cols = l.cols;
  return done(add(a, kernels_.transpose, items));
}

Result<void> Binder::bind(const ConvParts& l) {
  if (l.taps > kMaxConvTaps) return no_kernel(fmt::format("it has {} taps, the kernel takes {}", l.taps, kMaxConvTaps));
  auto& parts = make<std::vector<ConvArgs>>();
  parts.resize(l.parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    const ConvPart& part = l.parts[p];
    if (part.l2 && (l.block == 0 || part.chan % l.block != 0))
      return no_kernel(fmt::format("its part {} has {} channels in heads of {}", p, part.chan, l.block));
    ConvArgs& a = parts[p];
    set(a.x, part.x);
    set(a.w, part.w);
    a.rings = set_sequences(a.ring, part.ring);
    set(a.y, part.y);
    a.sequences = l.sequences, a.chan = part.chan, a.taps = l.taps, a.silu = true;
    if (part.l2) a.l2_width = l.block, a.l2_eps = l.eps;
  }
  auto& a = make<ConvPartsArgs>();
  a.parts = parts.data(), a.count = parts.size();
  return done(add(a, kernels_.conv_parts, items));
}

}  // namespace tw::lane::cpu
