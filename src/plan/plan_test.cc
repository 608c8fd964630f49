#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "graph/builder.h"
#include "lane/print.h"
#include "lane/verify.h"

namespace tw::plan {
namespace {

using namespace lane;  // NOLINT(google-build-using-namespace): schedules are its subject

using graph::Form;
using graph::GraphBuilder;
using graph::TensorId;

uint64_t some_bytes(uint64_t n, uint32_t words) { return n * (words + 1) + 64; }

struct Authored {
  graph::StepGraph graph;
  graph::Constants constants;

  Result<Schedule> plan(Numerics numerics = Numerics::Int8, Dtype cache = Dtype::F32) const {
    return plan(knobs(numerics, cache));
  }
  Result<Schedule> plan(const Knobs& knobs) const { return plan_step(graph, constants, knobs); }
  static Knobs knobs(Numerics numerics = Numerics::Int8, Dtype cache = Dtype::F32) {
    Knobs knobs;
    knobs.numerics = numerics;
    knobs.cache = cache;
    knobs.quantized_bytes = some_bytes;
    return knobs;
  }
};

void place_rows(graph::Constants& constants, const std::string& name, gguf::Format format, uint64_t k, uint64_t n) {
  graph::Rows rows;
  rows.format = format;
  rows.row_values = k;
  rows.count = n;
  constants[name] = rows;
}

void place_values(graph::Constants& constants, const std::string& name, uint64_t n) {
  constants[name] = graph::Values{std::make_shared<std::vector<float>>(n, 1.0F), nullptr};
}

// A layer with one attention over a cache, and a head: m rows, width 64, two heads, vocabulary 96.
Authored attention_step(uint32_t m, gguf::Format format = gguf::Format::Q8_0) {
  Authored a;
  GraphBuilder b("toy", m == 1 ? Form{} : Form{Form::Kind::Chunk, m, true});
  const auto tokens = b.param("tokens", m);
  const auto position = b.param("position", 1);
  const auto weight = [&](const std::string& name, uint32_t k, uint32_t n) {
    place_rows(a.constants, name, format, k, n);
    return b.constant(name, k, n);
  };
  place_rows(a.constants, "embd", format, 64, 96);
  const auto embd = b.constant("embd", 96, 64);
  place_values(a.constants, "norm", 64);
  const auto norm = b.constant("norm", 1, 64);
  const auto keys = b.state("k_cache", 40, 64), values = b.state("v_cache", 40, 64);
  const auto h = b.add("h", graph::RowsGather{}, {embd, tokens});
  const auto n = b.add("n", graph::RowNorm{}, {h, norm});
  const auto q = b.add("q", graph::Matmul{}, {n, weight("wq", 64, 64)});
  const auto k = b.add("k", graph::Matmul{}, {n, weight("wk", 64, 64)});
  const auto v = b.add("v", graph::Matmul{}, {n, weight("wv", 64, 64)});
  b.set_rows(keys, k, position);
  b.set_rows(values, v, position);
  graph::Attention attention;
  attention.heads = 2, attention.kv_heads = 2;
  const auto o = b.add("o", attention, {q, keys, values, position});
  const auto out = b.add("out", graph::Elementwise{}, {h, o});
  const auto logits = b.add("logits", graph::Matmul{}, {out, weight("head", 64, 96)});
  const auto next = b.add("next", graph::ArgMax{}, {logits});
  b.io().tokens = tokens;
  b.io().sequences = {{position, logits, next}};
  a.graph = std::move(b).finish();
  return a;
}

std::vector<std::string> codes(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings) out.push_back(finding.code);
  return out;
}

TEST(Plan, EveryOpIsItsOwnLaunchAndActivationsAreQuantizedOnce) {
  const auto schedule = attention_step(1).plan();
  ASSERT_TRUE(schedule) << to_text(schedule.refusal());
  const std::map<std::string, uint64_t> expected{{"gather", 1},  {"rmsnorm", 1},   {"quant", 2},  {"gemv_q8", 4},
                                                 {"set_row", 2}, {"attention", 1}, {"binary", 1}, {"argmax", 1}};
  EXPECT_EQ(census(*schedule), expected);
  EXPECT_THAT(codes(verify(*schedule)), testing::IsEmpty());
}

// A delta rule of two heads of `width` in m rows.
Authored delta_step(uint32_t m, uint32_t width) {
  Authored a;
  GraphBuilder b("toy", Form{Form::Kind::Chunk, m, true});
  const auto tokens = b.param("tokens", m);
  const auto position = b.param("position", 1);
  const auto weight = [&](const std::string& name, uint32_t k, uint32_t n) {
    place_rows(a.constants, name, gguf::Format::F32, k, n);
    return b.constant(name, k, n);
  };
  place_values(a.constants, "norm", width);
  const auto norm = b.constant("norm", 1, width);
  place_rows(a.constants, "embd", gguf::Format::F32, 2 * width, 96);
  const auto h = b.add("h", graph::RowsGather{}, {b.constant("embd", 96, 2 * width), tokens});
  const auto beta = b.add("beta", graph::Matmul{}, {h, weight("wb", 2 * width, 2)});
  const auto alpha = b.add("alpha", graph::Matmul{}, {h, weight("wa", 2 * width, 2)});
  const auto memory = b.state("memory", 2 * width, width);
  const auto o =
      b.add("o", graph::GatedDelta{.value_heads = 2, .key_heads = 2}, {h, h, h, h, beta, alpha, memory, norm});
  const auto logits = b.add("logits", graph::Matmul{}, {o, weight("head", 2 * width, 96)});
  const auto next = b.add("next", graph::ArgMax{}, {logits});
  b.io().tokens = tokens;
  b.io().sequences = {{position, logits, next}};
  a.graph = std::move(b).finish();
  return a;
}
Delta& only_delta(Schedule& schedule) {
  for (Planned& planned : schedule.launches) {
    if (auto* delta = std::get_if<Delta>(&planned.launch)) return *delta;
  }
  throw std::logic_error("no delta rule");
}

TEST(Plan, FastDeltaTakesChunksWhereItsOrderIsDefined) {
  struct Case {
    uint32_t rows, width;
    Order order;
    Dtype state;
    std::optional<uint32_t> chunk;
  };
  for (const Case& c : {Case{40, 32, Order::FastDelta, Dtype::F32, 32},
                        {31, 32, Order::FastDelta, Dtype::F32, {}},
                        {40, 48, Order::FastDelta, Dtype::F32, {}},
                        {40, 32, Order::FastDelta, Dtype::BF16, {}},
                        {40, 32, Order::Strict, Dtype::F32, {}}}) {
    Knobs knobs = Authored::knobs();
    knobs.order = c.order, knobs.state = c.state;
    auto schedule = delta_step(c.rows, c.width).plan(knobs);
    ASSERT_TRUE(schedule) << to_text(schedule.refusal());
    EXPECT_EQ(schedule->order, c.order);
    EXPECT_EQ(only_delta(*schedule).chunk, c.chunk) << c.rows << " rows of " << c.width;
    EXPECT_THAT(codes(verify(*schedule)), testing::IsEmpty());
    only_delta(*schedule).chunk = c.chunk ? std::nullopt : std::optional(32U);
    EXPECT_THAT(codes(verify(*schedule)), testing::ElementsAre("S12"));
  }
}

TEST(Plan, PreciseNumericsQuantizeNothing) {
  const auto schedule = attention_step(3).plan(Numerics::Precise);
  ASSERT_TRUE(schedule);
  EXPECT_EQ(census(*schedule).count("quant"), 0u);
  EXPECT_THAT(codes(verify(*schedule)), testing::IsEmpty());
}

TEST(Plan, FloatWeightsTakeTheFloatProduct) {
  for (const auto format : {gguf::Format::F32, gguf::Format::F16, gguf::Format::BF16}) {
    const auto schedule = attention_step(2, format).plan();
    ASSERT_TRUE(schedule);
    EXPECT_EQ(census(*schedule)["gemv_f32"], 4u);
    EXPECT_EQ(census(*schedule).count("quant"), 0u);
  }
}

TEST(Plan, CachesAreLaidOutForTheAttentionThatReadsThem) {
  const auto schedule = attention_step(1).plan(Numerics::Int8, Dtype::F16);
  ASSERT_TRUE(schedule);
  const auto find = [&](std::string_view name) {
    for (const Buffer& buffer : schedule->buffers) {
      if (buffer.name == name) return buffer;
    }
    return Buffer{};
  };
  EXPECT_EQ(find("k_cache").layout, (Layout{Layout::Kind::KeyBlocks, 2, 32}));
  EXPECT_EQ(find("v_cache").layout, (Layout{Layout::Kind::ValueRows, 2, 32}));
  EXPECT_EQ(find("k_cache").dtype, Dtype::F16);
  EXPECT_EQ(plain_bytes(find("k_cache")), 48u * 64 * 2);  // 40 positions in blocks of 16
  EXPECT_EQ(plain_bytes(find("v_cache")), 48u * 64 * 2);
}

TEST(Plan, ALiteralRowOfAComputedTensorIsAView) {
  Authored a;
  GraphBuilder b("views", Form{});
  place_values(a.constants, "c", 96);
  const auto x = b.add("x", graph::Scale{2}, {b.constant("c", 3, 32)});
  const auto row = b.add("row", graph::RowGather{2}, {x});
  b.add("y", graph::Scale{3}, {row});
  a.graph = std::move(b).finish();
  const auto schedule = a.plan();
  ASSERT_TRUE(schedule);
  EXPECT_EQ(census(*schedule).count("view"), 0u);
  EXPECT_EQ(schedule->buffers[graph::index(row)].fill, Fill::Alias);
  EXPECT_EQ(span_of(*schedule, BufferId{graph::index(row)}), (Span{BufferId{graph::index(x)}, 32, 64}));
  EXPECT_THAT(codes(verify(*schedule)), testing::IsEmpty());
}

TEST(Plan, RefusesWhatItHasNoKernelFor) {
  Authored a;
  GraphBuilder b("ints", Form{});
  const auto x = b.param("x", 4);
  b.add("y", graph::IntClamp{}, {x});
  a.graph = std::move(b).finish();
  const auto schedule = a.plan();
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.refusal().kind, RefusalKind::Unsupported);
  EXPECT_EQ(schedule.refusal().subject, "y");
  EXPECT_THAT(schedule.refusal().reason, testing::HasSubstr("op 0 (int_clamp)"));
}

