// Products with all their fields, against the plain launches that they stand for.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/math_contract.h"
#include "gguf/decode.h"
#include "lane/cpu/testing/fused.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

// What products of one activation share, in a schedule.
struct Input {
  Numerics numerics;
  Format format;
  uint64_t k, m, seed;
  BufferId x = kNoBuffer;

  void add(TestSchedule& s) {
    x = s.input("x", m, k, test_values(m * k, seed));
    if (reads_quantized(numerics, format)) s.add(Quant{x, m * k});
  }
  [[nodiscard]] Launch product(BufferId w, BufferId bias, const Dst& y, uint64_t n, OutForms forms = {}) const {
    if (!gguf::is_quantized(format)) {
      GemvF32 launch;
      launch.x = x, launch.w = w, launch.bias = bias, launch.format = format, launch.y = y;
      launch.k = k, launch.n = n, launch.m = m;
      return launch;
    }
    Gemv launch;
    launch.x = x, launch.w = w, launch.bias = bias, launch.format = format, launch.y = y, launch.out = forms;
    launch.k = k, launch.n = n, launch.m = m;
    return launch;
  }
};

// Calls body(input, shapes) for every format and numerics with shapes of its own.
template <class Body>
void each_input(uint64_t seed, int times, Body body) {
  for (const Format format : kTestFormats)
    for (const Numerics numerics : kTestNumerics)
      for (int i = 0; i < times; ++i) {
        Shapes shapes(seed + 97 * static_cast<uint64_t>(i) + static_cast<uint64_t>(format) * 7 +
                      static_cast<uint64_t>(numerics));
        const uint64_t k = shapes.inputs(format), m = shapes.rows();
        const Input input{numerics, format, k, m, shapes.seed()};
        SCOPED_TRACE(fmt::format("{} {} k {} m {}", gguf::name(format), name(numerics), k, m));
        ASSERT_NO_FATAL_FAILURE(body(input, shapes));
      }
}

BufferId bias_of(TestSchedule& s, const std::string& name, uint64_t n, bool wanted) {
  return wanted ? s.constant(name, 1, n, test_values(n, n + 5)) : kNoBuffer;
}

// ---- where results land ----

struct Table {
  Dtype dtype;
  lane::Layout layout;
};
constexpr uint64_t kHeads = 3, kHeadWidth = 20, kCols = kHeads * kHeadWidth;
const Table kTables[] = {
    {Dtype::F32, {}},
    {Dtype::BF16, {}},
    {Dtype::F16, {lane::Layout::Kind::KeyBlocks, kHeads, kHeadWidth}},
    {Dtype::F16, {lane::Layout::Kind::ValueRows, kHeads, kHeadWidth}},
    {Dtype::F32, {lane::Layout::Kind::KeyBlocks, kHeads, kHeadWidth}},
};
// Values that every type holds.
std::vector<float> exact_values(uint64_t count) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 61) - 30;
  return values;
}

// A product whose `width` outputs land by `dst` in a table of `table_rows` rows, against the plain product placed by
// hand.
void expect_lands(Input input, const Table& table, std::optional<int32_t> position, uint32_t fixed,
                  std::optional<Part> unit, uint64_t width) {
  const uint64_t units = input.m;
  const Part part = unit.value_or(Part{width, 0});
  const uint64_t first_row = position ? static_cast<uint64_t>(*position) - 1 : fixed - 1;
  const uint64_t table_rows = first_row + (units * part.pitch + kCols - 1) / kCols + 1;
  const std::vector<float> before = exact_values(table_rows * kCols);
  TestSchedule plain(input.numerics), landing(input.numerics);
  input.add(plain);
  const BufferId y = plain.computed("y", units, width);
  plain.add(input.product(plain.weight("w", input.format, width, input.k, 3), bias_of(plain, "b", width, true), own(y),
                          width));
  input.add(landing);
  Dst dst;
  dst.buf = landing.state("table", table_rows, kCols, table.dtype, table.layout, before);
  dst.row = RowAt{position ? landing.integers("at", {*position}) : kNoBuffer, fixed, kCols};
  dst.unit = unit;
  landing.add(input.product(landing.weight("w", input.format, width, input.k, 3), bias_of(landing, "b", width, true),
                            dst, width));
  const std::vector<float> want =
      placed(before, table.dtype, first_row, kCols, unit, plain.run(Isa::Scalar).plain(y), width);
  for (const Isa isa : kIsas)
    for (const uint32_t threads : {1, 3}) {
      if (!supported(isa)) continue;
      ASSERT_TRUE(testing::same_bits(landing.run(isa, threads).plain(dst.buf), want))
          << name(isa) << ", threads " << threads << ", layout " << static_cast<int>(table.layout.kind);
    }
}

