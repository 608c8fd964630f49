#include "spatial/lower/pointwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spatial/lower/lower.h"
#include "spatial/lower/testing/op_case.h"

namespace tw::spatial::lower {
namespace {

using graph::ActivationKind;
using testing::expect_equal;
using testing::expect_lowers;
using testing::expect_refused;
using ::testing::HasSubstr;
using testing::OpCase;
using testing::reals;

constexpr ActivationKind kKinds[] = {ActivationKind::Silu, ActivationKind::Sigmoid, ActivationKind::GeluTanh,
                                     ActivationKind::Relu, ActivationKind::Tanh,    ActivationKind::Softplus,
                                     ActivationKind::Exp};

OpCase activation(ActivationKind kind, uint64_t rows, uint64_t cols, uint64_t seed) {
  return {graph::Activate{kind}, {reals("x", rows, cols, seed, -6, 6)}};
}

TEST(Pointwise, EveryActivationInEveryForm) {
  for (const ActivationKind kind : kKinds) {
    for (const uint64_t n : {1, 33, 256, 257}) {
      const Lowered lowered = expect_lowers(activation(kind, 1, n, n), testing::t32());
      EXPECT_EQ(lowered.form, n > 256 ? "blocked" : "whole row");
    }
    for (const uint64_t n : {1, 5, 8, 9, 30}) expect_lowers(activation(kind, 1, n, n), testing::t4());
    EXPECT_EQ(expect_lowers(activation(kind, 2, 5, 3), testing::t4()).form, "matrix");
    EXPECT_EQ(expect_lowers(activation(kind, 2, 33, 3), testing::t32()).form, "matrix");
    expect_lowers(activation(kind, 3, 7, 4), testing::t1());
    expect_lowers(activation(kind, 9, 9, 5), testing::tall());
  }
}

TEST(Pointwise, ATargetWithoutRealsRefusesByName) {
  const Refusal refusal = expect_refused(activation(ActivationKind::Silu, 1, 5, 1), testing::without_reals());
  EXPECT_EQ(refusal.kind, RefusalKind::Missing);
  EXPECT_EQ(refusal.subject, "y");
}

}  // namespace
}  // namespace tw::spatial::lower
