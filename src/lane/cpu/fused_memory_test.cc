// Launches over carried memory and parts with their fused fields, against the launches that they stand for.

#include "lane/cpu/testing/apart.h"
#include "lane/cpu/testing/fused.h"

namespace tw::lane::cpu {
namespace {

using testing::cache;
using testing::CacheForm;
using testing::expect_fused_equals_apart;
using testing::Form;
using testing::half_values;
using testing::kCacheForms;

TEST(FusedSetRow, QuantizedRowsAreThoseOfTheWholeTable) {
  for (const Numerics numerics : kQuantizing)
    for (const bool plain : {false, true})
      expect_fused_equals_apart([&](bool fused) {
        Form f{TestSchedule(numerics)};
        TestSchedule& s = f.schedule;
        const uint64_t cols = 96;
        const BufferId table = s.computed("table", 3, cols);
        const BufferId one = s.input("one", 1, cols, test_values(cols, 1)),
                       two = s.input("two", 2, cols, test_values(2 * cols, 2));
        const auto set = [&](BufferId src, uint32_t row, uint64_t count) {
          if (fused) s.add(Quant{src, count * cols});
          SetRow launch{.table = table, .src = src, .at = {kNoBuffer, row, cols}, .cols = cols, .count = count};
          if (fused) launch.forms = {plain, true};
          s.add(launch);
        };
        set(one, 3, 1);
        set(two, 1, 2);
        if (!fused) s.add(Quant{table, 3 * cols});
        f.quantized = {table};
        if (plain) f.plain = {table};
        return f;
      });
}

TEST(FusedJoin, IntoRowsOfACache) {
  for (const CacheForm& form : kCacheForms)
    expect_fused_equals_apart([&](bool fused) {
      Form f{TestSchedule(Numerics::Int8)};
      TestSchedule& s = f.schedule;
      const uint64_t rows = 4, heads = 2, ha = 21, hb = 6, cols = heads * (ha + hb);
      const BufferId a = s.input("a", rows, heads * ha, test_values(rows * heads * ha, 1)),
                     b = s.input("b", rows, heads * hb, test_values(rows * heads * hb, 2));
      const BufferId table = cache(s, "table", form, 33, heads, ha + hb), own = s.computed("own", rows, cols);
      const RowAt at{s.integers("at", {14}), 0, cols};
      s.add(Join{
          .a = a, .b = b, .y = fused ? Dst{table, at} : Dst{own}, .rows = rows, .heads = heads, .ha = ha, .hb = hb});
      if (!fused) s.add(SetRow{.table = table, .src = own, .at = at, .cols = cols, .count = rows});
      f.plain = {table};
      return f;
    });
}

struct FusedAttention {
  uint64_t heads = 6, group = 3, hd = 40, vd = 32, length = 300, rows = 1;
  int32_t position = 290;
  Dtype type = Dtype::F16;
  std::optional<graph::ActivationKind> gate;
  uint64_t gate_offset = 0;
  int forms = 0;          // plain, quantized, both
  bool inside = false;    // values inside the key rows
  uint64_t v_offset = 8;  // with it
  bool split = false;     // one key/value head, own of hd
  graph::Window window = {};
  float softcap = 0;
  bool sinks = false, hints = false;
};

Form attention_form(const FusedAttention& c, Numerics numerics, bool fused) {
  Form f{TestSchedule(numerics)};
  TestSchedule& s = f.schedule;
  const uint64_t kv = c.heads / c.group, units = c.rows * c.heads, n = units * c.vd;
  Attention a{.heads = c.heads, .group = c.group, .hd = c.hd, .vd = c.vd, .len = c.length, .rows = c.rows};
  a.q = s.input("q", c.rows, c.heads * c.hd, test_values(units * c.hd, 1));
  a.position = s.integers("position", {c.position});
  if (c.sinks) a.sinks = s.input("sinks", 1, c.heads, test_values(c.heads, 6));
  a.out = s.computed("out", c.rows, c.heads * c.vd);
  a.scale = 0.2f, a.window = c.window, a.softcap = c.softcap;
  a.v_stride = kv * c.vd;
  if (c.split) {
    const uint64_t own = c.hd - 9, q_pitch = own + 3, tail_pitch = 9 + 4;
    const BufferId q_own = s.input("q_own", units, q_pitch, test_values(units * q_pitch, 2));
    const BufferId q_tail = s.input("q_tail", units, tail_pitch, test_values(units * tail_pitch, 3));
    const BufferId k_own = s.input("k_own", c.length, own, test_values(c.length * own, 4));
    const BufferId k_tail = s.state("k_tail", c.length, tail_pitch, c.type, {}, half_values(c.length * tail_pitch, 5));
    if (fused) {
      a.q = q_own, a.k = k_own;
      a.split = SplitKeys{own, q_pitch, q_tail, k_tail, Part{tail_pitch, 2}, Part{tail_pitch, 3}};
    } else {
      const BufferId q1 = s.computed("q1", units, own), q2 = s.computed("q2", units, 9),
                     k2 = s.computed("k2", c.length, 9);
      a.q = s.computed("q_whole", c.rows, c.heads * c.hd), a.k = s.computed("k_whole", c.length, c.hd);
      s.add(Slice{q_own, q1, units, q_pitch, 0, own});
      s.add(Slice{q_tail, q2, units, tail_pitch, 2, 9});
      s.add(Slice{k_tail, k2, c.length, tail_pitch, 3, 9});
      s.add(Join{.a = q1, .b = q2, .y = Dst{a.q}, .rows = c.rows, .heads = c.heads, .ha = own, .hb = 9});
      s.add(Join{.a = k_own, .b = k2, .y = Dst{a.k}, .rows = c.length, .heads = 1, .ha = own, .hb = 9});
    }
  } else {
    a.k = s.state("k", c.length, kv * c.hd, c.type, {}, half_values(c.length * kv * c.hd, 4));
  }
  if (c.inside && fused) {
    a.v = a.k, a.v_offset = c.v_offset, a.v_stride = kv * c.hd;
  } else if (c.inside) {
    a.v = s.computed("v", c.length, kv * c.vd);
    s.add(Slice{a.k, a.v, c.length, kv * c.hd, c.v_offset, kv * c.vd});
  } else {
    a.v = s.state("v", c.length, kv * c.vd, c.type, {}, half_values(c.length * kv * c.vd, 7));
  }
  if (c.hints && fused) a.per_block = 3, a.splits = 4, a.parallel = true, a.shared = 2;
  const BufferId gate = s.input("gate", 1, n + c.gate_offset, test_values(n + c.gate_offset, 8));
  const bool quantized = c.forms != 0;
  BufferId result = a.out;
  if (fused) {
    if (c.gate) a.gate = gate, a.gate_act = *c.gate, a.gate_offset = c.gate_offset;
    a.forms = {c.forms != 1, quantized};
    s.add(a);
  } else {
    s.add(a);
    if (c.gate) {
      const BufferId view = s.alias("gate_view", gate, c.gate_offset, c.rows, c.heads * c.vd);
      const BufferId act = s.computed("act", c.rows, c.heads * c.vd);
      result = s.computed("gated", c.rows, c.heads * c.vd);
      s.add(Unary{.act = *c.gate, .x = view, .y = act, .n = n});
      s.add(Binary{.op = graph::Arithmetic::Mul, .a = a.out, .b = act, .out = result, .n = n});
    }
    if (quantized) s.add(Quant{result, n});
  }
  if (c.forms != 1) f.plain = {result};
  if (quantized) f.quantized = {result};
  return f;
}

void expect_attention(const FusedAttention& c, Numerics numerics, const std::string& what) {
  expect_fused_equals_apart([&](bool fused) { return attention_form(c, numerics, fused); });
  ASSERT_FALSE(::testing::Test::HasFailure()) << what;
}

// One head's cache is one chunk at the first position, which is what a program is compiled at, and many later.
TEST(FusedAttention, ChunksOfOneHeadAreSharedOutToTheThreads) {
  const FusedAttention c{.heads = 4, .group = 4, .rows = 4, .position = 200};
  size_t shared = 0;
  const auto result =
      attention_form(c, Numerics::Int8, true).schedule.try_run(Isa::Scalar, 2, [&](const Program& program) {
        for (const Call& call : program.calls()) {
          if (!call.take_turns) continue;
          EXPECT_FALSE(call.solo);
          ++shared;
        }
      });
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(shared, 1U);
}

TEST(FusedAttention, GatesAndForms) {
  using enum graph::ActivationKind;
  for (const uint64_t rows : {1, 9})
    for (const int forms : {0, 1, 2}) {
      const Numerics numerics = kQuantizing[rows == 9 ? 1 : 0];
      FusedAttention c{.rows = rows, .position = 200, .forms = forms};
      for (const auto act : {Silu, Sigmoid, GeluTanh, Relu, Softplus, Tanh, Exp}) {
        c.gate = act;
        c.gate_offset = static_cast<uint64_t>(act) * 5;
        c.hints = act != Silu;
        expect_attention(c, numerics, "gate " + std::to_string(static_cast<int>(act)));
      }
      c.gate.reset();
      expect_attention(c, numerics, "no gate");
    }
}

TEST(FusedAttention, ValuesInsideKeyRowsAndKeysInTwoPieces) {
  for (const Dtype type : {Dtype::F32, Dtype::F16})
    for (const uint64_t rows : {1, 3, 12})
      for (int bits = 0; bits < 16; ++bits) {
        FusedAttention c{.heads = 36, .group = 36, .rows = rows, .position = 270, .type = type};
        c.inside = (bits & 1) != 0, c.split = !c.inside;
        if ((bits & 2) != 0) c.window = {graph::Window::Kind::Sliding, 150};
        c.softcap = (bits & 4) != 0 ? 3.0f : 0.0f;
        c.sinks = (bits & 8) != 0;
        if (c.sinks) c.gate = graph::ActivationKind::Sigmoid;
        c.forms = bits % 3;
        c.hints = bits % 2 == 0;
        if (c.split) c.vd = 32, c.hd = 73;
        expect_attention(c, Numerics::Int8, "fields " + std::to_string(bits));
      }
}

TEST(FusedAttention, SeveralHeadsOfValuesInsideKeyRows) {
  for (const uint64_t rows : {2, 10}) {
    FusedAttention c{.heads = 8, .group = 4, .hd = 40, .vd = 16, .rows = rows, .position = 100, .inside = true};
    c.v_offset = 48;  // values of both heads behind the first 48 of a row's 80
    expect_attention(c, Numerics::Int8, "rows " + std::to_string(rows));
  }
}

TEST(FusedAttention, ValuesInsideACacheOfKeyBlocksAreRefused) {
  TestSchedule s(Numerics::Int8);
  Attention a{.heads = 1, .group = 1, .hd = 32, .vd = 16, .len = 20};
  a.q = s.input("q", 1, 32, test_values(32, 1));
  a.k = a.v = cache(s, "cache", {lane::Layout::Kind::KeyBlocks, Dtype::F16}, 20, 1, 32);
  a.out = s.computed("out", 1, 16);
  a.v_offset = 16, a.v_stride = 32;
  s.add(a);
  const auto got = s.try_run(Isa::Scalar);
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.refusal().reason.find("laid out as a cache"), std::string::npos) << got.refusal().reason;
}

// A convolution as itself, its SiLU and its norm.
BufferId convolve(TestSchedule& s, uint64_t chan, uint64_t rows, uint64_t l2, const std::string& tag, bool fused,
                  ConvParts* parts, std::vector<BufferId>& rings) {
  const uint64_t taps = 4, n = rows * chan;
  Conv conv{.chan = chan, .taps = taps, .rows = rows};
  conv.x = s.input("x" + tag, rows, chan, test_values(n, 1 + tag.size()));
  conv.w = s.constant("w" + tag, taps, chan, test_values(taps * chan, 2));
  conv.ring = s.state("ring" + tag, taps, chan, Dtype::F32, {}, test_values(taps * chan, 3));
  conv.y = s.computed("y" + tag, rows, chan);
  rings.push_back(conv.ring);
  if (fused && parts != nullptr) {
    parts->parts.push_back({conv.x, conv.w, conv.ring, conv.y, chan, l2 != 0});
    return conv.y;
  }
  if (fused) {
    conv.silu = true, conv.l2_width = l2, conv.l2_eps = l2 != 0 ? 1e-6f : 0;
    s.add(conv);
    return conv.y;
  }
  s.add(conv);
  const BufferId act = s.computed("act" + tag, rows, chan), normed = s.computed("normed" + tag, rows, chan);
  s.add(Unary{.act = graph::ActivationKind::Silu, .x = conv.y, .y = act, .n = n});
  if (l2 == 0) return act;
  s.add(L2Norm{act, normed, n / l2, l2, 1e-6f});
  return normed;
}

TEST(FusedConv, SiluAndLength) {
  for (const uint64_t rows : {1, 3, 9})
    for (const uint64_t l2 : {0, 11, 33})
      expect_fused_equals_apart([&](bool fused) {
        Form f{TestSchedule(Numerics::Int8)};
        f.plain.push_back(convolve(f.schedule, 66, rows, l2, "", fused, nullptr, f.plain));
        return f;
      });
}

TEST(FusedConv, PartsOfOneRow) {
  for (int bits = 0; bits < 8; ++bits)
    expect_fused_equals_apart([&](bool fused) {
      Form f{TestSchedule(Numerics::Int8)};
      ConvParts parts{.taps = 4, .block = 32, .eps = 1e-6f};
      std::vector<BufferId> rings;
      const auto l2 = [bits](int bit) -> uint64_t { return (bits >> bit & 1) != 0 ? 32 : 0; };
      f.plain.push_back(convolve(f.schedule, 96, 1, l2(0), "a", fused, &parts, rings));
      f.plain.push_back(convolve(f.schedule, 64, 1, l2(1), "bb", fused, &parts, rings));
      f.plain.push_back(convolve(f.schedule, 160, 1, l2(2), "ccc", fused, &parts, rings));
      if (fused) f.schedule.add(parts);
      f.plain.insert(f.plain.end(), rings.begin(), rings.end());
      return f;
    });
}

TEST(FusedGates, BothGatesOfSeveralRows) {
  for (const uint64_t rows : {1, 5})
    expect_fused_equals_apart([&](bool fused) {
      Form f{TestSchedule(Numerics::Int8)};
      TestSchedule& s = f.schedule;
      const uint64_t heads = 19, n = rows * heads;
      const BufferId b = s.input("b", rows, heads, test_values(n, 1)), a = s.input("a", rows, heads, test_values(n, 2));
      const BufferId bias = s.input("bias", 1, heads, test_values(heads, 3)),
                     rate = s.input("rate", 1, heads, test_values(heads, 4));
      const BufferId beta = s.computed("beta", rows, heads), decay = s.computed("decay", rows, heads);
      if (fused) {
        s.add(Gates{b, a, bias, rate, beta, decay, n, heads});
      } else {
        s.add(Unary{.act = graph::ActivationKind::Sigmoid, .x = b, .y = beta, .n = n});
        s.add(Decay{a, bias, rate, decay, n, heads});
      }
      f.plain = {beta, decay};
      return f;
    });
}

TEST(FusedDelta, QuantizedResults) {
  for (const Numerics numerics : kQuantizing)
    for (const bool plain : {false, true})
      for (const uint64_t rows : {1, 4})
        for (const Dtype state : {Dtype::F32, Dtype::BF16})
          expect_fused_equals_apart([&](bool fused) {
            Form f{TestSchedule(numerics)};
            TestSchedule& s = f.schedule;
            const uint64_t d = 32, heads = 4, keys = 2, n = rows * heads * d, m = rows * keys * d;
            Delta delta{.value_heads = heads, .key_heads = keys, .d = d, .rows = rows, .eps = 1e-6f};
            delta.q = s.input("q", rows, keys * d, test_values(m, 1, 0.2f));
            delta.k = s.input("k", rows, keys * d, test_values(m, 2, 0.2f));
            delta.v = s.input("v", rows, heads * d, test_values(n, 3));
            delta.z = s.input("z", rows, heads * d, test_values(n, 4));
            delta.beta = s.input("beta", rows, heads, test_values(rows * heads, 5));
            delta.alpha = s.input("alpha", rows, heads, test_values(rows * heads, 6));
            delta.norm = s.constant("norm", 1, d, test_values(d, 7));
            delta.state = s.state("memory", heads * d, d, state);
            delta.out = s.computed("out", rows, heads * d);
            if (fused) delta.forms = {plain, true};
            s.add(delta);
            if (!fused) s.add(Quant{delta.out, n});
            f.plain = {delta.state};
            if (plain) f.plain.push_back(delta.out);
            f.quantized = {delta.out};
            return f;
          });
}

}  // namespace
}  // namespace tw::lane::cpu
