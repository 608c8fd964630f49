// Mixtures with all their fields, and folds, against their parts run apart.

#include <gtest/gtest.h>

#include "lane/cpu/testing/fused.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

// ---- mixtures ----

struct MixtureCase {
  Numerics numerics;
  uint64_t rows, d = 256;
  Format router = Format::F32;
  std::array<Format, 3> formats{Format::Q4_K, Format::Q8_0, Format::Q8_0};
  bool weigh_inputs = false;
};

// Fills in everything but the destination; its input is there in the forms that are read.
Moe mixture_of(TestSchedule& s, const MixtureCase& c) {
  Moe moe;
  moe.x = s.input("x", c.rows, c.d, test_values(c.rows * c.d, 7));
  if (quantizes(c.numerics)) s.add(Quant{moe.x, c.rows * c.d});
  moe.d = c.d, moe.rows = c.rows;
  moe.spec.experts = 6, moe.spec.used = 2, moe.spec.hidden = 64;
  moe.spec.weigh_inputs = c.weigh_inputs;
  moe.router_format = c.router;
  moe.formats = c.formats;
  moe.router = s.weight("router", c.router, 6, c.d, 1);
  moe.gate = s.weight("gate", c.formats[0], 6 * 64, c.d, 2);
  moe.up = s.weight("up", c.formats[1], 6 * 64, c.d, 3);
  moe.down = s.weight("down", c.formats[2], 6 * c.d, 64, 4);
  return moe;
}

template <class Product>
Product product_of(BufferId x, BufferId w, Format format, BufferId y, uint64_t k, uint64_t n, uint64_t m) {
  Product launch;
  launch.x = x, launch.w = w, launch.format = format, launch.y = own(y);
  launch.k = k, launch.n = n, launch.m = m;
  return launch;
}
void add_product(TestSchedule& s, BufferId x, BufferId w, Format format, BufferId y, uint64_t k, uint64_t n,
                 uint64_t m) {
  if (gguf::is_quantized(format))
    s.add(product_of<Gemv>(x, w, format, y, k, n, m));
  else
    s.add(product_of<GemvF32>(x, w, format, y, k, n, m));
}

struct SharedCase {
  std::array<Format, 3> formats;
  uint64_t hidden;
};

void expect_shared(const MixtureCase& c, const SharedCase& shared) {
  expect_as_apart(c.numerics, [&](TestSchedule& s, bool fused) {
    Moe moe = mixture_of(s, c);
    const BufferId x = moe.x;
    SharedExperts experts;
    experts.wg = s.weight("shared_gate", shared.formats[0], shared.hidden, c.d, 5);
    experts.wu = s.weight("shared_up", shared.formats[1], shared.hidden, c.d, 6);
    experts.wd = s.weight("shared_down", shared.formats[2], c.d, shared.hidden, 7);
    experts.formats = shared.formats;
    experts.hidden = shared.hidden;
    const BufferId y = s.computed("y", c.rows, c.d), routed = s.computed("routed", c.rows, c.d);
    const BufferId g = s.computed("g", c.rows, shared.hidden), u = s.computed("u", c.rows, shared.hidden);
    const BufferId h = s.computed("h", c.rows, shared.hidden), own_y = s.computed("own_y", c.rows, c.d);
    if (fused) {
      moe.shared = experts;
      moe.y = own(y);
      s.add(moe);
      return Watched{{y}, {}};
    }
    moe.y = own(routed);
    s.add(moe);
    add_product(s, x, experts.wg, shared.formats[0], g, c.d, shared.hidden, c.rows);
    add_product(s, x, experts.wu, shared.formats[1], u, c.d, shared.hidden, c.rows);
    s.add(SwiGlu{g, u, h, {}, c.rows * shared.hidden});
    if (reads_quantized(c.numerics, shared.formats[2])) s.add(Quant{h, c.rows * shared.hidden});
    add_product(s, h, experts.wd, shared.formats[2], own_y, shared.hidden, c.d, c.rows);
    Binary sum;
    sum.a = routed, sum.b = own_y, sum.out = y, sum.n = c.rows * c.d;
    s.add(sum);
    return Watched{{y}, {}};
  });
}

