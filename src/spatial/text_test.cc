#include "spatial/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/any_program.h"
#include "spatial/json.h"
#include "spatial/testing.h"
#include "spatial/validate.h"

namespace tw::spatial {
namespace {

using ::testing::HasSubstr;

TEST(Text, AFlatAddReadsAsIs) {
  const Program add = *testing::flat_add(testing::shipped_target("toy_square"), 7);
  EXPECT_EQ(print(add), R"(program add_7 target=toy_square tile=4x4 accumulator=f32
claim approx "add in bf16"
tensor a input 1x7 bf16 given
tensor b input 1x7 bf16 given
tensor c output 1x7 bf16 external
buffer in_a page=2 depth=2 bf16
buffer in_b page=2 depth=2 bf16
buffer out page=2 depth=2 bf16
load load_a tensor=a page=in_a block=1x2
load load_b tensor=b page=in_b block=1x2
compute add space=(row:1, col:7) reads=(in_a[0 col:1], in_b[0 col:1]) page=out value=add(@0, @1)
store store_c tensor=c page=out block=1x2
plan per_site=1x2 grid=1x1 blocks=1 block_k=1 block=1x2 k_tiles=1
item 0:0 tile=0:0 size=1x2
)");
}

TEST(Text, SamplesReadBackEqualAndValid) {
  const Target toy = testing::shipped_target("toy_square");
  for (const Program& p : {*testing::flat_add(toy, 8), *testing::row_sum_fold(toy, 5, true),
                           *testing::tile_gather(toy, 6), *testing::streamed_product(toy, 2, 3, 4)}) {
    const Result<Program> text = parse_program(print(p), "sample");
    ASSERT_TRUE(text.ok()) << to_text(text.refusal());
    EXPECT_EQ(*text, p) << print(p);
    EXPECT_TRUE(validate(*text).empty());
    const Result<Program> json = program_of_json(to_json(p, 1), "sample");
    ASSERT_TRUE(json.ok()) << to_text(json.refusal());
    EXPECT_EQ(*json, p);
  }
}

TEST(Text, AnyProgramReadsBackEqual) {
  std::mt19937 random(20);
  for (int i = 0; i < 3000; ++i) {
    const Program p = testing::any_program(random);
    const std::string text = print(p);
    const Result<Program> read = parse_program(text, "random");
    ASSERT_TRUE(read.ok()) << to_text(read.refusal()) << "\n" << text;
    ASSERT_EQ(print(*read), text);
    ASSERT_TRUE(*read == p) << text;
    const Result<Program> json = program_of_json(to_json(p), "random");
    ASSERT_TRUE(json.ok()) << to_text(json.refusal()) << "\n" << to_json(p, 1);
    ASSERT_TRUE(*json == p) << to_json(p, 1) << to_json(*json, 1);
  }
}

TEST(Text, ABodyOfManyBandsReadsBackAtAnyDepth) {
  std::vector<Band> bands;
  for (int64_t i = 0; i < 20000; ++i) bands.push_back({4 * (i + 1), arg(static_cast<uint32_t>(i)) * arg(0)});
  const Expr body = banded(bands);
  EXPECT_TRUE(body.well_formed());
  const Result<Expr> read = parse_expr(print(body), "bands");
  ASSERT_TRUE(read.ok()) << to_text(read.refusal());
  EXPECT_TRUE(*read == body);
  Expr deep = arg(0);
  for (int i = 0; i < 20000; ++i) deep = exp(std::move(deep));
  EXPECT_TRUE(*parse_expr(print(deep), "deep") == deep);
}

TEST(Text, CasesOfOneWhereAreNestedSelects) {
  const Expr nested = select(less(Axis::Col, 4), arg(0), select(at_least_operand(Axis::Row, 2), 0.5, arg(1)));
  EXPECT_EQ(print(nested), "where(col below 4, @0, row from @2, 0.5, @1)");
  EXPECT_EQ(*parse_expr("where(col below 4, @0, where(row from @2, 0.5, @1))", "by hand"), nested);
  const Expr first = select(less(Axis::Col, 4), select(less(Axis::Col, 2), arg(0), arg(1)), arg(2));
  EXPECT_EQ(print(first), "where(col below 4, where(col below 2, @0, @1), @2)");
  EXPECT_EQ(*parse_expr(print(first), "first"), first);
}

TEST(Text, AStepReadsBackEqual) {
  const Target toy = testing::shipped_target("toy_square");
  Program first = *testing::flat_add(toy, 7), second = first;
  second.name = "again";
  second.tensors[0] = {"c", TensorRole::Input, 1, 7, Precision::Bf16, ExternalInit{}};
  second.tensors[2].name = "d";
  const Composition step = *compose({first, second}, {"two", {"c"}});
  const std::string text = print(step);
  EXPECT_TRUE(text.starts_with("step two\noutput c\n\nprogram add_7 "));
  const Result<Composition> read = parse_composition(text, "two");
  ASSERT_TRUE(read.ok()) << to_text(read.refusal());
  EXPECT_TRUE(*read == step) << print(*read);
  EXPECT_THAT(to_text(parse_program(print(first) + print(second), "both").refusal()),
              HasSubstr("expected one program"));
  EXPECT_THAT(to_text(parse_composition("step s\noutput a b", "s").refusal()), HasSubstr("line 2, column 10"));
  EXPECT_THAT(to_text(parse_composition("step s\n", "s").refusal()), HasSubstr("has no sections"));
}

struct TextFault {
  std::string_view from;
  std::string_view to;
  std::string_view message;
};

TEST(Text, FaultsNameTheirPlaceAndWhatWasExpected) {
  const std::string good = print(*testing::tile_gather(testing::shipped_target("toy_square"), 6));
  const TextFault faults[] = {
      {"program", "section", R"(line 1, column 1: found "section", expected a line: program NAME)"},
      {"tile=4x4", "tile=4", R"(line 1, column 47: found "4", expected ROWSxCOLS)"},
      {" accumulator=f32", "", "line 1, column 50: found the end of the line, expected accumulator="},
      {"claim exact", "claim maybe", R"(line 2, column 7: found "maybe", expected exact or approx)"},
      {"tensor i input 1x1 i8", "tensor i input 1x1 i9", R"(line 4, column 20: found "i9", expected a precision)"},
      {"page=in_i block", "page=in_j block",
       R"(line 10, column 27: found "in_j", expected a buffer that an earlier line declares. Did you mean in_i?)"},
      {"value=sub(@0, 1)", "value=sub(@0)", R"x(found ")", expected ",")x"},
      {"value=sub(@0, 1)", "value=sin(@0)", R"(found "sin", expected a number, an operand such as @0, or a function)"},
      {"row:1, col:1", "row:1, col", "expected row:EXTENT, col:EXTENT or k:EXTENT, reduced with :sum, :max or :argmax"},
      {"within=0:5", "within=0:5 per=2", R"(found per= a second time, expected it once)"},
      {"times=1 ", "", "expected index=, per=, times= and within=, all four or none"},
      {"item 0:0", "items 0:0", R"(found "items", expected claim, tensor, buffer,)"},
  };
  for (const TextFault& fault : faults) {
    std::string text = good;
    const size_t at = text.find(fault.from);
    ASSERT_NE(at, std::string::npos) << fault.from << "\n" << good;
    text.replace(at, fault.from.size(), fault.to);
    const Result<Program> read = parse_program(text, "gather.spatial");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.refusal().subject, "gather.spatial");
    EXPECT_THAT(to_text(read.refusal()), HasSubstr(std::string(fault.message)));
  }
}

