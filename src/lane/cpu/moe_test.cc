#include "lane/cpu/moe.h"

#include <gtest/gtest.h>

#include <bit>

#include "lane/cpu/product_test_data.h"
#include "lane/cpu/reference/moe.h"
#include "lane/cpu/reference/reference.h"

namespace tw::lane::cpu {
namespace {

using gguf::Format;

struct Formats {
  Format router = Format::F32, gate = Format::Q4_K, up = Format::Q4_K, down = Format::Q6_K;
};

struct Options {
  graph::Moe spec;
  Formats formats;
  uint64_t rows = 1;
  int words = 1;
  bool biases = false;
  bool select_bias = false;
  bool expert_scale = false;
  uint64_t shared_hidden = 0;  // of a shared expert
  Formats shared = {.gate = Format::Q8_0, .up = Format::Q4_K, .down = Format::Q8_0};
};

graph::Moe spec_of(uint32_t experts, uint32_t used, uint32_t hidden) {
  graph::Moe spec;
  spec.experts = experts;
  spec.used = used;
  spec.hidden = hidden;
  return spec;
}

// A mixture with every array it needs; d is 256.
class Mixture {
 public:
  static constexpr uint64_t kD = 256;

  explicit Mixture(const Options& o)
      : options_(o),
        x_(o.rows, kD, 0, 11),
        router_(o.formats.router, o.spec.experts, kD, 21),
        gate_(o.formats.gate, uint64_t{o.spec.experts} * o.spec.hidden, kD, 22),
        up_(o.formats.up, uint64_t{o.spec.experts} * o.spec.hidden, kD, 23),
        down_(o.formats.down, o.spec.experts * kD, o.spec.hidden, 24),
        shared_gate_(o.shared.gate, std::max<uint64_t>(1, o.shared_hidden), kD, 25),
        shared_up_(o.shared.up, std::max<uint64_t>(1, o.shared_hidden), kD, 26),
        shared_down_(o.shared.down, kD, std::max<uint64_t>(32, o.shared_hidden), 27),
        quant_(quant_bytes(o.rows * kD, o.words == 0 ? 1 : o.words)),
        bias_(uint64_t{o.spec.experts} * std::max<uint64_t>(kD, o.spec.hidden)) {
    gguf::TestRandom random(5);
    for (float& b : bias_) b = static_cast<float>(random.bell());
    args_.spec = o.spec;
    args_.rows = o.rows;
    args_.d = args_.x_pitch = kD;
    args_.words = o.words;
    args_.x = x_.plain();
    if (o.words != 0) {
      args_.quant = quant_view(quant_.data(), o.rows * kD, o.words);
      const QuantArgs quant{args_.x, args_.quant, o.rows, kD, kD, o.words};
      reference::quant(quant, {0, items(quant)}, nullptr);
    }
    args_.router = packed(router_.rows(), o.spec.experts, kD, 1);
    args_.gate = packed(gate_.rows(), o.spec.hidden, kD, o.spec.experts);
    args_.up = packed(up_.rows(), o.spec.hidden, kD, o.spec.experts);
    args_.down = packed(down_.rows(), kD, o.spec.hidden, o.spec.experts);
    if (o.shared_hidden != 0) {
      args_.with_shared = true;
      args_.shared.gate = packed(shared_gate_.rows(), o.shared_hidden, kD, 1);
      args_.shared.up = packed(shared_up_.rows(), o.shared_hidden, kD, 1);
      args_.shared.down = packed(shared_down_.rows(), kD, o.shared_hidden, 1);
    }
    if (o.biases) args_.router_bias = args_.gate_bias = args_.up_bias = args_.down_bias = bias_.data();
    if (o.select_bias) args_.select_bias = bias_.data() + 3;
    if (o.expert_scale) args_.expert_scale = bias_.data() + 7;
  }

  // Every phase in pieces of `step` items.
  std::vector<float> run(const MoeKernels& kernels, uint64_t step) {
    std::vector<float> y(options_.rows * kD);
    const TestMemory work(moe_work(args_, nullptr).bytes), scratch(moe_scratch(args_, nullptr).bytes);
    args_.work = moe_work(args_, work.data());
    args_.y = store_rows(y.data(), kD);
    for (const MoePhase& phase : kernels.phases)
      for (uint64_t begin = 0; begin < phase.items(args_); begin += step)
        phase.run(args_, {begin, std::min(begin + step, phase.items(args_))}, scratch.data());
    return y;
  }

  std::vector<float> reference() {
    std::vector<float> y;
    reference::MoeRows weights{&router_.rows(), &gate_.rows(), &up_.rows(), &down_.rows()};
    if (options_.shared_hidden != 0) {
      weights.shared_gate = &shared_gate_.rows();
      weights.shared_up = &shared_up_.rows();
      weights.shared_down = &shared_down_.rows();
    }
    for (uint64_t r = 0; r < options_.rows; ++r) {
      const std::vector<float> row = reference::moe(args_, weights, r);
      y.insert(y.end(), row.begin(), row.end());
    }
    return y;
  }

 private:
  Packed packed(const graph::Rows& rows, uint64_t n, uint64_t k, uint64_t groups) {
    Packed w = describe(rows.format, n, k, groups);
    storage_.push_back(std::make_unique<TestMemory>(w.bytes()));
    pack(rows, w, storage_.back()->data(), 0, w.panels());
    w.data = storage_.back()->data();
    return w;
  }