TEST(FusedMixtures, SharedExpertsAreANetworkOfTheirOwnAddedAfterTheSum) {
  for (const Numerics numerics : kTestNumerics)
    for (const uint64_t rows : {1, 2, 17}) {
      SCOPED_TRACE(fmt::format("{} rows {}", name(numerics), rows));
      expect_shared({numerics, rows}, {{Format::Q4_K, Format::Q6_K, Format::Q8_0}, 96});
      expect_shared({numerics, rows, 256, Format::F32, {Format::F16, Format::F16, Format::F16}},
                    {{Format::Q8_0, Format::Q8_0, Format::Q4_0}, 32});
      expect_shared({numerics, rows, 256, Format::Q8_0}, {{Format::F32, Format::F16, Format::BF16}, 33});
      expect_shared({numerics, rows, 256, Format::F32, {Format::Q8_0, Format::Q8_0, Format::Q8_0}, true},
                    {{Format::MXFP4, Format::Q8_0, Format::IQ4_XS}, 256});
    }
}

// Nothing but the choice is one thread's work: with one row it follows the logits, else the choice is by rows and only
// the grouping follows it.
TEST(FusedMixtures, AreSharedOutToTheThreads) {
  for (const uint64_t rows : {1, 5}) {
    const MixtureCase c{Numerics::Int8, rows};
    TestSchedule s(c.numerics);
    Moe moe = mixture_of(s, c);
    moe.y = own(s.computed("y", rows, c.d));
    s.add(moe);
    std::vector<size_t> followers;
    const auto result = s.try_run(best_isa(), 2, [&](const Program& program) {
      for (const Call& call : program.calls())
        if (call.launch == 1) followers.push_back(call.followers.size());
    });
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(followers, rows == 1 ? (std::vector<size_t>{2, 0, 0, 0}) : (std::vector<size_t>{0, 1, 0, 0, 0}));
  }
}

TEST(FusedMixtures, LandInRowsOfATable) {
  for (const Dtype type : {Dtype::F32, Dtype::F16})
    for (const uint64_t rows : {1, 5}) {
      const MixtureCase c{Numerics::Int8, rows};
      TestSchedule s(c.numerics);
      Moe moe = mixture_of(s, c);
      const BufferId plain = s.computed("y", rows, c.d), table = s.state("table", 9, c.d, type);
      moe.y = own(plain);
      s.add(moe);
      moe.y.buf = table;
      moe.y.row = RowAt{s.integers("at", {4}), 0, c.d};
      s.add(moe);
      const RunResult got = s.run(best_isa(), 2);
      const std::vector<float> want =
          placed(std::vector<float>(9 * c.d), type, 3, c.d, std::nullopt, got.plain(plain), c.d);
      EXPECT_TRUE(testing::same_bits(got.plain(table), want));
    }
}

// ---- folds ----

// A norm whose operand `added` is x or the added one, with the fields that `kind` turns on.
struct NormCase {
  bool added = false, sum = false, pre = false, layer = false;
  bool quantized = false;  // beside the plain result, where the numerics and the width allow
  uint64_t heads = 1;      // a row is normed as so many
};
constexpr NormCase kNorms[] = {{},
                               {.added = true, .sum = true},
                               {.added = true, .sum = true, .pre = true},
                               {.layer = true},
                               {.added = true, .quantized = true}};

// The norm of `rows` rows of `cols` values of `made`, and what it writes.
struct NormOf {
  Norm launch;
  Watched results;
};
NormOf norm_of(TestSchedule& s, Numerics numerics, const NormCase& c, BufferId made, uint64_t rows, uint64_t cols) {
  NormOf norm;
  Norm& l = norm.launch;
  l.rows = rows * c.heads, l.cols = cols / c.heads, l.eps = 1e-5F;
  l.w = s.constant("norm_w", 1, l.cols, test_values(l.cols, 31));
  l.out = s.computed("normed", rows, cols);
  norm.results.plain.push_back(l.out);
  l.x = made;
  if (c.added) {
    l.x = s.input("residual", rows, cols, test_values(rows * cols, 32));
    l.add = made;
  }
  if (c.sum) norm.results.plain.push_back(l.sum = s.computed("sum", rows, cols));
  if (c.pre) l.pre = PreNorm{s.constant("pre_w", 1, l.cols, test_values(l.cols, 33)), 1e-6F};
  if (c.layer) l.norm = graph::NormKind::Layer;
  if (c.quantized && quantizes(numerics) && l.cols % kQuantBlock == 0) {
    l.forms.quantized = true;
    norm.results.quantized.push_back(l.out);
  }
  return norm;
}

// Adds both launches, or their fold.
void add_both(TestSchedule& s, bool fused, const Launch& first, const Launch& then) {
  if (fused) return s.add(Fold{{first, then}});
  s.add(first);
  s.add(then);
}

