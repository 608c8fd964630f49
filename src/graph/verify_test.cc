#include "graph/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

#include "graph/infer.h"
#include "graph/text.h"

namespace tw::graph {
namespace {

using ::testing::ElementsAre;

// A good batch step of two sequences; every mutant breaks it in one way.
constexpr std::string_view kGood = R"(graph good batch:2
param tokens 2
const embd 5x4
h = rows_gather(table=embd, index=tokens)
const w 1x4
n = row_norm(x=h, weight=w)
param position_s0 1
param position_s1 1
table stack 2x4
r0 = row_gather(table=n) row=1 sequence=0
state cache_s0 8x4 sequence=0
set_rows(table=cache_s0, src=r0, index=position_s0)
a0 = attention(q=r0, k=cache_s0, v=cache_s0, position=position_s0) heads=2 kv_heads=2 sequence=0
set_rows(table=stack, src=a0) row=1
r1 = row_gather(table=n) row=2 sequence=1
state cache_s1 8x4 sequence=1
set_rows(table=cache_s1, src=r1, index=position_s1)
a1 = attention(q=r1, k=cache_s1, v=cache_s1, position=position_s1) heads=2 kv_heads=2 sequence=1
set_rows(table=stack, src=a1) row=2
s = elementwise(a=stack, b=h)
const head 4x5
l0 = row_gather(table=s) row=1 sequence=0
logits_s0 = matmul(x=l0, w=head) sequence=0
next_s0 = argmax(x=logits_s0) sequence=0
l1 = row_gather(table=s) row=2 sequence=1
logits_s1 = matmul(x=l1, w=head) sequence=1
next_s1 = argmax(x=logits_s1) sequence=1
io tokens=tokens
io sequence position=position_s0 logits=logits_s0 next=next_s0
io sequence position=position_s1 logits=logits_s1 next=next_s1
)";

class Mutant {
 public:
  Mutant() : graph(std::move(parse(kGood, "good")->graph)) {}

  TensorId id(std::string_view name) const {
    for (uint32_t i = 0; i < graph.tensors.size(); ++i)
      if (graph.tensors[i].name == name) return TensorId{i};
    return kNoTensor;
  }
  Tensor& tensor(std::string_view name) { return graph.tensors[index(id(name))]; }
  // The op whose result has the name; of a table or state the first that sets it.
  Op& op(std::string_view name) {
    for (Op& op : graph.ops)
      if (op.result == id(name)) return op;
    std::abort();
  }
  template <class Spec>
  Spec& spec(std::string_view name) {
    return std::get<Spec>(op(name).spec);
  }
  void erase(std::string_view name) { graph.ops.erase(graph.ops.begin() + (&op(name) - graph.ops.data())); }