  Options options_;
  TestInput x_;
  TestRows router_, gate_, up_, down_, shared_gate_, shared_up_, shared_down_;
  TestMemory quant_;
  std::vector<float> bias_;
  std::vector<std::unique_ptr<TestMemory>> storage_;
  MoeArgs args_;
};

std::vector<std::pair<std::string_view, const MoeKernels*>> mixtures_here() {
  std::vector<std::pair<std::string_view, const MoeKernels*>> kernels;
  for (const Isa isa : kIsas)
    if (supported(isa)) kernels.emplace_back(name(isa), &moe_kernels(isa));
  kernels.emplace_back("emulated avx512", &kMoeEmulatedAvx512);
  return kernels;
}

void expect_reference(const Options& options) {
  Mixture mixture(options);
  const std::vector<float> want = mixture.reference();
  for (const auto& [isa, kernels] : mixtures_here())
    for (const uint64_t step : {3, 1000}) {
      const std::vector<float> got = mixture.run(*kernels, step);
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
            << isa << ", value " << i << ": " << got[i] << ", expected " << want[i];
    }
}

TEST(Moe, HasTheReferencesBitsInEveryNumericsWithOneRowAndMany) {
  for (const int words : {0, 1, 2})
    for (const uint64_t rows : {1, 5, 19}) {
      SCOPED_TRACE(fmt::format("words {}, rows {}", words, rows));
      expect_reference({.spec = spec_of(6, 2, 256), .rows = rows, .words = words});
    }
}

TEST(Moe, TakesFloatingPointWeightsAndRaggedHiddenWidths) {
  expect_reference({.spec = spec_of(5, 3, 40),
                    .formats = {.router = Format::F32, .gate = Format::F16, .up = Format::Q8_0, .down = Format::F32},
                    .rows = 7});
}

TEST(Moe, TakesAQuantizedRouter) {
  expect_reference(
      {.spec = spec_of(8, 2, 64),
       .formats = {.router = Format::Q8_0, .gate = Format::Q3_K, .up = Format::Q5_0, .down = Format::MXFP4},
       .rows = 4});
}

TEST(Moe, RenormalizesAndScales) {
  graph::Moe spec = spec_of(8, 3, 64);
  spec.renormalize = true;
  spec.scale = 2.5F;
  expect_reference({.spec = spec, .formats = {.down = Format::Q8_0}, .rows = 3, .biases = true});
}

TEST(Moe, ScalesTheOutputsOfExperts) {
  graph::Moe spec = spec_of(8, 3, 64);
  spec.renormalize = true;
  expect_reference({.spec = spec, .formats = {.down = Format::Q8_0}, .rows = 3, .expert_scale = true});
}

TEST(Moe, LimitsTheChoiceToTheBestGroupsByScoreAndBias) {
  graph::Moe spec = spec_of(12, 4, 32);
  spec.score = graph::ScoreKind::Sigmoid;
  spec.groups = 4;
  spec.groups_kept = 2;
  spec.renormalize = true;
  expect_reference({.spec = spec, .formats = {.down = Format::Q4_0}, .rows = 9, .select_bias = true});
}

TEST(Moe, WeighsTheInputsInsteadOfTheSum) {
  graph::Moe spec = spec_of(6, 1, 64);
  spec.score = graph::ScoreKind::Sigmoid;
  spec.weigh_inputs = true;
  for (const int words : {0, 1, 2})
    expect_reference({.spec = spec, .formats = {.down = Format::Q8_0}, .rows = 5, .words = words});
}

TEST(Moe, KnowsEveryHiddenActivation) {
  graph::Moe spec = spec_of(4, 2, 64);
  spec.act = {graph::MoeAct::Kind::GeGlu, 0, 0};
  expect_reference({.spec = spec, .formats = {.down = Format::Q8_0}, .rows = 2});
  spec.act = {graph::MoeAct::Kind::ClampedSwiGlu, 7.0F, 1.702F};
  expect_reference({.spec = spec, .formats = {.down = Format::Q8_0}, .rows = 2, .biases = true});
}

TEST(Moe, AddsTheSharedExpertToTheFinishedSum) {
  for (const int words : {0, 1, 2})
    expect_reference({.spec = spec_of(6, 2, 64),
                      .formats = {.down = Format::Q8_0},
                      .rows = words == 1 ? uint64_t{17} : uint64_t{2},
                      .words = words,
                      .shared_hidden = 96});
  expect_reference({.spec = spec_of(6, 2, 64),
                    .formats = {.gate = Format::F16, .up = Format::F16, .down = Format::Q8_0},
                    .rows = 3,
                    .shared_hidden = 33,
                    .shared = {.gate = Format::F32, .up = Format::Q6_K, .down = Format::BF16}});
}

TEST(Moe, EqualScoresGoToTheLowerExpert) {
  MoeArgs args;
  args.spec = spec_of(5, 3, 32);
  args.rows = 1;
  std::vector<float> scores{0.1F, 0.3F, 0.2F, 0.3F, 0.2F}, pick_scores(3), factors(3);
  std::vector<uint32_t> picks(3);
  args.work.scores = scores.data();
  args.work.picks = picks.data();
  args.work.pick_scores = pick_scores.data();
  args.work.factors = factors.data();
  uint8_t taken[10];
  moe_choose_row(args, 0, taken);
  EXPECT_EQ(picks, (std::vector<uint32_t>{1, 3, 2}));
}

}  // namespace
}  // namespace tw::lane::cpu