TEST(Json, FaultsNameThePath) {
  const std::string good = to_json(*testing::flat_add(testing::shipped_target("toy_square"), 7));
  const TextFault faults[] = {
      {R"("tile":[4,4])", R"("tile":[4])", "tile: found a list, expected a list of two numbers"},
      {R"("role":"output")", R"("role":"result")", R"(tensors[2].role: found "result", expected one of input, output)"},
      {R"("depth":2)", R"("depth":-2)", "buffers[0].depth: found -2, expected a whole number from 0 to 4294967295"},
      {R"("kind":"generic")", R"("kind":"relu")", R"(stages[2].kind: found "relu", expected one of load, store)"},
      {R"("k_tiles":1,)", R"("k":1,)", "work.k_tiles: found nothing, expected a value"},
      {R"("edges":[)", R"("edges":{)", "is no JSON"},
      {R"("depth":2)", R"("depth":1e999)", "has a number that is too large for a double"},
  };
  for (const TextFault& fault : faults) {
    std::string text = good;
    const size_t at = text.find(fault.from);
    ASSERT_NE(at, std::string::npos) << fault.from;
    text.replace(at, fault.from.size(), fault.to);
    const Result<Program> read = program_of_json(text, "add.json");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(to_text(read.refusal()), HasSubstr(std::string(fault.message)));
  }
}

// Any bytes give a program or a refusal, and a program can be validated and printed.
TEST(Text, DamagedTextIsRefusedOrRead) {
  std::mt19937 random(7);
  const std::string good = print(*testing::row_sum_fold(testing::shipped_target("toy_square"), 5, true));
  const auto below = [&](size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random); };
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = good;
    for (size_t edits = 1 + below(3); edits-- > 0;) {
      const size_t at = below(text.size());
      if (below(2) == 0)
        text.erase(at, 1 + below(6));
      else
        text[at] = "0123456789@:=(),[]xabk \n-.\""[below(27)];
    }
    const Result<Program> program = parse_program(text, "damaged");
    if (!program) continue;
    ++read;
    for (const Finding& finding : validate(*program)) EXPECT_FALSE(to_text(*program, finding).empty());
    const Result<Program> again = parse_program(print(*program), "again");
    ASSERT_TRUE(again.ok()) << print(*program);
    ASSERT_TRUE(*again == *program);
  }
  EXPECT_GT(read, 50);
}

}  // namespace
}  // namespace tw::spatial
