#pragma once

// A launch of each kind that merges, of sequence b of a batch, and the one that stands for all of them after the pass.
// Used by tests and benchmarks.

#include <string>
#include <variant>

#include "plan/testing/batch.h"

namespace tw::plan::batch {

using namespace lane;  // NOLINT(google-build-using-namespace): launches are its subject

inline Launch delta_of(Batch& s, uint32_t b) {
  Delta l;
  l.value_heads = 4, l.key_heads = 2, l.d = 8, l.eps = 1e-5F;
  l.q = s.own("q", b, 16), l.k = s.own("k", b, 16), l.v = s.own("v", b, 32), l.z = s.own("z", b, 32);
  l.beta = s.own("beta", b, 4), l.alpha = s.own("alpha", b, 4), l.state = s.state("memory", b, 32, 8);
  l.norm = s.constant("norm", 8), l.out = s.own("out", b, 32);
  return l;
}
inline Launch delta_of_all(Batch& s) {
  Delta l = std::get<Delta>(delta_of(s, 0));
  l.q = s.find("q_s"), l.k = s.find("k_s"), l.v = s.find("v_s"), l.z = s.find("z_s");
  l.beta = s.find("beta_s"), l.alpha = s.find("alpha_s"), l.state = s.find("memory_s"), l.out = s.find("out_s");
  l.sequences = s.sequences();
  return l;
}

inline Launch channel_delta_of(Batch& s, uint32_t b) {
  Delta l = std::get<Delta>(delta_of(s, b));
  l.channel_decay = true;
  l.alpha = s.own("alphas", b, 32);
  return l;
}
inline Launch channel_delta_of_all(Batch& s) {
  Delta l = std::get<Delta>(channel_delta_of(s, 0));
  l.q = s.find("q_s"), l.k = s.find("k_s"), l.v = s.find("v_s"), l.z = s.find("z_s");
  l.beta = s.find("beta_s"), l.alpha = s.find("alphas_s"), l.state = s.find("memory_s"), l.out = s.find("out_s");
  l.sequences = s.sequences();
  return l;
}

inline Launch gates_of(Batch& s, uint32_t b) {
  return Gates{s.own("br", b, 6),
               s.own("ar", b, 6),
               s.constant("bias", 6),
               s.constant("rate", 6),
               s.own("beta", b, 6),
               s.own("decay", b, 6),
               6,
               6};
}
inline Launch gates_of_all(Batch& s) {
  return Gates{s.find("br_s"),   s.find("ar_s"),    s.constant("bias", 6), s.constant("rate", 6),
               s.find("beta_s"), s.find("decay_s"), 6 * s.sequences(),     6};
}

inline Launch conv_parts_of(Batch& s, uint32_t b) {
  ConvParts l;
  l.taps = 4, l.block = 8, l.eps = 1e-6F;
  l.parts = {{s.own("x", b, 16), s.constant("wx", 64), s.state("x_ring", b, 4, 16), s.own("y", b, 16), 16, true},
             {s.own("u", b, 24), s.constant("wu", 96), s.state("u_ring", b, 4, 24), s.own("v", b, 24), 24, false}};
  return l;
}
inline Launch conv_parts_of_all(Batch& s) {
  ConvParts l = std::get<ConvParts>(conv_parts_of(s, 0));
  l.parts[0].x = s.find("x_s"), l.parts[0].ring = s.find("x_ring_s"), l.parts[0].y = s.find("y_s");
  l.parts[1].x = s.find("u_s"), l.parts[1].ring = s.find("u_ring_s"), l.parts[1].y = s.find("v_s");
  l.sequences = s.sequences();
  return l;
}

inline Launch conv_of(Batch& s, uint32_t b) {
  Conv l;
  l.x = s.own("x", b, 16), l.w = s.constant("w", 48), l.ring = s.state("ring", b, 3, 16), l.y = s.own("y", b, 16);
  l.chan = 16, l.taps = 3, l.silu = true, l.l2_width = 8, l.l2_eps = 1e-6F;
  return l;
}
inline Launch conv_of_all(Batch& s) {
  Conv l = std::get<Conv>(conv_of(s, 0));
  l.x = s.find("x_s"), l.ring = s.find("ring_s"), l.y = s.find("y_s");
  l.sequences = s.sequences();
  return l;
}

inline Launch attention_of(Batch& s, uint32_t b) {
  Attention l;
  l.heads = 4, l.group = 2, l.hd = 8, l.vd = 6, l.len = 20, l.v_stride = 12, l.scale = 0.5F;
  l.q = s.own("q", b, 32), l.k = s.state("keys", b, 20, 16), l.v = s.state("values", b, 20, 12);
  l.position = s.position(b), l.sinks = s.constant("sinks", 4), l.out = s.own("out", b, 24);
  return l;
}
inline Launch attention_of_all(Batch& s) {
  Attention l = std::get<Attention>(attention_of(s, 0));
  l.q = s.find("q_s"), l.k = s.find("keys_s"), l.v = s.find("values_s"), l.out = s.find("out_s");
  l.position = s.find("position_s");
  l.rows = s.sequences(), l.next_sequence = 20 * 16;
  return l;
}

// Each sequence's row of a gate that all of them share.
inline Launch gated_attention_of(Batch& s, uint32_t b) {
  Attention l = std::get<Attention>(attention_of(s, b));
  l.gate = s.shared("gate", 24, s.sequences()), l.gate_offset = 24 * b;
  return l;
}
inline Launch gated_attention_of_all(Batch& s) {
  Attention l = std::get<Attention>(attention_of_all(s));
  l.gate = s.find("gate");
  return l;
}

// The same gate read through views of its rows.
inline Launch row_gated_attention_of(Batch& s, uint32_t b) {
  Attention l = std::get<Attention>(attention_of(s, b));
  l.gate = s.alias(fmt::format("gate_row_s{}", b), s.shared("gate", 24, s.sequences()), 24 * b, 24);
  return l;
}

inline Launch join_of(Batch& s, uint32_t b) {
  Join l;
  l.a = s.own("a", b, 12), l.b = s.own("b", b, 6), l.y.buf = s.own("y", b, 18);
  l.rows = 1, l.heads = 3, l.ha = 4, l.hb = 2;
  return l;
}
inline Launch join_of_all(Batch& s) {
  Join l = std::get<Join>(join_of(s, 0));
  l.a = s.find("a_s"), l.b = s.find("b_s"), l.y.buf = s.find("y_s");
  l.rows = s.sequences();
  return l;
}

inline Launch cache_join_of(Batch& s, uint32_t b) {
  Join l = std::get<Join>(join_of(s, b));
  l.y = {s.state("cache", b, 20, 18), RowAt{s.position(b), 0, 18}, {}};
  return l;
}
inline Launch cache_join_of_all(Batch& s) {
  Join l = std::get<Join>(cache_join_of(s, 0));
  l.a = s.find("a_s"), l.b = s.find("b_s"), l.y.buf = s.find("cache_s"), l.y.row->param = s.find("position_s");
  l.rows = s.sequences(), l.next_sequence = 20 * 18;
  return l;
}

inline Launch set_row_of(Batch& s, uint32_t b) {
  return SetRow{s.state("cache", b, 20, 16), s.own("k", b, 16), {s.position(b), 0, 16}, 16, 1, 0, {}};
}
inline Launch set_row_of_all(Batch& s) {
  return SetRow{s.find("cache_s"), s.find("k_s"), {s.find("position_s"), 0, 16}, 16, s.sequences(), 20 * 16, {}};
}

inline Launch rope_of(Batch& s, uint32_t b) {
  Rope l;
  l.x = s.own("x", b, 32), l.cos = s.constant("cos", 80), l.sin = s.constant("sin", 80), l.position = s.position(b);
  l.norm = HeadNorm{s.constant("norm", 8), 1e-6F};
  l.y.buf = s.own("y", b, 32);
  l.heads = 4, l.per_row = 4, l.width = 8, l.half = 4;
  return l;
}
inline Launch rope_of_all(Batch& s) {
  Rope l = std::get<Rope>(rope_of(s, 0));
  l.x = s.find("x_s"), l.y.buf = s.find("y_s"), l.position = s.find("position_s");
  l.heads = 4 * s.sequences(), l.sequences = true;
  return l;
}

// Queries that are units of a wider row, keys that land in a cache.
inline Launch rope_parts_of(Batch& s, uint32_t b) {
  RopeParts l;
  l.cos = s.constant("cos", 80), l.sin = s.constant("sin", 80), l.position = s.position(b);
  l.width = 8, l.half = 4;
  RopeSide q{s.own("wide", b, 64), Part{16, 8}, HeadNorm{s.constant("qn", 8), 1e-6F}, {}, 4, 4, 0};
  q.y.buf = s.own("q", b, 32);
  RopeSide k{s.own("k", b, 16), {}, {}, {s.state("cache", b, 20, 16), RowAt{s.position(b), 0, 16}, {}}, 2, 2, 0};
  l.sides = {q, k};
  return l;
}
inline Launch rope_parts_of_all(Batch& s) {
  RopeParts l = std::get<RopeParts>(rope_parts_of(s, 0));
  l.position = s.find("position_s"), l.sequences = true;
  l.sides[0].x = s.find("wide_s"), l.sides[0].y.buf = s.find("q_s"), l.sides[0].heads = 4 * s.sequences();
  l.sides[1].x = s.find("k_s"), l.sides[1].y.buf = s.find("cache_s"), l.sides[1].heads = 2 * s.sequences();
  l.sides[1].y.row->param = s.find("position_s"), l.sides[1].next_sequence = 20 * 16;
  return l;
}

inline Launch argmax_of(Batch& s, uint32_t b) {
  ArgMax l;
  l.x = s.alias(fmt::format("logits_s{}", b), s.shared("logits", 40, s.sequences()), 40 * b, 40);
  l.out = s.own("next", b, 1);
  l.n = 40;
  return l;
}
inline Launch argmax_of_all(Batch& s) {
  ArgMax l = std::get<ArgMax>(argmax_of(s, 0));
  l.x = s.find("logits"), l.out = s.find("next_s"), l.rows = s.sequences();
  return l;
}

inline Launch advancing_argmax_of(Batch& s, uint32_t b) {
  ArgMax l = std::get<ArgMax>(argmax_of(s, b));
  l.advance = Advance{s.schedule.io.tokens, s.position(b), b};
  return l;
}
inline Launch advancing_argmax_of_all(Batch& s) {
  ArgMax l = std::get<ArgMax>(argmax_of_all(s));
  l.advance = Advance{s.schedule.io.tokens, s.find("position_s"), 0};
  return l;
}

// Ops 0 to count - 1.
inline std::vector<graph::OpId> ops(uint32_t count) {
  std::vector<graph::OpId> all;
  for (uint32_t i = 0; i < count; ++i) all.push_back(graph::OpId{i});
  return all;
}

}  // namespace tw::plan::batch
