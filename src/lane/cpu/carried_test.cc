// Convolution and delta rule: every lane against the reference in bits, and the formula in double.

#include <cstring>

#include "base/half.h"
#include "lane/cpu/testing/lanes.h"

namespace tw::lane::cpu {
namespace {

using testing::expect_near;
using testing::Lane;
using testing::launch;
using testing::on_every_lane;
using testing::Random;
using testing::same_bits;

double silu(double x) { return x / (1 + std::exp(-x)); }

TEST(Conv, SiluAndLengthOverARing) {
  Random random(11);
  for (const auto& [chan, taps, rows, l2] : {std::array<uint64_t, 4>{1, 1, 1, 0},
                                             {7, 4, 1, 7},
                                             {33, 4, 3, 0},
                                             {130, 3, 9, 65},
                                             {128, 4, 5, 32},
                                             {300, 4, 21, 0},
                                             {512, 2, 6, 256},
                                             {640, 4, 3, 320},
                                             {1024, 4, 37, 128},
                                             {20, 16, 18, 20}}) {
    const uint64_t sequences = 2;
    const auto x = random.values(sequences * rows * chan), w = random.values(taps * chan),
               ring = random.values(sequences * taps * chan);
    const auto got = on_every_lane([&](const Kernels& k) {
      std::vector<float> y = ring;
      y.insert(y.end(), x.begin(), x.end());  // y may be x
      float* out = y.data() + ring.size();
      const ConvArgs a{.x = out,
                       .w = w.data(),
                       .ring = y.data(),
                       .y = out,
                       .sequences = sequences,
                       .rows = rows,
                       .chan = chan,
                       .taps = taps,
                       .l2_width = l2,
                       .l2_eps = 1e-6f,
                       .silu = true};
      launch(k.conv, a, items(a));
      return y;
    });
    std::vector<double> want(got.size());
    for (uint64_t s = 0; s < sequences; ++s) {
      const auto e = [&](uint64_t i, uint64_t c) -> double {
        return i < taps ? ring[(s * taps + i) * chan + c] : x[(s * rows + i - taps) * chan + c];
      };
      for (uint64_t t = 0; t < taps; ++t)
        for (uint64_t c = 0; c < chan; ++c) want[(s * taps + t) * chan + c] = e(rows + t, c);
      for (uint64_t r = 0; r < rows; ++r) {
        double* y = want.data() + ring.size() + (s * rows + r) * chan;
        for (uint64_t c = 0; c < chan; ++c) {
          double sum = 0;
          for (uint64_t t = 0; t < taps; ++t) sum += e(r + 1 + t, c) * w[t * chan + c];
          y[c] = silu(sum);
        }
        for (uint64_t c = 0; l2 != 0 && c < chan; c += l2) {
          double square = 0;
          for (uint64_t i = c; i < c + l2; ++i) square += y[i] * y[i];
          for (uint64_t i = c; i < c + l2; ++i) y[i] /= std::sqrt(square + 1e-6);
        }
      }
    }
    expect_near(got, want, 5e-6);
  }
}

struct DeltaShape {
  uint64_t value_heads, key_heads, d, rows, sequences;
  bool channel;
  graph::KeyHeadOf key_of;
  graph::GateKind gate;
};

// Memory, then outputs; in double.
std::vector<double> delta_formula(const DeltaShape& p, std::vector<double> state, const std::vector<float>& q,
                                  const std::vector<float>& k, const std::vector<float>& v, const std::vector<float>& z,
                                  const std::vector<float>& beta, const std::vector<float>& alpha,
                                  const std::vector<float>& norm) {
  const uint64_t d = p.d;
  std::vector<double> out(p.sequences * p.rows * p.value_heads * d);
  for (uint64_t r = 0; r < p.sequences * p.rows; ++r)
    for (uint64_t h = 0; h < p.value_heads; ++h) {
      const uint64_t g = p.key_of == graph::KeyHeadOf::Modulo ? h % p.key_heads : h / (p.value_heads / p.key_heads);
      const float* kr = k.data() + (r * p.key_heads + g) * d;
      const float* qr = q.data() + (r * p.key_heads + g) * d;
      const uint64_t unit = r * p.value_heads + h;
      double* s = state.data() + (r / p.rows * p.value_heads + h) * d * d;
      double* o = out.data() + unit * d;
      double square = 0;
      for (uint64_t i = 0; i < d; ++i) {
        double u = 0;
        for (uint64_t j = 0; j < d; ++j) u += (s[i * d + j] *= alpha[p.channel ? unit * d + j : unit]) * kr[j];
        for (uint64_t j = 0; j < d; ++j) {
          s[i * d + j] += beta[unit] * (v[unit * d + i] - u) * kr[j];
          o[i] += s[i * d + j] * qr[j] / std::sqrt(static_cast<double>(d));
        }
        square += o[i] * o[i];
      }
      for (uint64_t i = 0; i < d; ++i) {
        const double gate = 1 / (1 + std::exp(-static_cast<double>(z[unit * d + i])));
        o[i] *= norm[i] / std::sqrt(square / static_cast<double>(d) + 1e-6);
        o[i] *= p.gate == graph::GateKind::Silu ? gate * z[unit * d + i] : gate;
      }
    }
  state.insert(state.end(), out.begin(), out.end());
  return state;
}

enum class Rows : uint8_t { OneByOne, Chunks };

// Random operands of a shape, and runs over them: memory, then outputs.
struct DeltaCase {
  DeltaCase(const DeltaShape& shape, Random& random) : p(shape) {
    const uint64_t m = p.sequences * p.rows;
    const float spread = 1 / std::sqrt(static_cast<float>(p.d));
    q = random.values(m * p.key_heads * p.d, spread), k = random.values(q.size(), spread);
    v = random.values(m * p.value_heads * p.d), z = random.values(v.size()), norm = random.values(p.d);
    beta = random.between(m * p.value_heads, 0, 1);
    alpha = random.between(p.channel ? v.size() : m * p.value_heads, 0.5f, 1);
    state = random.values(p.sequences * p.value_heads * p.d * p.d, 0.3f);
  }

