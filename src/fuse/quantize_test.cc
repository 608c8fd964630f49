// Which forms a launch stores when a reader wants its result quantized.

#include "fuse/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuse/rule_testing.h"

namespace tw::fuse {
namespace {

using testing::lifted;
using testing::Without;

constexpr std::string_view kValues = R"(
const a 1x64
const g 1x64
const w1 64x64
const f1 64x8
x = scale(x=a) factor=2
)";

struct QuantizeCase {
  std::string_view what;
  std::string_view body;
  bool plain;      // the norm's store
  bool quantized;  // the same
  size_t launches_of_its_own;
};

const QuantizeCase kCases[] = {
    {"products alone read it", "n = row_norm(x=x, weight=g)\ny = matmul(x=n, w=w1)", false, true, 0},
    {"two products read it", "n = row_norm(x=x, weight=g)\ny = matmul(x=n, w=w1)\nz = matmul(x=n, w=w1)", false, true,
     0},
    {"an activation reads its values",
     "n = row_norm(x=x, weight=g)\ny = matmul(x=n, w=w1)\nz = activate(x=n) kind=silu", true, true, 0},
    {"a product of floats reads its values",
     "n = row_norm(x=x, weight=g)\ny = matmul(x=n, w=w1)\nz = matmul(x=n, w=f1)", true, true, 0},
    {"nobody wants it quantized", "n = row_norm(x=x, weight=g)\nz = activate(x=n) kind=silu", true, false, 0},
    {"what a product reads is no launch that can",
     "n = row_norm(x=x, weight=g)\ns = activate(x=n) kind=silu\n"
     "y = matmul(x=s, w=w1)",
     true, false, 1},
};

class Quantizations : public ::testing::TestWithParam<QuantizeCase> {};

TEST_P(Quantizations, StoreTheFormsThatAreRead) {
  graph::StepGraph step;
  Outcome outcome;
  const std::string body = std::string(kValues) + std::string(GetParam().body);
  const auto launches = with_quantizations(lifted("decode", body, step), AnyLaunch{}, {}, outcome);
  size_t norms = 0, own = 0;
  for (const lane::Planned& planned : launches) {
    own += std::holds_alternative<lane::Quant>(planned.launch) ? 1 : 0;
    if (const auto* norm = std::get_if<lane::Norm>(&planned.launch)) {
      ++norms;
      EXPECT_EQ(norm->forms.plain, GetParam().plain);
      EXPECT_EQ(norm->forms.quantized, GetParam().quantized);
    }
  }
  EXPECT_EQ(norms, 1U);
  EXPECT_EQ(own, GetParam().launches_of_its_own);
  EXPECT_EQ(outcome.fired.size(), GetParam().quantized ? 1U : 0U);
}

INSTANTIATE_TEST_SUITE_P(Forms, Quantizations, ::testing::ValuesIn(kCases), [](const auto& tested) {
  std::string name(tested.param.what);
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
});

TEST(Quantizations, OfAProducerThatTheLaneRefusesAreMissedWithItsReason) {
  graph::StepGraph step;
  Outcome outcome;
  std::string body(kValues);
  body += "n = row_norm(x=x, weight=g)\ny = matmul(x=n, w=w1)";
  QuantizeOptions options;
  options.explain = true;
  const auto launches = with_quantizations(lifted("decode", body, step), Without("rmsnorm"), options, outcome);
  EXPECT_TRUE(outcome.fired.empty());
  ASSERT_EQ(outcome.missed.size(), 1U);
  EXPECT_EQ(outcome.missed[0].rule, "fuse_quant");
  EXPECT_EQ(outcome.missed[0].why, "there is no kernel for rmsnorm");
}

}  // namespace
}  // namespace tw::fuse
