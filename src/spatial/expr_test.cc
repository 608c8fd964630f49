#include "spatial/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spatial/any_program.h"
#include "spatial/eps.h"
#include "spatial/fill.h"
#include "spatial/text.h"

namespace tw::spatial {
namespace {

TEST(Expr, EqualTreesAreEqualHoweverTheyWereBuilt) {
  const Expr x = arg(0), y = arg(1);
  const Band bands[] = {{4, x}, {8, y}, {0, 2.0}};
  EXPECT_EQ(banded(bands), select(less(Axis::Col, 4), x, select(less(Axis::Col, 8), y, 2.0)));
  EXPECT_NE(x - y, y - x);
  EXPECT_NE(Expr(0.0), Expr(-0.0));
  EXPECT_EQ(print(soft_cap(x, 30)), "sub(mul(60, recip(add(1, exp(mul(@0, -0.06666666666666667))))), 30)");
  EXPECT_EQ(print(sigmoid(x)), "recip(add(1, exp(sub(0, @0))))");
}

TEST(Expr, BuiltTreesAreWellFormedAndOthersAreNot) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(testing::any_expr(random, 20, 3).well_formed());
  EXPECT_FALSE(Expr().well_formed());
  EXPECT_FALSE(Expr(std::vector<Node>{OperandNode{0}, OperandNode{1}}).well_formed());  // two roots
  EXPECT_FALSE(Expr(std::vector<Node>{UnaryNode{UnaryOp::Exp, 0}}).well_formed());      // its own child
  EXPECT_FALSE(Expr(std::vector<Node>{OperandNode{0}, BinaryNode{BinaryOp::Add, 0, 0}}).well_formed());  // shared
  EXPECT_FALSE(Expr(std::vector<Node>{OperandNode{0}, ConstNode{1}, BinaryNode{BinaryOp::Add, 1, 0}}).well_formed());
  EXPECT_FALSE(Expr(std::vector<Node>{ConstNode{1}, UnaryNode{UnaryOp::Exp, 7}}).well_formed());
}

TEST(Expr, IntegralBodiesHaveNoRealConstantOrFunction) {
  EXPECT_TRUE(integral(shr(arg(0) * 3.0, 2) + floor_div(arg(1), 7.0)));
  EXPECT_FALSE(integral(arg(0) * 0.5));
  EXPECT_FALSE(integral(recip(arg(0))));
  EXPECT_FALSE(integral(arg(0) + 1e30));  // beyond 64 bits
  EXPECT_TRUE(integral(Expr(-0x1p63)));
  EXPECT_FALSE(integral(Expr(0x1p63)));
}

TEST(Expr, UsesAreOfValuesAndOfBounds) {
  const OperandUses uses = operand_uses(select(less_than_operand(Axis::Col, 3), arg(2) + arg(0), arg(2)));
  EXPECT_EQ(uses.values, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(uses.bounds, std::vector<uint32_t>{3});
}

TEST(Eps, IsAWholeNumberOfNanoUnits) {
  EXPECT_EQ(*eps_nano(1e-5F, "y"), 10000U);
  EXPECT_EQ(*eps_nano(1e-6F, "y"), 1000U);
  EXPECT_EQ(*eps_nano(0, "y"), 0U);
  for (const float eps : {1e-12F, 1.5e-9F, -1e-6F, std::numeric_limits<float>::infinity(), std::nanf("")})
    EXPECT_FALSE(eps_nano(eps, "y").ok()) << eps;
  EXPECT_EQ(to_text(eps_nano(1e-12F, "y").refusal()), "y: has the epsilon 1e-12, expected a whole multiple of 1e-9");
}

TEST(Fill, BecomesAnInitAndKnowsItsMagnitude) {
  EXPECT_EQ(init_of(UnknownFill{}, 3), Init{ExternalInit{}});
  EXPECT_EQ(init_of(GivenFill{9}, 3), Init{GivenInit{}});
  EXPECT_EQ(init_of(IntegerInit{0}, 3), Init{ZeroInit{}});
  EXPECT_EQ(init_of(PatternFill{3, -1}, 5), Init{integer_values({-1, 0, 1, -1, 0})});
  EXPECT_EQ(init_of(IntegerOverrides{2, {{1, -7}}}, 3), Init{integer_values({2, -7, 2})});
  EXPECT_EQ(init_of(RealOverrides{0.5, {{2, 1.5}}}, 3), Init{real_values({0.5, 0.5, 1.5})});
  EXPECT_EQ(magnitude_of(PatternFill{10, -4}), 5U);
  EXPECT_EQ(magnitude_of(PatternFill{3, -8}), 8U);
  EXPECT_EQ(magnitude_of(IntegerOverrides{2, {{1, -7}}}), 7U);
  EXPECT_EQ(index_space(50, 4, GivenFill{9}), 50U);
  EXPECT_EQ(index_space(50, 8, GivenFill{9}), 80U);
  EXPECT_EQ(index_space(1, 2, GivenFill{~uint64_t{0}}), ~uint64_t{0});
}

}  // namespace
}  // namespace tw::spatial
