#include "plan/sequence_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lane/print.h"
#include "plan/sequences.h"
#include "plan/testing/batch_launches.h"

namespace tw::plan {
namespace {

using namespace batch;  // NOLINT(google-build-using-namespace): launches are its subject

// A change to one sequence's launch that keeps the kind from merging.
using Change = std::function<void(Launch&, Batch&)>;
template <class L>
Change change(void (*set)(L&, Batch&)) {
  return [set](Launch& launch, Batch& s) { set(std::get<L>(launch), s); };
}

struct Kind {
  std::string_view name;
  Launch (*one)(Batch&, uint32_t);
  Launch (*all)(Batch&);
  std::vector<Change> changes;
};

const std::vector<Change> kDeltaChanges{
    change<Delta>([](Delta& l, Batch& s) { l.norm = s.constant("other", 8); }),
    change<Delta>([](Delta& l, Batch&) { l.eps = 1e-6F; }),
    change<Delta>([](Delta& l, Batch&) { l.gate = graph::GateKind::Sigmoid; }),
    change<Delta>([](Delta& l, Batch&) { l.key_head_of = graph::KeyHeadOf::Grouped; }),
    change<Delta>([](Delta& l, Batch&) { l.key_heads = 4; }),
    change<Delta>([](Delta& l, Batch&) { l.rows = 2; }),
    change<Delta>([](Delta& l, Batch&) { l.forms.quantized = true; }),
    change<Delta>([](Delta& l, Batch& s) { l.q = s.own("k", 1, 16); }),
    change<Delta>([](Delta& l, Batch& s) { l.state = s.state("memory", 0, 32, 8); }),
};
const std::vector<Change> kAttentionChanges{
    change<Attention>([](Attention& l, Batch&) { l.scale = 0.25F; }),
    change<Attention>([](Attention& l, Batch&) { l.group = 4; }),
    change<Attention>([](Attention& l, Batch&) { l.len = 19; }),
    change<Attention>([](Attention& l, Batch&) {
      l.window = {graph::Window::Kind::Sliding, 4};
    }),
    change<Attention>([](Attention& l, Batch&) { l.softcap = 3; }),
    change<Attention>([](Attention& l, Batch&) { l.v_offset = 2; }),
    change<Attention>([](Attention& l, Batch&) { l.rows = 2; }),
    change<Attention>([](Attention& l, Batch&) { l.split = SplitKeys{}; }),
    change<Attention>([](Attention& l, Batch&) { l.sinks = kNoBuffer; }),
    change<Attention>([](Attention& l, Batch& s) { l.position = s.position(0); }),
    change<Attention>([](Attention& l, Batch& s) { l.k = s.state("keys", 2, 20, 16); }),
    change<Attention>([](Attention& l, Batch& s) { l.gate = s.shared("gates", 24, 3); }),
};

std::vector<Kind> kinds() {
  return {
      {"delta", delta_of, delta_of_all, kDeltaChanges},
      {"delta with a decay a channel", channel_delta_of, channel_delta_of_all, {}},
      {"gates",
       gates_of,
       gates_of_all,
       {change<Gates>([](Gates& l, Batch& s) { l.bias = s.constant("other", 6); }),
        change<Gates>([](Gates& l, Batch& s) { l.rate = s.constant("other", 6); }),
        change<Gates>([](Gates& l, Batch&) { l.heads = 3; }),
        change<Gates>([](Gates& l, Batch& s) { l.br = s.own("br", 2, 6); })}},
      {"conv in parts",
       conv_parts_of,
       conv_parts_of_all,
       {change<ConvParts>([](ConvParts& l, Batch&) { l.parts.pop_back(); }),
        change<ConvParts>([](ConvParts& l, Batch&) { l.block = 4; }),
        change<ConvParts>([](ConvParts& l, Batch&) { l.eps = 1e-5F; }),
        change<ConvParts>([](ConvParts& l, Batch&) { l.taps = 3; }),
        change<ConvParts>([](ConvParts& l, Batch&) { l.parts[1].l2 = true; }),
        change<ConvParts>([](ConvParts& l, Batch& s) { l.parts[1].w = s.constant("wx", 64); }),
        change<ConvParts>([](ConvParts& l, Batch&) { std::swap(l.parts[0].x, l.parts[1].x); })}},
      {"conv",
       conv_of,
       conv_of_all,
       {change<Conv>([](Conv& l, Batch&) { l.silu = false; }), change<Conv>([](Conv& l, Batch&) { l.taps = 2; }),
        change<Conv>([](Conv& l, Batch&) { l.l2_width = 4; }), change<Conv>([](Conv& l, Batch&) { l.rows = 2; }),
        change<Conv>([](Conv& l, Batch& s) { l.w = s.constant("other", 48); })}},
      {"attention", attention_of, attention_of_all, kAttentionChanges},
      {"gated attention",
       gated_attention_of,
       gated_attention_of_all,
       {change<Attention>([](Attention& l, Batch&) { l.gate_offset = 23; }),
        change<Attention>([](Attention& l, Batch& s) { l.gate = s.shared("other", 24, 3); }),
        change<Attention>([](Attention& l, Batch&) { l.gate = kNoBuffer; }),
        change<Attention>([](Attention& l, Batch&) { l.gate_act = graph::ActivationKind::Silu; })}},
      {"attention gated by rows", row_gated_attention_of, gated_attention_of_all, {}},
      {"join",
       join_of,
       join_of_all,
       {change<Join>([](Join& l, Batch&) { l.heads = 1; }), change<Join>([](Join& l, Batch&) { l.rows = 2; }),
        change<Join>([](Join& l, Batch&) {
          l.y.unit = Part{18, 0};
        }),
        change<Join>([](Join& l, Batch& s) {
          l.y.row = RowAt{s.position(1), 0, 18};
        }),
        change<Join>([](Join& l, Batch&) { std::swap(l.a, l.b); })}},
      {"join into a cache",
       cache_join_of,
       cache_join_of_all,
       {change<Join>([](Join& l, Batch&) { l.y.row->pitch = 9; }),
        change<Join>([](Join& l, Batch& s) { l.y.row->param = s.position(2); }), change<Join>([](Join& l, Batch&) {
          l.y.row = RowAt{kNoBuffer, 2, 18};
        })}},
      {"set_row",
       set_row_of,
       set_row_of_all,
       {change<SetRow>([](SetRow& l, Batch&) { l.cols = 8; }), change<SetRow>([](SetRow& l, Batch&) { l.count = 2; }),
        change<SetRow>([](SetRow& l, Batch&) {
          l.at = {kNoBuffer, 2, 16};
        }),
        change<SetRow>([](SetRow& l, Batch& s) { l.at.param = s.position(0); }), change<SetRow>([](SetRow& l, Batch&) {
          l.forms = {true, true};
        })}},
      {"rope",
       rope_of,
       rope_of_all,
       {change<Rope>([](Rope& l, Batch&) { l.half = 2; }), change<Rope>([](Rope& l, Batch&) { l.norm.reset(); }),
        change<Rope>([](Rope& l, Batch&) { l.norm->eps = 1; }), change<Rope>([](Rope& l, Batch&) { l.per_row = 2; }),
        change<Rope>([](Rope& l, Batch&) {
          l.part = Part{16, 0};
        }),
        change<Rope>([](Rope& l, Batch&) {
          l.y.unit = Part{8, 0};
        }),
        change<Rope>([](Rope& l, Batch&) { l.position = kNoBuffer; }),
        change<Rope>([](Rope& l, Batch& s) { l.cos = s.constant("other", 80); }),
        change<Rope>([](Rope& l, Batch& s) { l.position = s.position(2); })}},
      {"rope in parts",
       rope_parts_of,
       rope_parts_of_all,
       {change<RopeParts>([](RopeParts& l, Batch&) { l.sides.pop_back(); }),
        change<RopeParts>([](RopeParts& l, Batch&) { l.width = 4; }), change<RopeParts>([](RopeParts& l, Batch&) {
          l.sides[0].part = Part{16, 0};
        }),
        change<RopeParts>([](RopeParts& l, Batch&) { l.sides[0].norm->eps = 0; }),
        change<RopeParts>([](RopeParts& l, Batch&) { l.sides[1].heads = 1; }),
        change<RopeParts>([](RopeParts& l, Batch&) { l.sides[1].y.row->pitch = 8; }),
        change<RopeParts>([](RopeParts& l, Batch&) {
          l.sides[1].y.unit = Part{8, 0};
        }),
        change<RopeParts>([](RopeParts& l, Batch& s) { l.sides[1].y.row->param = s.position(0); }),
        change<RopeParts>([](RopeParts& l, Batch& s) { l.sin = s.constant("cos", 80); })}},
      {"argmax",
       argmax_of,
       argmax_of_all,
       {change<ArgMax>([](ArgMax& l, Batch&) { l.n = 39; }), change<ArgMax>([](ArgMax& l, Batch&) { l.rows = 2; }),
        change<ArgMax>([](ArgMax& l, Batch& s) {
          l.advance = Advance{s.schedule.io.tokens, s.position(1), 1};
        })}},
      {"advancing argmax",
       advancing_argmax_of,
       advancing_argmax_of_all,
       {change<ArgMax>([](ArgMax& l, Batch&) { l.advance->item = 2; }),
        change<ArgMax>([](ArgMax& l, Batch& s) { l.advance->position = s.position(0); }),
        change<ArgMax>([](ArgMax& l, Batch& s) { l.advance->token = s.shared("other", 3); })}},
  };
}

TEST(Sequences, LaunchesOfOneKindBecomeOneOverTheArraysOfAllSequences) {
  for (const Kind& kind : kinds()) {
    for (const uint32_t sequences : {2U, 3U, 7U}) {
      Batch s(sequences);
      for (uint32_t b = 0; b < sequences; ++b) s.add(kind.one(s, b));
      EXPECT_EQ(merge_sequences(s.schedule).merged, 1u) << kind.name;
      ASSERT_EQ(s.schedule.launches.size(), 1u) << kind.name;
      const Planned& merged = s.schedule.launches[0];
      EXPECT_EQ(merged.launch, kind.all(s)) << print(merged.launch, s.schedule) << "\n, not\n"
                                            << print(kind.all(s), s.schedule);
      EXPECT_EQ(merged.ops, ops(sequences)) << kind.name;
      EXPECT_EQ(s.schedule.fusions, (std::vector<Firing>{{"sequences", ops(sequences)}})) << kind.name;
    }
  }
}

TEST(Sequences, ALaunchThatDiffersInAnythingStaysApart) {
  for (const Kind& kind : kinds()) {
    for (size_t i = 0; i < kind.changes.size(); ++i) {
      for (const uint32_t which : {1U, 2U}) {
        Batch s(3);
        std::vector<Launch> launches;
        for (uint32_t b = 0; b < 3; ++b) launches.push_back(kind.one(s, b));
        kind.changes[i](launches[which == 1 ? 1 : 2], s);
        const Launch changed = launches[which];
        if (changed == kind.one(s, which)) continue;  // the change makes it what it is already
        for (Launch& launch : launches) s.add(std::move(launch));
        EXPECT_EQ(merge_sequences(s.schedule).merged, 0u)
            << kind.name << ", change " << i << ": " << print(changed, s.schedule);
        EXPECT_EQ(s.schedule.launches.size(), 3u);
      }
    }
  }
}

TEST(Sequences, EverySequenceMustTakePart) {
  for (const Kind& kind : kinds()) {
    for (uint32_t missing = 0; missing < 3; ++missing) {
      Batch s(3);
      for (uint32_t b = 0; b < 3; ++b) {
        const Launch launch = kind.one(s, b);  // its buffers are there all the same
        if (b != missing) s.add(launch);
      }
      EXPECT_EQ(merge_sequences(s.schedule).merged, 0u) << kind.name << " without sequence " << missing;
      EXPECT_EQ(s.schedule.launches.size(), 2u);
    }
  }
}

TEST(Sequences, LaunchesMustComeInTheOrderOfTheirSequences) {
  for (const Kind& kind : kinds()) {
    Batch s(3);
    for (const uint32_t b : {1U, 0U, 2U}) s.add(kind.one(s, b));
    EXPECT_EQ(merge_sequences(s.schedule).merged, 0u) << kind.name;
  }
}

TEST(Sequences, LaunchesOfEveryLayerMergeApart) {
  Batch s(3);
  for (int layer = 0; layer < 4; ++layer) {
    for (uint32_t b = 0; b < 3; ++b) {
      Gates l = std::get<Gates>(gates_of(s, b));
      l.beta = s.own(fmt::format("{}.beta", layer), b, 6);
      l.decay = s.own(fmt::format("{}.decay", layer), b, 6);
      s.add(l);
    }
  }
  EXPECT_EQ(merge_sequences(s.schedule).merged, 4u);
  ASSERT_EQ(s.schedule.launches.size(), 4u);
  EXPECT_EQ(std::get<Gates>(s.schedule.launches[2].launch).beta, s.find("2.beta_s"));
}

TEST(Sequences, ATakenNameMakesNoFamily) {
  for (const Kind& kind : kinds()) {
    Batch reference(3);
    for (uint32_t b = 0; b < 3; ++b) reference.add(kind.one(reference, b));
    const size_t before = reference.schedule.buffers.size();
    merge_sequences(reference.schedule);
    for (size_t i = before; i < reference.schedule.buffers.size(); ++i) {
      Batch s(3);
      s.shared(reference.schedule.buffers[i].name, 5);
      for (uint32_t b = 0; b < 3; ++b) s.add(kind.one(s, b));
      const uint64_t merged = merge_sequences(s.schedule).merged;
      const bool needed = reference.schedule.buffers[i].name != "position_s" || kind.all(reference) != kind.one(s, 0);
      if (needed && merged != 0) {
        EXPECT_EQ(reference.schedule.buffers[i].name, "position_s") << kind.name;
      }
    }
  }
}
}  // namespace
}  // namespace tw::plan
