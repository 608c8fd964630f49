#include "graph/testing.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "graph/builder.h"
#include "graph/evaluate.h"
#include "graph/text.h"

namespace tw::graph::testing {
namespace {

using Inputs = std::vector<TensorId>;

class Generator {
 public:
  Generator(uint64_t seed, const RandomGraphOptions& options)
      : rng_(seed), options_(options), b_(fmt::format("random.{}", seed), options.form), rows_(options.form.rows) {}

  RandomGraph run() {
    width_ = 4 * between(2, 4);
    vocabulary_ = between(5, 23);
    tokens_ = b_.param("tokens", rows_);
    for (uint32_t s = 0; s < sequences(); ++s) positions_.push_back(b_.param(own("position", sequence(s)), 1));
    TensorId h = b_.add(name("embed"), RowsGather{}, {weight(vocabulary_, width_, 1), tokens_});
    for (uint32_t i = 0; i < options_.blocks; ++i) {
      block_ = i;
      h = b_.add(name("residual"), Elementwise{}, {h, draw_block(h)});
    }
    finish(normed(h));
    return {std::move(b_).finish(), std::move(constants_), vocabulary_};
  }

 private:
  // ---- draws ----

  uint32_t between(uint32_t low, uint32_t high) { return std::uniform_int_distribution<uint32_t>(low, high)(rng_); }
  bool coin() { return between(0, 1) == 1; }
  template <class E, size_t N>
  E one_of(const std::array<E, N>& choices) {
    return choices[between(0, N - 1)];
  }

  // ---- names and constants ----

  std::string name(std::string_view what) { return own(fmt::format("b{}.{}.{}", block_, what, count_++), writing_); }
  bool batch() const { return options_.form.kind == Form::Kind::Batch; }
  uint32_t sequences() const { return batch() ? rows_ : 1; }
  std::optional<uint32_t> sequence(uint32_t s) const { return batch() ? std::optional(s) : std::nullopt; }
  static std::string own(const std::string& name, std::optional<uint32_t> s) {
    return s ? fmt::format("{}_s{}", name, *s) : name;
  }
  // Names of constants and states count apart, since the forms differ in their other tensors.
  std::string kept_name(std::string_view what) { return fmt::format("b{}.{}.{}", block_, what, kept_++); }

  TensorId values(uint32_t rows, uint32_t cols, float low, float high) {
    const std::string weight_name = kept_name("weight");
    auto list = std::make_shared<std::vector<float>>(size_t{rows} * cols);
    std::uniform_real_distribution<float> draw(low, high);
    for (float& value : *list) value = draw(rng_);
    constants_[weight_name] = Values{.f32 = std::move(list)};
    return b_.constant(weight_name, rows, cols);
  }
  TensorId weight(uint32_t rows, uint32_t cols, float most) { return values(rows, cols, -most, most); }
  TensorId matrix(uint32_t rows, uint32_t cols) { return weight(rows, cols, 1 / std::sqrt(static_cast<float>(rows))); }
  TensorId integers(uint32_t rows, uint32_t cols, int32_t low, int32_t high) {
    const std::string weight_name = kept_name("integers");
    auto list = std::make_shared<std::vector<int32_t>>(size_t{rows} * cols);
    std::uniform_int_distribution<int32_t> draw(low, high);
    for (int32_t& value : *list) value = draw(rng_);
    constants_[weight_name] = Values{.i32 = std::move(list)};
    return b_.constant(weight_name, rows, cols, Element::I32);
  }

  // ---- parts of blocks ----

  TensorId project(TensorId x, uint32_t cols) {
    return b_.add(name("project"), Matmul{}, {x, matrix(b_.at(x).cols, cols)});
  }
  TensorId activate(TensorId x, ActivationKind kind) { return b_.add(name("activate"), Activate{kind}, {x}); }
  TensorId normed(TensorId x) {
    const bool layer = coin();
    Inputs operands{x, weight(1, width_, 1), kNoTensor, layer ? weight(1, width_, 1) : kNoTensor};
    return b_.add(name("norm"), RowNorm{layer ? NormKind::Layer : NormKind::Rms, 1e-5F, 0}, operands);
  }

  // What a sequence does with its own rows of the inputs; in a batch the results are stacked again.
  using OneSequence = std::function<TensorId(const Inputs&, std::optional<uint32_t>, TensorId position)>;
  TensorId for_sequences(const Inputs& inputs, uint32_t cols, const OneSequence& body) {
    if (!batch()) return body(inputs, std::nullopt, positions_[0]);
    const TensorId stack = b_.table(name("stack"), rows_, cols);
    const uint32_t first = count_;
    for (uint32_t s = 0; s < rows_; ++s) {
      count_ = first;
      writing_ = s;
      Inputs own_rows;
      for (const TensorId input : inputs) own_rows.push_back(b_.add(name("row"), RowGather{s + 1}, {input}, s));
      b_.set_row_at(stack, body(own_rows, s, positions_[s]), s + 1);
    }
    writing_.reset();
    return stack;
  }
  // A state of the block: one name for all forms.
  TensorId state(const std::string& shared, uint32_t rows, uint32_t cols, std::optional<uint32_t> s,
                 Element element = Element::F32) {
    return b_.state(own(shared, s), rows, cols, s, element);
  }