  StepGraph graph;
};

struct Fault {
  std::string_view code;
  std::string_view text;
  std::function<void(Mutant&)> mutate;
};

const std::vector<Fault>& cases() {
  static const std::vector<Fault> all{
      {"G1", "G1 w: tensor 3 has the name of tensor 1", [](Mutant& m) { m.tensor("w").name = "embd"; }},
      {"G1", "G1 : tensor 3 has no name", [](Mutant& m) { m.tensor("w").name = ""; }},
      {"G2", "", [](Mutant& m) { m.tensor("w").cols = 0; }},
      {"G3", "G3 matmul logits_s0: has 1 operands, expected 2",
       [](Mutant& m) { m.op("logits_s0").operands.pop_back(); }},
      {"G4", "G4 elementwise s: operand b is absent", [](Mutant& m) { m.op("s").operands[1] = kNoTensor; }},
      {"G5", "", [](Mutant& m) { m.op("s").operands[1] = TensorId{99}; }},
      {"G5", "", [](Mutant& m) { m.graph.io.sequences[0].next = TensorId{99}; }},
      {"G6", "", [](Mutant& m) { std::swap(m.op("l0"), m.op("logits_s0")); }},
      {"G7", "", [](Mutant& m) { m.graph.ops.push_back(m.op("n")); }},
      {"G7", "", [](Mutant& m) { m.erase("next_s1"); }},
      {"G8", "G8 elementwise cache_s0: writes cache_s0, a state",
       [](Mutant& m) {
         m.tensor("cache_s0").sequence = {};
         Op op{Elementwise{}, {m.id("cache_s0"), m.id("cache_s0")}, m.id("cache_s0")};
         m.graph.ops.push_back(op);
       }},
      {"G9", "",
       [](Mutant& m) {
         Op op{SetRows{1}, {m.id("embd"), m.id("n"), kNoTensor}, m.id("embd")};
         m.graph.ops.push_back(op);
       }},
      {"G10", "", [](Mutant& m) { m.op("cache_s0").result = m.id("stack"); }},
      {"G11", "", [](Mutant& m) { m.tensor("w").cols = 3; }},
      {"G11", "",
       [](Mutant& m) {
         m.tensor("position_s0").element = Element::F32;
         m.graph.io = {};
         m.graph.form = {Form::Kind::Batch, 2};
       }},
      {"G12", "G12 argmax next_s0: its result is 1x1 f32, expected 1x1 i32",
       [](Mutant& m) {
         m.tensor("next_s0").element = Element::F32;
         m.graph.io = {};
       }},
      {"G13", "G13 graph good: the io has no tokens", [](Mutant& m) { m.graph.io.tokens = kNoTensor; }},
      {"G13", "", [](Mutant& m) { m.graph.io.sequences[0].logits = m.id("s"); }},
      {"G14", "", [](Mutant& m) { m.spec<RowGather>("l0").row = 3; }},
      {"G14", "", [](Mutant& m) { m.spec<RowGather>("l0").row = 0; }},
      {"G14", "", [](Mutant& m) { m.spec<SetRows>("cache_s0").row = 1; }},
      {"G15", "", [](Mutant& m) { m.spec<RowNorm>("n").eps = 0; }},
      {"G16", "", [](Mutant& m) { m.spec<Attention>("a0").scale = std::numeric_limits<float>::infinity(); }},
      {"G17", "G17 elementwise s: reads row 2 of table stack, which no op has set",
       [](Mutant& m) {
         for (Op& op : m.graph.ops)
           if (op.result == m.id("stack")) std::get<SetRows>(op.spec).row = 1;
       }},
      {"G18", "G18 alone: a constant alone is not used",
       [](Mutant& m) { m.graph.tensors.push_back({.name = "alone", .role = Role::Constant}); }},
      {"G19", "",
       [](Mutant& m) {
         m.graph.form.all_logits = true;
         m.graph.io = {};
       }},
      {"G19", "", [](Mutant& m) { m.graph.io.sequences.push_back(m.graph.io.sequences[0]); }},
      {"G20", "G20 tokens: is of sequence 2, the form batch:2 has 2",
       [](Mutant& m) { m.tensor("tokens").sequence = 2; }},
      {"G21", "",
       [](Mutant& m) {
         m.op("a1").operands[1] = m.id("cache_s0");
         m.op("a1").operands[2] = m.id("cache_s0");
       }},
  };
  return all;
}

TEST(Verify, AGoodGraphHasNoFindings) {
  const Result<ParsedGraph> good = parse(kGood, "good");
  ASSERT_TRUE(good.ok()) << to_text(good.refusal());
  for (const Finding& finding : verify(good->graph)) ADD_FAILURE() << to_text(good->graph, finding);
}

TEST(Verify, EveryMutantHasItsFinding) {
  for (const Fault& c : cases()) {
    Mutant m;
    c.mutate(m);
    std::set<std::string_view> codes;
    std::string all;
    for (const Finding& finding : verify(m.graph)) {
      codes.insert(finding.code);
      all += to_text(m.graph, finding) + "\n";
    }
    // A tensor without its only reader is not what the mutant is about.
    if (c.code != "G18") codes.erase("G18");
    EXPECT_THAT(codes, ElementsAre(c.code)) << all;
    EXPECT_THAT(all, ::testing::HasSubstr(c.code == "G1" ? "has" : std::string(c.text)));
  }
}

TEST(Verify, EveryCodeHasAMutant) {
  std::set<std::string_view> mutants;
  for (const Fault& c : cases()) mutants.insert(c.code);
  for (const FindingCode& code : finding_codes()) EXPECT_TRUE(mutants.contains(code.code)) << code.code;
  EXPECT_EQ(mutants.size(), finding_codes().size());
}

TEST(Verify, FindsEverythingAtOnce) {
  Mutant m;
  m.spec<RowNorm>("n").eps = -1;
  m.tensor("w").name = "embd";
  m.spec<RowGather>("l1").row = 9;
  std::vector<std::string_view> codes;
  for (const Finding& finding : verify(m.graph)) codes.push_back(finding.code);
  EXPECT_THAT(codes, ElementsAre("G1", "G15", "G14"));
}

struct BadField {
  OpSpec spec;
  std::string_view fault;
};

TEST(Verify, FieldsHaveRanges) {
  const auto softcap = [](float cap) { return Attention{.softcap = cap}; };
  const BadField bad_fields[] = {
      {HeadMatmul{.heads = 0}, "field heads is 0, expected at least 1"},
      {Softcap{0}, "field cap is 0, expected a number above 0"},
      {IntRequant{1, 63}, "field shift is 63, expected at most 62"},
      {IntClamp{3, 2}, "field low is 3, expected at most high (2)"},
      {HeadSlice{4, 3, 2}, "field from is 3, expected at most 2: the slice of 2 ends within 4"},
      {Join{0}, "field heads is 0, expected at least 1"},
      {L2Norm{-1, 0}, "field eps is -1, expected a number above 0"},
      {Rope{4, 3}, "field half is 3, expected at most half of width (4)"},
      {Rope{4, 0}, "field half is 0, expected at least 1"},
      {Attention{.heads = 4, .kv_heads = 3}, "field kv_heads is 3, expected a divisor of heads (4)"},
      {softcap(-1), "field softcap is -1, expected 0 (none) or above"},
      {Attention{.window = {Window::Kind::Sliding, 0}}, "field window is 0, expected a size of at least 1"},
      {Attention{.window = {Window::Kind::None, 4}}, "field window is 4, expected size 0 without a window"},
      {FullAttention{0, 1}, "field heads is 0, expected at least 1"},
      {LutAttention{2, 2, 1, 64}, "field shift is 64, expected at most 62"},
      {GatedDelta{.value_heads = 3, .key_heads = 2}, "field key_heads is 2, expected a divisor of value_heads (3)"},
      {Moe{.experts = 2, .used = 3}, "field used is 3, expected 1 to experts (2)"},
      {Moe{.experts = 4, .groups = 3}, "field groups is 3, expected a divisor of experts (4)"},
      {Moe{.experts = 4, .groups = 2, .groups_kept = 3}, "field groups_kept is 3, expected 1 to groups (2)"},
      {Moe{.experts = 4, .used = 3, .groups = 2}, "field used is 3, expected at most the 2 experts of the kept groups"},
      {Moe{.renormalize = true, .weigh_inputs = true}, "field weigh_inputs is true, expected false with renormalize"},
      {Moe{.act = {MoeAct::Kind::ClampedSwiGlu, 0, 1}}, "field act is 0, expected a limit above 0"},
      {Moe{.act = {MoeAct::Kind::SwiGlu, 2, 0}}, "field act is 2, expected limit 0 without a clamp"},
  };
  for (const BadField& bad : bad_fields) {
    const std::vector<std::string> faults = field_faults(bad.spec);
    ASSERT_FALSE(faults.empty()) << bad.fault;
    EXPECT_THAT(faults.front(), ::testing::StartsWith(std::string(bad.fault)));
  }
}

}  // namespace
}  // namespace tw::graph