TEST(Folds, TheNormOfAProductRunsWhereItsLastOutputsAreMade) {
  for (const Format format : {Format::Q4_K, Format::Q8_0, Format::NVFP4, Format::F16})
    for (const Numerics numerics : kTestNumerics)
      for (const NormCase& norm : kNorms)
        for (const uint64_t n : {1, 17, 160, 1030})
          for (const uint64_t m : {1, 3}) {
            SCOPED_TRACE(fmt::format("{} {} n {} m {}", gguf::name(format), name(numerics), n, m));
            expect_as_apart(numerics, [&](TestSchedule& s, bool fused) {
              const BufferId x = s.input("x", m, 256, test_values(m * 256, 1));
              if (reads_quantized(numerics, format)) s.add(Quant{x, m * 256});
              const BufferId y = s.computed("y", m, n);
              const NormOf then = norm_of(s, numerics, norm, y, m, n);
              const BufferId w = s.weight("w", format, n, 256, 2);
              Launch product = product_of<Gemv>(x, w, format, y, 256, n, m);
              if (!gguf::is_quantized(format)) product = product_of<GemvF32>(x, w, format, y, 256, n, m);
              add_both(s, fused, product, then.launch);
              Watched watched = then.results;
              watched.plain.push_back(y);
              return watched;
            });
          }
}

// Two products of one activation, heads and one key, rotated, the key into its cache.
TEST(Folds, TheRotationOfProductsRunsWhereTheLastOfAllIsMade) {
  constexpr uint64_t kHeads = 3, kWidth = 24, kOut = kHeads * kWidth;
  for (const Format format : {Format::Q4_K, Format::Q6_K, Format::TQ2_0, Format::BF16})
    for (const Numerics numerics : kTestNumerics)
      for (const uint64_t m : {1, 17}) {
        SCOPED_TRACE(fmt::format("{} {} m {}", gguf::name(format), name(numerics), m));
        expect_as_apart(numerics, [&](TestSchedule& s, bool fused) {
          const BufferId x = s.input("x", m, 256, test_values(m * 256, 1));
          if (reads_quantized(numerics, format)) s.add(Quant{x, m * 256});
          GemmParts products;
          products.x = x, products.format = format, products.k = 256, products.m = m;
          const BufferId heads = s.computed("heads", m, kOut), unrotated = s.computed("keys", m, kWidth);
          products.parts.push_back({s.weight("wq", format, kOut, 256, 2), kNoBuffer, own(heads), kOut});
          products.parts.push_back({s.weight("wk", format, kWidth, 256, 3), kNoBuffer, own(unrotated), kWidth});
          RopeParts rope;
          rope.cos = s.constant("cos", 40, kWidth / 2, test_values(40 * kWidth / 2, 4));
          rope.sin = s.constant("sin", 40, kWidth / 2, test_values(40 * kWidth / 2, 5));
          rope.position = s.integers("at", {6});
          rope.width = kWidth, rope.half = kWidth / 2;
          RopeSide queries, keys;
          queries.x = heads, queries.y = own(s.computed("rotated", m, kOut));
          queries.norm = HeadNorm{s.constant("head_w", 1, kWidth, test_values(kWidth, 6)), 1e-5F};
          queries.heads = m * kHeads, queries.per_row = kHeads;
          keys.x = unrotated, keys.heads = m, keys.per_row = 1;
          keys.y.buf = s.state("cache", 40, kWidth, Dtype::F16, {lane::Layout::Kind::KeyBlocks, 1, kWidth});
          keys.y.row = RowAt{rope.position, 0, kWidth};
          rope.sides = {queries, keys};
          add_both(s, fused, products, rope);
          return Watched{{heads, unrotated, queries.y.buf, keys.y.buf}, {}};
        });
      }
}

TEST(Folds, GatheredRowsAreNormedAsTheyCome) {
  for (const uint64_t rows : {1, 2, 19})
    for (const bool checkpoint : {true, false})
      for (const uint64_t heads : {1, 4})
        expect_as_apart(Numerics::Int8, [&](TestSchedule& s, bool fused) {
          std::vector<int32_t> ids(rows);
          for (uint64_t r = 0; r < rows; ++r) ids[r] = static_cast<int32_t>(1 + r * 5 % 11);
          Gather gather;
          gather.index = s.integers("ids", ids);
          gather.table = checkpoint ? s.weight("table", Format::Q6_K, 11, 256, 4)
                                    : s.constant("table", 11, 256, test_values(11 * 256, 4));
          if (checkpoint) gather.format = Format::Q6_K;
          gather.cols = 256, gather.rows = rows, gather.scale = 1.5F;
          gather.out = s.computed("rows", rows, 256);
          const NormOf then = norm_of(s, Numerics::Int8, {.heads = heads}, gather.out, rows, 256);
          add_both(s, fused, gather, then.launch);
          Watched watched = then.results;
          watched.plain.push_back(gather.out);
          return watched;
        });
}

