#pragma once

// Launches that multiply by weights. Common names: k input width, n outputs, m activation rows.
//
// Every launch declares its operands and fields once, in `visit`; what it reads, writes and touches, its aliasing
// rules, its text and JSON all derive from that (lane/uses.h, lane/print.h). The visitor's calls:
//   read(name, id [, typed])            a plain read; typed: the array may be stored in 16 bits
//   projected(name, id)                 read quantized under quantized numerics, plain otherwise
//   weight(name, id)                    a constant in the lane's own storage
//   write(name, id, elements, forms)    the result: `elements` values from the buffer's first on, in these forms
//   dst(name, dst, units, width, typed) a plain result of `units` runs of `width` values placed by a Dst
//   update(name, id [, typed])          read and written in place
//   field(name, value)                  anything else
// An absent optional operand (kNoBuffer) is skipped by the visitor.

#include <array>
#include <optional>
#include <vector>

#include "gguf/format.h"
#include "graph/op.h"
#include "lane/types.h"

namespace tw::lane {

// Projection by quantized checkpoint rows: y[r][o] = sum over t of x[r][t] * w[o][t] (+ bias[o], after the sum).
struct Gemv {
  static constexpr std::string_view kKind = "gemv_q8";
  BufferId x = kNoBuffer, w = kNoBuffer, bias = kNoBuffer;
  gguf::Format format = gguf::Format::Q8_0;
  Dst y;
  uint64_t k = 0, n = 0, m = 0;
  OutForms out;
  uint32_t per_warp = 1;
  bool batch = false;
  bool operator==(const Gemv&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.projected("x", s.x);
    v.weight("w", s.w);
    v.read("bias", s.bias);
    v.dst("y", s.y, s.m, s.n, true, s.out);
    v.field("format", s.format);
    v.field("k", s.k);
    v.field("n", s.n);
    v.field("m", s.m);
    v.field("per_warp", s.per_warp);
    v.field("batch", s.batch);
  }
};

// Projection by floating-point weights (F32, F16, BF16, widened exactly); the activation is read f32 in every numerics.
struct GemvF32 {
  static constexpr std::string_view kKind = "gemv_f32";
  BufferId x = kNoBuffer, w = kNoBuffer, bias = kNoBuffer;
  gguf::Format format = gguf::Format::F32;
  Dst y;
  uint64_t k = 0, n = 0, m = 0;
  uint32_t split = 1;
  bool batch = false;
  bool operator==(const GemvF32&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x);
    v.weight("w", s.w);
    v.read("bias", s.bias);
    v.dst("y", s.y, s.m, s.n, true, OutForms{});
    v.field("format", s.format);
    v.field("k", s.k);
    v.field("n", s.n);
    v.field("m", s.m);
    v.field("split", s.split);
    v.field("batch", s.batch);
  }
};

struct GemmPart {
  BufferId w = kNoBuffer, bias = kNoBuffer;
  Dst y;
  uint64_t n = 0;
  bool operator==(const GemmPart&) const = default;
};

// Several products of one activation, each as its own Gemv.
struct GemmParts {
  static constexpr std::string_view kKind = "gemv_parts";  // "gemm_parts" above 16 rows outside a batch: see kind_of
  BufferId x = kNoBuffer;
  gguf::Format format = gguf::Format::Q8_0;
  std::vector<GemmPart> parts;
  uint64_t k = 0, m = 0;
  uint32_t per_warp = 1;
  bool batch = false;
  bool operator==(const GemmParts&) const = default;
  [[nodiscard]] bool reads_plain() const;  // its weights are floating-point
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    if (s.reads_plain()) {
      v.read("x", s.x);
    } else {
      v.projected("x", s.x);
    }
    for (auto& part : s.parts) {
      v.weight("w", part.w);
      v.read("bias", part.bias);
      v.dst("y", part.y, s.m, part.n, true, OutForms{});
      v.field("n", part.n);
    }
    v.field("format", s.format);
    v.field("k", s.k);
    v.field("m", s.m);
    v.field("per_warp", s.per_warp);
    v.field("batch", s.batch);
  }
};

// Two projections through a gate: out = act(x wg + bg) * (x wu + bu).
struct GemvGlu {
  static constexpr std::string_view kKind = "gemv_glu";
  BufferId x = kNoBuffer, wg = kNoBuffer, wu = kNoBuffer, bg = kNoBuffer, bu = kNoBuffer, out = kNoBuffer;
  std::array<gguf::Format, 2> formats{};
  graph::MoeAct act;
  OutForms forms;
  uint64_t k = 0, n = 0, m = 0;
  uint32_t per_warp = 1;
  bool batch = false;
  bool operator==(const GemvGlu&) const = default;
  // Which forms of the activation its matrices read under quantized numerics.
  [[nodiscard]] bool reads_plain() const;
  [[nodiscard]] bool reads_quantized() const;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    if (s.reads_quantized()) v.projected("x", s.x);
    if (s.reads_plain()) v.read("x", s.x);
    v.weight("wg", s.wg);
    v.weight("wu", s.wu);
    v.read("bg", s.bg);
    v.read("bu", s.bu);
    v.write("out", s.out, s.n * s.m, s.forms);
    v.field("gate_format", s.formats[0]);
    v.field("up_format", s.formats[1]);
    v.field("act", s.act);
    v.field("k", s.k);
    v.field("n", s.n);
    v.field("m", s.m);
    v.field("per_warp", s.per_warp);
    v.field("batch", s.batch);
  }
};

