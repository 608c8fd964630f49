#include "plan/sequence_arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "plan/sequences.h"
#include "plan/testing/batch_launches.h"

namespace tw::plan {
namespace {

using namespace batch;  // NOLINT(google-build-using-namespace): launches are its subject

// ---- families ----

TEST(Families, MembersAreAliasesOfThePartsOfAnArray) {
  Batch s(3);
  for (uint32_t b = 0; b < 3; ++b) s.add(set_row_of(s, b));
  for (Buffer& buffer : s.schedule.buffers) {
    if (buffer.fill != Fill::State) continue;
    buffer.dtype = Dtype::F16;
    buffer.layout = {Layout::Kind::KeyBlocks, 2, 8};
  }
  merge_sequences(s.schedule);
  const Buffer& array = s.at("cache_s");
  EXPECT_EQ(array.fill, Fill::State);
  EXPECT_EQ(array.dtype, Dtype::F16);
  EXPECT_EQ(array.layout, (Layout{Layout::Kind::KeyBlocks, 2, 8}));
  EXPECT_EQ(array.sequences, 3u);
  EXPECT_EQ(array.rows, 60u);
  EXPECT_EQ(array.cols, 16u);
  EXPECT_TRUE(array.plain);
  EXPECT_EQ(plain_bytes(array), 3u * 32 * 16 * 2) << "each sequence's positions are rounded up to whole blocks";
  EXPECT_EQ(base_name(array), "cache");
  for (uint32_t b = 0; b < 3; ++b) {
    const BufferId member = s.find(fmt::format("cache_s{}", b));
    EXPECT_EQ(span_of(s.schedule, member), (Span{s.find("cache_s"), 320 * b, 320 * (b + 1)}));
    EXPECT_EQ(base_name(s.schedule.at(member)), "cache");
    EXPECT_EQ(span_of(s.schedule, s.position(b)), (Span{s.find("position_s"), b, b + 1}));
  }
}

// What keeps the buffers "k" of the sequences from being a family.
TEST(Families, MembersMustBeAlike) {
  const std::vector<std::pair<std::string_view, std::function<void(Buffer&)>>> changes{
      {"length", [](Buffer& k) { k.cols = 32; }},
      {"shape", [](Buffer& k) { k.rows = 2, k.cols = 8; }},
      {"type", [](Buffer& k) { k.dtype = Dtype::BF16; }},
      {"fill", [](Buffer& k) { k.fill = Fill::State; }},
      {"forms", [](Buffer& k) { k.quantized = true; }},
      {"layout",
       [](Buffer& k) {
         k.layout = {Layout::Kind::ValueRows, 1, 16};
       }},
      {"sequence", [](Buffer& k) { k.sequence = 0; }},
      {"no sequence", [](Buffer& k) { k.sequence.reset(); }},
      {"use as a weight", [](Buffer& k) { k.weight = true; }},
  };
  for (const auto& [what, make] : changes) {
    Batch s(3);
    for (uint32_t b = 0; b < 3; ++b) s.add(set_row_of(s, b));
    make(s.at("k_s1"));
    merge_sequences(s.schedule);
    EXPECT_NE(s.at("k_s1").fill, Fill::Alias) << what;
    EXPECT_NE(s.at("k_s2").fill, Fill::Alias) << what;
    EXPECT_EQ(s.schedule.launches.size(), 3u) << what;
  }
}

TEST(Families, AQuantizedFamilyIsOfWholeBlocks) {
  for (const uint64_t width : {32U, 48U}) {
    Batch s(2);
    for (uint32_t b = 0; b < 2; ++b) s.add(Quant{s.own("x", b, width), width});
    merge_sequences(s.schedule);
    EXPECT_EQ(s.at("x_s1").fill == Fill::Alias, width == 32);
  }
}

// ---- rows of a table ----

// Each sequence scales its row and sets it into a table, which is then read whole.
struct TableBatch : Batch {
  explicit TableBatch(uint32_t sequences) : Batch(sequences) {
    for (uint32_t b = 0; b < sequences; ++b) {
      add(gates_of(*this, b));
      add(set(b));
    }
    add(lane::Scale{shared("table", 6, sequences), shared("after", 6, sequences), 2, 6 * sequences});
  }
  SetRow set(uint32_t b) {
    return {shared("table", 6, sequences()), own("beta", b, 6), {kNoBuffer, b + 1, 6}, 6, 1, 0, {}};
  }
  // The set of sequence b.
  SetRow& nth(uint32_t b) { return std::get<SetRow>(schedule.launches[2 * b + 1].launch); }
};

TEST(Tables, MembersThatAreOnlySetAsRowsAreTheRows) {
  TableBatch s(3);
  EXPECT_EQ(merge_sequences(s.schedule).merged, 1u);
  ASSERT_EQ(s.schedule.launches.size(), 2u);
  const auto& gates = std::get<Gates>(s.schedule.launches[0].launch);
  EXPECT_EQ(gates.beta, s.find("table"));
  EXPECT_EQ(gates.n, 18u);
  EXPECT_EQ(s.schedule.launches[0].ops, ops(6)) << "the sets are computed by the launch that makes the rows";
  EXPECT_EQ(s.schedule.launches[1].ops, (std::vector{graph::OpId{6}}));
  EXPECT_EQ(span_of(s.schedule, s.find("beta_s2")), (Span{s.find("table"), 12, 18}));
}

TEST(Tables, SetsAreTakenOutEvenWhereNothingMerges) {
  TableBatch s(3);
  std::get<Gates>(s.schedule.launches[2].launch).heads = 2;
  EXPECT_EQ(merge_sequences(s.schedule).merged, 0u);
  ASSERT_EQ(s.schedule.launches.size(), 4u);
  EXPECT_EQ(s.schedule.launches[1].ops, (std::vector{graph::OpId{2}, graph::OpId{3}}));
}

TEST(Tables, AQuantizedRowIsItsMembersQuantizedForm) {
  Batch s(2);
  const BufferId table = s.shared("table", 32, 2);
  for (uint32_t b = 0; b < 2; ++b) {
    Delta l = std::get<Delta>(delta_of(s, b));
    l.forms = {false, true};
    s.add(l);
    s.add(SetRow{table, l.out, {kNoBuffer, b + 1, 32}, 32, 1, 0, {false, true}});
  }
  EXPECT_EQ(merge_sequences(s.schedule).merged, 1u);
  ASSERT_EQ(s.schedule.launches.size(), 1u);
  EXPECT_EQ(std::get<Delta>(s.schedule.launches[0].launch).out, table);
  EXPECT_EQ(quantized_home(s.schedule, s.find("out_s1")), table);
}

TEST(Tables, WhatIsNotARowForEverySequenceIsLeftAlone) {
  const std::vector<std::pair<std::string_view, std::function<void(TableBatch&)>>> changes{
      {"another row", [](TableBatch& s) { s.nth(1).at.fixed = 3; }},
      {"a row by a parameter", [](TableBatch& s) { s.nth(1).at.param = s.position(1); }},
      {"several rows", [](TableBatch& s) { s.nth(1).count = 2; }},
      {"part of a row", [](TableBatch& s) { s.nth(1).cols = 3; }},
      {"other forms", [](TableBatch& s) { s.nth(1).forms.quantized = true; }},
      {"another table", [](TableBatch& s) { s.nth(1).table = s.shared("other", 6, 3); }},
      {"a longer table", [](TableBatch& s) { s.at("table").rows = 4; }},
      {"a wider table", [](TableBatch& s) { s.at("table").cols = 12; }},
      {"a table of another type", [](TableBatch& s) { s.at("table").dtype = Dtype::F16; }},
      {"a carried table", [](TableBatch& s) { s.at("table").fill = Fill::State; }},
      {"a second reader",
       [](TableBatch& s) {
         s.add(lane::Scale{s.find("beta_s1"), s.shared("more", 6), 1, 6});
       }},
      {"a table that is read meanwhile",
       [](TableBatch& s) {
         auto& launches = s.schedule.launches;
         launches.insert(launches.begin() + 1, {lane::Scale{s.find("table"), s.shared("more", 6, 3), 1, 18}, {}});
       }},
      {"a table that is written meanwhile",
       [](TableBatch& s) {
         auto& launches = s.schedule.launches;
         const BufferId row = s.alias("row", s.find("table"), 6, 6);
         launches.insert(launches.begin() + 3, {lane::Scale{s.find("beta_s0"), row, 1, 6}, {}});
       }},
  };
  for (const auto& [what, make] : changes) {
    TableBatch s(3);
    make(s);
    const size_t before = census(s.schedule)["set_row"];
    merge_sequences(s.schedule);
    EXPECT_EQ(census(s.schedule)["set_row"], before) << what;
    EXPECT_NE(s.at("beta_s0").alias_of, s.find("table")) << what;
  }
}
}  // namespace
}  // namespace tw::plan