TEST(FusedProducts, LandInRowsOfTablesAndCaches) {
  for (const Format format : {Format::Q4_K, Format::F16, Format::TQ2_0})
    for (const Numerics numerics : kTestNumerics)
      for (const uint64_t m : {1, 5, 17})
        for (const Table& table : kTables) {
          SCOPED_TRACE(fmt::format("{} {} m {}", gguf::name(format), name(numerics), m));
          ASSERT_NO_FATAL_FAILURE(expect_lands({numerics, format, 256, m, 1}, table, 14, 0, std::nullopt, kCols));
        }
  expect_lands({Numerics::Int8, Format::Q8_0, 64, 3, 1}, kTables[0], std::nullopt, 6, std::nullopt, kCols);
  expect_lands({Numerics::Int8, Format::Q8_0, 64, 2, 1}, kTables[2], 16, 0, std::nullopt, 2 * kCols);
}

TEST(FusedProducts, LandInUnitsOfSelectedRows) {
  for (const Table& table : kTables) {
    ASSERT_NO_FATAL_FAILURE(
        expect_lands({Numerics::Int8, Format::Q8_0, 64, 7, 1}, table, 31, 0, Part{kHeadWidth, 13}, 7));
    ASSERT_NO_FATAL_FAILURE(
        expect_lands({Numerics::Precise, Format::F32, 33, 4, 1}, table, std::nullopt, 2, Part{kCols, 5}, 40));
  }
}

TEST(FusedProducts, LandInUnitsOfATensor) {
  each_input(300, 1, [](Input input, Shapes& shapes) {
    const uint64_t n = shapes.outputs(), pitch = n + 3;
    TestSchedule s(input.numerics);
    input.add(s);
    const BufferId w = s.weight("w", input.format, n, input.k, 4);
    const BufferId plain = s.computed("plain", input.m, n);
    const Dtype type = shapes.coin() ? Dtype::F16 : Dtype::F32;
    Dst dst;
    dst.buf = s.computed("units", input.m, pitch, type);
    dst.unit = Part{pitch, 2};
    s.add(input.product(w, kNoBuffer, own(plain), n));
    s.add(input.product(w, kNoBuffer, dst, n));
    const RunResult result = s.run(best_isa(), 2);
    for (uint64_t r = 0; r < input.m; ++r)
      for (uint64_t o = 0; o < n; ++o) {
        const float want = rounded(type, result.plain(plain)[r * n + o]);
        ASSERT_EQ(result.plain(dst.buf)[r * pitch + 2 + o], want) << r << ' ' << o;
      }
  });
}

// ---- quantized results ----

TEST(FusedProducts, QuantizeTheirResultAsALaunchOfItsOwn) {
  each_input(400, 2, [](Input input, Shapes& shapes) {
    if (!reads_quantized(input.numerics, input.format)) return;
    const uint64_t n = shapes.blocks_of_outputs();
    const bool plain = shapes.coin(), bias = shapes.coin();
    expect_as_apart(input.numerics, [&](TestSchedule& s, bool fused) {
      Input here = input;
      here.add(s);
      const BufferId w = s.weight("w", input.format, n, input.k, 5), b = bias_of(s, "b", n, bias);
      const BufferId y = s.computed("y", input.m, n);
      s.add(here.product(w, b, own(y), n, {!fused || plain, fused}));
      if (!fused) s.add(Quant{y, input.m * n});
      return Watched{plain ? std::vector{y} : std::vector<BufferId>{}, {y}};
    });
  });
}

// ---- parts ----

