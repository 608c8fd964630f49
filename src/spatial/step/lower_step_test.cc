// A whole step: what every tensor is stored as, which sections an op became, what is refused and how it is said.

#include "spatial/step/lower_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "spatial/certify/certify_step.h"
#include "spatial/lower/testing/op_case.h"
#include "spatial/step/stored.h"
#include "spatial/step/testing.h"

namespace tw::spatial::step {
namespace {

using lower::testing::t4;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::parsed;

const std::string kMaps = R"(graph maps decode
const a 1x20
const m 6x5
b = scale(x=a) factor=2
c = activate(x=b) kind=silu
d = activate(x=m) kind=silu
)";

TEST(LowerStep, EveryOpSaysItsFormAndItsSections) {
  const graph::ParsedGraph maps = parsed(kMaps);
  const Result<LoweredStep> step = lower_step(maps.graph, t4());
  ASSERT_TRUE(step.ok()) << to_text(step.refusal());
  ASSERT_EQ(step->ops.size(), 3U);
  EXPECT_EQ(step->ops[0].form, "blocked");
  EXPECT_EQ(step->ops[0].why, "5 tiles exceed a page of 2");
  EXPECT_EQ(step->ops[2].form, "matrix");
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(step->ops[i].first, i);
    EXPECT_EQ(step->ops[i].count, 1U);
  }
  EXPECT_EQ(step->composition.sections.size(), 3U);
  EXPECT_EQ(step->composition.name, "maps decode");
  EXPECT_TRUE(certify(step->composition, t4()).ok());
}

TEST(LowerStep, OneOpAloneTakesWhatItReadsAsGiven) {
  const graph::ParsedGraph maps = parsed(kMaps);
  const Result<LoweredStep> step = lower_step(maps.graph, t4(), {.only = "c"});
  ASSERT_TRUE(step.ok()) << to_text(step.refusal());
  ASSERT_EQ(step->ops.size(), 1U);
  EXPECT_EQ(index(step->ops[0].op), 1U);
  const std::optional<StorageId> read = step->composition.first("b");
  ASSERT_TRUE(read);
  EXPECT_EQ(step->composition.at(*read).init, Init{GivenInit{}});
}

TEST(LowerStep, ARelayoutCountsToTheFirstOpThatReadsIt) {
  // Products of rows are dense; a rotation of rows reads them flat.
  const graph::ParsedGraph rows = parsed(
      "graph rows chunk:2\nconst x 2x4\nconst w 4x4\nconst cos 2x2\nconst sin 2x2\ny = matmul(x=x, w=w)\n"
      "r = rope(x=y, cos=cos, sin=sin) width=4 half=2\ns = rope(x=y, cos=cos, sin=sin) width=4 half=2\n");
  const Result<LoweredStep> step = lower_step(rows.graph, t4());
  ASSERT_TRUE(step.ok()) << to_text(step.refusal());
  ASSERT_EQ(step->ops.size(), 3U);
  EXPECT_THAT(step->ops[0].relayouts, ElementsAre());
  EXPECT_THAT(step->ops[1].relayouts, ElementsAre(1));
  EXPECT_EQ(step->ops[1].first, 1U);
  EXPECT_EQ(step->ops[1].count, 2U);
  EXPECT_THAT(step->ops[2].relayouts, ElementsAre());
  EXPECT_EQ(step->ops[2].first, 3U);
  EXPECT_EQ(step->composition.sections.size(), 4U);
  EXPECT_TRUE(certify(step->composition, t4()).ok());
}

TEST(LowerStep, ARefusalNamesTensorOpAndReason) {
  const graph::ParsedGraph maps = parsed(kMaps);
  EXPECT_THAT(to_text(lower_step(maps.graph, t4(), {.only = "cc"}).refusal()),
              HasSubstr("cc: is no result of an op of maps. Did you mean c?"));
  EXPECT_THAT(to_text(lower_step(maps.graph, lower::testing::without_reals()).refusal()), HasSubstr("a: "));
  const graph::ParsedGraph mixture = parsed(
      "graph mixture decode\nconst x 1x4\nconst r 4x2\nconst g 8x4\nconst u 8x4\nconst d 8x4\n"
      "y = moe(x=x, router=r, gate=g, up=u, down=d) experts=2 used=1 hidden=4\n");
  const Result<LoweredStep> refused = lower_step(mixture.graph, t4());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.refusal().subject, "y");
  EXPECT_THAT(refused.refusal().reason, HasSubstr("op 0 moe: "));
  EXPECT_THAT(to_text(lower_step(parsed("graph empty decode\n").graph, t4()).refusal()), HasSubstr("has no ops"));
}

