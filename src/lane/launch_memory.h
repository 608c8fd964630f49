#pragma once

// Launches over carried memory, tables and parts: gathers, caches, attention, convolutions, the delta rule, moves.
// See launch_products.h for `visit`.

#include <optional>
#include <vector>

#include "gguf/format.h"
#include "graph/op.h"
#include "lane/types.h"

namespace tw::lane {

// out[r] = scale * row index[r] of the table (1-based), or the literal row `fixed` when there is no index. With a
// format the table is checkpoint rows, each dequantized as it is copied; without one it is f32 values.
struct Gather {
  static constexpr std::string_view kKind = "gather";
  BufferId table = kNoBuffer, index = kNoBuffer, out = kNoBuffer;
  std::optional<gguf::Format> format;
  uint32_t fixed = 0;
  uint64_t cols = 0, rows = 0;
  float scale = 1;
  bool operator==(const Gather&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    if (s.format) {
      v.weight("table", s.table);
    } else {
      v.read("table", s.table, true);
    }
    v.read("index", s.index);
    v.write("out", s.out, s.rows * s.cols, OutForms{});
    v.field("format", s.format);
    v.field("fixed", s.fixed);
    v.field("cols", s.cols);
    v.field("rows", s.rows);
    v.field("scale", s.scale);
  }
};

// `out` is `src` from element `offset` on: no kernel runs and nothing is touched (reading the view is reading src).
struct View {
  static constexpr std::string_view kKind = "view";
  BufferId src = kNoBuffer, out = kNoBuffer;
  uint64_t offset = 0;
  bool operator==(const View&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.field("src", s.src);
    v.field("out", s.out);
    v.field("offset", s.offset);
  }
};

// Rows at.. of `table` become the `count` rows of src, `cols` wide. `next_sequence` > 0: a batch, row r goes to the
// table that begins r * next_sequence elements in, at the row that item r of the parameter names.
struct SetRow {
  static constexpr std::string_view kKind = "set_row";
  BufferId table = kNoBuffer, src = kNoBuffer;
  RowAt at;
  uint64_t cols = 0, count = 1;
  uint64_t next_sequence = 0;
  OutForms forms;
  bool operator==(const SetRow&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    if (s.forms.plain) v.read("src", s.src);
    if (s.forms.quantized) v.read_quantized("src", s.src);
    v.rows("table", s.table, s.at, s.cols, s.count, s.forms);
    v.read("at", s.at.param);
    v.field("fixed", s.at.fixed);
    v.field("cols", s.cols);
    v.field("count", s.count);
    v.field("next_sequence", s.next_sequence);
  }
};

// Queries and keys that lie in two pieces (an expanded latent attention): values 0..own-1 of query unit u at
// q[u * q_pitch], the rest at q_tail[u * pitch + offset]; values 0..own-1 of key unit at k, the rest at
// k_tail[position * pitch + offset], shared by the key/value heads.
struct SplitKeys {
  uint64_t own = 0, q_pitch = 0;
  BufferId q_tail = kNoBuffer, k_tail = kNoBuffer;
  Part q_part, k_part;
  bool operator==(const SplitKeys&) const = default;
};

// graph::Attention over a cache of `len` positions, for `rows` rows. Values of position j and key/value head g begin at
// element j * v_stride + v_offset + g * vd of v. `next_sequence` > 0: a batch, row r uses the keys that begin
// r * next_sequence elements in, the values that begin as many positions in, and item r of the positions.
struct Attention {
  static constexpr std::string_view kKind = "attention";
  BufferId q = kNoBuffer, k = kNoBuffer, v = kNoBuffer, position = kNoBuffer, sinks = kNoBuffer, out = kNoBuffer;
  uint64_t heads = 0, group = 1, hd = 0, vd = 0, len = 0, rows = 1;
  graph::Window window;
  uint64_t v_stride = 0, v_offset = 0;
  float scale = 1, softcap = 0;
  std::optional<SplitKeys> split;
  BufferId gate = kNoBuffer;
  graph::ActivationKind gate_act = graph::ActivationKind::Sigmoid;
  uint64_t gate_offset = 0;
  uint64_t next_sequence = 0;
  uint32_t per_block = 1, splits = 1;
  bool parallel = false;
  std::optional<uint32_t> shared;
  OutForms forms;
  bool operator==(const Attention&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("q", s.q);
    v.read("k", s.k, true);
    v.read("v", s.v, true);
    v.read("position", s.position);
    v.read("sinks", s.sinks);
    v.read("gate", s.gate);
    if (s.split) {
      v.read("q_tail", s.split->q_tail);
      v.read("k_tail", s.split->k_tail, true);
      v.field("own", s.split->own);
      v.field("q_pitch", s.split->q_pitch);
      v.field("q_part", s.split->q_part);
      v.field("k_part", s.split->k_part);
    }
    v.write("out", s.out, s.rows * s.heads * s.vd, s.forms);
    v.field("heads", s.heads);
    v.field("group", s.group);
    v.field("hd", s.hd);
    v.field("vd", s.vd);
    v.field("len", s.len);
    v.field("rows", s.rows);
    v.field("window", s.window);
    v.field("v_stride", s.v_stride);
    v.field("v_offset", s.v_offset);
    v.field("scale", s.scale);
    v.field("softcap", s.softcap);
    if (present(s.gate)) v.field("gate_act", s.gate_act);
    v.field("gate_offset", s.gate_offset);
    v.field("next_sequence", s.next_sequence);
    v.field("per_block", s.per_block);
    v.field("splits", s.splits);
    v.field("parallel", s.parallel);
    v.field("shared", s.shared);
  }
};

// graph::CausalConv, with the SiLU of each output, and with l2 the division of each run of l2_width channels by its
// length. sequences: the arrays hold that many sequences' pieces back to back.
struct Conv {
  static constexpr std::string_view kKind = "conv";
  BufferId x = kNoBuffer, w = kNoBuffer, ring = kNoBuffer, y = kNoBuffer;
  uint64_t chan = 0, taps = 0, rows = 1, sequences = 1;
  bool silu = false;
  uint64_t l2_width = 0;  // 0: none
  float l2_eps = 0;
  bool operator==(const Conv&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.read("w", s.w);
    v.update("ring", s.ring);
    v.write("y", s.y, s.rows * s.chan * s.sequences, OutForms{});
    v.field("chan", s.chan);
    v.field("taps", s.taps);
    v.field("rows", s.rows);
    v.field("sequences", s.sequences);
    v.field("silu", s.silu);
    v.field("l2_width", s.l2_width);
    v.field("l2_eps", s.l2_eps);
  }
};

struct ConvPart {
  BufferId x = kNoBuffer, w = kNoBuffer, ring = kNoBuffer, y = kNoBuffer;
  uint64_t chan = 0;
  bool l2 = false;
  bool operator==(const ConvPart&) const = default;
};

// Independent convolutions of a single row, each ending in the SiLU; heads of `block` channels. sequences: arrays hold
// that many sequences' pieces back to back.
struct ConvParts {
  static constexpr std::string_view kKind = "conv";
  std::vector<ConvPart> parts;
  uint64_t taps = 0, block = 0;
  float eps = 0;
  uint64_t sequences = 1;
  bool operator==(const ConvParts&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    for (auto& part : s.parts) {
      v.read("x", part.x);
      v.read("w", part.w);
      v.update("ring", part.ring);
      v.write("y", part.y, part.chan * s.sequences, OutForms{});
      v.field("chan", part.chan);
      v.field("l2", part.l2);
    }
    v.field("taps", s.taps);
    v.field("block", s.block);
    v.field("eps", s.eps);
    v.field("sequences", s.sequences);
  }
};

// y[i] = e^(rate * softplus(x[i] + bias)), bias and rate by i mod heads.
struct Decay {
  static constexpr std::string_view kKind = "decay";
  BufferId x = kNoBuffer, bias = kNoBuffer, rate = kNoBuffer, y = kNoBuffer;
  uint64_t n = 0, heads = 0;
  bool operator==(const Decay&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.read("bias", s.bias);
    v.read("rate", s.rate);
    v.write("y", s.y, s.n, OutForms{});
    v.field("n", s.n);
    v.field("heads", s.heads);
  }
};

// beta[i] = sigmoid(br[i]); decay[i] as Decay of ar.
struct Gates {
  static constexpr std::string_view kKind = "gates";
  BufferId br = kNoBuffer, ar = kNoBuffer, bias = kNoBuffer, rate = kNoBuffer, beta = kNoBuffer, decay = kNoBuffer;
  uint64_t n = 0, heads = 0;
  bool operator==(const Gates&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("br", s.br);
    v.read("ar", s.ar);
    v.read("bias", s.bias);
    v.read("rate", s.rate);
    v.write("beta", s.beta, s.n, OutForms{});
    v.write("decay", s.decay, s.n, OutForms{});
    v.field("n", s.n);
    v.field("heads", s.heads);
  }
};

// Both gates from one activation row of k values: br = x wb, ar = x wa, then Gates.
struct GateProj {
  static constexpr std::string_view kKind = "gates";
  BufferId x = kNoBuffer, wb = kNoBuffer, wa = kNoBuffer, bias = kNoBuffer, rate = kNoBuffer;
  BufferId beta = kNoBuffer, decay = kNoBuffer;
  uint64_t k = 0, heads = 0;
  uint32_t parts = 1;
  bool operator==(const GateProj&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.weight("wb", s.wb);
    v.weight("wa", s.wa);
    v.read("bias", s.bias);
    v.read("rate", s.rate);
    v.write("beta", s.beta, s.heads, OutForms{});
    v.write("decay", s.decay, s.heads, OutForms{});
    v.field("k", s.k);
    v.field("heads", s.heads);
    v.field("parts", s.parts);
  }
};

// graph::GatedDelta, row after row. d: head width. channel_decay: alpha holds one value a channel (value_heads * d a
// row).
struct Delta {
  static constexpr std::string_view kKind = "delta";
  BufferId q = kNoBuffer, k = kNoBuffer, v = kNoBuffer, z = kNoBuffer, beta = kNoBuffer, alpha = kNoBuffer;
  BufferId state = kNoBuffer, norm = kNoBuffer, out = kNoBuffer;
  uint64_t value_heads = 0, key_heads = 0, d = 0, rows = 1, sequences = 1;
  float eps = 0;
  graph::KeyHeadOf key_head_of = graph::KeyHeadOf::Modulo;
  graph::GateKind gate = graph::GateKind::Silu;
  bool channel_decay = false;
  // Order::FastDelta: the rows of a chunk; rows after the last whole chunk go one after the other. None: all do.
  std::optional<uint32_t> chunk;
  OutForms forms;
  bool operator==(const Delta&) const = default;
  // Whether the fast-delta order takes chunks of it, if its memory is f32.
  [[nodiscard]] bool has_chunks() const {
    return rows >= kDeltaChunk && !channel_decay && d % 32 == 0 && d <= kDeltaChunkWidth;
  }
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("q", s.q);
    v.read("k", s.k);
    v.read("v", s.v);
    v.read("z", s.z);
    v.read("beta", s.beta);
    v.read("alpha", s.alpha);
    v.update("state", s.state, true);
    v.read("norm", s.norm);
    v.write("out", s.out, s.rows * s.value_heads * s.d * s.sequences, s.forms);
    v.field("value_heads", s.value_heads);
    v.field("key_heads", s.key_heads);
    v.field("d", s.d);
    v.field("rows", s.rows);
    v.field("sequences", s.sequences);
    v.field("eps", s.eps);
    v.field("key_head_of", s.key_head_of);
    v.field("gate", s.gate);
    v.field("channel_decay", s.channel_decay);
    v.field("chunk", s.chunk);
  }
};

