#include "lane/launch.h"

#include "base/check.h"

namespace tw::lane {

std::string_view name(Numerics numerics) {
  switch (numerics) {
    case Numerics::Precise: return "precise";
    case Numerics::Int8: return "int8";
    case Numerics::Int8x2: return "int8x2";
  }
  return "?";
}

std::optional<Numerics> parse_numerics(std::string_view text) {
  for (const Numerics numerics : {Numerics::Precise, Numerics::Int8, Numerics::Int8x2}) {
    if (text == name(numerics)) return numerics;
  }
  return std::nullopt;
}

std::string_view name(Order order) { return order == Order::Strict ? "strict" : "fast-delta"; }

std::optional<Order> parse_order(std::string_view text) {
  for (const Order order : {Order::Strict, Order::FastDelta}) {
    if (text == name(order)) return order;
  }
  return std::nullopt;
}

std::string_view name(Dtype dtype) {
  switch (dtype) {
    case Dtype::F32: return "f32";
    case Dtype::I32: return "i32";
    case Dtype::F16: return "f16";
    case Dtype::BF16: return "bf16";
  }
  return "?";
}

namespace {

bool is_float(gguf::Format format) {
  return format == gguf::Format::F32 || format == gguf::Format::F16 || format == gguf::Format::BF16;
}

}  // namespace

bool Moe::reads_plain() const {
  const bool shared_does = shared && (is_float(shared->formats[0]) || is_float(shared->formats[1]));
  return is_float(router_format) || is_float(formats[0]) || is_float(formats[1]) || spec.weigh_inputs || shared_does;
}

bool Moe::reads_quantized() const {
  const bool shared_does = shared && (!is_float(shared->formats[0]) || !is_float(shared->formats[1]));
  return !is_float(router_format) || shared_does ||
         (!spec.weigh_inputs && (!is_float(formats[0]) || !is_float(formats[1])));
}

bool GemmParts::reads_plain() const { return is_float(format); }
bool GemvGlu::reads_plain() const { return is_float(formats[0]) || is_float(formats[1]); }
bool GemvGlu::reads_quantized() const { return !is_float(formats[0]) || !is_float(formats[1]); }

const Launch& Fold::first() const {
  TW_CHECK(parts.size() == 2, "a fold holds {} launches, 2 expected", parts.size());
  return parts[0];
}

const Launch& Fold::then() const {
  TW_CHECK(parts.size() == 2, "a fold holds {} launches, 2 expected", parts.size());
  return parts[1];
}

bool operator==(const Fold& a, const Fold& b) { return a.parts == b.parts; }

namespace {

std::string_view kind_of_fold(const Fold& fold) {
  if (std::holds_alternative<Gather>(fold.first())) return "gather_norm";
  if (std::holds_alternative<RopeParts>(fold.then())) return "gemv_rope";
  const auto* inner = std::get_if<Fold>(&fold.first());
  const Launch& head = inner != nullptr ? inner->first() : fold.first();
  return std::holds_alternative<Moe>(head) ? "moe_norm" : "gemv_norm";
}

}  // namespace

std::string_view kind_of(const Launch& launch) {
  return std::visit(
      []<class L>(const L& l) -> std::string_view {
        if constexpr (std::is_same_v<L, Fold>) {
          return kind_of_fold(l);
        } else if constexpr (std::is_same_v<L, GemmParts>) {
          return l.m > 16 && !l.batch ? "gemm_parts" : L::kKind;
        } else {
          return L::kKind;
        }
      },
      launch);
}

}  // namespace tw::lane