// ---- stored_tensors ----

std::string stored_text(std::string_view text, const Target& target) {
  const graph::ParsedGraph graph = parsed(text);
  const Result<std::vector<lower::OpTensor>> stored = stored_tensors(graph.graph, target);
  if (!stored) return to_text(stored.refusal());
  std::string lines;
  for (const lower::OpTensor& tensor : *stored)
    lines += fmt::format("{} {}{}{} {}\n", tensor.name, tensor.dtype ? name(*tensor.dtype) : "unused",
                         tensor.constant ? " constant" : "", tensor.dense ? " dense" : "", magnitude_of(tensor.fill));
  return lines;
}

TEST(StoredTensors, WhatDecidesStaysWide) {
  EXPECT_EQ(stored_text(R"(graph g decode
const x 1x8
const w 8x300
h = matmul(x=x, w=w)
s = scale(x=h) factor=0.5
y = softcap(x=s) cap=30
next = argmax(x=y)
z = matmul(x=x, w=w)
)",
                        t4()),
            "x bf16 constant 0\nw bf16 constant 0\nh f32 0\ns f32 0\ny f32 0\nnext i16 300\nz bf16 0\n");
}

TEST(StoredTensors, AnIndexTakesTheSmallestIntegerThatHoldsIt) {
  EXPECT_EQ(stored_text(R"(graph g decode
param tokens 1
param position 1
param other 1
const table 100x4
const cos 300x2
const sin 300x2
x = rows_gather(table=table, index=tokens)
r = rope(x=x, cos=cos, sin=sin, position=position) width=4 half=2
io tokens=tokens
io sequence position=position
)",
                        t4()),
            "tokens i8 100\nposition i16 300\nother unused 0\ntable bf16 constant 0\ncos bf16 constant 0\n"
            "sin bf16 constant 0\nx bf16 0\nr bf16 0\n");
  EXPECT_THAT(stored_text("graph g decode\nparam tokens 1\nconst table 300x4 i32\n"
                          "x = rows_gather(table=table, index=tokens)\n",
                          lower::testing::narrow_integers()),
              HasSubstr("tokens: needs indices up to 300"));
}

TEST(StoredTensors, ACacheLiesAsItsAttentionReadsIt) {
  constexpr std::string_view kCaches = R"(graph g decode
const q 1x16
const src 1x8
const narrow 1x4
state k 8x8
state v 8x8
state k_narrow 8x4
state v_narrow 8x4
set_rows(table=k, src=src) row=1
set_rows(table=v, src=src) row=1
set_rows(table=k_narrow, src=narrow) row=1
set_rows(table=v_narrow, src=narrow) row=1
y = attention(q=q, k=k, v=v) heads=4 kv_heads=2
z = attention(q=src, k=k_narrow, v=v_narrow) heads=4 kv_heads=2
)";
  EXPECT_EQ(stored_text(kCaches, t4()),
            "q bf16 constant 0\nsrc bf16 constant 0\nnarrow bf16 constant 0\nk bf16 dense 0\nv bf16 dense 0\n"
            "k_narrow bf16 0\nv_narrow bf16 0\ny bf16 0\nz bf16 0\n");
}

TEST(StoredTensors, IntegersThatAreCountedWithAreElements) {
  EXPECT_EQ(stored_text(R"(graph g decode
param tokens 1
const table 100x4 i32
x = rows_gather(table=table, index=tokens)
y = int_clamp(x=x) low=-3 high=3
twice = elementwise(a=tokens, b=tokens) op=add
)",
                        t4()),
            "tokens i32 2147483647\ntable i32 constant 2147483647\nx i32 2147483647\ny i32 2147483647\n"
            "twice i32 2147483647\n");
}

}  // namespace
}  // namespace tw::spatial::step
