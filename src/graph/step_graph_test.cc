#include "graph/step_graph.h"

#include <gtest/gtest.h>

namespace tw::graph {
namespace {

TEST(Form, TextReadsBack) {
  for (const std::string_view text : {"decode", "chunk:1", "chunk:512", "chunk:7:all", "batch:2", "batch:64"}) {
    const std::optional<Form> form = parse_form(text);
    ASSERT_TRUE(form) << text;
    EXPECT_EQ(to_text(*form), text);
  }
}

TEST(Form, RefusesWhatIsNoForm) {
  for (const std::string_view text :
       {"", "decode:1", "chunk", "chunk:", "chunk:0", "chunk:513", "chunk:+1", "chunk:1:al", "batch:1", "batch:2:all",
        "batch:4294967296", "chunk: 4", "chunk:4 "})
    EXPECT_FALSE(parse_form(text)) << text;
}

TEST(Ops, DeclareTheirOperandsByName) {
  const Op op{.spec = RowNorm{}, .operands = {TensorId{3}, TensorId{5}, kNoTensor, kNoTensor}, .result = TensorId{7}};
  EXPECT_EQ(op_name(op.spec), "row_norm");
  EXPECT_EQ(operand(op, "weight"), TensorId{5});
  EXPECT_EQ(operand(op, "residual"), kNoTensor);
  EXPECT_EQ(operand(op, "no such operand"), kNoTensor);
  EXPECT_EQ(operand_decls(SetRows{})[0].access, Access::Update);
}

}  // namespace
}  // namespace tw::graph
