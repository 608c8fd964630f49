#include "lane/cpu/shim.h"

#include <fmt/format.h>

#include "lane/cpu/attention.h"
#include "lane/cpu/product.h"

namespace tw::lane::cpu {

namespace {

using Why = std::optional<std::string>;

// A quantized store needs whole blocks of one row from whoever computes them.
Why whole_blocks(const OutForms& forms, uint64_t width, std::string_view what) {
  if (!forms.quantized || width % kQuantBlock == 0) return std::nullopt;
  return fmt::format("it would quantize {} of {} values, which are no whole blocks of {}", what, width, kQuantBlock);
}

Why refuses(const Norm& l) { return whole_blocks(l.forms, l.cols, "rows"); }
Why refuses(const Binary& l) { return whole_blocks(l.forms, l.row == 0 ? l.n : l.row, "rows"); }
Why refuses(const SwiGlu& l) { return whole_blocks(l.forms, l.n, "a result"); }
Why refuses(const Gemv& l) { return whole_blocks(l.out, l.n, "rows"); }
Why refuses(const GemvGlu& l) { return whole_blocks(l.forms, l.n, "rows"); }
Why refuses(const Attention& l) { return whole_blocks(l.forms, l.vd, "heads"); }
Why refuses(const Delta& l) { return whole_blocks(l.forms, l.d, "heads"); }
template <class L>
Why refuses(const L&) {
  return std::nullopt;
}

// Whether who made a row goes on with it; else the last thread to end goes on with everything.
bool by_row(const Fold& l) { return kind_of(l) == "gather_norm" || kind_of(l) == "moe_norm"; }

Why refuses(const Fold& l) {
  for (const Launch& part : l.parts) {
    if (auto why = std::visit([](const auto& inner) { return refuses(inner); }, part)) return why;
  }
  const auto* norm = std::get_if<Norm>(&l.then());
  if (norm != nullptr && norm->rows > 1 && !by_row(l)) {
    return fmt::format("one thread would norm all {} rows", norm->rows);
  }
  return std::nullopt;
}

std::string product_path(Numerics numerics, uint64_t rows) {
  if (!quantizes(numerics)) return "weights widened, sums in f64";
  if (rows == 1) return "packed tiles, one row";
  if (rows < kBlockFrom) return fmt::format("packed tiles, {} rows two by two", rows);
  return fmt::format("packed tiles, weights unpacked once for {} rows", rows);
}

std::string path(const Gemv& l, Numerics n) { return product_path(n, l.m); }
std::string path(const GemmParts& l, Numerics n) { return product_path(n, l.m); }
std::string path(const GemvGlu& l, Numerics n) { return product_path(n, l.m); }
std::string path(const GemvF32& l, Numerics n) {
  return quantizes(n) ? "floating-point weights, sums in f32" : product_path(n, l.m);
}
std::string path(const Moe& l, Numerics) {
  return l.rows == 1 ? "one row" : fmt::format("{} rows grouped by expert", l.rows);
}
std::string path(const Attention& l, Numerics) {
  return l.rows <= kFewAttentionRows ? "by chunks of the cache, merged after"
                                     : fmt::format("by tiles of its {} rows", l.rows);
}
std::string path(const Delta& l, Numerics) {
  if (!l.chunk) return l.rows == 1 ? "one row" : fmt::format("{} rows one after the other", l.rows);
  const uint64_t rest = l.rows % *l.chunk;
  return fmt::format("{} chunks of {} rows{}", l.rows / *l.chunk, *l.chunk,
                     rest == 0 ? "" : fmt::format(", then {} one after the other", rest));
}
template <class L>
std::string path(const L&, Numerics) {
  return {};
}
std::string path(const Fold& l, Numerics n) {
  const std::string first = std::visit([n](const auto& inner) { return path(inner, n); }, l.first());
  return fmt::format("{}{}the rest by {}", first, first.empty() ? "" : "; ",
                     by_row(l) ? "who made the row" : "the last thread to end");
}

class CpuShim final : public fuse::Shim {
 public:
  [[nodiscard]] Why refuses(const Launch& launch, Numerics) const override {
    return std::visit([](const auto& l) { return cpu::refuses(l); }, launch);
  }
  [[nodiscard]] std::string path(const Launch& launch, Numerics numerics) const override {
    return std::visit([numerics](const auto& l) { return cpu::path(l, numerics); }, launch);
  }
};

}  // namespace

const fuse::Shim& shim() {
  static const CpuShim the;
  return the;
}

}  // namespace tw::lane::cpu