  // ---- blocks ----

  TensorId draw_block(TensorId h) {
    using Block = TensorId (Generator::*)(TensorId);
    static constexpr std::array<Block, 9> kBlocks{
        &Generator::feed_forward, &Generator::attention,  &Generator::convolution,
        &Generator::delta,        &Generator::mixture,    &Generator::heads,
        &Generator::pointwise,    &Generator::transposed, &Generator::full};
    const uint32_t drawn = between(0, options_.integers ? 9 : 8);
    return drawn < 9 ? (this->*kBlocks[drawn])(normed(h)) : integer();
  }

  TensorId feed_forward(TensorId x) {
    constexpr std::array kKinds{ActivationKind::Silu, ActivationKind::Sigmoid,  ActivationKind::GeluTanh,
                                ActivationKind::Relu, ActivationKind::Softplus, ActivationKind::Tanh};
    const uint32_t hidden = between(3, 20);
    const TensorId gate = activate(project(x, hidden), one_of(kKinds)), up = project(x, hidden);
    const TensorId product = b_.add(name("product"), Elementwise{Arithmetic::Mul}, {gate, up});
    return project(product, width_);
  }

  TensorId attention(TensorId x) {
    const uint32_t kv = between(1, 2), heads = kv * between(1, 3), width = 2 * between(1, 4), value = between(1, 5);
    Attention op{.heads = heads, .kv_heads = kv, .scale = 1 / std::sqrt(static_cast<float>(width))};
    op.softcap = coin() ? 5.0F : 0.0F;
    if (coin()) op.window = {coin() ? Window::Kind::Sliding : Window::Kind::Chunked, between(1, 6)};
    const uint32_t half = between(1, width / 2);
    const TensorId cos = weight(options_.context, half, 1), sin = weight(options_.context, half, 1);
    const TensorId sinks = coin() ? weight(1, heads, 2) : kNoTensor;
    const std::string keys = kept_name("k_cache"), stored = kept_name("v_cache");
    const Inputs qkv{project(x, heads * width), project(x, kv * width), project(x, kv * value)};
    return project(for_sequences(qkv, heads * value,
                                 [&](const Inputs& in, std::optional<uint32_t> s, TensorId position) {
                                   const Rope rope{width, half};
                                   const TensorId q = b_.add(name("q"), rope, {in[0], cos, sin, position}, s);
                                   const TensorId k = b_.add(name("k"), rope, {in[1], cos, sin, position}, s);
                                   const TensorId k_cache = state(keys, options_.context, kv * width, s);
                                   const TensorId v_cache = state(stored, options_.context, kv * value, s);
                                   b_.set_rows(k_cache, k, position);
                                   b_.set_rows(v_cache, in[2], position);
                                   return b_.add(name("attend"), op, {q, k_cache, v_cache, position, sinks}, s);
                                 }),
                   width_);
  }

  TensorId convolution(TensorId x) {
    const uint32_t channels = between(2, 9), taps = between(1, 4);
    const std::string ring = kept_name("ring");
    const TensorId w = weight(taps, channels, 1);
    const TensorId y =
        for_sequences({project(x, channels)}, channels, [&](const Inputs& in, std::optional<uint32_t> s, TensorId) {
          return b_.add(name("conv"), CausalConv{}, {in[0], w, state(ring, taps, channels, s)}, s);
        });
    return project(activate(y, ActivationKind::Silu), width_);
  }

  TensorId delta(TensorId x) {
    const uint32_t keys = between(1, 2), heads = keys * between(1, 3), d = between(2, 6);
    const bool by_channel = coin();
    const uint32_t decays = by_channel ? heads * d : heads;
    GatedDelta op{.value_heads = heads, .key_heads = keys, .eps = 1e-5F};
    op.key_head_of = coin() ? KeyHeadOf::Modulo : KeyHeadOf::Grouped;
    op.gate = coin() ? GateKind::Silu : GateKind::Sigmoid;
    const auto unit = [&](TensorId v) { return b_.add(name("unit"), L2Norm{1e-6F, d}, {v}); };
    const TensorId q = unit(project(x, keys * d)), k = unit(project(x, keys * d));
    const TensorId v = project(x, heads * d), z = project(x, heads * d);
    const TensorId beta = activate(project(x, heads), ActivationKind::Sigmoid);
    const TensorId alpha =
        b_.add(name("decay"), Decay{}, {project(x, decays), weight(1, decays, 1), values(1, decays, -2, -0.1F)});
    const std::string memory = kept_name("memory");
    const TensorId norm = weight(1, d, 1);
    const TensorId y =
        for_sequences({q, k, v, z, beta, alpha}, heads * d, [&](Inputs in, std::optional<uint32_t> s, TensorId) {
          in.push_back(state(memory, heads * d, d, s));
          in.push_back(norm);
          return b_.add(name("delta"), op, in, s);
        });
    return project(y, width_);
  }