TEST(FusedProducts, PartsAreTheirProducts) {
  each_input(500, 2, [](Input input, Shapes& shapes) {
    const uint64_t n[] = {shapes.outputs(), kCols, shapes.outputs(), 33};
    const bool with_bias = shapes.coin();
    expect_as_apart(input.numerics, [&](TestSchedule& s, bool fused) {
      Input here = input;
      here.add(s);
      GemmParts parts;
      parts.x = here.x, parts.format = input.format, parts.k = input.k, parts.m = input.m;
      Watched watched;
      for (uint64_t p = 0; p < 4; ++p) {
        GemmPart part;
        part.w = s.weight(fmt::format("w{}", p), input.format, n[p], input.k, p);
        part.bias = bias_of(s, fmt::format("b{}", p), n[p], with_bias && p != 2);
        part.n = n[p];
        if (p == 1) {
          part.y.buf =
              s.state("cache", 3 + input.m, kCols, Dtype::F16, {lane::Layout::Kind::KeyBlocks, kHeads, kHeadWidth});
          part.y.row = RowAt{s.integers("at", {3}), 0, kCols};
        } else {
          part.y.buf = s.computed(fmt::format("y{}", p), input.m, n[p]);
        }
        watched.plain.push_back(part.y.buf);
        parts.parts.push_back(part);
        if (!fused) s.add(here.product(part.w, part.bias, part.y, part.n));
      }
      if (fused) s.add(parts);
      return watched;
    });
  });
}

TEST(FusedProducts, OnePartIsAProduct) {
  expect_as_apart(Numerics::Int8, [](TestSchedule& s, bool fused) {
    Input input{Numerics::Int8, Format::Q6_K, 256, 2, 1};
    input.add(s);
    GemmParts parts;
    parts.x = input.x, parts.format = input.format, parts.k = 256, parts.m = 2;
    parts.parts.push_back({s.weight("w", input.format, 5, 256, 1), kNoBuffer, own(s.computed("y", 2, 5)), 5});
    if (fused)
      s.add(parts);
    else
      s.add(input.product(parts.parts[0].w, kNoBuffer, parts.parts[0].y, 5));
    return Watched{{parts.parts[0].y.buf}, {}};
  });
}

// ---- gates ----

constexpr graph::MoeAct kActs[] = {{graph::MoeAct::Kind::SwiGlu, 0, 0},
                                   {graph::MoeAct::Kind::GeGlu, 0, 0},
                                   {graph::MoeAct::Kind::ClampedSwiGlu, 7, 1.702F}};

float activated(const graph::MoeAct& act, float g, float u) {
  if (act.kind == graph::MoeAct::Kind::SwiGlu) return math::silu(g) * u;
  if (act.kind == graph::MoeAct::Kind::GeGlu) return math::gelu(g) * u;
  const float gate = std::min(g, act.limit), up = std::clamp(u, -act.limit, act.limit);
  return gate * math::sigmoid(act.slope * gate) * (up + 1.0F);
}

// Both products through the gate against the products alone, activated here and quantized by a launch.
TEST(FusedProducts, GatedPairsAreTheirProductsActivated) {
  each_input(600, 2, [](Input input, Shapes& shapes) {
    // The up matrix has another format in every second case, of the same width of blocks.
    const Format up_format = !gguf::is_quantized(input.format) ? Format::F16
                             : shapes.coin()                   ? Format::Q8_0
                                                               : input.format;
    const bool quantized = quantizes(input.numerics) && shapes.coin(), plain = !quantized || shapes.coin();
    const uint64_t n = quantized ? shapes.blocks_of_outputs() : shapes.outputs();
    const graph::MoeAct act = kActs[shapes.seed() % 3];
    const bool biases = shapes.coin();
    TestSchedule apart(input.numerics), fused(input.numerics), quant(input.numerics);
    const auto make = [&](TestSchedule& s) {
      Input here = input;
      here.add(s);
      GemvGlu glu;
      glu.x = here.x;
      glu.wg = s.weight("wg", input.format, n, input.k, 8), glu.wu = s.weight("wu", up_format, n, input.k, 9);
      glu.bg = bias_of(s, "bg", n, biases), glu.bu = bias_of(s, "bu", n, biases);
      glu.formats = {input.format, up_format};
      glu.act = act;
      glu.forms = {plain, quantized};
      glu.k = input.k, glu.n = n, glu.m = input.m;
      return glu;
    };
    const GemvGlu parts = make(apart);
    const BufferId g = apart.computed("g", input.m, n), u = apart.computed("u", input.m, n);
    Input gate = input, up = input;
    gate.x = up.x = parts.x;
    up.format = up_format;
    apart.add(gate.product(parts.wg, parts.bg, own(g), n));
    apart.add(up.product(parts.wu, parts.bu, own(u), n));
    const RunResult products = apart.run(Isa::Scalar);
    std::vector<float> want;
    for (uint64_t i = 0; i < input.m * n; ++i)
      want.push_back(activated(act, products.plain(g)[i], products.plain(u)[i]));
    const BufferId values = quant.input("values", input.m, n, want);
    std::vector<std::byte> want_quantized;
    if (quantized) {
      quant.add(Quant{values, input.m * n});
      want_quantized = quant.run(Isa::Scalar).quantized(values);
    }
    GemvGlu glu = make(fused);
    glu.out = fused.computed("out", input.m, n);
    fused.add(glu);
    for (const Isa isa : kIsas)
      for (const uint32_t threads : {1, 2, 3}) {
        if (!supported(isa)) continue;
        const RunResult got = fused.run(isa, threads);
        if (plain) {
          ASSERT_TRUE(testing::same_bits(got.plain(glu.out), want)) << name(isa) << " n " << n;
        }
        if (quantized) {
          ASSERT_EQ(got.quantized(glu.out), want_quantized) << name(isa) << " n " << n;
        }
      }
  });
}

