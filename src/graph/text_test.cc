#include "graph/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <set>

#include "graph/builder.h"
#include "graph/testing.h"
#include "graph/verify.h"

namespace tw::graph {
namespace {

using ::testing::HasSubstr;

constexpr Form kForms[] = {
    {}, {Form::Kind::Chunk, 1}, {Form::Kind::Chunk, 5}, {Form::Kind::Chunk, 7, true}, {Form::Kind::Batch, 3}};

bool same(const Constant& a, const Constant& b) {
  const auto* x = std::get_if<Values>(&a);
  const auto* y = std::get_if<Values>(&b);
  if (!x || !y || !x->f32 != !y->f32 || !x->i32 != !y->i32) return false;
  return (!x->f32 || *x->f32 == *y->f32) && (!x->i32 || *x->i32 == *y->i32);
}

TEST(Text, ReadsBackWhatItPrints) {
  std::set<std::string_view> ops;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    for (const Form& form : kForms) {
      const testing::RandomGraph random = testing::random_graph(seed, {.form = form});
      const std::string text = print(random.graph, random.constants);
      const Result<ParsedGraph> parsed = parse(text, "printed");
      ASSERT_TRUE(parsed.ok()) << to_text(parsed.refusal());
      ASSERT_EQ(parsed->graph, random.graph) << "seed " << seed << ", form " << to_text(form);
      ASSERT_EQ(parsed->constants.size(), random.constants.size());
      for (const auto& [name, constant] : random.constants)
        ASSERT_TRUE(same(parsed->constants.at(name), constant)) << name;
      for (const Op& op : random.graph.ops) ops.insert(op_name(op.spec));
    }
  }
  EXPECT_EQ(ops.size(), std::variant_size_v<OpSpec>) << "some op is in no random graph";
}

TEST(Text, RandomGraphsHaveNoFindings) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    for (const Form& form : kForms) {
      const StepGraph graph = testing::random_graph(seed, {.form = form}).graph;
      for (const Finding& finding : verify(graph))
        ADD_FAILURE() << "seed " << seed << ", " << to_text(form) << ": " << to_text(graph, finding);
    }
  }
}

TEST(Text, OneLineAnOp) {
  GraphBuilder b("tiny", {Form::Kind::Chunk, 2});
  const TensorId tokens = b.param("tokens", 2);
  const TensorId h = b.add("h", RowsGather{}, {b.constant("embd", 5, 4), tokens});
  const TensorId position = b.param("position", 1);
  const TensorId cache = b.state("k cache", 8, 4);
  b.set_rows(cache, h, position);
  const Attention attention{
      .heads = 2, .kv_heads = 1, .scale = 0.1F, .softcap = 30, .window = {Window::Kind::Sliding, 3}};
  const TensorId q = b.add("q", RowNorm{NormKind::Rms, 1e-5F, 2}, {h, kNoTensor, h});
  const TensorId k = b.add("k", HeadSlice{4, 2, 2}, {cache});
  b.add("o", attention, {q, k, k, position});
  const StepGraph graph = std::move(b).finish();
  EXPECT_EQ(print(graph), R"(graph tiny chunk:2
param tokens 2
const embd 5x4
h = rows_gather(table=embd, index=tokens)  # 2x4 f32
param position 1
state "k cache" 8x4
set_rows(table="k cache", src=h, index=position) row=0
q = row_norm(x=h, residual=h) kind=rms eps=1e-05 width=2  # 2x4 f32
k = head_slice(x="k cache") every=4 from=2 width=2  # 8x2 f32
o = attention(q=q, k=k, v=k, position=position) heads=2 kv_heads=1 scale=0.1 softcap=30 window=sliding:3  # 2x4 f32
)");
}

TEST(Text, KeepsWhatAWellFormedGraphWouldNotHold) {
  StepGraph graph = testing::random_graph(3).graph;
  graph.name = "";
  graph.tensors[0].name = "a \"quoted\\ name\n\x01\xc3\xa9";
  graph.tensors[1].sequence = 9;
  // An activation of another shape than its op gives, and one that no op makes.
  graph.tensors[index(graph.ops[0].result)].cols += 1;
  graph.tensors.push_back({.name = "alone", .rows = 0, .cols = 3, .element = Element::I32});
  std::swap(graph.ops[1], graph.ops[2]);
  const std::string text = print(graph);
  const Result<ParsedGraph> parsed = parse(text, "printed");
  ASSERT_TRUE(parsed.ok()) << to_text(parsed.refusal()) << "\n" << text;
  EXPECT_EQ(parsed->graph, graph) << text;
}

