// The scalar functions: bounds in ulp against double, special values, and the same bits from every lane's 16 at a time.

#include "base/math_contract.h"

#include <cstdlib>

#include "lane/cpu/testing/lanes.h"

namespace tw::lane::cpu {
namespace {

using testing::launch;
using testing::on_every_lane;
using testing::Random;

// Every how-manieth float is tried; TW_SLOW_TESTS=1 tries all.
uint32_t step(uint32_t otherwise) { return std::getenv("TW_SLOW_TESTS") != nullptr ? 1 : otherwise; }

// The error of got in units of the last place of the float nearest to want.
double ulps(float got, double want) {
  const auto nearest = static_cast<float>(want);
  if (got == nearest) {
    if (std::isinf(got)) return 0;
  } else if (std::isinf(got) || std::isinf(nearest)) {
    return got == nearest ? 0 : 1e9;
  }
  const int exponent = std::max(std::ilogb(want == 0 ? 1e-300 : want), -126);
  return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 23);
}

// The largest error of f over the floats of [low, high], signs as given.
template <class F, class G>
double worst(float low, float high, F f, G exact, uint32_t every = 37) {
  double most = 0;
  const auto first = std::bit_cast<uint32_t>(low);
  const auto last = std::bit_cast<uint32_t>(high);
  for (uint64_t bits = first; bits <= last; bits += step(every)) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    most = std::max(most, ulps(f(x), exact(static_cast<double>(x))));
  }
  return most;
}

TEST(Math, ExpIsWithinItsBound) {
  const auto f = [](float x) { return math::exp(x); };
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LE(worst(0.0f, 88.72283f, f, exact), 1.013);
  EXPECT_LE(worst(-0.0f, -103.97f, f, exact), 1.013);
  EXPECT_EQ(math::exp(88.8f), INFINITY);
  EXPECT_EQ(math::exp(INFINITY), INFINITY);
  EXPECT_EQ(math::exp(-104.0f), 0.0f);
  EXPECT_EQ(math::exp(-INFINITY), 0.0f);
  EXPECT_EQ(math::exp(-0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(math::exp(std::nanf(""))));
}

TEST(Math, LnIsWithinItsBoundOnNormals) {
  EXPECT_LE(worst(
                0x1p-126f, std::numeric_limits<float>::max(), [](float x) { return math::ln(x); },
                [](double x) { return std::log(x); }),
            0.9);
  EXPECT_EQ(math::ln(1.0f), 0.0f);
}

TEST(Math, TheOthersAreWithinTheirBounds) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (const auto& [low, high] : {std::pair{1e-6f, 80.0f}, std::pair{-1e-6f, -80.0f}}) {
    EXPECT_LE(worst(
                  low, high, [](float x) { return math::softplus(x); },
                  [](double x) { return std::log1p(std::exp(x)); }, 997),
              2.0);
    EXPECT_LE(worst(
                  low, high, [](float x) { return math::sigmoid(x); }, sigmoid, 997),
              2.5);
    EXPECT_LE(worst(
                  low, high, [](float x) { return math::silu(x); }, [&](double x) { return x * sigmoid(x); }, 997),
              2.5);
  }
  for (int step = 0; step < 1314; ++step) {
    const float x = -9 + 0.0137f * static_cast<float>(step);
    EXPECT_NEAR(math::tanh(x), std::tanh(x), 2e-7);
    EXPECT_NEAR(math::softcap(x * 9, 30.0f), 30 * std::tanh(x * 9 / 30), 6e-6);
    const double z = std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(static_cast<double>(x), 3));
    EXPECT_NEAR(math::gelu(x), 0.5 * x * (1 + std::tanh(z)), 3e-6);
    EXPECT_NEAR(math::decay(x, 0.5f, -1.5f), std::pow(1 + std::exp(x + 0.5), -1.5), 1e-6);
  }
}

// Floats of every kind: all exponents, both signs, denormals, infinities, NaN.
std::vector<float> all_kinds() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < 0x100000000; bits += 600011)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  const auto near = Random(21).between(4001, -110, 110);
  x.insert(x.end(), near.begin(), near.end());
  x.insert(x.end(), {INFINITY, -INFINITY, 0.0f, -0.0f, std::nanf(""), 88.722839f, 88.72284f, -103.972084f, 20.0f});
  return x;
}

TEST(Math, EveryLaneEqualsTheScalarFunction) {
  using enum graph::ActivationKind;
  const std::vector<float> x = all_kinds();
  for (const auto act : {Silu, Sigmoid, GeluTanh, Relu, Softplus, Tanh, Exp})
    on_every_lane([&](const Kernels& k) {
      std::vector<float> y(x.size());
      const UnaryArgs a{.x = x.data(), .y = y.data(), .n = x.size(), .act = act};
      launch(k.unary, a, items(a));
      return y;
    });
  for (const float cap : {30.0f, 1e-3f})
    on_every_lane([&](const Kernels& k) {
      std::vector<float> y(x.size());
      const UnaryArgs a{.x = x.data(), .y = y.data(), .n = x.size(), .cap = cap};
      launch(k.unary, a, items(a));
      return y;
    });
}

}  // namespace
}  // namespace tw::lane::cpu