  DeltaArgs args(float* memory, float* out) const {
    return {.q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .z = z.data(),
            .beta = beta.data(),
            .alpha = alpha.data(),
            .norm = norm.data(),
            .state = memory,
            .o = out,
            .out = store_rows(out, p.d),
            .sequences = p.sequences,
            .rows = p.rows,
            .value_heads = p.value_heads,
            .key_heads = p.key_heads,
            .d = p.d,
            .eps = 1e-6f,
            .channel_decay = p.channel,
            .key_head_of = p.key_of,
            .gate = p.gate};
  }
  static void update(const Kernels& kernels, const DeltaArgs& a, Rows rows) {
    if (rows == Rows::Chunks)
      launch(kernels.delta_chunks, a, delta_chunks_items(a), delta_chunks_scratch_bytes());
    else
      launch(kernels.delta_update, a, delta_update_items(a));
  }
  std::vector<float> run(const Kernels& kernels, Dtype type, Rows rows) const {
    std::vector<float> y = state;
    y.resize(state.size() + v.size());
    std::vector<uint16_t> narrow(state.size());
    for (size_t i = 0; i < state.size(); ++i) narrow[i] = f32_to_bf16(state[i]);
    DeltaArgs a = args(y.data(), y.data() + state.size());
    a.state_type = type;
    if (type == Dtype::BF16) a.state = narrow.data();
    update(kernels, a, rows);
    launch(kernels.delta_norm, a, delta_norm_items(a));
    if (type == Dtype::BF16)
      for (size_t i = 0; i < state.size(); ++i) y[i] = bf16_to_f32(narrow[i]);
    return y;
  }
  std::vector<double> formula() const {
    return delta_formula(p, {state.begin(), state.end()}, q, k, v, z, beta, alpha, norm);
  }

