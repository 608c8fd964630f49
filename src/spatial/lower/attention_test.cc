#include "spatial/lower/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "spatial/compose.h"
#include "spatial/lower/attention_flat.h"
#include "spatial/lower/flash.h"
#include "spatial/lower/flash_grouped.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/testing/attention_case.h"

namespace tw::spatial::lower {
namespace {

using testing::attention;
using testing::AttentionSetting;
using testing::chunked;
using ::testing::ElementsAre;
using testing::expect_equal;
using testing::expect_fault;
using testing::expect_lowers;
using testing::expect_refused;
using testing::full_attention;
using ::testing::HasSubstr;
using testing::OpCase;
using testing::sliding;
using testing::view_of;

TEST(AttentionLayout, DenseExactlyWhereWholeTilesAreSharedEvenlyOnASquareTile) {
  const Target target = testing::t32();
  EXPECT_TRUE(attention_reads_dense(target, 16, 8, 128, 128));
  EXPECT_TRUE(attention_reads_dense(target, 16, 1, 576, 512));
  EXPECT_FALSE(attention_reads_dense(target, 4, 2, 16, 32));
  EXPECT_FALSE(attention_reads_dense(target, 4, 2, 32, 16));
  EXPECT_FALSE(attention_reads_dense(target, 4, 3, 32, 32));
  EXPECT_FALSE(attention_reads_dense(target, 4, 0, 32, 32));
  EXPECT_FALSE(attention_reads_dense(target, 4, 2, 0, 32));
  EXPECT_TRUE(attention_reads_dense(testing::t1(), 2, 1, 3, 5));
  EXPECT_FALSE(attention_reads_dense(testing::tall(), 2, 1, 4, 4));
  EXPECT_TRUE(full_attention_reads_dense(target, 32, 64));
  EXPECT_FALSE(full_attention_reads_dense(target, 32, 8));
  EXPECT_FALSE(full_attention_reads_dense(testing::tall(), 4, 4));
}

// What every form must do, at widths that choose the form.
std::vector<AttentionSetting> settings(uint64_t key_width, uint64_t cached) {
  const AttentionSetting plain{.key_width = key_width, .cached = cached};
  const auto last = static_cast<int64_t>(cached);
  std::vector<AttentionSetting> all;
  const auto with = [&](auto change) {
    AttentionSetting setting = plain;
    change(setting);
    all.push_back(setting);
  };
  with([](AttentionSetting&) {});
  for (const bool literal : {false, true}) {
    for (const int64_t position : {int64_t{1}, last / 2 + 1, last})
      with([&](AttentionSetting& s) { s.position = position, s.literal = literal; });
    for (const int64_t position : {int64_t{1}, last - 2})
      with([&](AttentionSetting& s) { s.rows = 3, s.position = position, s.literal = literal; });
    for (const graph::Window window : {sliding(2), sliding(5), chunked(3), chunked(4)}) {
      with([&](AttentionSetting& s) { s.position = last, s.literal = literal, s.window = window; });
      with([&](AttentionSetting& s) { s.rows = 2, s.position = last / 2, s.literal = literal, s.window = window; });
    }
  }
  with([](AttentionSetting& s) { s.rows = 3; });
  with([](AttentionSetting& s) { s.rows = 2, s.window = sliding(2); });
  with([](AttentionSetting& s) { s.window = chunked(2); });
  with([](AttentionSetting& s) { s.softcap = 0.7F; });
  with([&](AttentionSetting& s) { s.softcap = 0.7F, s.position = last / 2, s.rows = 2; });
  with([](AttentionSetting& s) { s.value_width = 2 * s.key_width; });
  with([](AttentionSetting& s) { s.heads = 4, s.kv_heads = 2; });
  with([](AttentionSetting& s) { s.heads = 3, s.kv_heads = 3; });
  for (const double sink : {-4.0, 0.0, 6.0}) {
    with([&](AttentionSetting& s) { s.sinks = true, s.sink = sink; });
    with([&](AttentionSetting& s) { s.sinks = true, s.sink = sink, s.rows = 2, s.position = last / 2; });
  }
  return all;
}

// The forms that these cases are lowered to.
std::set<std::string> forms_of(const std::vector<AttentionSetting>& cases, const Target& target) {
  std::set<std::string> forms;
  uint64_t seed = 0;
  for (const AttentionSetting& setting : cases) {
    forms.insert(expect_lowers(attention(setting, ++seed), target, {12}).form);
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "setting " << seed << " of " << cases.size() << " on " << target.name;
      break;
    }
  }
  return forms;
}

TEST(Attention, WholeTilesAreFolded) {
  for (const uint64_t cached : {4, 5, 9})
    EXPECT_THAT(forms_of(settings(4, cached), testing::t4()), ElementsAre("flash", "grouped flash"));
  EXPECT_THAT(forms_of(settings(4, 9), testing::t4f()), ElementsAre("flash", "grouped flash"));
  EXPECT_THAT(forms_of(settings(8, 9), testing::t4()), ElementsAre("flash", "grouped flash"));
  EXPECT_THAT(forms_of(settings(3, 6), testing::t1()), ElementsAre("flash"));  // a tile row holds one head
}

TEST(Attention, OtherWidthsAreFlatOrTakeAHeadAtATime) {
  const auto both = ElementsAre("flat", "heads");
  for (const uint64_t width : {2, 3}) EXPECT_THAT(forms_of(settings(width, 7), testing::t4()), both);
  EXPECT_THAT(forms_of(settings(2, 4), testing::t4()), both);
  EXPECT_THAT(forms_of(settings(3, 7), testing::t4f()), both);
  EXPECT_THAT(forms_of(settings(4, 7), testing::tall()), both);
  EXPECT_THAT(forms_of(settings(8, 9), testing::t32()), ElementsAre("flat"));
}

TEST(Attention, ValuesAreWiderThanAPage) {
  // Three pages of values, a carry and a store each.
  for (const uint64_t rows : {1, 5}) {
    const AttentionSetting setting{
        .rows = rows, .key_width = 4, .value_width = 24, .cached = 9, .position = 9 - static_cast<int64_t>(rows) + 1};
    EXPECT_EQ(expect_lowers(attention(setting, 1), testing::t4()).form, "flash");
  }
  EXPECT_EQ(
      expect_lowers(attention({.key_width = 32, .value_width = 512, .cached = 40, .position = 33}, 1), testing::t32())
          .form,
      "flash");
}

TEST(Attention, SeveralTilesOfQueryRows) {
  const AttentionSetting chunk{.rows = 5, .key_width = 4, .cached = 9};
  for (int64_t position = 1; position <= 5; ++position) {
    AttentionSetting setting = chunk;
    setting.position = position;
    for (const graph::Window window : {graph::Window{}, sliding(2), sliding(5), chunked(3)}) {
      setting.window = window;
      expect_lowers(attention(setting, static_cast<uint64_t>(position)), testing::t4(), {6});
    }
  }
  expect_lowers(attention({.rows = 33, .heads = 1, .key_width = 32, .cached = 100, .position = 60}, 3), testing::t32());
  expect_lowers(attention({.rows = 40, .heads = 4, .kv_heads = 2, .key_width = 128, .cached = 150, .position = 90}, 4),
                testing::t32(), {8});
  expect_lowers(attention({.rows = 33,
                           .heads = 1,
                           .key_width = 32,
                           .cached = 100,
                           .position = 60,
                           .window = sliding(40),
                           .sinks = true},
                          3),
                testing::t32());
}

TEST(Attention, SmallModelsRunOnLargeTiles) {
  AttentionSetting decode{.heads = 4, .kv_heads = 2, .key_width = 16, .cached = 64, .position = 50};
  EXPECT_EQ(expect_lowers(attention(decode, 1), testing::t32(), {8}).form, "flat");
  decode.cached = 70;
  EXPECT_EQ(expect_lowers(attention(decode, 1), testing::t32(), {8}).form, "heads");
  AttentionSetting chunk = decode;
  chunk.rows = 12;
  EXPECT_EQ(expect_lowers(attention(chunk, 2), testing::t32(), {8}).form, "heads");
  chunk.window = sliding(16);
  chunk.sinks = true;
  expect_lowers(attention(chunk, 3), testing::t32(), {8});
}

TEST(Attention, AModelsLayerRuns) {
  const AttentionSetting decode{
      .heads = 16, .kv_heads = 8, .key_width = 128, .cached = 256, .position = 200, .scale = 0.0883883F};
  EXPECT_EQ(expect_lowers(attention(decode, 1), testing::t32(), {8}).form, "grouped flash");
}

TEST(Attention, FullAttentionSeesEverything) {
  for (const uint64_t rows : {1, 3, 4, 5, 8}) {
    EXPECT_EQ(expect_lowers(full_attention(rows, 2, 4, rows), testing::t4()).form, "flash");
    expect_lowers(full_attention(rows, 2, 3, rows), testing::t4(), {6});
  }
  EXPECT_EQ(expect_lowers(full_attention(5, 1, 32, 1), testing::t32()).form, "flash");
  expect_lowers(full_attention(5, 2, 8, 1), testing::t32(), {6});
  expect_lowers(full_attention(40, 2, 8, 1), testing::t32(), {6});
}

TEST(Attention, FormsAgree) {
  // In f32 what differs is the order of the sum over blocks.
  uint64_t seed = 0;
  for (const AttentionSetting& setting : settings(4, 8)) {
    const OpCase c = attention(setting, ++seed);
    const Target target = testing::t4f();
    const OpView view = view_of(c, target);
    const Result<AttentionShape> shape = shape_of(std::get<graph::Attention>(c.spec), view);
    ASSERT_TRUE(shape.ok());
    expect_equal(head_attention(*shape, view), c, target, {40});
    Target large = target;
    large.accumulator_tiles = 16;
    if (flat_applies(*shape, large)) expect_equal(flat_attention(*shape, view_of(c, large)), c, large, {40});
    expect_equal(flash_attention(*shape, view), c, target, {40});
    if (grouped_applies(*shape, target)) expect_equal(grouped_attention(*shape, view), c, target, {40});
    if (HasFailure()) FAIL() << "setting " << seed;
  }
}

// ---- the fold ----

const Program& fold_of(const Lowered& lowered) {
  for (const Program& section : lowered.sections)
    if (section.name.find("flash_blocks") != std::string::npos) return section;
  return lowered.sections.front();
}

TEST(Flash, BlocksPastThePositionAreNotRunAndWouldChangeNothing) {
  for (const uint64_t rows : {1, 3})
    for (int64_t position = 1; position + static_cast<int64_t>(rows) <= 10; ++position) {
      const OpCase c = attention({.rows = rows, .key_width = 4, .cached = 9, .position = position}, 1);
      Result<Lowered> lowered = lower_op(c.spec, view_of(c, testing::t4()));
      ASSERT_TRUE(lowered.ok());
      const Program& fold = fold_of(*lowered);
      ASSERT_TRUE(fold.work.k_trip.has_value());
      EXPECT_EQ(fold.work.k_trip->count(position), (static_cast<uint64_t>(position) + rows - 1 + 3) / 4);
      EXPECT_EQ(fold.work.k_trip->high, static_cast<int64_t>(10 - rows));
      const testing::Outcome counted = run(lowered->sections, c, testing::t4());
      for (Program& section : lowered->sections) section.work.k_trip.reset();
      EXPECT_EQ(run(lowered->sections, c, testing::t4()).values, counted.values) << rows << " rows at " << position;
    }
}

TEST(Flash, SharedKeysAreStreamedOnceForAllTheirHeads) {
  const OpCase c = attention({.heads = 4, .kv_heads = 2, .key_width = 4, .cached = 12}, 1);
  const Target target = testing::t4();
  const OpView view = view_of(c, target);
  const Result<AttentionShape> shape = shape_of(std::get<graph::Attention>(c.spec), view);
  ASSERT_TRUE(shape.ok());
  const auto streamed = [&](const Result<std::vector<Program>>& sections) {
    uint64_t tiles = 0;
    for (const Program& section : *sections)
      for (const Stage& stage : section.stages)
        if (stage.name == "load_k" || stage.name == "load_v")
          tiles += section.work.items.size() * section.work.plan.num_blocks * stage.pattern()->tiles();
    return tiles;
  };
  EXPECT_EQ(streamed(grouped_attention(*shape, view)), 2U * 2 * 3);
  EXPECT_EQ(streamed(flash_attention(*shape, view)), 2U * 4 * 3);
}

TEST(Attention, EverySectionIsNeededAndInItsPlace) {
  const AttentionSetting flat{.rows = 2, .key_width = 8, .cached = 9, .position = 3, .sinks = true};
  const AttentionSetting heads{.key_width = 8, .cached = 140, .sinks = true};
  const AttentionSetting grouped{.key_width = 32, .cached = 40, .sinks = true};
  for (const auto& [setting, count] : {std::pair{flat, 4U}, {heads, 2U}, {grouped, 4U}}) {
    const OpCase c = attention(setting, 1);
    const Result<Lowered> lowered = lower_op(c.spec, view_of(c, testing::t32()));
    ASSERT_TRUE(lowered.ok());
    ASSERT_EQ(lowered->sections.size(), count);
    const ComposeOptions options{"step", {"y"}};
    EXPECT_TRUE(compose(lowered->sections, options).ok());
    for (size_t i = 0; i < count; ++i) {
      std::vector<Program> sections = lowered->sections;
      sections.erase(sections.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(compose(sections, options).ok()) << "without " << lowered->sections[i].name;
      sections.insert(sections.begin(), lowered->sections[i]);
      const bool ordered = i + 1 < count;  // moving an earlier section to the front may change nothing
      EXPECT_TRUE(ordered || !compose(sections, options).ok()) << lowered->sections[i].name << " first";
    }
  }
}

TEST(Attention, MaskedScoresAreNeverPickedUp) {
  // Scores of far more than a masked one, below and above zero, and ties of the largest.
  for (const uint64_t width : {3, 4})
    for (const double size : {30.0, -30.0}) {
      OpCase c = attention({.key_width = width, .cached = 7, .position = 4, .window = sliding(3)}, 1);
      for (double& value : c.operands[0]->values) value = size;
      for (size_t i = 0; i < c.operands[1]->values.size(); ++i)
        c.operands[1]->values[i] = i / width == 5 ? 1e6 : 1.0 + static_cast<double>(i / width % 2);
      expect_lowers(c, testing::t4());
    }
}

// ---- what is refused, and what faults ----

TEST(Attention, APositionOutsideTheCacheFaultsOrIsRefused) {
  for (const uint64_t width : {4, 3})
    for (const uint64_t rows : {1, 3})
      for (const int64_t position : {int64_t{-2}, int64_t{0}, static_cast<int64_t>(8 - rows)}) {
        AttentionSetting setting{.rows = rows, .key_width = width, .cached = 6, .position = position};
        for (const Target& target : {testing::t4(), testing::t32()}) expect_fault(attention(setting, 1), target);
        setting.literal = true;
        const Refusal refusal = expect_refused(attention(setting, 1), testing::t4());
        EXPECT_EQ(refusal.kind, RefusalKind::Unsupported);
        EXPECT_EQ(refusal.subject, "y");
        EXPECT_THAT(refusal.reason, HasSubstr("must be 1 to"));
      }
}

TEST(Attention, APositionIsCheckedAsWideAsItIsStored) {
  for (const uint64_t width : {3, 4}) {
    OpCase c = attention({.key_width = width, .cached = 7, .position = 5}, width);
    c.operands[3]->tensor.dtype = Precision::I32;
    testing::expect_lowers(c, testing::t4(), {16});
    testing::expect_lowers(c, testing::t16(), {16});
  }
}

TEST(Attention, RefusalsNameTheResultAndTheReason) {
  const AttentionSetting whole{.key_width = 4, .cached = 9}, odd{.key_width = 3, .cached = 8};
  const auto refusal = [](const AttentionSetting& setting, const Target& target, RefusalKind kind) {
    const Refusal made = expect_refused(attention(setting, 1), target);
    EXPECT_EQ(made.subject, "y") << made.reason;
    EXPECT_EQ(made.kind, kind) << made.reason;
    return made.reason;
  };
  for (const AttentionSetting& setting : {whole, odd}) {
    refusal(setting, testing::without_reals(), RefusalKind::Missing);
    EXPECT_THAT(refusal(setting, testing::t4_with(512), RefusalKind::TooLarge), HasSubstr("512"));
    Target plain = testing::t4();
    plain.capabilities.erase(Capability::Exp);
    EXPECT_THAT(refusal(setting, plain, RefusalKind::Missing), HasSubstr("exp"));
  }
  EXPECT_THAT(refusal({.key_width = 3, .cached = 9}, testing::t4(), RefusalKind::TooLarge),
              HasSubstr("3 tiles exceed a page of 2"));
  EXPECT_THAT(refusal({.key_width = 4, .cached = 20}, testing::tall(), RefusalKind::TooLarge),
              HasSubstr("needs a square tile"));
  refusal({.key_width = 4, .cached = 140, .position = 3}, testing::narrow_integers(), RefusalKind::Missing);
}

TEST(Attention, TheFlashFormRefusesOtherTilesByName) {
  for (const auto& [target, width, text] :
       {std::tuple{testing::tall(), 4, "square tile"}, {testing::t4(), 3, "whole tiles"}}) {
    const OpCase c = attention({.key_width = static_cast<uint64_t>(width), .cached = 4}, 1);
    const OpView view = view_of(c, target);
    const Result<AttentionShape> shape = shape_of(std::get<graph::Attention>(c.spec), view);
    ASSERT_TRUE(shape.ok());
    const Result<std::vector<Program>> flash = flash_attention(*shape, view), grouped = grouped_attention(*shape, view);
    ASSERT_FALSE(flash.ok());
    EXPECT_EQ(flash.refusal().kind, RefusalKind::Unsupported);
    EXPECT_THAT(flash.refusal().reason, HasSubstr(text));
    EXPECT_FALSE(grouped.ok());
  }
}

TEST(Attention, ShapesOfNothingAreRefused) {
  const OpCase c = attention({}, 1);
  const Target target = testing::t4();
  const auto reason = [&](auto change) {
    graph::Attention op = std::get<graph::Attention>(c.spec);
    OpView view = view_of(c, target);
    change(op, view);
    const Result<Lowered> lowered = lower(op, view);
    EXPECT_FALSE(lowered.ok());
    return lowered.ok() ? std::string() : lowered.refusal().reason;
  };
  EXPECT_THAT(reason([](graph::Attention& op, OpView&) { op.heads = 0; }), HasSubstr("0 query heads"));
  EXPECT_THAT(reason([](graph::Attention& op, OpView&) { op.kv_heads = 0; }), HasSubstr("0 key heads"));
  EXPECT_THAT(reason([](graph::Attention& op, OpView&) { op.heads = 3, op.kv_heads = 2; }), HasSubstr("evenly"));
  EXPECT_THAT(reason([](graph::Attention& op, OpView&) { op.window = sliding(0); }), HasSubstr("keeps nothing"));
  EXPECT_THAT(reason([](graph::Attention&, OpView& view) { view.operands[1]->rows = 0; }),
              HasSubstr("0 cached positions"));
  EXPECT_THAT(reason([](graph::Attention&, OpView& view) { view.operands[0]->cols = 0; }),
              HasSubstr("0 columns in a key"));

  const OpCase placed = attention({.cached = 3, .position = 1}, 1);
  OpView view = view_of(placed, target);
  view.operands[0]->rows = view.result.rows = 4;
  EXPECT_THAT(lower(std::get<graph::Attention>(placed.spec), view).refusal().reason,
              HasSubstr("4 rows do not fit a cache of 3"));
}

}  // namespace
}  // namespace tw::spatial::lower