// Per head h of row r: y[r][h][o] = sum over e < a of x[r][h][e] * w_h[e][o], o < b. Weights as in graph::HeadMatmul.
// upto: only rows before position `upto` + `upto_count` are multiplied, at most m.
struct HeadGemv {
  static constexpr std::string_view kKind = "head_gemv";
  BufferId x = kNoBuffer, w = kNoBuffer, upto = kNoBuffer;
  std::optional<Part> part;
  std::optional<gguf::Format> format;
  Dst y;
  uint64_t m = 0, heads = 0, a = 0, b = 0;
  bool rows_out = true;
  bool shared = false;
  uint32_t upto_count = 0;
  bool batch = false;
  bool operator==(const HeadGemv&) const = default;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    v.read("x", s.x, true);
    v.weight("w", s.w);
    v.read("upto", s.upto);
    v.dst("y", s.y, s.m * s.heads, s.b, true, OutForms{});
    v.field("part", s.part);
    v.field("format", s.format);
    v.field("m", s.m);
    v.field("heads", s.heads);
    v.field("a", s.a);
    v.field("b", s.b);
    v.field("rows_out", s.rows_out);
    v.field("shared", s.shared);
    v.field("upto_count", s.upto_count);
    v.field("batch", s.batch);
  }
};

// One ungated SwiGLU network that every token takes, added after the routed sum.
struct SharedExperts {
  BufferId wg = kNoBuffer, wu = kNoBuffer, wd = kNoBuffer;
  std::array<gguf::Format, 3> formats{};
  uint64_t hidden = 0;
  bool operator==(const SharedExperts&) const = default;
};

// Mixture of experts; graph::Moe says what is computed. d: width of a row. The router reads f32 when its weights are
// F32 values or floating-point rows (router_format F32, F16, BF16), else the quantized activation.
struct Moe {
  static constexpr std::string_view kKind = "moe";
  BufferId x = kNoBuffer, router = kNoBuffer, gate = kNoBuffer, up = kNoBuffer, down = kNoBuffer;
  BufferId router_bias = kNoBuffer, gate_bias = kNoBuffer, up_bias = kNoBuffer, down_bias = kNoBuffer;
  BufferId select_bias = kNoBuffer, expert_scale = kNoBuffer;
  gguf::Format router_format = gguf::Format::F32;
  std::array<gguf::Format, 3> formats{};  // gate, up, down
  Dst y;
  uint64_t d = 0, rows = 0;
  graph::Moe spec;
  std::optional<SharedExperts> shared;
  uint32_t per_warp = 1;
  uint32_t router_split = 1;
  bool batch = false;
  bool operator==(const Moe&) const = default;
  // Which forms of the activation the router and the gate and up products read under quantized numerics. With
  // weigh_inputs the experts' inputs are weighed, and quantized, inside the launch.
  [[nodiscard]] bool reads_plain() const;
  [[nodiscard]] bool reads_quantized() const;
  template <class Self, class V>
  static void visit(Self& s, V& v) {
    if (s.reads_quantized()) v.projected("x", s.x);
    if (s.reads_plain()) v.read("x", s.x);
    v.weight("router", s.router);
    v.weight("gate", s.gate);
    v.weight("up", s.up);
    v.weight("down", s.down);
    v.read("router_bias", s.router_bias);
    v.read("gate_bias", s.gate_bias);
    v.read("up_bias", s.up_bias);
    v.read("down_bias", s.down_bias);
    v.read("select_bias", s.select_bias);
    v.read("expert_scale", s.expert_scale);
    v.dst("y", s.y, s.rows, s.d, true, OutForms{});
    if (s.shared) {
      v.weight("shared_gate", s.shared->wg);
      v.weight("shared_up", s.shared->wu);
      v.weight("shared_down", s.shared->wd);
      v.field("shared_hidden", s.shared->hidden);
      v.field("shared_gate_format", s.shared->formats[0]);
      v.field("shared_up_format", s.shared->formats[1]);
      v.field("shared_down_format", s.shared->formats[2]);
    }
    v.field("d", s.d);
    v.field("rows", s.rows);
    v.field("experts", s.spec.experts);
    v.field("used", s.spec.used);
    v.field("hidden", s.spec.hidden);
    v.field("score", s.spec.score);
    v.field("act", s.spec.act);
    v.field("renormalize", s.spec.renormalize);
    v.field("weigh_inputs", s.spec.weigh_inputs);
    v.field("scale", s.spec.scale);
    v.field("groups", s.spec.groups);
    v.field("groups_kept", s.spec.groups_kept);
    v.field("router_format", s.router_format);
    v.field("gate_format", s.formats[0]);
    v.field("up_format", s.formats[1]);
    v.field("down_format", s.formats[2]);
    v.field("per_warp", s.per_warp);
    v.field("router_split", s.router_split);
    v.field("batch", s.batch);
  }
};

}  // namespace tw::lane