TEST(Text, EveryFloatReadsBackExactly) {
  for (const float value :
       {0.1F, 1e-45F, std::numeric_limits<float>::max(), -0.0F, 1.0F / 3.0F, 16777217.0F, -2.5e-7F}) {
    GraphBuilder b("floats", {});
    b.add("y", Scale{value}, {b.constant("x", 1, 1)});
    const StepGraph graph = std::move(b).finish();
    const Result<ParsedGraph> parsed = parse(print(graph), "printed");
    ASSERT_TRUE(parsed.ok());
    const float read = std::get<Scale>(parsed->graph.ops[0].spec).factor;
    EXPECT_EQ(std::bit_cast<uint32_t>(read), std::bit_cast<uint32_t>(value));
  }
}

TEST(Text, LeavesOutWhatHasAUsualValue) {
  const Result<ParsedGraph> parsed = parse(R"(
      # A comment, an empty line, and blanks before the statements.

      graph "by hand" decode  # the form
      const x 1x2 = [1 -2.5e0
                     ]
      const n 2 i32 = [7; -8]
      y = softcap(x=x)
      z = elementwise(a=y, b=y,) op=mul sequence=0)",
                                           "hand");
  ASSERT_TRUE(parsed.ok()) << to_text(parsed.refusal());
  EXPECT_EQ(parsed->graph.name, "by hand");
  EXPECT_EQ(std::get<Softcap>(parsed->graph.ops[0].spec).cap, 1.0F);
  EXPECT_EQ(*std::get<Values>(parsed->constants.at("x")).f32, (std::vector<float>{1, -2.5F}));
  EXPECT_EQ(*std::get<Values>(parsed->constants.at("n")).i32, (std::vector<int32_t>{7, -8}));
  EXPECT_EQ(parsed->graph.tensors[3].sequence, 0U);
}

struct BadText {
  std::string_view text;  // after "graph g decode\nconst x 2x4\nconst w 4x3\nparam p 1\n", so on line 5
  std::string_view place;
  std::string_view found;
  std::string_view expected;
  std::string_view remedy = "";
};