  DeltaShape p;
  std::vector<float> q, k, v, z, norm, beta, alpha, state;
};

TEST(Delta, EveryFormEqualsTheFormula) {
  using enum graph::KeyHeadOf;
  Random random(12);
  for (const DeltaShape& p : {DeltaShape{1, 1, 1, 1, 1, false, Modulo, graph::GateKind::Silu},
                              {4, 2, 7, 3, 2, false, Modulo, graph::GateKind::Silu},
                              {4, 2, 33, 2, 1, true, Grouped, graph::GateKind::Sigmoid},
                              {2, 1, 64, 5, 1, false, Grouped, graph::GateKind::Silu},
                              {2, 2, 50, 2, 1, true, Modulo, graph::GateKind::Silu},
                              {3, 1, 128, 40, 1, false, Modulo, graph::GateKind::Silu},
                              {2, 1, 96, 9, 2, true, Grouped, graph::GateKind::Silu},
                              {1, 1, 1041, 2, 1, false, Modulo, graph::GateKind::Silu},
                              {3, 1, 40, 1, 2, false, Modulo, graph::GateKind::Silu},
                              {2, 2, 72, 1, 3, true, Grouped, graph::GateKind::Silu},
                              {4, 2, 128, 1, 2, false, Modulo, graph::GateKind::Silu},
                              {2, 1, 256, 6, 1, false, Modulo, graph::GateKind::Silu}}) {
    const DeltaCase c(p, random);
    const auto got = on_every_lane([&](const Kernels& kernels) { return c.run(kernels, Dtype::F32, Rows::OneByOne); });
    expect_near(got, c.formula(), 3e-5);
    on_every_lane([&](const Kernels& kernels) { return c.run(kernels, Dtype::BF16, Rows::OneByOne); });
  }
}

TEST(Delta, ChunksEqualTheFormula) {
  using enum graph::KeyHeadOf;
  Random random(13);
  for (const DeltaShape& p : {DeltaShape{2, 1, 32, 1, 1, false, Modulo, graph::GateKind::Silu},
                              {2, 1, 64, 31, 2, false, Grouped, graph::GateKind::Silu},
                              {4, 2, 96, 32, 1, false, Modulo, graph::GateKind::Sigmoid},
                              {4, 2, 64, 33, 2, false, Grouped, graph::GateKind::Silu},
                              {2, 1, 128, 77, 1, false, Modulo, graph::GateKind::Silu},
                              {1, 1, 256, 35, 1, false, Modulo, graph::GateKind::Silu},
                              {2, 2, 32, 512, 1, false, Modulo, graph::GateKind::Silu}}) {
    const DeltaCase c(p, random);
    const auto got = on_every_lane([&](const Kernels& kernels) { return c.run(kernels, Dtype::F32, Rows::Chunks); });
    expect_near(got, c.formula(), 3e-5);
    if (p.rows < kDeltaChunk) {
      EXPECT_TRUE(same_bits(got, c.run(reference_kernels(), Dtype::F32, Rows::OneByOne)));
    }
  }
}

// Decays down to nothing, and writes that replace what is there: no quotient of decays may be formed.
TEST(Delta, ChunksForgetAll) {
  Random random(14);
  DeltaCase c({2, 1, 64, 70, 1, false, graph::KeyHeadOf::Modulo, graph::GateKind::Silu}, random);
  for (size_t i = 0; i < c.alpha.size(); ++i) {
    if (i % 3 == 0) c.alpha[i] = i % 2 == 0 ? 0.0f : 1e-30f;
    if (i % 5 == 0) c.beta[i] = 1;
  }
  const auto got = on_every_lane([&](const Kernels& kernels) { return c.run(kernels, Dtype::F32, Rows::Chunks); });
  expect_near(got, c.formula(), 3e-5);
}

// A call that ends with a whole chunk leaves what one call over both leaves.
TEST(Delta, CutsBetweenChunksChangeNothing) {
  Random random(15);
  const DeltaCase c({4, 2, 64, 101, 1, false, graph::KeyHeadOf::Modulo, graph::GateKind::Silu}, random);
  for (const Lane& lane : testing::lanes()) {
    const auto want = c.run(*lane.kernels, Dtype::F32, Rows::Chunks);
    for (const uint64_t cut : {32, 64, 96}) {
      std::vector<float> y = c.state;
      y.resize(c.state.size() + c.v.size());
      DeltaArgs a = c.args(y.data(), y.data() + c.state.size());
      DeltaArgs rest = a;
      a.rows = cut, rest.rows -= cut;
      const uint64_t keys = cut * a.key_heads * a.d, values = cut * a.value_heads * a.d, gates = cut * a.value_heads;
      rest.q += keys, rest.k += keys, rest.v += values, rest.o += values, rest.beta += gates, rest.alpha += gates;
      DeltaCase::update(*lane.kernels, a, Rows::Chunks);
      DeltaCase::update(*lane.kernels, rest, Rows::Chunks);
      a.rows = c.p.rows;
      launch(lane.kernels->delta_norm, a, delta_norm_items(a));
      EXPECT_TRUE(same_bits(y, want)) << lane.name << ", cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace tw::lane::cpu
