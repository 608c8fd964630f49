// Norms, softmax, quantizer, rotation, arg-max: every lane against the reference in bits, and the formula in double.

#include <cstring>
#include <numeric>

#include "lane/cpu/reference/reference.h"
#include "lane/cpu/testing/lanes.h"

namespace tw::lane::cpu {
namespace {

using testing::expect_near;
using testing::launch;
using testing::on_every_lane;
using testing::Random;

constexpr uint64_t kWidths[] = {1, 7, 16, 31, 33, 64, 257, 1024, 1025, 2100};

double mean_square(const double* v, uint64_t n) {
  double total = 0;
  for (uint64_t i = 0; i < n; ++i) total += v[i] * v[i];
  return total / static_cast<double>(n);
}

TEST(Sums, LaneTreeOfEveryLengthEqualsTheReference) {
  std::vector<uint64_t> lengths(71);
  std::iota(lengths.begin(), lengths.end(), 0);
  for (const uint64_t n : {255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 14336}) lengths.push_back(n);
  Random random(1);
  for (const uint64_t n : lengths) {
    if (n == 0) continue;
    const auto x = random.values(n);
    // The L2 norm of a row exposes the sum of squares, the layer norm the plain sum.
    on_every_lane([&](const Kernels& k) {
      std::vector<float> y(2 * n);
      launch(k.l2_norm, L2NormArgs{.x = x.data(), .y = y.data(), .rows = 1, .cols = n, .eps = 1e-6f}, 1);
      NormArgs a{.x = x.data(),
                 .out = store_rows(y.data() + n, n),
                 .rows = 1,
                 .cols = n,
                 .eps = 1e-5f,
                 .kind = graph::NormKind::Layer};
      launch(k.norm, a, 1);
      return y;
    });
    ASSERT_FALSE(::testing::Test::HasFailure()) << "length " << n;
  }
}

TEST(Sums, ThePiecesOfALaneTreeAreChained) {
  // Uncut, lane 0 would lose item 1024 in the 1e8 before lane 16 takes that away.
  std::vector<float> x(1025, 0.0f);
  x[0] = 1e8f;
  x[16] = -1e8f;
  x[1024] = 1.0f;
  EXPECT_EQ(reference::lane_tree(x), 1.0f);
  const std::vector<float> y{1e8f, 1.0f, -1e8f};
  EXPECT_EQ(reference::lane_tree(y), (1e8f + -1e8f) + 1.0f) << "lane 2 joins lane 0 before lane 1 does";
}

TEST(Norm, RmsWithEverythingEqualsTheFormula) {
  Random random(2);
  for (const uint64_t n : kWidths) {
    const uint64_t rows = 3;
    const auto x = random.values(rows * (n + 3)), add = random.values(rows * n), w = random.values(n),
               bias = random.values(n), pre = random.values(n);
    for (const bool pre_norm : {false, true}) {
      const auto got = on_every_lane([&](const Kernels& k) {
        std::vector<float> y(2 * rows * n);
        NormArgs a{.x = x.data(),
                   .x_pitch = n + 3,
                   .add = add.data(),
                   .pre_weight = pre.data(),
                   .weight = w.data(),
                   .bias = bias.data(),
                   .sum = y.data(),
                   .out = store_rows(y.data() + rows * n, n),
                   .rows = rows,
                   .cols = n,
                   .eps = 1e-5f,
                   .pre_eps = 1e-6f,
                   .pre = pre_norm};
        launch(k.norm, a, items(a));
        return y;
      });
      std::vector<double> want(2 * rows * n);
      for (uint64_t r = 0; r < rows; ++r) {
        std::vector<double> added(add.begin() + static_cast<long>(r * n), add.begin() + static_cast<long>((r + 1) * n));
        const double factor = pre_norm ? 1 / std::sqrt(mean_square(added.data(), n) + 1e-6) : 1.0;
        double* v = want.data() + r * n;
        for (uint64_t i = 0; i < n; ++i) v[i] = x[r * (n + 3) + i] + added[i] * factor * (pre_norm ? pre[i] : 1.0);
        const double scale = 1 / std::sqrt(mean_square(v, n) + 1e-5);
        for (uint64_t i = 0; i < n; ++i) want[(rows + r) * n + i] = v[i] * scale * w[i] + bias[i];
      }
      expect_near(got, want, 3e-6);
    }
  }
}

TEST(Norm, LayerFormAndInPlace) {
  Random random(3);
  for (const uint64_t n : kWidths) {
    const auto x = random.values(2 * n), w = random.values(n);
    const auto got = on_every_lane([&](const Kernels& k) {
      auto y = x;
      NormArgs a{.x = y.data(),
                 .x_pitch = n,
                 .weight = w.data(),
                 .out = store_rows(y.data(), n),
                 .rows = 2,
                 .cols = n,
                 .eps = 1e-5f,
                 .kind = graph::NormKind::Layer};
      launch(k.norm, a, items(a));
      return y;
    });
    std::vector<double> want(x.begin(), x.end());
    for (double* v : {want.data(), want.data() + n}) {
      const double mean = std::accumulate(v, v + n, 0.0) / static_cast<double>(n);
      for (uint64_t i = 0; i < n; ++i) v[i] -= mean;
      const double scale = 1 / std::sqrt(mean_square(v, n) + 1e-5);
      for (uint64_t i = 0; i < n; ++i) v[i] *= scale * w[i];
    }
    expect_near(got, want, 3e-5);
  }
}

TEST(Softmax, WithAndWithoutSinks) {
  Random random(4);
  for (const uint64_t n : kWidths) {
    const auto x = random.values(3 * n, 4.0f), sinks = random.values(3);
    for (const bool sunk : {false, true}) {
      const auto got = on_every_lane([&](const Kernels& k) {
        std::vector<float> y(3 * n);
        SoftmaxArgs a{.x = x.data(),
                      .sinks = sunk ? sinks.data() : nullptr,
                      .y = y.data(),
                      .rows = 3,
                      .cols = n,
                      .sink_a_row = true};
        launch(k.softmax, a, items(a));
        return y;
      });
      std::vector<double> want(3 * n);
      for (uint64_t r = 0; r < 3; ++r) {
        double z = sunk ? std::exp(static_cast<double>(sinks[r])) : 0.0;
        for (uint64_t i = 0; i < n; ++i) z += std::exp(static_cast<double>(x[r * n + i]));
        for (uint64_t i = 0; i < n; ++i) want[r * n + i] = std::exp(static_cast<double>(x[r * n + i])) / z;
      }
      expect_near(got, want, 1e-6);
    }
  }
}

// All pieces of the quantized form as floats, to compare and to look at.
std::vector<float> quantize(const Kernels& k, const std::vector<float>& x, uint64_t rows, uint64_t cols, int words) {
  const uint64_t n = rows * quant_padded(cols);
  std::vector<std::byte> storage(quant_bytes(n, words) + 64);
  void* start = storage.data();
  size_t space = storage.size();
  std::align(64, 1, start, space);
  const QuantView view = quant_view(static_cast<std::byte*>(start), n, words);
  const QuantArgs a{.x = x.data(), .to = view, .rows = rows, .cols = cols, .pitch = cols, .words = words};
  launch(k.quant, a, items(a));
  std::vector<float> all(view.scale, view.scale + n / 32);
  all.insert(all.end(), view.high, view.high + n);
  all.insert(all.end(), view.sum_high, view.sum_high + n / 32);
  if (words == 2) all.insert(all.end(), view.low, view.low + n);
  all.insert(all.end(), view.wide, view.wide + n);
  all.insert(all.end(), view.sum_half, view.sum_half + n / 32);
  if (words == 2) all.insert(all.end(), view.sum_low, view.sum_low + n / 32);
  return all;
}

TEST(Quant, EveryLaneAndRaggedRow) {
  Random random(5);
  for (const uint64_t cols : {1, 15, 16, 17, 31, 32, 33, 48, 257})
    for (const int words : {1, 2}) {
      auto x = random.values(3 * cols, 3.0f);
      x[0] = 100.0f;
      on_every_lane([&](const Kernels& k) { return quantize(k, x, 3, cols, words); });
    }
}

TEST(Quant, WordsStayInRangeAndRoundOnce) {
  Random random(6);
  const auto x = random.values(64, 2.0f);
  const auto one = quantize(kernels(best_isa()), x, 1, 64, 1);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_LE(std::fabs(one[2 + i]), 127.0f);
    EXPECT_NEAR(one[2 + i] * one[i / 32], x[i], 0.5001 * one[i / 32]);
  }
  const auto two = quantize(kernels(best_isa()), x, 1, 64, 2);
  for (size_t i = 0; i < 64; ++i) {
    const float wide = two[2 + 64 + 2 + 64 + i];
    EXPECT_EQ(wide, 256 * two[2 + i] + two[2 + 64 + 2 + i]);
    EXPECT_LE(std::fabs(wide), 32512.0f);
    EXPECT_NEAR(wide * two[i / 32], x[i], 0.501 * two[i / 32]);
  }
}

TEST(Quant, TinyBlocksAreZeroAndNanShowsInTheScale) {
  std::vector<float> x(96, 0x1p-101f);
  x[40] = std::nanf("");
  x[70] = INFINITY;
  const auto got = on_every_lane([&](const Kernels& k) { return quantize(k, x, 1, 96, 2); });
  EXPECT_EQ(got[0], 0.0f);
  EXPECT_TRUE(std::isnan(got[1]));
  EXPECT_EQ(got[2], INFINITY);
}

TEST(Rope, NormedPartialAndStrided) {
  Random random(7);
  for (const auto& [width, half] : {std::pair<uint64_t, uint64_t>{2, 1}, {33, 7}, {64, 32}, {80, 16}, {128, 64}}) {
    const uint64_t per_row = 3, rows = 2, heads = rows * per_row, pitch = width + 5;
    const auto x = random.values(heads * pitch), w = random.values(width);
    const auto cosine = random.between(9 * half, -1, 1), sine = random.between(9 * half, -1, 1);
    const int32_t position[] = {6, 3};
    for (const int mode : {0, 1, 2}) {
      const auto got = on_every_lane([&](const Kernels& k) {
        std::vector<float> y(heads * width);
        RopeArgs a{.x = x.data(),
                   .cos = cosine.data(),
                   .sin = sine.data(),
                   .position = mode > 0 ? position : nullptr,
                   .norm_weight = w.data(),
                   .y = store_rows(y.data(), width),
                   .x_pitch = pitch,
                   .heads = heads,
                   .per_row = per_row,
                   .width = width,
                   .half = half,
                   .eps = 1e-6f,
                   .normed = mode != 1,
                   .position_a_row = mode == 2};
        launch(k.rope, a, items(a));
        return y;
      });
      std::vector<double> want(heads * width);
      for (uint64_t u = 0; u < heads; ++u) {
        const uint64_t row = u / per_row;
        const uint64_t table = mode == 0 ? row : mode == 1 ? 5 + row : static_cast<uint64_t>(position[row]) - 1;
        std::vector<double> v(x.begin() + static_cast<long>(u * pitch),
                              x.begin() + static_cast<long>(u * pitch + width));
        const double scale = 1 / std::sqrt(mean_square(v.data(), width) + 1e-6);
        if (mode != 1)
          for (uint64_t i = 0; i < width; ++i) v[i] *= scale * w[i];
        for (uint64_t i = 0; i < width; ++i) want[u * width + i] = v[i];
        for (uint64_t i = 0; i < half; ++i) {
          const double c = cosine[table * half + i], s = sine[table * half + i];
          want[u * width + i] = v[i] * c - v[i + half] * s;
          want[u * width + i + half] = v[i] * s + v[i + half] * c;
        }
      }
      expect_near(got, want, 2e-6);
    }
  }
}

int argmax(const std::vector<float>& x) {
  const auto got = on_every_lane([&](const Kernels& k) {
    std::vector<Best> best(argmax_pieces(x.size()));
    int32_t out = -1;
    const ArgMaxArgs a{.x = x.data(), .best = best.data(), .out = &out, .rows = 1, .n = x.size()};
    launch(k.argmax_scan, a, argmax_scan_items(a));
    launch(k.argmax_merge, a, argmax_merge_items(a));
    return std::vector<float>{static_cast<float>(out)};
  });
  return static_cast<int>(got[0]);
}

TEST(ArgMax, TheFirstMaximumWins) {
  Random random(8);
  for (const uint64_t n : {1, 2, 16, 17, 1000, 8191, 8192, 8193, 30011}) {
    auto x = random.values(n);
    argmax(x);
    x[n / 2] = 9.0f;
    x[n - 1] = 9.0f;
    EXPECT_EQ(argmax(x), static_cast<int>(n / 2 + 1));
  }
  EXPECT_EQ(argmax(std::vector<float>(40, 0.0f)), 1);
  EXPECT_EQ(argmax(std::vector<float>(40, -INFINITY)), 1);
  EXPECT_EQ(argmax({-0.0f, 0.0f}), 1);
}

TEST(ArgMax, ANanWinsOnlyInTheFirstPlace) {
  std::vector<float> x(100, 1.0f);
  x[30] = std::nanf("");
  x[50] = 2.0f;
  EXPECT_EQ(argmax(x), 51);
  x[0] = std::nanf("");
  EXPECT_EQ(argmax(x), 1);
}

}  // namespace
}  // namespace tw::lane::cpu
