#include "plan/sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lane/verify.h"
#include "plan/testing/batch_launches.h"

namespace tw::plan {
namespace {

using namespace batch;  // NOLINT(google-build-using-namespace): launches are its subject

// ---- movement ----

// Two gates with something between: whether they still merge.
bool merges_over(const std::function<void(Batch&)>& between) {
  Batch s(2);
  Gates first = std::get<Gates>(gates_of(s, 0)), second = std::get<Gates>(gates_of(s, 1));
  const BufferId rows = s.shared("rows", 6, 2);  // the inputs are rows of a table
  first.br = s.alias("row_s0", rows, 0, 6);
  second.br = s.alias("row_s1", rows, 6, 6);
  s.add(first);
  between(s);
  s.add(second);
  return merge_sequences(s.schedule).merged == 1;
}
void scale(Batch& s, BufferId from, BufferId to) { s.add(lane::Scale{from, to, 2, s.schedule.at(to).size()}); }

TEST(Movement, PassesOverLaunchesWithWhichItHasNothingInCommon) {
  EXPECT_TRUE(merges_over([](Batch& s) { scale(s, s.shared("a", 6), s.shared("b", 6)); }));
  EXPECT_TRUE(merges_over([](Batch& s) { scale(s, s.find("ar_s0"), s.shared("b", 6)); })) << "both only read";
  EXPECT_TRUE(merges_over([](Batch& s) { scale(s, s.shared("a", 6), s.find("ar_s1")); }))
      << "what only the last sequence reads stays before it";
  EXPECT_TRUE(merges_over([](Batch& s) { scale(s, s.find("beta_s1"), s.shared("b", 6)); }));
  EXPECT_TRUE(merges_over([](Batch& s) { scale(s, s.find("bias"), s.shared("b", 6)); }));
}

TEST(Movement, StopsAtAWriteOfWhatAMemberTouches) {
  EXPECT_FALSE(merges_over([](Batch& s) { scale(s, s.shared("a", 6), s.find("ar_s0")); })) << "its operand";
  EXPECT_FALSE(merges_over([](Batch& s) { scale(s, s.shared("a", 6), s.find("beta_s0")); })) << "its result";
}

TEST(Movement, StopsAtAReadOfWhatAMemberWrites) {
  EXPECT_FALSE(merges_over([](Batch& s) { scale(s, s.find("beta_s0"), s.shared("b", 6)); }));
  EXPECT_FALSE(merges_over([](Batch& s) { scale(s, s.find("decay_s0"), s.shared("b", 6)); }));
}

TEST(Movement, APartConflictsWithItsWholeArrayAndWithWhatOverlapsIt) {
  const auto write_rows = [](uint64_t offset, uint64_t size) {
    return merges_over([=](Batch& s) { scale(s, s.shared("a", size), s.alias("some", s.find("rows"), offset, size)); });
  };
  EXPECT_FALSE(merges_over([](Batch& s) { scale(s, s.shared("a", 12), s.find("rows")); })) << "the whole array";
  EXPECT_FALSE(write_rows(0, 6));
  EXPECT_FALSE(write_rows(5, 3)) << "an overlap of one element";
  EXPECT_TRUE(write_rows(6, 3)) << "the last sequence's part only";
  EXPECT_FALSE(write_rows(3, 0)) << "an empty span inside the part";
  EXPECT_TRUE(write_rows(6, 0)) << "an empty span at its end";
}

TEST(Movement, ALaunchThatReadsAnotherSequencesResultStaysApart) {
  Batch s(2);
  Gates first = std::get<Gates>(gates_of(s, 0)), second = std::get<Gates>(gates_of(s, 1));
  first.bias = second.bias = s.alias("other", s.find("beta_s0"), 0, 6);
  s.add(first);
  s.add(second);
  EXPECT_EQ(merge_sequences(s.schedule).merged, 0u);
}

// Convolution, gates and delta rule of each sequence in turn: producers wait until their consumers have moved.
TEST(Movement, ConsumersMoveBeforeTheirProducers) {
  Batch s(3);
  for (uint32_t b = 0; b < 3; ++b) {
    Conv conv = std::get<Conv>(conv_of(s, b));
    conv.y = s.own("q", b, 16);
    s.add(conv);
    s.add(Gates{s.own("br", b, 4), s.own("ar", b, 4), s.constant("bias", 4), s.constant("rate", 4), s.own("beta", b, 4),
                s.own("alpha", b, 4), 4, 4});
    s.add(delta_of(s, b));
  }
  EXPECT_EQ(merge_sequences(s.schedule).merged, 3u);
  ASSERT_EQ(s.schedule.launches.size(), 3u);
  EXPECT_EQ(kind_of(s.schedule.launches[0].launch), "conv");
  EXPECT_EQ(kind_of(s.schedule.launches[1].launch), "gates");
  EXPECT_EQ(kind_of(s.schedule.launches[2].launch), "delta");
}

// ---- cost: steps, not time ----

// Steps a launch when `layers` grows eightfold: the same, when the cost is linear.
void expect_linear(const std::function<Batch(uint32_t)>& make, double slack = 1.05) {
  const auto cost = [&](uint32_t size) {
    Batch s = make(size);
    const auto launches = static_cast<double>(s.schedule.launches.size() + s.schedule.buffers.size());
    return static_cast<double>(merge_sequences(s.schedule).steps) / launches;
  };
  const double small = cost(32), large = cost(256);
  EXPECT_LE(large, slack * small) << "steps a launch: " << small << ", then " << large;
}

// One layer of gates for each of `sequences`, those of `missing` left out.
void add_layer(Batch& s, uint32_t layer, std::optional<uint32_t> missing = {}) {
  for (uint32_t b = 0; b < s.sequences(); ++b) {
    Gates l = std::get<Gates>(gates_of(s, b));
    l.beta = s.own(fmt::format("{}.beta", layer), b, 6);
    l.decay = s.own(fmt::format("{}.decay", layer), b, 6);
    if (b != missing) s.add(l);
  }
}

TEST(Cost, GrowsWithTheLaunches) {
  expect_linear([](uint32_t layers) {
    Batch s(8);
    for (uint32_t layer = 0; layer < layers; ++layer) add_layer(s, layer);
    return s;
  });
  expect_linear([](uint32_t sequences) {
    Batch s(sequences);
    for (uint32_t layer = 0; layer < 4; ++layer) add_layer(s, layer);
    return s;
  });
}

TEST(Cost, AMissingMemberInEveryLayerIsNotSearchedForToTheEnd) {
  for (const uint32_t missing : {1U, 4U, 7U}) {
    expect_linear([missing](uint32_t layers) {
      Batch s(8);
      for (uint32_t layer = 0; layer < layers; ++layer) add_layer(s, layer, missing);
      return s;
    });
  }
}

TEST(Cost, SequencesOneAfterTheOtherCostNoMoreThanLayersOneAfterTheOther) {
  expect_linear([](uint32_t layers) {
    Batch s(4);
    for (uint32_t b = 0; b < 4; ++b) {
      for (uint32_t layer = 0; layer < layers; ++layer) {
        Gates l = std::get<Gates>(gates_of(s, b));
        l.beta = s.own(fmt::format("{}.beta", layer), b, 6);
        l.decay = s.own(fmt::format("{}.decay", layer), b, 6);
        s.add(l);
      }
    }
    return s;
  });
}

TEST(Cost, ManyViewsOfOneTensorAreLookedAtOnce) {
  expect_linear([](uint32_t size) {
    Batch s(2);
    const BufferId all = s.shared("all", 6, 8 * size);
    for (uint32_t i = 0; i < 8 * size; ++i) {
      const BufferId row = s.alias(fmt::format("view{}", i), all, 6 * i, 6);
      s.add(lane::Scale{row, s.shared(fmt::format("y{}", i), 6), 2, 6});
    }
    add_layer(s, 0);
    return s;
  });
}

TEST(Cost, OneTableSetByManyRowsIsLookedAtOnce) {
  expect_linear([](uint32_t size) {
    Batch s(8 * size);
    const BufferId table = s.shared("table", 6, s.sequences());
    for (uint32_t b = 0; b < s.sequences(); ++b) s.add(gates_of(s, b));
    for (uint32_t b = 0; b < s.sequences(); ++b)
      s.add(SetRow{table, s.own("beta", b, 6), {kNoBuffer, b + 1, 6}, 6, 1, 0, {}});
    return s;
  });
}

// ---- the verifier ----

std::set<std::string> codes_of(const Schedule& schedule) {
  std::set<std::string> all;
  for (const Finding& finding : verify(schedule)) all.insert(finding.code);
  return all;
}

// A cache's row is set and attended, for two sequences.
Batch attending() {
  Batch s(2);
  const BufferId k = s.shared("k", 16, 2, Fill::Param), v = s.shared("v", 12, 2, Fill::Param);
  const BufferId q = s.shared("q", 32, 2, Fill::Param);
  for (uint32_t b = 0; b < 2; ++b) {
    Attention l = std::get<Attention>(attention_of(s, b));
    l.q = s.alias(fmt::format("q_row_s{}", b), q, 32 * b, 32);
    s.add(SetRow{l.k, s.alias(fmt::format("k_row_s{}", b), k, 16 * b, 16), {l.position, 0, 16}, 16, 1, 0, {}});
    s.add(SetRow{l.v, s.alias(fmt::format("v_row_s{}", b), v, 12 * b, 12), {l.position, 0, 12}, 12, 1, 0, {}});
    s.add(l);
  }
  return s;
}
// As it would be placed: every buffer on bytes of its own.
Schedule placed(Schedule schedule) {
  for (Buffer& buffer : schedule.buffers) {
    if (buffer.fill != Fill::Param && buffer.fill != Fill::Computed) continue;
    buffer.plain_at = schedule.arena_bytes;
    schedule.arena_bytes += plain_bytes(buffer);
  }
  return schedule;
}

TEST(SequencesVerified, AMergedScheduleHasNoFinding) {
  Batch s = attending();
  EXPECT_EQ(merge_sequences(s.schedule).merged, 3u);
  EXPECT_EQ(codes_of(placed(s.schedule)), std::set<std::string>{});
}

TEST(SequencesVerified, ACacheThatIsFilledAfterItsAttentionIsFound) {
  Batch s = attending();
  merge_sequences(s.schedule);
  std::rotate(s.schedule.launches.begin(), s.schedule.launches.begin() + 2, s.schedule.launches.end());
  EXPECT_EQ(codes_of(placed(s.schedule)), std::set<std::string>{"S5"});

  Batch apart = attending();
  merge_sequences(apart.schedule);
  Schedule one = attending().schedule;  // the second sequence's cache only, in the arrays of all
  one.buffers = apart.schedule.buffers;
  std::rotate(one.launches.begin() + 3, one.launches.begin() + 5, one.launches.end());
  EXPECT_EQ(codes_of(placed(one)), std::set<std::string>{"S5"});
}

TEST(SequencesVerified, RowsThatAreNotOneASequenceAreFound) {
  Batch s = attending();
  merge_sequences(s.schedule);
  s.at("keys_s").sequences = 3;
  EXPECT_EQ(codes_of(placed(s.schedule)), std::set<std::string>{"S0"});
}

TEST(SequencesVerified, AnAliasOfTwoSequencesStatesIsFound) {
  Batch s = attending();
  merge_sequences(s.schedule);
  s.alias("both", s.find("keys_s"), 310, 20);
  EXPECT_EQ(codes_of(placed(s.schedule)), std::set<std::string>{"S8"});
}

TEST(SequencesVerified, ArraysOfABatchHaveNoPlaceInADecodeStep) {
  Batch s(2);
  for (uint32_t b = 0; b < 2; ++b) s.add(rope_of(s, b));
  for (const char* name : {"x_s0", "x_s1"}) s.at(name).fill = Fill::Param;
  merge_sequences(s.schedule);
  ASSERT_EQ(s.schedule.launches.size(), 2u) << "inputs that are set from outside are no family";
}
}  // namespace
}  // namespace tw::plan