TEST(FusedProducts, GatesOfARowAreTwoProductsAndTheGates) {
  for (const Format format : {Format::F32, Format::F16, Format::BF16})
    for (const Numerics numerics : kTestNumerics)
      for (const uint64_t heads : {1, 16, 33})
        for (const uint64_t k : {1, 65, 512})
          expect_as_apart(numerics, [&](TestSchedule& s, bool fused) {
            Input input{numerics, format, k, 1, 2};
            input.add(s);
            GateProj l;
            l.x = input.x;
            l.wb = s.weight("wb", format, heads, k, 1), l.wa = s.weight("wa", format, heads, k, 2);
            l.bias = s.constant("bias", 1, heads, test_values(heads, 3));
            l.rate = s.constant("rate", 1, heads, test_values(heads, 4));
            l.beta = s.computed("beta", 1, heads), l.decay = s.computed("decay", 1, heads);
            l.k = k, l.heads = heads;
            const BufferId br = s.computed("br", 1, heads), ar = s.computed("ar", 1, heads);
            if (fused) {
              s.add(l);
            } else {
              s.add(input.product(l.wb, kNoBuffer, own(br), heads));
              s.add(input.product(l.wa, kNoBuffer, own(ar), heads));
              s.add(Gates{br, ar, l.bias, l.rate, l.beta, l.decay, heads, heads});
            }
            return Watched{{l.beta, l.decay}, {}};
          });
}

// ---- heads ----

struct HeadCase {
  uint64_t m, heads, a, b;
  bool shared, strided, rows_out;
  std::optional<int32_t> upto;
  Dtype x_type = Dtype::F32;
};

// The values in f64, of activations as they are stored and weights as they are read.
void expect_heads(Format format, Numerics numerics, const HeadCase& c) {
  const uint64_t units = c.shared ? c.m : c.m * c.heads;
  const Part part = c.strided ? Part{c.a + 5, 3} : Part{c.a, 0};
  std::vector<float> x = test_values(units * part.pitch, 11);
  for (float& value : x) value = rounded(c.x_type, value);
  TestSchedule s(numerics);
  HeadGemv l;
  l.x = c.x_type == Dtype::F32 ? s.input("x", units, part.pitch, x) : s.state("x", units, part.pitch, c.x_type, {}, x);
  l.w = c.rows_out ? s.weight("w", format, c.heads * c.b, c.a, 12) : s.weight("w", format, c.heads * c.a, c.b, 12);
  if (c.strided) l.part = part;
  l.format = format;
  l.m = c.m, l.heads = c.heads, l.a = c.a, l.b = c.b;
  l.rows_out = c.rows_out, l.shared = c.shared;
  if (c.upto) l.upto = s.integers("upto", {*c.upto}), l.upto_count = 2;
  l.y = own(s.computed("y", c.m, c.heads * c.b));
  s.add(l);
  const uint64_t live = c.upto ? std::min<uint64_t>(c.m, static_cast<uint64_t>(*c.upto) + 2) : c.m;
  const graph::Rows& rows = s.rows(l.w);
  std::vector<float> w(rows.count * rows.row_values);
  for (uint64_t r = 0; r < rows.count; ++r)
    gguf::dequantize(format, rows.row(r), w.data() + r * rows.row_values, rows.row_values);
  RunResult first = s.run(Isa::Scalar);
  for (const Isa isa : kIsas) {
    if (!supported(isa)) continue;
    ASSERT_TRUE(testing::same_bits(s.run(isa, 3).plain(l.y.buf), first.plain(l.y.buf)));
  }
  float unwritten;
  std::memset(&unwritten, RunResult::kUnwritten, sizeof unwritten);
  for (uint64_t r = 0; r < c.m; ++r)
    for (uint64_t h = 0; h < c.heads; ++h)
      for (uint64_t o = 0; o < c.b; ++o) {
        const float got = first.plain(l.y.buf)[(r * c.heads + h) * c.b + o];
        if (r >= live) {
          ASSERT_EQ(got, unwritten) << "row " << r << " is not live";
          continue;
        }
        double sum = 0, magnitude = 0;
        for (uint64_t e = 0; e < c.a; ++e) {
          const double weight = w[c.rows_out ? (h * c.b + o) * c.a + e : (h * c.a + e) * c.b + o];
          const double value = x[(c.shared ? r : r * c.heads + h) * part.pitch + part.offset + e];
          sum += weight * value;
          magnitude += std::abs(weight * value);
        }
        ASSERT_NEAR(got, sum, magnitude * 1e-5 + 1e-30) << r << ' ' << h << ' ' << o;
      }
}

