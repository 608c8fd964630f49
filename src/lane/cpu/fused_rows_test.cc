// Launches over rows and elements with their fused fields, against the launches that they stand for.

#include "lane/cpu/testing/apart.h"
#include "lane/cpu/testing/fused.h"

namespace tw::lane::cpu {
namespace {

using testing::cache;
using testing::CacheForm;
using testing::expect_fused_equals_apart;
using testing::Form;
using testing::kCacheForms;

struct RowNorm {
  uint64_t rows = 3, cols = 64;
  bool part = false, add = false, pre = false, sum = false, weighted = true;
  bool plain = true, quantized = false;
  graph::NormKind kind = graph::NormKind::Rms;
};

// sum and the norm of V, as a Slice, a norm of the addend, an addition, the norm and a quantization.
Form norm_form(const RowNorm& c, Numerics numerics, bool fused) {
  Form f{TestSchedule(numerics)};
  TestSchedule& s = f.schedule;
  const uint64_t n = c.rows * c.cols, every = c.part ? c.cols + 7 : c.cols;
  const BufferId x = s.input("x", c.rows, every, test_values(c.rows * every, 1));
  const BufferId add = s.input("add", c.rows, c.cols, test_values(n, 2));
  const BufferId w = s.constant("w", 1, c.cols, test_values(c.cols, 3));
  const BufferId pre_w = s.constant("pre_w", 1, c.cols, test_values(c.cols, 4));
  const BufferId bias = s.constant("bias", 1, c.cols, test_values(c.cols, 5));
  Norm norm{.x = x, .out = s.computed("out", c.rows, c.cols), .norm = c.kind, .rows = c.rows, .cols = c.cols};
  norm.eps = 1e-5f;
  if (c.weighted) norm.w = w, norm.bias = bias;
  const BufferId sum = c.sum ? s.computed("sum", c.rows, c.cols) : kNoBuffer;
  const uint64_t from = c.part ? 5 : 0;
  if (fused) {
    if (c.part) norm.part = Part{every, from};
    if (c.add) norm.add = add;
    if (c.pre) norm.pre = PreNorm{pre_w, 1e-6f};
    norm.sum = sum;
    norm.forms = {c.plain, c.quantized};
    s.add(norm);
  } else {
    if (c.part) {
      norm.x = s.computed("slice", c.rows, c.cols);
      s.add(Slice{x, norm.x, c.rows, every, from, c.cols});
    }
    BufferId added = add;
    if (c.pre) {
      added = s.computed("normed", c.rows, c.cols);
      s.add(Norm{.x = add, .w = pre_w, .out = added, .rows = c.rows, .cols = c.cols, .eps = 1e-6f});
    }
    if (c.add) {
      const BufferId v = c.sum ? sum : s.computed("v", c.rows, c.cols);
      s.add(Binary{.a = norm.x, .b = added, .out = v, .n = n});
      norm.x = v;
    }
    s.add(norm);
    if (c.quantized) s.add(Quant{norm.out, n});
  }
  if (c.sum) f.plain.push_back(sum);
  if (c.plain) f.plain.push_back(norm.out);
  if (c.quantized) f.quantized.push_back(norm.out);
  return f;
}

TEST(FusedNorm, EveryCombinationOfItsFields) {
  for (int bits = 0; bits < 128; ++bits) {
    const Numerics numerics = kQuantizing[bits / 3 % 2];
    RowNorm c;
    c.part = (bits & 1) != 0, c.add = (bits & 2) != 0, c.pre = c.add && (bits & 4) != 0;
    c.sum = c.add && (bits & 8) != 0, c.quantized = (bits & 16) != 0, c.plain = !c.quantized || (bits & 32) != 0;
    c.kind = (bits & 64) != 0 ? graph::NormKind::Layer : graph::NormKind::Rms;
    c.weighted = bits % 3 != 0;
    c.cols = c.quantized ? (bits % 5 == 0 ? 1056 : 32) : (bits % 5 == 0 ? 1041 : 13);
    expect_fused_equals_apart([&](bool fused) { return norm_form(c, numerics, fused); });
    ASSERT_FALSE(::testing::Test::HasFailure()) << "fields " << bits;
  }
}

TEST(FusedNorm, IntoRowsOfACacheWithAQuantizedFormOfItsOwn) {
  for (const CacheForm& form : kCacheForms)
    for (const bool quantized : {false, true})
      for (const bool fixed : {false, true})
        expect_fused_equals_apart([&](bool fused) {
          Form f{TestSchedule(Numerics::Int8)};
          TestSchedule& s = f.schedule;
          const uint64_t rows = 3, heads = 2, width = 32, cols = heads * width;
          const BufferId x = s.input("x", rows, cols, test_values(rows * cols, 1));
          const BufferId table = cache(s, "table", form, 40, heads, width);
          const RowAt at{fixed ? kNoBuffer : s.integers("at", {15}), fixed ? 30u : 0u, cols};
          // Normed per head: two rows of the norm are one of the table.
          Norm norm{.x = x, .out = s.computed("out", rows, cols), .rows = rows * heads, .cols = width, .eps = 1e-5f};
          if (fused) {
            norm.into = Dst{table, at};
            norm.forms.quantized = quantized;
            s.add(norm);
          } else {
            s.add(norm);
            s.add(SetRow{.table = table, .src = norm.out, .at = at, .cols = cols, .count = rows});
            if (quantized) s.add(Quant{norm.out, rows * cols});
          }
          f.plain = {table};
          if (quantized) f.quantized = {norm.out};
          return f;
        });
}

// Two norms that write the halves of joined units, in an array of their own or in the rows of a cache.
TEST(FusedNorm, IntoUnitsOfAnArrayAndOfCacheRows) {
  for (const bool in_rows : {false, true})
    for (const Dtype type : {Dtype::F32, Dtype::F16})
      expect_fused_equals_apart([&](bool fused) {
        Form f{TestSchedule(Numerics::Int8)};
        TestSchedule& s = f.schedule;
        const uint64_t rows = 4, ha = 37, hb = 11, both = ha + hb;
        const BufferId x = s.input("x", rows, ha, test_values(rows * ha, 1));
        const BufferId y = s.input("y", rows, hb, test_values(rows * hb, 2));
        const BufferId joined = in_rows ? s.state("cache", 20, both, type) : s.computed("joined", rows, both, type);
        std::optional<RowAt> at;
        if (in_rows) at = RowAt{s.integers("at", {14}), 0, both};
        const auto half = [&](BufferId in, uint64_t cols, uint64_t offset, BufferId out) {
          Norm norm{.x = in, .out = out, .rows = rows, .cols = cols, .eps = 1e-5f};
          if (fused) norm.into = Dst{joined, at, Part{both, offset}};
          s.add(norm);
        };
        const BufferId a = s.computed("a", rows, ha), b = s.computed("b", rows, hb);
        half(x, ha, 0, a);
        half(y, hb, ha, b);
        if (!fused) s.add(Join{.a = a, .b = b, .y = Dst{joined, at}, .rows = rows, .heads = 1, .ha = ha, .hb = hb});
        f.plain = {joined};
        return f;
      });
}

TEST(FusedElements, GatesBroadcastsAndQuantizedResults) {
  using enum graph::ActivationKind;
  for (const int broadcast : {0, 1, 2})
    for (const int forms : {0, 1, 2})  // plain, quantized, both
      for (const auto act : {Silu, Sigmoid, GeluTanh, Relu, Softplus, Tanh, Exp}) {
        const Numerics numerics = kQuantizing[static_cast<size_t>(act) % 2];
        const auto op = act == Relu || broadcast == 2 ? graph::Arithmetic::Add : graph::Arithmetic::Mul;
        expect_fused_equals_apart([&](bool fused) {
          Form f{TestSchedule(numerics)};
          TestSchedule& s = f.schedule;
          const uint64_t rows = 3, cols = forms == 0 ? 1037 : 1088, n = rows * cols;
          const uint64_t right = broadcast == 0 ? n : broadcast == 1 ? cols : rows;
          const BufferId a = s.input("a", rows, cols, test_values(n, 1));
          const BufferId b = s.input("b", 1, right, test_values(right, 2));
          const BufferId out = s.computed("out", rows, cols);
          Binary binary{.op = op, .a = a, .b = b, .out = out, .n = n};
          if (broadcast != 0) binary.row = cols, binary.scalar = broadcast == 2;
          const bool quantized = forms != 0;
          if (fused) {
            binary.gate = act;
            binary.forms = {forms != 1, quantized};
            s.add(binary);
          } else {
            binary.b = s.computed("gate", 1, right);
            s.add(Unary{.act = act, .x = b, .y = binary.b, .n = right});
            s.add(binary);
            if (quantized) s.add(Quant{out, n});
          }
          if (forms != 1) f.plain = {out};
          if (quantized) f.quantized = {out};
          return f;
        });
        ASSERT_FALSE(::testing::Test::HasFailure()) << broadcast << forms << static_cast<int>(act);
      }
}

TEST(FusedElements, SwiGluQuantized) {
  for (const Numerics numerics : kQuantizing)
    for (const bool plain : {false, true})
      for (const uint64_t n : {32, 1024, 4128})
        expect_fused_equals_apart([&](bool fused) {
          Form f{TestSchedule(numerics)};
          TestSchedule& s = f.schedule;
          const BufferId g = s.input("g", 1, n, test_values(n, 1)), u = s.input("u", 1, n, test_values(n, 2));
          const BufferId out = s.computed("out", 1, n);
          if (fused) {
            s.add(SwiGlu{.g = g, .u = u, .out = out, .forms = {plain, true}, .n = n});
          } else {
            const BufferId gate = s.computed("gate", 1, n);
            s.add(Unary{.act = graph::ActivationKind::Silu, .x = g, .y = gate, .n = n});
            s.add(Binary{.op = graph::Arithmetic::Mul, .a = gate, .b = u, .out = out, .n = n});
            s.add(Quant{out, n});
          }
          if (plain) f.plain = {out};
          f.quantized = {out};
          return f;
        });
}

TEST(FusedElements, QuantizedRowsThatAreNoWholeBlocksAreRefused) {
  TestSchedule s(Numerics::Int8);
  const BufferId a = s.input("a", 32, 8, test_values(256, 1)), b = s.input("b", 1, 8, test_values(8, 2));
  s.add(Binary{.a = a, .b = b, .out = s.computed("out", 32, 8), .row = 8, .forms = {true, true}, .n = 256});
  const auto got = s.try_run(Isa::Scalar);
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.refusal().reason.find("rows of 8 values"), std::string::npos) << got.refusal().reason;
}

struct RopeCase {
  bool part = false, norm = false, position = true;
  int landing = 0;  // 0: own array; 1: a part of every unit; from 2 on: rows of a cache of kCacheForms
  uint64_t rows = 2, heads = 2, width = 32, half = 12;
};

// A rotation as a Slice, a norm, the rotation, and a Join's half or a SetRow. Answers where the result lies.
BufferId rotate(TestSchedule& s, const RopeCase& c, const std::string& tag, bool fused, RopeParts& all) {
  const uint64_t units = c.rows * c.heads, every = c.part ? c.width + 9 : c.width, cols = c.heads * c.width;
  const BufferId x = s.input("x" + tag, units, every, test_values(units * every, 1 + tag.size()));
  const BufferId w = s.constant("w" + tag, 1, c.width, test_values(c.width, 2));
  RopeSide side{.x = x, .heads = units, .per_row = c.heads};
  const Part part{every, 4};
  const HeadNorm head_norm{w, 1e-6f};
  if (c.part && fused) side.part = part;
  if (c.norm && fused) side.norm = head_norm;
  if (c.part && !fused) {
    side.x = s.computed("slice" + tag, c.rows, cols);
    s.add(Slice{x, side.x, units, every, part.offset, c.width});
  }
  if (c.norm && !fused) {
    const BufferId normed = s.computed("normed" + tag, c.rows, cols);
    s.add(Norm{.x = side.x, .w = w, .out = normed, .rows = units, .cols = c.width, .eps = 1e-6f});
    side.x = normed;
  }
  const auto rotated = [&](const Dst& to) {
    side.y = to;
    all.sides.push_back(side);
    if (fused) return;
    s.add(Rope{.x = side.x,
               .cos = all.cos,
               .sin = all.sin,
               .position = all.position,
               .y = to,
               .heads = units,
               .per_row = c.heads,
               .width = c.width,
               .half = c.half});
  };
  if (c.landing == 0) {
    const BufferId y = s.computed("y" + tag, c.rows, cols);
    rotated(Dst{y});
    return y;
  }
  if (c.landing == 1) {
    const uint64_t other = 5, both = c.width + other;
    const BufferId y = s.computed("y" + tag, units, both),
                   rest = s.input("rest" + tag, units, other, test_values(units * other, 9));
    const BufferId alone = s.computed("alone" + tag, units, c.width);
    rotated(fused ? Dst{y, {}, Part{both, other}} : Dst{alone});
    if (fused) {
      Norm norm{.x = rest, .out = s.computed("unused" + tag, units, other), .rows = units, .cols = other};
      norm.into = Dst{y, {}, Part{both, 0}};
      norm.eps = 1e-5f;
      s.add(norm);
    } else {
      const BufferId normed = s.computed("rest_normed" + tag, units, other);
      s.add(Norm{.x = rest, .out = normed, .rows = units, .cols = other, .eps = 1e-5f});
      s.add(Join{.a = normed, .b = alone, .y = Dst{y}, .rows = units, .heads = 1, .ha = other, .hb = c.width});
    }
    return y;
  }
  const CacheForm form = kCacheForms[c.landing - 2];
  const BufferId table =
      cache(s, "cache" + tag, form, 40, static_cast<uint32_t>(c.heads), static_cast<uint32_t>(c.width));
  const RowAt at{all.position, 5, cols};
  const BufferId y = s.computed("y" + tag, c.rows, cols);
  rotated(fused ? Dst{table, at} : Dst{y});
  if (!fused) s.add(SetRow{.table = table, .src = y, .at = at, .cols = cols, .count = c.rows});
  return table;
}

RopeParts rope_tables(TestSchedule& s, const RopeCase& c) {
  RopeParts all;
  all.cos = s.input("cos", 40, c.half, test_values(40 * c.half, 7));
  all.sin = s.input("sin", 40, c.half, test_values(40 * c.half, 8));
  if (c.position) all.position = s.integers("position", {15});
  all.width = c.width, all.half = c.half;
  return all;
}

TEST(FusedRope, PartsNormsAndEveryPlace) {
  for (int landing = 0; landing < 8; ++landing)
    for (int bits = 0; bits < 8; ++bits) {
      RopeCase c{.part = (bits & 1) != 0, .norm = (bits & 2) != 0, .position = (bits & 4) != 0, .landing = landing};
      c.rows = c.position ? 3 : 1;
      if (bits % 3 == 1) c.width = 19, c.half = 9;
      expect_fused_equals_apart([&](bool fused) {
        Form f{TestSchedule(Numerics::Int8)};
        RopeParts all = rope_tables(f.schedule, c);
        f.plain = {rotate(f.schedule, c, "", fused, all)};
        const RopeSide& side = all.sides[0];
        if (fused)
          f.schedule.add(Rope{.x = side.x,
                              .cos = all.cos,
                              .sin = all.sin,
                              .position = all.position,
                              .part = side.part,
                              .norm = side.norm,
                              .y = side.y,
                              .heads = side.heads,
                              .per_row = side.per_row,
                              .width = c.width,
                              .half = c.half});
        return f;
      });
      ASSERT_FALSE(::testing::Test::HasFailure()) << "landing " << landing << ", fields " << bits;
    }
}

TEST(FusedRope, SeveralSidesInOneLaunch) {
  for (int bits = 0; bits < 8; ++bits)
    expect_fused_equals_apart([&](bool fused) {
      const RopeCase q{.part = (bits & 1) != 0, .norm = (bits & 2) != 0, .rows = 1, .heads = 6};
      const RopeCase k{
          .part = (bits & 4) != 0, .norm = (bits & 1) == 0, .landing = 2 + bits % 6, .rows = 1, .heads = 2};
      const RopeCase third{.landing = 1, .rows = 1, .heads = 1};
      Form f{TestSchedule(Numerics::Int8)};
      RopeParts all = rope_tables(f.schedule, q);
      f.plain.push_back(rotate(f.schedule, q, "q", fused, all));
      f.plain.push_back(rotate(f.schedule, k, "kk", fused, all));
      f.plain.push_back(rotate(f.schedule, third, "ttt", fused, all));
      if (fused) f.schedule.add(all);
      return f;
    });
}

TEST(FusedArgMax, MovesTheStepOn) {
  for (const auto& [form, rows] : {std::pair<graph::Form, uint64_t>{{graph::Form::Kind::Decode, 1, false}, 1},
                                   {{graph::Form::Kind::Chunk, 5, false}, 1},
                                   {{graph::Form::Kind::Chunk, 5, true}, 5}})
    for (const Isa isa : kIsas) {
      if (!supported(isa)) continue;
      for (const uint32_t threads : {1, 2, 3}) {
        TestSchedule s(Numerics::Int8);
        s.set_form(form);
        const uint64_t n = 9001;
        auto values = test_values(rows * n, 1);
        for (uint64_t r = 0; r < rows; ++r) values[r * n + 8500 + r] = 50;
        const BufferId x = s.input("x", rows, n, values), token = s.integers("token", {-1, -2, -3}),
                       position = s.integers("position", {41}), out = s.computed("out", rows, 1, Dtype::I32);
        ArgMax launch{.x = x, .out = out, .n = n, .rows = rows};
        launch.advance = Advance{token, position, 1};
        s.add(launch);
        const RunResult got = s.run(isa, threads);
        const auto last = static_cast<int32_t>(8500 + rows);
        EXPECT_EQ(got.integers(out).back(), last);
        EXPECT_EQ(got.integers(token), (std::vector<int32_t>{-1, last, -3}));
        EXPECT_EQ(got.integers(position)[0], 41 + static_cast<int32_t>(form.rows));
      }
    }
}

}  // namespace
}  // namespace tw::lane::cpu