  TensorId mixture(TensorId x) {
    constexpr std::array kActs{MoeAct::Kind::SwiGlu, MoeAct::Kind::GeGlu, MoeAct::Kind::ClampedSwiGlu};
    const uint32_t groups = between(1, 3), experts = groups * between(1, 4), hidden = between(2, 9);
    Moe op{.experts = experts, .hidden = hidden, .groups = groups, .groups_kept = between(1, groups)};
    op.used = between(1, experts / groups * op.groups_kept);
    op.score = coin() ? ScoreKind::Softmax : ScoreKind::Sigmoid;
    op.act.kind = one_of(kActs);
    if (op.act.kind == MoeAct::Kind::ClampedSwiGlu) op.act = {op.act.kind, 7.0F, 1.702F};
    op.renormalize = coin();
    op.weigh_inputs = !op.renormalize && coin();
    op.scale = coin() ? 1.0F : 1.5F;
    const bool biased = coin();
    const auto bias = [&](uint32_t rows, uint32_t cols) { return biased ? weight(rows, cols, 0.5F) : kNoTensor; };
    const float reach = 1 / std::sqrt(static_cast<float>(width_));
    return b_.add(name("moe"), op,
                  {x, matrix(width_, experts), weight(experts * hidden, width_, reach),
                   weight(experts * hidden, width_, reach), weight(experts * width_, hidden, reach), bias(1, experts),
                   bias(experts, hidden), bias(experts, hidden), bias(experts, width_), bias(1, experts)});
  }

  TensorId heads(TensorId x) {
    const uint32_t heads = between(1, 3), in = between(2, 5), out = between(1, 4), extra = between(1, 3);
    const bool rows_out = coin(), shared = coin();
    const TensorId w = rows_out ? weight(heads * out, in, 1) : weight(heads * in, out, 1);
    const TensorId input = project(x, shared ? in : heads * in);
    const TensorId y = b_.add(name("heads"), HeadMatmul{heads, rows_out, shared}, {input, w});
    const TensorId both = b_.add(name("join"), Join{heads}, {y, project(x, heads * extra)});
    const uint32_t from = between(0, out + extra - 1);
    const HeadSlice slice{out + extra, from, between(1, out + extra - from)};
    return project(b_.add(name("slice"), slice, {both}), width_);
  }

  TensorId pointwise(TensorId x) {
    constexpr std::array kOps{Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul, Arithmetic::Min, Arithmetic::Max};
    TensorId y = b_.add(name("scale"), Scale{0.75F}, {x});
    y = b_.add(name("cap"), Softcap{2.0F}, {y});
    y = b_.add(name("broadcast"), RowBroadcast{one_of(kOps), false}, {y, weight(1, width_, 1)});
    const TensorId factor = activate(project(x, 1), ActivationKind::Exp);
    return b_.add(name("divide"), RowBroadcast{Arithmetic::Div, true}, {y, factor});
  }

  // Softmax over what were columns, one row at a time so that the rows of every form are alike.
  TensorId transposed(TensorId x) {
    const TensorId sinks = coin() ? weight(1, 1, 1) : kNoTensor;
    const TensorId p = b_.add(name("softmax"), Softmax{}, {project(x, width_), sinks});
    const TensorId turned = b_.add(name("turn"), Transpose{}, {p});
    return b_.add(name("turn_back"), Transpose{}, {turned});
  }

  TensorId full(TensorId x) {
    const uint32_t heads = between(1, 3), width = between(1, 5), value = between(1, 4), length = between(1, 7);
    const TensorId k = weight(length, heads * width, 1), v = weight(length, heads * value, 1);
    const TensorId q = project(x, heads * width);
    return project(b_.add(name("full"), FullAttention{heads, 0.5F}, {q, k, v}), width_);
  }

