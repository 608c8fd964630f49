#include <algorithm>
#include <vector>

#include "base/check.h"
#include "graph/call.h"
#include "graph/functions.h"

namespace tw::graph {
namespace {

// Of the first `count` positions, how many of the oldest the window leaves out. Requires count > 0.
uint64_t left_out(const Window& window, uint64_t count) {
  switch (window.kind) {
    case Window::Kind::None: return 0;
    case Window::Kind::Sliding: return count - std::min<uint64_t>(count, window.size);
    case Window::Kind::Chunked: return (count - 1) / window.size * window.size;
  }
  TW_CHECK(false, "window kind {}", static_cast<int>(window.kind));
}

struct Head {
  std::span<const double> query;
  uint64_t key_head;
  uint64_t first, last;  // the kept positions, last excluded
  std::optional<double> sink;
};

// The weighted sum of one query head, added to `out`.
void attend(const Attention& op, const Call& call, const Head& head, std::span<double> out) {
  const Matrix k = call["k"], v = call["v"];
  std::vector<double> weights;
  for (uint64_t j = head.first; j < head.last; ++j) {
    const double score = op.scale * dot(head.query, k.unit(j, head.key_head, head.query.size()));
    weights.push_back(op.softcap > 0 ? softcapped(score, op.softcap) : score);
  }
  softmax(weights, head.sink);
  for (uint64_t j = head.first; j < head.last; ++j) {
    const auto value = v.unit(j, head.key_head, out.size());
    for (uint64_t e = 0; e < out.size(); ++e) out[e] += weights[j - head.first] * value[e];
  }
}

}  // namespace

Result<void> evaluate_op(const Attention& op, Call& call) {
  const Matrix q = call["q"], k = call["k"];
  const MutableMatrix out = call.out();
  const bool causal = call.has("position");
  uint64_t position = 0;
  if (causal) {
    TW_TRY(position, call.item("position", 0, k.rows + 1 - q.rows));
  }
  for (uint64_t r = 0; r < q.rows; ++r) {
    const uint64_t count = causal ? position + r : k.rows;
    for (uint64_t h = 0; h < op.heads; ++h) {
      const Head head{q.unit(r, h, q.cols / op.heads), h / (op.heads / op.kv_heads), left_out(op.window, count), count,
                      call.has("sinks") ? std::optional(call["sinks"](0, h)) : std::nullopt};
      attend(op, call, head, out.unit(r, h, out.cols / op.heads));
    }
  }
  return {};
}

Result<void> evaluate_op(const FullAttention& op, Call& call) {
  const Matrix q = call["q"], k = call["k"];
  const MutableMatrix out = call.out();
  const Attention plain{.heads = op.heads, .kv_heads = op.heads, .scale = op.scale, .softcap = 0, .window = {}};
  for (uint64_t r = 0; r < q.rows; ++r)
    for (uint64_t h = 0; h < op.heads; ++h)
      attend(plain, call, {q.unit(r, h, q.cols / op.heads), h, 0, k.rows, std::nullopt},
             out.unit(r, h, out.cols / op.heads));
  return {};
}

Result<void> evaluate_op(const LutAttention& op, Call& call) {
  const Matrix q = call["q"], k = call["k"], v = call["v"], table = call["table"];
  const MutableMatrix out = call.out();
  const uint64_t width = q.cols / op.heads, value_width = out.cols / op.heads;
  TW_TRY(const uint64_t count, call.item_or("position", k.rows, k.rows));
  for (uint64_t h = 0; h < op.heads; ++h) {
    const uint64_t key_head = h / (op.heads / op.kv_heads);
    std::vector<Integer> scores(count);
    for (uint64_t j = 0; j < count; ++j)
      for (uint64_t e = 0; e < width; ++e)
        scores[j] += static_cast<Integer>(q.unit(0, h, width)[e]) * static_cast<Integer>(k.unit(j, key_head, width)[e]);
    const Integer most = *std::ranges::max_element(scores);
    std::vector<Integer> sums(value_width);
    Integer total = 0;
    for (uint64_t j = 0; j < count; ++j) {
      const Integer step = ((most - scores[j]) * op.multiplier) >> op.shift;
      const Integer entry = std::clamp<Integer>(step, 0, static_cast<Integer>(table.cols) - 1);
      const Integer weight = static_cast<Integer>(table(0, static_cast<uint64_t>(entry)));
      total += weight;
      for (uint64_t e = 0; e < value_width; ++e)
        sums[e] += weight * static_cast<Integer>(v.unit(j, key_head, value_width)[e]);
    }
    if (total == 0) return call.refuse_result(RefusalKind::Malformed, "the weights of a head sum to 0");
    for (uint64_t e = 0; e < value_width; ++e) {
      const std::optional<int32_t> fits = as_i32(floor_div(sums[e], total));
      if (!fits) return call.refuse_result(RefusalKind::TooLarge, "a weighted sum does not fit an i32");
      out.unit(0, h, value_width)[e] = *fits;
    }
  }
  return {};
}

}  // namespace tw::graph