TEST(Folds, AMixtureIsNormedRowByRow) {
  for (const Numerics numerics : kTestNumerics)
    for (const uint64_t rows : {1, 3, 17})
      for (const NormCase& norm : kNorms)
        expect_as_apart(numerics, [&](TestSchedule& s, bool fused) {
          const MixtureCase c{numerics, rows};
          Moe moe = mixture_of(s, c);
          moe.y = own(s.computed("y", rows, c.d));
          const NormOf then = norm_of(s, numerics, norm, moe.y.buf, rows, c.d);
          add_both(s, fused, moe, then.launch);
          Watched watched = then.results;
          watched.plain.push_back(moe.y.buf);
          return watched;
        });
}

TEST(Folds, AMixtureIsSummedWithAnotherArrayAndNormed) {
  for (const uint64_t rows : {1, 3, 17})
    for (const NormCase& norm : kNorms)
      for (const uint64_t row : {0, 256})
        for (const bool scalar : {false, true}) {
          if (row == 0 && scalar) continue;
          expect_as_apart(Numerics::Int8, [&](TestSchedule& s, bool fused) {
            const MixtureCase c{Numerics::Int8, rows};
            Moe moe = mixture_of(s, c);
            moe.y = own(s.computed("y", rows, c.d));
            const uint64_t other = row == 0 ? rows * c.d : scalar ? rows : row;
            Binary sum;
            sum.a = moe.y.buf;
            sum.b = s.input("other", 1, other, test_values(other, 9));
            sum.out = s.computed("total", rows, c.d);
            sum.row = row, sum.scalar = scalar, sum.n = rows * c.d;
            const NormOf then = norm_of(s, Numerics::Int8, norm, sum.out, rows, c.d);
            if (fused) {
              s.add(Fold{{Fold{{moe, sum}}, then.launch}});
            } else {
              s.add(moe);
              s.add(sum);
              s.add(then.launch);
            }
            Watched watched = then.results;
            watched.plain.push_back(sum.out);
            watched.plain.push_back(moe.y.buf);
            return watched;
          });
        }
}

TEST(Folds, WhatFollowsWaitsForAFold) {
  std::vector<float> want;
  for (const uint32_t threads : {1, 2, 3}) {
    TestSchedule s(Numerics::Int8);
    const BufferId x = s.input("x", 1, 256, test_values(256, 1)), y = s.computed("y", 1, 320);
    const NormOf then = norm_of(s, Numerics::Int8, {}, y, 1, 320);
    s.add(Quant{x, 256});
    const BufferId w = s.weight("w", Format::Q8_0, 320, 256, 2), v = s.weight("v", Format::Q8_0, 320, 320, 3);
    s.add(Fold{{product_of<Gemv>(x, w, Format::Q8_0, y, 256, 320, 1), then.launch}});
    s.add(Quant{then.launch.out, 320});
    const BufferId z = s.computed("z", 1, 320);
    s.add(product_of<Gemv>(then.launch.out, v, Format::Q8_0, z, 320, 320, 1));
    const std::vector<float> got = s.run(best_isa(), threads).plain(z);
    if (threads == 1) want = got;
    EXPECT_TRUE(testing::same_bits(got, want)) << threads;
  }
}

TEST(Folds, RefuseALeaderThatIsNotOneCall) {
  TestSchedule s(Numerics::Int8);
  const BufferId a = s.input("a", 1, 8, test_values(8, 1)), out = s.computed("out", 1, 8);
  Unary unary;
  unary.x = a, unary.y = s.computed("t", 1, 8), unary.n = 8;
  s.add(Fold{{unary, Scale{unary.y, out, 2, 8}}});
  const auto result = s.try_run(Isa::Scalar);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(to_text(result.refusal()),
            "launch 0 (gemv_norm): the CPU lane has no kernel for it: nothing is folded into a unary");
}

}  // namespace
}  // namespace tw::lane::cpu