TEST(FusedProducts, HeadsReadPartsSharedRowsAndOnlyLiveOnes) {
  for (const Format format : {Format::Q8_0, Format::F32, Format::F16, Format::Q4_K})
    for (const Numerics numerics : kTestNumerics) {
      const uint64_t a = format == Format::Q4_K ? 256 : 64, b = format == Format::Q4_K ? 256 : 32;
      for (const HeadCase& c : {HeadCase{1, 3, a, 17, false, true, true}, HeadCase{17, 2, a, 33, true, false, true},
                                HeadCase{5, 4, 20, b, false, true, false}, HeadCase{9, 2, a, 16, true, true, true, 3},
                                HeadCase{100, 2, a, 5, false, false, true, 95, Dtype::F16},
                                HeadCase{70, 1, 33, b, true, true, false, std::nullopt, Dtype::BF16}}) {
        SCOPED_TRACE(fmt::format("{} {} m {} heads {}", gguf::name(format), name(numerics), c.m, c.heads));
        ASSERT_NO_FATAL_FAILURE(expect_heads(format, numerics, c));
      }
    }
}

TEST(FusedProducts, HeadsLandInPartsOfRows) {
  constexpr uint64_t kM = 3, kA = 32, kB = 12, kPitch = kHeadWidth;
  const std::vector<float> before = exact_values(40 * kCols);
  for (const Table& table : kTables) {
    TestSchedule s(Numerics::Int8);
    HeadGemv l;
    l.x = s.input("x", kM, kHeads * kA, test_values(kM * kHeads * kA, 1));
    l.w = s.weight("w", Format::Q8_0, kHeads * kB, kA, 2);
    l.format = Format::Q8_0;
    l.m = kM, l.heads = kHeads, l.a = kA, l.b = kB;
    l.y = own(s.computed("y", kM, kHeads * kB));
    s.add(l);
    const BufferId plain = l.y.buf;
    l.y.buf = s.state("table", 40, kCols, table.dtype, table.layout, before);
    l.y.row = RowAt{s.integers("at", {15}), 0, kCols};
    l.y.unit = Part{kPitch, 8};
    s.add(l);
    for (const Isa isa : kIsas) {
      if (!supported(isa)) continue;
      const RunResult got = s.run(isa, 3);
      ASSERT_TRUE(testing::same_bits(got.plain(l.y.buf),
                                     placed(before, table.dtype, 14, kCols, l.y.unit, got.plain(plain), kB)));
    }
  }
}

// ---- refusals ----

TEST(FusedProducts, RefuseACacheThatIsNotWrittenByItsRows) {
  TestSchedule s(Numerics::Int8);
  Input input{Numerics::Int8, Format::Q8_0, 32, 1, 1};
  input.add(s);
  const BufferId cache = s.state("cache", 4, kCols, Dtype::F16, {lane::Layout::Kind::KeyBlocks, kHeads, kHeadWidth});
  Dst dst;
  dst.buf = cache;
  dst.unit = Part{kCols, 0};
  s.add(input.product(s.weight("w", Format::Q8_0, kCols, 32, 1), kNoBuffer, dst, kCols));
  const auto result = s.try_run(Isa::Scalar);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(
      to_text(result.refusal()),
      "launch 1 (gemv_q8): the CPU lane has no kernel for it: it writes cache, which is laid out as a cache, other "
      "than by its rows");
}

}  // namespace
}  // namespace tw::lane::cpu
