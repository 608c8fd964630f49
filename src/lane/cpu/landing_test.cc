// Kernels whose results land in other places than an array of their own: every lane against the reference in bits, and
// the launches that are several others against those.

#include "lane/cpu/testing/landing.h"

#include "lane/cpu/quant_rows.h"
#include "lane/cpu/testing/lanes.h"

namespace tw::lane::cpu {
namespace {

using testing::kPlainLandings;
using testing::kQuantizedLandings;
using testing::Landing;
using testing::launch;
using testing::on_every_lane;
using testing::Random;
using testing::Sink;

// Widths for a landing: any for plain ones, whole blocks for quantized ones.
std::vector<std::pair<Landing, uint64_t>> landings(std::initializer_list<uint64_t> widths,
                                                   std::initializer_list<uint64_t> whole) {
  std::vector<std::pair<Landing, uint64_t>> all;
  for (const Landing landing : kPlainLandings)
    for (const uint64_t width : widths) all.emplace_back(landing, width);
  for (const Landing landing : kQuantizedLandings)
    for (const uint64_t width : whole) all.emplace_back(landing, width);
  return all;
}

TEST(Landing, NormsOfEveryKind) {
  Random random(51);
  for (const auto& [landing, cols] : landings({1, 16, 33, 70}, {32, 96, 1056})) {
    const uint64_t rows = 5;
    const auto x = random.values(rows * (cols + 3)), add = random.values(rows * cols), w = random.values(cols);
    for (const bool added : {false, true})
      for (const auto kind : {graph::NormKind::Rms, graph::NormKind::Layer}) {
        const auto got = on_every_lane([&](const Kernels& k) {
          Sink sink(landing, rows, cols);
          NormArgs a{.x = x.data() + 2,
                     .x_pitch = cols + 3,
                     .add = added ? add.data() : nullptr,
                     .pre_weight = w.data(),
                     .weight = w.data(),
                     .out = sink.store(),
                     .rows = rows,
                     .cols = cols,
                     .eps = 1e-5f,
                     .pre_eps = 1e-6f,
                     .pre = added,
                     .kind = kind};
          launch(k.norm, a, items(a));
          return sink.values();
        });
        ASSERT_FALSE(::testing::Test::HasFailure()) << static_cast<int>(landing) << ", width " << cols;
      }
  }
}

// The plain result in a table, the quantized form in the result's own buffer.
TEST(Landing, ANormInTwoPlaces) {
  Random random(52);
  const uint64_t rows = 3, cols = 64;
  const auto x = random.values(rows * cols);
  for (const Landing landing : kPlainLandings)
    on_every_lane([&](const Kernels& k) {
      Sink plain(landing, rows, cols), quantized(Landing::Quantized, rows, cols), alone(landing, rows, cols);
      NormArgs a{.x = x.data(),
                 .x_pitch = cols,
                 .out = plain.store(),
                 .quantized = quantized.store(),
                 .rows = rows,
                 .cols = cols,
                 .eps = 1e-5f};
      launch(k.norm, a, items(a));
      a.quantized = {};
      a.out = alone.store();
      launch(k.norm, a, items(a));
      EXPECT_TRUE(testing::same_bits(plain.values(), alone.values()));
      return quantized.values();
    });
}

TEST(Landing, RotationsOfSeveralSidesEqualEachAlone) {
  Random random(53);
  const int32_t position = 4;
  for (const auto& [landing, width] : landings({2, 33, 80}, {32, 128})) {
    const uint64_t half = width / 4 + 1, rows = 2;
    const auto x = random.values(20 * (width + 5)), w = random.values(width);
    const auto cosine = random.between(9 * half, -1, 1), sine = random.between(9 * half, -1, 1);
    if (2 * half > width) continue;
    const auto side = [&](uint64_t per_row, const Store& to) {
      return RopeArgs{.x = x.data() + per_row,
                      .cos = cosine.data(),
                      .sin = sine.data(),
                      .position = &position,
                      .norm_weight = w.data(),
                      .y = to,
                      .x_pitch = width + 5,
                      .heads = rows * per_row,
                      .per_row = per_row,
                      .width = width,
                      .half = half,
                      .eps = 1e-6f,
                      .normed = per_row != 1};
    };
    on_every_lane([&](const Kernels& k) {
      Sink a(landing, 6, width), b(Landing::Rows, 2, width), c(landing, 4, width);
      Sink alone[3] = {{landing, 6, width}, {Landing::Rows, 2, width}, {landing, 4, width}};
      const RopeArgs sides[] = {side(3, a.store()), side(1, b.store()), side(2, c.store())};
      const RopePartsArgs parts{.sides = sides, .count = 3};
      launch(k.rope_parts, parts, items(parts));
      for (size_t s = 0; s < 3; ++s) {
        RopeArgs one = sides[s];
        one.y = alone[s].store();
        launch(k.rope, one, items(one));
      }
      auto all = a.values();
      const Sink* together[] = {&a, &b, &c};
      for (size_t s = 0; s < 3; ++s)
        EXPECT_TRUE(testing::same_bits(together[s]->values(), alone[s].values())) << "side " << s;
      const auto more = c.values();
      all.insert(all.end(), more.begin(), more.end());
      return all;
    });
    ASSERT_FALSE(::testing::Test::HasFailure()) << static_cast<int>(landing) << ", width " << width;
  }
}

TEST(Landing, JoinedUnits) {
  Random random(54);
  const uint64_t units = 6;
  for (const auto& [landing, width] : landings({3, 33}, {64}))
    for (const uint64_t ha : {uint64_t{1}, uint64_t{2}, width - 1}) {
      if (landing == Landing::Quantized || landing == Landing::RowsAndTwoWords) continue;
      const auto a = random.values(units * ha), b = random.values(units * (width - ha));
      const auto got = on_every_lane([&](const Kernels& k) {
        Sink sink(landing, units, width);
        const JoinArgs args{
            .a = a.data(), .b = b.data(), .y = sink.store(), .units = units, .ha = ha, .hb = width - ha};
        launch(k.join, args, items(args));
        return sink.values();
      });
      if (landing != Landing::Rows) continue;
      for (uint64_t u = 0; u < units; ++u)
        for (uint64_t e = 0; e < width; ++e)
          EXPECT_EQ(got[u * width + e], e < ha ? a[u * ha + e] : b[u * (width - ha) + e - ha]);
    }
}

TEST(Landing, ElementwiseResultsInEveryForm) {
  Random random(55);
  for (const Landing landing : kQuantizedLandings)
    for (const uint64_t n : {32, 96, 1024, 1056, 3072}) {
      const auto x = random.values(n, 3.0f), y = random.values(n);
      on_every_lane([&](const Kernels& k) {
        std::vector<float> all;
        for (const int form : {0, 1, 2, 3}) {  // 3: SwiGLU
          Sink sink(landing, 1, n);
          BinaryArgs a{.a = x.data(),
                       .b = y.data(),
                       .out = sink.store(),
                       .n = n,
                       .row = form == 0 || n % 96 != 0 ? 0 : n / 3,
                       .scalar = form == 2,
                       .gated = form == 1,
                       .act = graph::ActivationKind::GeluTanh,
                       .op = graph::Arithmetic::Mul};
          const SwiGluArgs s{.g = x.data(), .u = y.data(), .out = sink.store(), .n = n};
          if (form == 3)
            launch(k.swiglu, s, items(s));
          else
            launch(k.binary, a, items(a));
          const auto values = sink.values();
          all.insert(all.end(), values.begin(), values.end());
        }
        return all;
      });
      ASSERT_FALSE(::testing::Test::HasFailure()) << n;
    }
}

// The quantized form is what a quantizer makes of the plain one.
TEST(Landing, QuantizingInTheStoreEqualsQuantizingAfter) {
  Random random(56);
  const uint64_t n = 1088;
  const auto x = random.values(n, 3.0f), y = random.values(n);
  const Kernels& k = kernels(best_isa());
  Sink both(Landing::RowsAndTwoWords, 1, n), after(Landing::RowsAndTwoWords, 1, n);
  const SwiGluArgs fused{.g = x.data(), .u = y.data(), .out = both.store(), .n = n};
  launch(k.swiglu, fused, items(fused));
  SwiGluArgs apart = fused;
  apart.out = store_rows(static_cast<float*>(after.store().data), 0);
  launch(k.swiglu, apart, items(apart));
  const QuantArgs quantize{.x = static_cast<const float*>(after.store().data),
                           .to = after.store().quant,
                           .rows = 1,
                           .cols = n,
                           .pitch = n,
                           .words = 2};
  launch(k.quant, quantize, items(quantize));
  EXPECT_TRUE(testing::same_bits(both.values(), after.values()));
}

TEST(Landing, QuantizedRowsAreCopied) {
  Random random(57);
  const uint64_t cols = 96, rows = 3;
  const auto x = random.values(rows * cols), table = random.values(7 * cols);
  for (const Landing landing : kQuantizedLandings) {
    const auto quantized = [&](const std::vector<float>& values, const Store& to) {
      const QuantArgs a{.x = values.data(),
                        .to = to.quant,
                        .rows = 1,
                        .cols = values.size(),
                        .pitch = values.size(),
                        .words = to.words};
      launch(kernels(best_isa()).quant, a, items(a));
    };
    Sink from(landing, rows, cols), to(landing, 7, cols), want(landing, 7, cols);
    quantized(x, from.store());
    quantized(table, to.store());
    auto set = table;
    std::copy(x.begin(), x.end(), set.begin() + 3 * cols);
    quantized(set, want.store());
    const int32_t position = 4;
    for (const bool fixed : {false, true}) {
      const QuantRowsArgs a{.from = from.store().quant,
                            .to = to.store().quant,
                            .position = fixed ? nullptr : &position,
                            .fixed = 4,
                            .rows = rows,
                            .cols = cols,
                            .words = from.store().words};
      launch<QuantRowsArgs>(quant_rows, a, quant_rows_items(a));
      EXPECT_TRUE(testing::same_bits(to.values(), want.values()));
    }
  }
}

TEST(ArgMax, AdvancesEverySequenceByItsLastRow) {
  Random random(58);
  const uint64_t n = 9000, rows = 6, sequences = 3;
  auto x = random.values(rows * n);
  for (uint64_t r = 0; r < rows; ++r) x[r * n + 100 + r] = 20;
  const auto got = on_every_lane([&](const Kernels& k) {
    std::vector<Best> best(rows * argmax_pieces(n));
    std::vector<int32_t> out(rows), token(sequences, -1), position{7, 8, 9};
    const ArgMaxArgs a{.x = x.data(),
                       .best = best.data(),
                       .out = out.data(),
                       .token = token.data(),
                       .position = position.data(),
                       .consumed = 2,
                       .sequences = sequences,
                       .rows = rows,
                       .n = n};
    launch(k.argmax_scan, a, argmax_scan_items(a));
    launch(k.argmax_merge, a, argmax_merge_items(a));
    std::vector<float> all(out.begin(), out.end());
    all.insert(all.end(), token.begin(), token.end());
    all.insert(all.end(), position.begin(), position.end());
    return all;
  });
  EXPECT_EQ(got, (std::vector<float>{101, 102, 103, 104, 105, 106, 102, 104, 106, 9, 10, 11}));
}

TEST(Conv, SeveralPartsEqualEachAlone) {
  Random random(59);
  const uint64_t taps = 4;
  const uint64_t chans[] = {96, 33, 64};
  const auto w = random.values(taps * 96);
  on_every_lane([&](const Kernels& k) {
    std::vector<float> x[3], ring[3], y[3], ring_alone[3], y_alone[3];
    ConvArgs parts[3];
    for (size_t p = 0; p < 3; ++p) {
      Random own(60 + static_cast<uint32_t>(p));
      x[p] = own.values(chans[p]);
      ring[p] = ring_alone[p] = own.values(taps * chans[p]);
      y[p].resize(chans[p]);
      y_alone[p].resize(chans[p]);
      parts[p] = {.x = x[p].data(),
                  .w = w.data(),
                  .ring = ring[p].data(),
                  .y = y[p].data(),
                  .chan = chans[p],
                  .taps = taps,
                  .l2_width = p == 1 ? 0u : 32u,
                  .l2_eps = 1e-6f,
                  .silu = true};
    }
    const ConvPartsArgs all{.parts = parts, .count = 3};
    launch(k.conv_parts, all, items(all));
    std::vector<float> got;
    for (size_t p = 0; p < 3; ++p) {
      ConvArgs one = parts[p];
      one.ring = ring_alone[p].data();
      one.y = y_alone[p].data();
      launch(k.conv, one, items(one));
      EXPECT_TRUE(testing::same_bits(y[p], y_alone[p])) << "part " << p;
      EXPECT_TRUE(testing::same_bits(ring[p], ring_alone[p])) << "part " << p;
      got.insert(got.end(), y[p].begin(), y[p].end());
    }
    return got;
  });
}

TEST(Delta, OutputsInEveryForm) {
  Random random(61);
  const uint64_t d = 32, heads = 3, rows = 2, values = rows * heads * d;
  const auto q = random.values(values, 0.2f), k = random.values(values, 0.2f), v = random.values(values),
             z = random.values(values), norm = random.values(d), state = random.values(heads * d * d, 0.3f);
  const auto beta = random.between(rows * heads, 0, 1), alpha = random.between(rows * heads, 0.5f, 1);
  for (const Landing landing : kQuantizedLandings)
    on_every_lane([&](const Kernels& kernels) {
      Sink sink(landing, rows * heads, d);
      auto memory = state;
      std::vector<float> o(values);
      const DeltaArgs a{.q = q.data(),
                        .k = k.data(),
                        .v = v.data(),
                        .z = z.data(),
                        .beta = beta.data(),
                        .alpha = alpha.data(),
                        .norm = norm.data(),
                        .state = memory.data(),
                        .o = landing == Landing::Quantized ? o.data() : static_cast<float*>(sink.store().data),
                        .out = sink.store(),
                        .rows = rows,
                        .value_heads = heads,
                        .key_heads = heads,
                        .d = d,
                        .eps = 1e-6f};
      launch(kernels.delta_update, a, delta_update_items(a));
      launch(kernels.delta_norm, a, delta_norm_items(a));
      return sink.values();
    });
}

}  // namespace
}  // namespace tw::lane::cpu