TEST(Text, RefusalsNamePlaceFoundAndExpected) {
  const BadText bad_texts[] = {
      {"y = matmull(x=x, w=w)", "line 5, column 5", "found \"matmull\"", "the name of an op", "Did you mean matmul?"},
      {"y = matmul(x=x, v=w)", "line 5, column 17", "found \"v\"", "an operand of matmul: x, w"},
      {"y = matmul(x=x, x=w)", "line 5, column 17", "found \"x\"", "operand x once"},
      {"y = matmul(x=x, w=ww)", "line 5, column 19", "found \"ww\"", "a tensor that an earlier line makes",
       "Did you mean w?"},
      {"y = matmul(x=x)", "line 5, column 5", "operand w is absent", ""},
      {"y = matmul(x=w, w=x)", "line 5, column 5", "operand w (x) is 2x4 f32", "3 rows, the columns of x"},
      {"y = matmul(x=x w=w)", "line 5, column 16", "found \"w\"", "\",\" or \")\" after an operand"},
      {"y = matmul x", "line 5, column 12", "found \"x\"", "\"(\" after the name of the op"},
      {"y = row_norm(x=x) epz=1", "line 5, column 19", "found \"epz\"", "a field of row_norm: kind, eps, width",
       "Did you mean eps?"},
      {"y = row_norm(x=x) eps=1 eps=1", "line 5, column 25", "found \"eps\"", "field eps once"},
      {"y = row_norm(x=x) eps=small", "line 5, column 23", "found \"small\"", "a number for eps"},
      {"y = row_norm(x=x) kind=rsm", "line 5, column 24", "found \"rsm\"", "one of rms, layer for kind",
       "Did you mean rms?"},
      {"y = row_norm(x=x) width=-1", "line 5, column 25", "found \"-1\"", "a whole number for width"},
      {"y = row_norm(x=x) width=4294967296", "line 5, column 25", "found \"4294967296\"", "a whole number"},
      {"y = row_norm(x=x) width=3", "line 5, column 5", "operand x (x) is 2x4 f32", "columns in units of 3"},
      {"y = matmul(x=x, w=w) heads=2", "line 5, column 22", "found \"heads\"", "no field: matmul has none"},
      {"y = attention(q=x, k=x, v=x) window=sliding", "line 5, column 5", "field window is 0", "a size of at least 1"},
      {"y = attention(q=x, k=x, v=x) window=sideways:3", "line 5, column 37", "found \"sideways:3\"",
       "none, sliding:SIZE"},
      {"y = attention(q=x, k=x, v=x) window=sliding:", "line 5, column 37", "found \"sliding:\"", "none, sliding:SIZE"},
      {"y = set_rows(table=x, src=x)", "line 5, column 1", "found \"y\"", "set_rows(...) alone"},
      {"set_rows(table=x, src=w) row=1", "line 5, column 1", "operand src (w) is 4x3 f32",
       "4 columns and at most 2 rows"},
      {"const x 1x1", "line 5, column 7", "found \"x\"", "a name that no other tensor has"},
      {"const y", "line 5, column 8", "found the end of the text", "a shape ROWSxCOLUMNS"},
      {"const y 2by3", "line 5, column 9", "found \"2by3\"", "a shape ROWSxCOLUMNS"},
      {"const y 2x", "line 5, column 9", "found \"2x\"", "a shape ROWSxCOLUMNS"},
      {"const y 2x2 f16", "line 5, column 13", "found \"f16\"", "one of f32, i32"},
      {"const y 2x2 = [1 2; 3]", "line 5, column 22", "found \"]\"", "value 2 of 2 of row 2"},
      {"const y 2x2 = [1 2 3 4]", "line 5, column 20", "found \"3\"", "\";\" after 2 values, before row 2 of 2"},
      {"const y 1x2 = [1 2; 3]", "line 5, column 19", "found \";\"", "\"]\" after 1 rows of 2 values"},
      {"const y 1x1 i32 = [1.5]", "line 5, column 20", "found \"1.5\"", "an integer for the values of y"},
      {"const y 1x1 = [1\n\n 2", "line 7, column 2", "found \"2\"", "\"]\" after 1 rows"},
      {"state y 1x1 = [1]", "line 5, column 13", "found \"=\"", "the end of the line"},
      {"stat y 1x1", "line 5, column 1", "found \"stat\"", "param, state, table", "Did you mean state?"},
      {"y", "line 5, column 1", "found \"y\"", "NAME = OP"},
      {"= matmul(x=x, w=w)", "line 5, column 1", "found \"=\"", "a declaration, an op or io"},
      {"io tokens=q", "line 5, column 11", "found \"q\"", "a tensor that an earlier line makes"},
      {"io tokens=p\nio tokens=p", "line 6, column 4", "found \"tokens\"", "tokens once"},
      {"io sequence logit=x", "line 5, column 13", "found \"logit\"", "position=, logits= or next="},
      {"io", "line 5, column 3", "found the end of the text", "tokens=NAME"},
      {"y = silu(\"x", "line 5, column 5", "found \"silu\"", "the name of an op"},
      {"\"y", "line 5, column 1", "found a quote that is not closed", "one on the same line"},
      {"\"y\\n\" = scale(x=x)", "line 5, column 3", "an escape of another kind", "\\x and two hexadecimal digits"},
      {"y = scale(x=x) $", "line 5, column 16", "found \"$\"", "a word, a quoted name"},
      {"y = scale(x=x) \x01", "line 5, column 16", "found \"\\x01\"", "a word, a quoted name"},
  };
  for (const BadText& bad : bad_texts) {
    const std::string text = "graph g decode\nconst x 2x4\nconst w 4x3\nparam p 1\n" + std::string(bad.text);
    const Result<ParsedGraph> parsed = parse(text, "bad.graph");
    ASSERT_FALSE(parsed.ok()) << bad.text;
    const Refusal& refusal = parsed.refusal();
    EXPECT_EQ(refusal.subject, "bad.graph") << bad.text;
    EXPECT_THAT(refusal.reason, HasSubstr(std::string(bad.place) + ":")) << bad.text;
    EXPECT_THAT(refusal.reason, HasSubstr(std::string(bad.found))) << bad.text;
    EXPECT_THAT(refusal.reason, HasSubstr(std::string(bad.expected))) << bad.text;
    EXPECT_EQ(refusal.remedy, bad.remedy) << bad.text;
  }
}

TEST(Text, RefusesAHeaderThatIsNone) {
  for (const std::string_view text : {"", "\n# nothing\n", "const x 1x1", "graph", "graph g", "graph g chunk:0",
                                      "graph g decode x", "graph g batch:1\n", "graph g \"decode\""})
    EXPECT_FALSE(parse(text, "bad").ok()) << text;
}

}  // namespace
}  // namespace tw::graph
