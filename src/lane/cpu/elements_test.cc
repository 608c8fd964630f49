// Elementwise kernels, gathers, copies: every lane against the reference in bits, and against the definition.

#include <cstring>

#include "base/half.h"
#include "lane/cpu/testing/lanes.h"

namespace tw::lane::cpu {
namespace {

using testing::launch;
using testing::on_every_lane;
using testing::Random;

TEST(Binary, EveryOperationFormAndGate) {
  using enum graph::Arithmetic;
  Random random(31);
  for (const uint64_t cols : {1, 7, 31, 257, 1030, 2048})
    for (const auto op : {Add, Sub, Mul, Div, Min, Max})
      for (const int form : {0, 1, 2}) {
        const uint64_t n = 3 * cols;
        const auto x = random.values(n), b = random.values(n);
        const bool gated = cols % 2 == 1;
        const auto got = on_every_lane([&](const Kernels& k) {
          auto y = x;  // in place
          const BinaryArgs a{.a = y.data(),
                             .b = b.data(),
                             .out = store_rows(y.data(), 0),
                             .n = n,
                             .row = form == 0 ? 0 : cols,
                             .scalar = form == 2,
                             .gated = gated,
                             .act = graph::ActivationKind::Sigmoid,
                             .op = op};
          launch(k.binary, a, items(a));
          return y;
        });
        for (uint64_t i = 0; i < n; ++i) {
          double right = b[form == 0 ? i : form == 1 ? i % cols : i / cols];
          if (gated) right = 1 / (1 + std::exp(-right));
          const double left = x[i];
          const double want[] = {left + right, left - right,          left * right,
                                 left / right, std::min(left, right), std::max(left, right)};
          ASSERT_NEAR(got[i], want[static_cast<size_t>(op)],
                      1e-6 * std::max(1.0, std::fabs(want[static_cast<size_t>(op)])));
        }
      }
}

TEST(Elements, ScaleSwiGluAndGates) {
  Random random(32);
  for (const uint64_t n : {1, 33, 1024, 2500}) {
    const auto g = random.values(n, 3.0f), u = random.values(n), bias = random.values(n),
               rate = random.between(n, -2, 0);
    const auto got = on_every_lane([&](const Kernels& k) {
      std::vector<float> y(4 * n);
      const SwiGluArgs swiglu{.g = g.data(), .u = u.data(), .out = store_rows(y.data(), 0), .n = n};
      launch(k.swiglu, swiglu, items(swiglu));
      const ScaleArgs scale{.x = g.data(), .y = y.data() + n, .n = n, .factor = 0.3f};
      launch(k.scale, scale, items(scale));
      const GatesArgs gates{.b = u.data(),
                            .x = g.data(),
                            .bias = bias.data(),
                            .rate = rate.data(),
                            .beta = y.data() + 2 * n,
                            .decay = y.data() + 3 * n,
                            .rows = 1,
                            .heads = n};
      launch(k.gates, gates, items(gates));
      return y;
    });
    for (uint64_t i = 0; i < n; ++i) {
      const double x = g[i];
      EXPECT_NEAR(got[i], x / (1 + std::exp(-x)) * u[i], 2e-5);
      EXPECT_EQ(got[n + i], g[i] * 0.3f);
      EXPECT_NEAR(got[2 * n + i], 1 / (1 + std::exp(-static_cast<double>(u[i]))), 1e-6);
      EXPECT_NEAR(got[3 * n + i], std::pow(1 + std::exp(x + bias[i]), static_cast<double>(rate[i])), 3e-6);
    }
  }
}

TEST(Moves, GatherWidensAndScales) {
  Random random(33);
  const uint64_t cols = 37;
  const auto table = random.values(5 * cols);
  std::vector<uint16_t> half(table.size()), brain(table.size());
  for (size_t i = 0; i < table.size(); ++i) half[i] = f32_to_f16(table[i]), brain[i] = f32_to_bf16(table[i]);
  const int32_t index[] = {5, 1, 3};
  for (const float scale : {1.0f, 0.7f}) {
    const auto got = on_every_lane([&](const Kernels& k) {
      std::vector<float> y(9 * cols + cols);
      GatherArgs a{.table = table.data(), .index = index, .out = y.data(), .rows = 3, .cols = cols, .scale = scale};
      launch(k.gather, a, items(a));
      a.table = half.data(), a.type = Dtype::F16, a.out += 3 * cols;
      launch(k.gather, a, items(a));
      a.table = brain.data(), a.type = Dtype::BF16, a.out += 3 * cols;
      launch(k.gather, a, items(a));
      a.index = nullptr, a.fixed = 4, a.rows = 1, a.out += 3 * cols;
      launch(k.gather, a, items(a));
      return y;
    });
    EXPECT_EQ(got[0], table[4 * cols] * scale);
    EXPECT_EQ(got[4 * cols + 3], f16_to_f32(half[3]) * scale);
    EXPECT_EQ(got[8 * cols + 5], bf16_to_f32(brain[2 * cols + 5]) * scale);
    EXPECT_EQ(got[9 * cols + 5], bf16_to_f32(brain[3 * cols + 5]) * scale);
  }
}

// Every f16 widens and comes back; floats of every kind narrow alike.
TEST(Moves, SixteenBitStorageOnEveryLane) {
  std::vector<uint16_t> every(0x10000);
  for (size_t i = 0; i < every.size(); ++i) every[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(0x10001);
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = std::bit_cast<float>(static_cast<uint32_t>(i * 65521));
  for (const Dtype type : {Dtype::F16, Dtype::BF16})
    on_every_lane([&](const Kernels& k) {
      std::vector<float> y(every.size());
      CopyArgs widen{.x = every.data(),
                     .y = y.data(),
                     .x_type = type,
                     .x_pitch = 4096,
                     .y_pitch = 4096,
                     .units = 16,
                     .width = 4096};
      launch(k.copy, widen, items(widen));
      std::vector<uint16_t> narrow(wide.size());
      CopyArgs back{.x = wide.data(), .y = narrow.data(), .y_type = type, .units = 1, .width = wide.size()};
      launch(k.copy, back, items(back));
      std::vector<float> again(wide.size());
      CopyArgs look{.x = narrow.data(), .y = again.data(), .x_type = type, .units = 1, .width = wide.size()};
      launch(k.copy, look, items(look));
      y.insert(y.end(), again.begin(), again.end());
      return y;
    });
}

TEST(Moves, SliceJoinTranspose) {
  Random random(34);
  const uint64_t units = 6, every = 41, from = 5, width = 19;
  const auto x = random.values(units * every);
  const auto got = on_every_lane([&](const Kernels& k) {
    std::vector<float> y(units * every + units * every);
    const CopyArgs slice{.x = x.data(),
                         .y = y.data(),
                         .x_offset = from,
                         .x_pitch = every,
                         .y_offset = 2,
                         .y_pitch = width + 3,
                         .units = units,
                         .width = width};
    launch(k.copy, slice, items(slice));
    const TransposeArgs t{.x = x.data(), .y = y.data() + units * every, .rows = units, .cols = every};
    launch(k.transpose, t, items(t));
    return y;
  });
  for (uint64_t u = 0; u < units; ++u) {
    for (uint64_t i = 0; i < width; ++i) EXPECT_EQ(got[u * (width + 3) + 2 + i], x[u * every + from + i]);
    for (uint64_t c = 0; c < every; ++c) EXPECT_EQ(got[units * every + c * units + u], x[u * every + c]);
  }
}

}  // namespace
}  // namespace tw::lane::cpu
