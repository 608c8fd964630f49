#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "graph/infer.h"

namespace tw::graph {
namespace {

class Faults {
 public:
  template <class T>
  void expect(bool holds, std::string_view field, T found, std::string_view expected) {
    if (!holds) list.push_back(fmt::format("field {} is {}, expected {}", field, found, expected));
  }
  void at_least_one(std::string_view field, uint32_t found) { expect(found >= 1, field, found, "at least 1"); }
  void positive(std::string_view field, float found) {
    expect(!(found <= 0), field, found, "a number above 0");  // an undefined one is non_finite_fields' business
  }
  // `whole` is cut into `parts` equal parts.
  void divides(std::string_view field, uint32_t parts, std::string_view of, uint32_t whole) {
    at_least_one(field, parts);
    if (parts >= 1) expect(whole % parts == 0, field, parts, fmt::format("a divisor of {} ({})", of, whole));
  }
  void shift(uint32_t found) { expect(found < 63, "shift", found, "at most 62"); }

  std::vector<std::string> list;
};

template <class Op>
void check(const Op&, Faults&) {}

void check(const HeadMatmul& op, Faults& f) { f.at_least_one("heads", op.heads); }
void check(const Softcap& op, Faults& f) { f.positive("cap", op.cap); }
void check(const IntRequant& op, Faults& f) { f.shift(op.shift); }
void check(const IntClamp& op, Faults& f) {
  f.expect(op.low <= op.high, "low", op.low, fmt::format("at most high ({})", op.high));
}
void check(const HeadSlice& op, Faults& f) {
  f.at_least_one("every", op.every);
  f.at_least_one("width", op.width);
  f.expect(uint64_t{op.from} + op.width <= op.every, "from", op.from,
           fmt::format("at most {}: the slice of {} ends within {}", int64_t{op.every} - op.width, op.width, op.every));
}
void check(const Join& op, Faults& f) { f.at_least_one("heads", op.heads); }
void check(const RowNorm& op, Faults& f) { f.positive("eps", op.eps); }
void check(const L2Norm& op, Faults& f) { f.positive("eps", op.eps); }
void check(const Rope& op, Faults& f) {
  f.at_least_one("width", op.width);
  f.at_least_one("half", op.half);
  f.expect(uint64_t{op.half} * 2 <= op.width, "half", op.half, fmt::format("at most half of width ({})", op.width));
}
void check(const Attention& op, Faults& f) {
  f.at_least_one("heads", op.heads);
  f.divides("kv_heads", op.kv_heads, "heads", op.heads);
  f.expect(!(op.softcap < 0), "softcap", op.softcap, "0 (none) or above");
  const bool windowed = op.window.kind != Window::Kind::None;
  f.expect(windowed == (op.window.size > 0), "window", op.window.size,
           windowed ? "a size of at least 1" : "size 0 without a window");
}
void check(const FullAttention& op, Faults& f) { f.at_least_one("heads", op.heads); }
void check(const LutAttention& op, Faults& f) {
  f.at_least_one("heads", op.heads);
  f.divides("kv_heads", op.kv_heads, "heads", op.heads);
  f.shift(op.shift);
}
void check(const GatedDelta& op, Faults& f) {
  f.at_least_one("value_heads", op.value_heads);
  f.divides("key_heads", op.key_heads, "value_heads", op.value_heads);
  f.positive("eps", op.eps);
}
void check(const Moe& op, Faults& f) {
  f.at_least_one("experts", op.experts);
  f.expect(op.used >= 1 && op.used <= op.experts, "used", op.used, fmt::format("1 to experts ({})", op.experts));
  f.at_least_one("hidden", op.hidden);
  const bool clamped = op.act.kind == MoeAct::Kind::ClampedSwiGlu;
  f.expect(clamped ? !(op.act.limit <= 0) : op.act.limit == 0, "act", op.act.limit,
           clamped ? "a limit above 0" : "limit 0 without a clamp");
  f.expect(clamped || op.act.slope == 0, "act", op.act.slope, "slope 0 without a clamp");
  f.expect(!(op.weigh_inputs && op.renormalize), "weigh_inputs", op.weigh_inputs,
           "false with renormalize: the inputs are weighed before the sum of weights is known");
  f.divides("groups", op.groups, "experts", op.experts);
  f.expect(op.groups_kept >= 1 && op.groups_kept <= op.groups, "groups_kept", op.groups_kept,
           fmt::format("1 to groups ({})", op.groups));
  if (op.groups >= 1) {
    const uint64_t left = uint64_t{op.experts} / op.groups * op.groups_kept;
    f.expect(op.used <= left, "used", op.used, fmt::format("at most the {} experts of the kept groups", left));
  }
}

bool finite(float value) { return std::isfinite(value); }
bool finite(const MoeAct& act) { return finite(act.limit) && finite(act.slope); }
template <class T>
bool finite(const T&) {
  return true;
}

}  // namespace

std::vector<std::string> field_faults(const OpSpec& spec) {
  Faults faults;
  std::visit([&](const auto& op) { check(op, faults); }, spec);
  return std::move(faults.list);
}

std::vector<std::string> non_finite_fields(const OpSpec& spec) {
  std::vector<std::string> faults;
  std::visit(
      [&](const auto& op) {
        for_each_field<std::decay_t<decltype(op)>>([&](const auto& field) {
          if (!finite(op.*field.member)) faults.push_back(fmt::format("field {} is not a finite number", field.name));
        });
      },
      spec);
  return faults;
}

}  // namespace tw::graph