TEST(Plan, RefusesAConstantWithoutAPlace) {
  Authored a = attention_step(1);
  a.constants.erase("wk");
  const auto schedule = a.plan();
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.refusal().kind, RefusalKind::Missing);
  EXPECT_EQ(schedule.refusal().subject, "wk");
}

TEST(Plan, RefusesAQuantizedReadThatIsNotWholeBlocks) {
  Authored a;
  GraphBuilder b("ragged", Form{});
  place_values(a.constants, "c", 40);
  place_rows(a.constants, "w", gguf::Format::Q8_0, 40, 8);
  b.add("y", graph::Matmul{}, {b.add("x", graph::Scale{}, {b.constant("c", 1, 40)}), b.constant("w", 40, 8)});
  a.graph = std::move(b).finish();
  const auto schedule = a.plan();
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.refusal().subject, "x");
  EXPECT_THAT(schedule.refusal().reason, testing::HasSubstr("is 64"));
  EXPECT_TRUE(a.plan(Numerics::Precise)) << "precise numerics read no blocks";
}

TEST(Plan, PrintsLaunchesWithOperandsFieldsAndOps) {
  const auto schedule = attention_step(1).plan();
  ASSERT_TRUE(schedule);
  const std::string text = print(*schedule);
  EXPECT_THAT(text, testing::HasSubstr("gemv_q8 x=n (quantized) w=wq -> y=q | format=Q8_0 k=64 n=64 m=1"));
  EXPECT_THAT(text, testing::HasSubstr("set_row src=k at=position -> table=k_cache[row position]"));
  EXPECT_EQ(to_json(*schedule)["launches"].size(), schedule->launches.size());
  EXPECT_EQ(to_json(*schedule)["census"]["gemv_q8"], 4);
}