  // From the tokens through integers to the row of a table that an arg-max picks.
  TensorId integer() {
    const uint32_t kv = between(1, 2), heads = kv * between(1, 2), hd = between(1, 4);
    const auto small = [&](TensorId x) {
      const TensorId scaled = b_.add(name("requant"), IntRequant{77, 9}, {x});
      return b_.add(name("clamp"), IntClamp{-128, 127}, {scaled});
    };
    const TensorId embedded = b_.add(name("iembed"), RowsGather{}, {integers(vocabulary_, 8, -128, 127), tokens_});
    const TensorId hidden =
        activate(small(b_.add(name("imul"), Matmul{}, {embedded, integers(8, 8, -64, 64)})), ActivationKind::Relu);
    const TensorId sum = b_.add(name("isum"), Elementwise{}, {hidden, embedded});
    const auto part = [&](uint32_t cols) {
      return small(b_.add(name("ipart"), Matmul{}, {sum, integers(8, cols, -64, 64)}));
    };
    const TensorId q = part(heads * hd), k = part(kv * hd), v = part(kv * hd);
    const TensorId table = integers(1, 16, 1, 255);
    const TensorId picks = integers(heads * hd, 5, -64, 64), rows = weight(5, width_, 1);
    const std::string keys = kept_name("ik_cache"), stored = kept_name("iv_cache");
    return for_sequences({q, k, v}, width_, [&](const Inputs& in, std::optional<uint32_t> s, TensorId position) {
      const TensorId k_cache = state(keys, options_.context, kv * hd, s, Element::I32);
      const TensorId v_cache = state(stored, options_.context, kv * hd, s, Element::I32);
      b_.set_rows(k_cache, in[1], position);
      b_.set_rows(v_cache, in[2], position);
      TensorId all = kNoTensor;
      // One query row at a time; the rows of a chunk after the first see no more positions than the first.
      const uint32_t count = b_.at(in[0]).rows;
      const TensorId mixed = count == 1 ? kNoTensor : b_.table(name("mixed"), count, heads * hd, Element::I32);
      for (uint32_t r = 1; r <= count; ++r) {
        const TensorId row = count == 1 ? in[0] : b_.add(name("irow"), RowGather{r}, {in[0]}, s);
        all = b_.add(name("lut"), LutAttention{heads, kv, 3, 6}, {row, k_cache, v_cache, table, position}, s);
        if (count > 1) b_.set_row_at(mixed, all, r);
      }
      if (count > 1) all = mixed;
      const TensorId logits = b_.add(name("ilogits"), Matmul{}, {all, picks}, s);
      const TensorId pick = b_.add(name("pick"), ArgMax{}, {logits}, s);
      return b_.add(name("picked"), RowsGather{}, {rows, pick}, s);
    });
  }

  void finish(TensorId h) {
    b_.io().tokens = tokens_;
    const TensorId head = matrix(width_, vocabulary_);
    const auto close = [&](TensorId rows, std::optional<uint32_t> s, TensorId position) {
      const TensorId logits = b_.add(own("logits", s), Matmul{}, {rows, head}, s);
      const TensorId next = b_.add(own("next", s), ArgMax{}, {logits}, s);
      b_.io().sequences.push_back({position, logits, next});
    };
    if (batch()) {
      for (uint32_t s = 0; s < rows_; ++s) close(b_.add(own("last", s), RowGather{s + 1}, {h}, s), s, positions_[s]);
    } else if (rows_ > 1 && !options_.form.all_logits) {
      close(b_.add("last", RowGather{rows_}, {h}), {}, positions_[0]);
    } else {
      close(h, {}, positions_[0]);
    }
  }

  std::mt19937_64 rng_;
  RandomGraphOptions options_;
  GraphBuilder b_;
  Constants constants_;
  uint32_t rows_, width_ = 0, vocabulary_ = 0, block_ = 0, count_ = 0, kept_ = 0;
  TensorId tokens_ = kNoTensor;
  std::vector<TensorId> positions_;
  std::optional<uint32_t> writing_;  // the sequence of a batch whose own tensors are being written
};

}  // namespace

RandomGraph random_graph(uint64_t seed, const RandomGraphOptions& options) { return Generator(seed, options).run(); }

std::vector<int32_t> random_tokens(uint64_t seed, uint32_t vocabulary, uint32_t count) {
  std::mt19937_64 rng(seed);
  std::uniform_int_distribution<int32_t> draw(1, static_cast<int32_t>(vocabulary));
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = draw(rng);
  return tokens;
}

Result<std::vector<double>> value_of(std::string_view text, std::string_view tensor, const NamedValues& params,
                                     NamedValues* kept) {
  TW_TRY(const ParsedGraph parsed, parse(fmt::format("graph test decode\n{}", text), "test"));
  Environment environment = make_environment(parsed.constants);
  if (kept) environment.values = *kept;
  for (const auto& [name, values] : params) environment.values[name] = values;
  TW_TRY_VOID(evaluate(parsed.graph, environment));
  if (kept) *kept = environment.values;
  return environment.values[std::string(tensor)];
}

}  // namespace tw::graph::testing