// y[g * width + i] = x[g * every + from + i], g < groups.
struct Slice {
  static constexpr std::string_view kKind = "slice";
  BufferId x = kNoBuffer, y = kNoBuffer;
  uint64_t groups = 0, every = 0, from = 0, width = 0;
  bool operator==(const Slice&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x, true);
    v.write("y", s.y, s.groups * s.width, OutForms{});
    v.field("groups", s.groups);
    v.field("every", s.every);
    v.field("from", s.from);
    v.field("width", s.width);
  }
};

// Unit u of rows * heads: a[u * ha .. +ha) then b[u * hb .. +hb). `next_sequence` > 0: a batch that joins into caches,
// row r goes to the cache that begins r * next_sequence elements in, at item r of the positions.
struct Join {
  static constexpr std::string_view kKind = "join";
  BufferId a = kNoBuffer, b = kNoBuffer;
  Dst y;
  uint64_t rows = 0, heads = 0, ha = 0, hb = 0;
  uint64_t next_sequence = 0;
  bool operator==(const Join&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("a", s.a);
    v.read("b", s.b);
    v.dst("y", s.y, s.rows * s.heads, s.ha + s.hb, true, OutForms{});
    v.field("rows", s.rows);
    v.field("heads", s.heads);
    v.field("ha", s.ha);
    v.field("hb", s.hb);
    v.field("next_sequence", s.next_sequence);
  }
};

// y[c][r] = x[r][c].
struct Transpose {
  static constexpr std::string_view kKind = "transpose";
  BufferId x = kNoBuffer, y = kNoBuffer;
  uint64_t rows = 0, cols = 0;
  bool operator==(const Transpose&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.write("y", s.y, s.rows * s.cols, OutForms{});
    v.field("rows", s.rows);
    v.field("cols", s.cols);
  }
};

}  // namespace tw::lane