// ---- mutants: a good schedule broken in one way gives exactly that code ----

class Mutant : public testing::Test {
 protected:
  Schedule good_ = *attention_step(2).plan();

  template <class L>
  L& launch(size_t nth = 0) {
    for (Planned& planned : good_.launches) {
      if (auto* found = std::get_if<L>(&planned.launch); found != nullptr && nth-- == 0) return *found;
    }
    throw std::logic_error("the schedule has no such launch");
  }
  template <class L>
  size_t place() {
    for (size_t i = 0; i < good_.launches.size(); ++i) {
      if (std::holds_alternative<L>(good_.launches[i].launch)) return i;
    }
    throw std::logic_error("the schedule has no such launch");
  }
  Buffer& buffer(std::string_view name) {
    for (Buffer& buffer : good_.buffers) {
      if (buffer.name == name) return buffer;
    }
    throw std::logic_error("the schedule has no such buffer");
  }
  [[nodiscard]] std::set<std::string> found() const {
    const auto all = codes(verify(good_));
    return {all.begin(), all.end()};
  }
};

using Codes = std::set<std::string>;

TEST_F(Mutant, TheGoodScheduleHasNoFinding) { EXPECT_EQ(found(), Codes{}); }

TEST_F(Mutant, ABufferThatIsNotThere) {
  launch<Norm>().x = BufferId{4000};
  EXPECT_EQ(found(), Codes{"S0"});
}
TEST_F(Mutant, AResultLongerThanItsBuffer) {
  launch<Norm>().rows += 1;
  EXPECT_EQ(found(), Codes{"S0"});
}
TEST_F(Mutant, APlaceOutsideTheArena) {
  buffer("out").plain_at = good_.arena_bytes;
  EXPECT_EQ(found(), Codes{"S0"});
}
TEST_F(Mutant, AnOpThatNoLaunchComputes) {
  good_.launches[place<ArgMax>()].ops.clear();
  EXPECT_EQ(found(), Codes{"S1"});
}
TEST_F(Mutant, AnOpThatIsNotThere) {
  good_.launches[place<ArgMax>()].ops.push_back(graph::OpId{99});
  EXPECT_EQ(found(), Codes{"S1"});
}
TEST_F(Mutant, ADroppedQuantization) {
  good_.launches.erase(good_.launches.begin() + static_cast<ptrdiff_t>(place<Quant>()));
  EXPECT_EQ(found(), Codes{"S2"});
}
TEST_F(Mutant, AResultThatIsOnlyPartlyWritten) {
  launch<Norm>().rows -= 1;
  EXPECT_EQ(found(), Codes{"S2"});
}
TEST_F(Mutant, AValueWrittenTwice) {
  const Planned again = good_.launches[place<Norm>()];
  good_.launches.insert(good_.launches.begin() + static_cast<ptrdiff_t>(place<Quant>()), again);
  EXPECT_EQ(found(), Codes{"S3"});
}
TEST_F(Mutant, AWriteOverAnOperand) {
  launch<Binary>().out = launch<Binary>().a;
  const Codes codes = found();
  EXPECT_TRUE(codes.count("S4") == 1) << "an elementwise launch may not write over what it reads here";
}
TEST_F(Mutant, ACacheFilledAfterItsAttention) {
  const size_t attention = place<Attention>(), set = place<SetRow>();
  std::rotate(good_.launches.begin() + static_cast<ptrdiff_t>(set),
              good_.launches.begin() + static_cast<ptrdiff_t>(set) + 1,
              good_.launches.begin() + static_cast<ptrdiff_t>(attention) + 1);
  EXPECT_EQ(found().count("S5"), 1u);
}
TEST_F(Mutant, AQuantizedFormOfRaggedLength) {
  buffer("n").cols -= 1;
  EXPECT_EQ(found().count("S6"), 1u);
}
TEST_F(Mutant, AnAliasThatLeavesItsBuffer) {
  Buffer& alias = buffer("q");
  alias.fill = Fill::Alias;
  alias.alias_of = launch<Norm>().out;
  alias.alias_offset = 64;
  EXPECT_EQ(found().count("S8"), 1u);
}
TEST_F(Mutant, ABatchFieldInAChunk) {
  launch<Attention>().next_sequence = 64;
  EXPECT_EQ(found(), Codes{"S9"});
}
TEST_F(Mutant, AFiringOfAnOpThatIsNotThere) {
  good_.fusions.push_back({"add_norm", {graph::OpId{77}}});
  EXPECT_EQ(found(), Codes{"S10"});
}
TEST_F(Mutant, TwoLiveBuffersOnTheSameBytes) {
  buffer("k").plain_at = buffer("q").plain_at;
  EXPECT_EQ(found(), Codes{"S11"});
}

TEST(ViewMutant, ASourceRewrittenBeforeTheViewIsRead) {
  Authored a;
  GraphBuilder b("views", Form{});
  place_values(a.constants, "c", 64);
  const auto c = b.constant("c", 2, 32);
  const auto x = b.add("x", graph::Scale{2}, {c});
  const auto row = b.add("row", graph::RowGather{1}, {x});
  b.add("y", graph::Scale{3}, {row});
  a.graph = std::move(b).finish();
  Schedule schedule = *a.plan();
  schedule.launches.insert(schedule.launches.begin() + 2, schedule.launches[0]);
  const auto found = codes(verify(schedule));
  EXPECT_THAT(found, testing::UnorderedElementsAre("S3", "S7"));
}

}  // namespace
}  // namespace tw::plan
