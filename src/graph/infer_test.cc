#include "graph/infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "graph/text.h"

namespace tw::graph {
namespace {

using ::testing::HasSubstr;

// Tensors that the ops of the tables below are written over.
constexpr std::string_view kTensors = R"(graph g decode
const a 2x12
const b 2x6
const i 2x12 i32
const one 1x12
const row 1x6
const col 2x1
const t 12x6
const n2 1x2
const k 5x6
const c2 5x2
const iq 1x4 i32
const ik 5x2 i32
const ie 1x9 i32
const w3 3x12
const s8 8x2
const x4 3x4
const v8 3x8
const h4 3x4
const moe_x 2x3
const router 3x4
const gate 20x3
const down 12x5
param pos 1
param idx 2
state ring 3x12
state mem 8x2
table tab 4x12
)";

struct Case {
  std::string_view op;
  std::string_view expected;  // shape of the result, or what is wrong
};

Result<ParsedGraph> read(std::string_view op) {
  return parse(std::string(kTensors) + (op.starts_with("set_rows") ? "" : "y = ") + std::string(op), "test");
}

TEST(Infer, TheShapeOfEveryOp) {
  const Case cases[] = {
      {"matmul(x=a, w=t)", "2x6 f32"},
      {"head_matmul(x=b, w=t) heads=1", "2x12 f32"},
      {"head_matmul(x=a, w=t) heads=2 rows_out=true", "2x12 f32"},
      {"head_matmul(x=a, w=t) heads=2 rows_out=false", "2x12 f32"},
      {"head_matmul(x=b, w=t) heads=4 shared=true", "2x12 f32"},
      {"elementwise(a=i, b=i) op=div", "2x12 i32"},
      {"row_broadcast(a=a, b=one)", "2x12 f32"},
      {"row_broadcast(a=a, b=col) scalar=true", "2x12 f32"},
      {"scale(x=b)", "2x6 f32"},
      {"activate(x=i) kind=relu", "2x12 i32"},
      {"softcap(x=b)", "2x6 f32"},
      {"int_requant(x=i)", "2x12 i32"},
      {"int_clamp(x=i)", "2x12 i32"},
      {"transpose(x=i)", "12x2 i32"},
      {"head_slice(x=a) every=4 from=1 width=2", "2x6 f32"},
      {"join(a=a, b=b) heads=3", "2x18 f32"},
      {"row_gather(table=i) row=2", "1x12 i32"},
      {"row_gather(table=t, index=pos)", "1x6 f32"},
      {"rows_gather(table=t, index=idx)", "2x6 f32"},
      {"argmax(x=a)", "2x1 i32"},
      {"row_norm(x=a, weight=row, residual=a, bias=row) width=6", "2x12 f32"},
      {"softmax(x=a, sinks=col)", "2x12 f32"},
      {"l2_norm(x=a) width=4", "2x12 f32"},
      {"rope(x=a, cos=c2, sin=c2, position=pos) width=6 half=2", "2x12 f32"},
      {"attention(q=a, k=k, v=c2, position=pos) heads=4 kv_heads=2", "2x4 f32"},
      {"full_attention(q=b, k=k, v=k) heads=3", "2x6 f32"},
      {"lut_attention(q=iq, k=ik, v=ik, table=ie, position=pos) heads=2 kv_heads=1", "1x4 i32"},
      {"causal_conv(x=a, w=w3, ring=ring)", "2x12 f32"},
      {"decay(x=b, bias=row, rate=row)", "2x6 f32"},
      {"gated_delta(q=x4, k=x4, v=v8, z=v8, beta=h4, alpha=v8, state=mem, norm=n2) value_heads=4 key_heads=2",
       "3x8 f32"},
      {"moe(x=moe_x, router=router, gate=gate, up=gate, down=down) experts=4 hidden=5", "2x3 f32"},
  };
  std::set<std::string_view> seen{SetRows::kName};
  for (const Case& c : cases) {
    const Result<ParsedGraph> read_back = read(c.op);
    ASSERT_TRUE(read_back.ok()) << c.op << ": " << to_text(read_back.refusal());
    EXPECT_EQ(shape_text(read_back->graph.tensors.back()), c.expected) << c.op;
    seen.insert(op_name(read_back->graph.ops.back().spec));
  }
  EXPECT_EQ(seen.size(), std::variant_size_v<OpSpec>);
}

TEST(Infer, WhatDoesNotFitIsNamed) {
  const Case cases[] = {
      {"matmul(x=a, w=a)", "matmul: operand w (a) is 2x12 f32, expected 12 rows, the columns of x"},
      {"matmul(x=i, w=t)", "operand w (t) is 12x6 f32, expected i32 values"},
      {"head_matmul(x=a, w=t) heads=5", "operand x (a) is 2x12 f32, expected columns in 5 equal heads"},
      {"head_matmul(x=b, w=t) heads=2", "operand w (t) is 12x6 f32, expected 3 columns, a head's inputs"},
      {"head_matmul(x=b, w=t) heads=2 rows_out=false", "expected 6 rows, 2 heads of 3 inputs"},
      {"elementwise(a=a, b=b)", "operand b (b) is 2x6 f32, expected 2x12"},
      {"elementwise(a=a, b=i)", "operand b (i) is 2x12 i32, expected f32 values"},
      {"row_broadcast(a=a, b=row)", "operand b (row) is 1x6 f32, expected 1x12"},
      {"row_broadcast(a=a, b=one) scalar=true", "expected 2x1"},
      {"scale(x=i)", "operand x (i) is 2x12 i32, expected f32 values"},
      {"activate(x=i) kind=silu", "expected f32 values"},
      {"softcap(x=i)", "expected f32 values"},
      {"int_requant(x=a)", "operand x (a) is 2x12 f32, expected i32 values"},
      {"int_clamp(x=a)", "expected i32 values"},
      {"head_slice(x=a) every=5", "expected columns in units of 5"},
      {"join(a=a, b=one)", "operand b (one) is 1x12 f32, expected 2 rows, as a has"},
      {"join(a=a, b=b) heads=4", "operand b (b) is 2x6 f32, expected columns in 4 equal heads"},
      {"row_gather(table=t, index=idx)", "operand index (idx) is 2x1 i32, expected 1x1"},
      {"rows_gather(table=t, index=col)", "operand index (col) is 2x1 f32, expected i32 values"},
      {"rows_gather(table=t, index=i)", "expected one column"},
      {"set_rows(table=tab, src=b) row=1", "operand src (b) is 2x6 f32, expected 12 columns and at most 4 rows"},
      {"set_rows(table=tab, src=i) row=1", "expected f32 values"},
      {"row_norm(x=a, weight=one) width=6", "operand weight (one) is 1x12 f32, expected 1x6"},
      {"row_norm(x=a, residual=b)", "operand residual (b) is 2x6 f32, expected 2x12"},
      {"row_norm(x=a, bias=row)", "operand bias (row) is 1x6 f32, expected 1x12"},
      {"softmax(x=a, sinks=row)", "operand sinks (row) is 1x6 f32, expected 2x1 or 1x1"},
      {"l2_norm(x=a) width=5", "expected columns in units of 5"},
      {"rope(x=a, cos=k, sin=c2) width=6 half=2", "operand cos (k) is 5x6 f32, expected 2 columns and at least 2 rows"},
      {"rope(x=a, cos=c2, sin=k) width=6 half=2", "operand sin (k) is 5x6 f32, expected 5x2"},
      {"attention(q=a, k=c2, v=c2) heads=4 kv_heads=2", "operand k (c2) is 5x2 f32, expected 6 columns, 2 heads of 3"},
      {"attention(q=a, k=k, v=a) heads=4 kv_heads=2", "operand v (a) is 2x12 f32, expected 5 rows, as k has"},
      {"attention(q=a, k=k, v=k, sinks=row) heads=4 kv_heads=2", "operand sinks (row) is 1x6 f32, expected 1x4"},
      {"attention(q=k, k=b, v=b, position=pos)",
       "operand q (k) is 5x6 f32, expected at most 2 rows, the positions of k"},
      {"full_attention(q=a, k=k, v=k) heads=3", "operand k (k) is 5x6 f32, expected 12 columns"},
      {"lut_attention(q=ik, k=ik, v=ik, table=ie)", "operand q (ik) is 5x2 i32, expected one row"},
      {"lut_attention(q=iq, k=ik, v=ik, table=ik)", "operand table (ik) is 5x2 i32, expected one row"},
      {"causal_conv(x=b, w=w3, ring=ring)", "operand w (w3) is 3x12 f32, expected 6 columns, the channels of x"},
      {"causal_conv(x=a, w=w3, ring=tab)", "operand ring (tab) is 4x12 f32, expected 3x12"},
      {"decay(x=b, bias=one, rate=row)", "operand bias (one) is 1x12 f32, expected 1x6"},
      {"gated_delta(q=x4, k=x4, v=x4, z=v8, beta=h4, alpha=v8, state=mem, norm=n2) value_heads=4 key_heads=2",
       "operand v (x4) is 3x4 f32, expected 3x8"},
      {"gated_delta(q=x4, k=x4, v=v8, z=v8, beta=h4, alpha=a, state=mem, norm=n2) value_heads=4 key_heads=2",
       "operand alpha (a) is 2x12 f32, expected 3x4 or 3x8"},
      {"moe(x=moe_x, router=router, gate=gate, up=down, down=down) experts=4 hidden=5",
       "operand up (down) is 12x5 f32, expected 20x3"},
      {"moe(x=moe_x, router=router, gate=gate, up=gate, down=down, select_bias=row) experts=4 hidden=5",
       "operand select_bias (row) is 1x6 f32, expected 1x4"},
      {"elementwise(a=a)", "elementwise: operand b is absent"},
  };
  for (const Case& c : cases) {
    const Result<ParsedGraph> refused = read(c.op);
    ASSERT_FALSE(refused.ok()) << c.op;
    EXPECT_THAT(refused.refusal().reason, HasSubstr(std::string(c.expected))) << c.op;
  }
}

TEST(Infer, OperandsOfAnotherGraphAreNamed) {
  const StepGraph empty;
  const Result<Shape> count = infer_result(empty, Matmul{}, {TensorId{0}});
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.refusal().reason, "has 1 operands, expected 2");
  const Result<Shape> id = infer_result(empty, Matmul{}, {TensorId{7}, TensorId{0}});
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.refusal().reason, "operand x is tensor 7, the graph has 0");
}

}  // namespace
}  // namespace tw::graph
