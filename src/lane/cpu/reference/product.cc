#include "lane/cpu/reference/product.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gguf/decode.h"

namespace tw::lane::cpu::reference {
namespace {

// A block's integer quantity under each word, and the f32 it stands for.
struct Words {
  int64_t high = 0;
  int64_t low = 0;
  [[nodiscard]] float value(int words) const {
    const auto h = static_cast<float>(high);
    return words == 1 ? h : std::fma(256.0F, h, static_cast<float>(low));
  }
};

Words weighted(int32_t first, const Words& a, int32_t second, const Words& b) {
  return {first * a.high + second * b.high, first * a.low + second * b.low};
}
Words sum(const Words& a, const Words& b) { return weighted(1, a, 1, b); }

float add_term(const gguf::IntRun& run, gguf::RunForm form, const QuantView& quant, uint64_t block, int words,
               float a) {
  Words dot[2], plain[2];  // S and X of each half
  for (uint32_t i = 0; i < 32; ++i) {
    const uint64_t at = block * 32 + i;
    dot[i / 16].high += run.q[i] * quant.high[at];
    plain[i / 16].high += quant.high[at];
    if (words == 2) dot[i / 16].low += run.q[i] * quant.low[at];
    if (words == 2) plain[i / 16].low += quant.low[at];
  }
  const float d = quant.scale[block];
  const Words whole = sum(dot[0], dot[1]);
  const float scale = run.d[0] * static_cast<float>(run.sc[0]);
  switch (form) {
    case gguf::RunForm::Scale: return std::fma(scale * d, whole.value(words), a);
    case gguf::RunForm::ScaleMin:
      a = std::fma(scale * d, whole.value(words), a);
      return std::fma(-((run.dmin * static_cast<float>(run.m[0])) * d), sum(plain[0], plain[1]).value(words), a);
    case gguf::RunForm::HalfScales:
      return std::fma(run.d[0] * d, weighted(run.sc[0], dot[0], run.sc[1], dot[1]).value(words), a);
    case gguf::RunForm::HalfScalesMin:
      a = std::fma(run.d[0] * d, weighted(run.sc[0], dot[0], run.sc[1], dot[1]).value(words), a);
      return std::fma(-(run.dmin * d), weighted(run.m[0], plain[0], run.m[1], plain[1]).value(words), a);
    case gguf::RunForm::HalfBases:
      a = std::fma(run.d[0] * d, dot[0].value(words), a);
      return std::fma(run.d[1] * d, dot[1].value(words), a);
  }
  return a;
}

float quantized(const graph::Rows& rows, uint64_t o, const ProductArgs& args, uint64_t r) {
  const uint64_t blocks = rows.row_values / 32;
  std::vector<gguf::IntRun> runs(blocks);
  gguf::decode_runs(rows.format, rows.row(o), 0, runs);
  float total = 0;
  for (uint64_t segment = 0; segment < blocks; segment += 16) {
    float a = 0;
    for (uint64_t b = segment; b < std::min(segment + 16, blocks); ++b)
      a = add_term(runs[b], gguf::run_form(rows.format), args.quant, r * blocks + b, args.words, a);
    total = total + a;
  }
  return total;
}

// CC(segment) of w and x in T.
template <class T>
T chain_of_chains(const std::vector<T>& w, const float* x, uint64_t segment) {
  T total = 0;
  for (uint64_t begin = 0; begin < w.size(); begin += segment) {
    T a = 0;
    for (uint64_t t = begin; t < std::min<uint64_t>(begin + segment, w.size()); ++t) a = std::fma(w[t], T{x[t]}, a);
    total = total + a;
  }
  return total;
}

}  // namespace

float product(const graph::Rows& rows, uint64_t o, const ProductArgs& args, uint64_t r) {
  const bool block_format = gguf::is_quantized(rows.format);
  const float* x = static_cast<const float*>(args.x) + r * args.x_pitch;
  if (args.words == 0) {
    std::vector<double> w(rows.row_values);
    gguf::dequantize_exact(rows.format, rows.row(o), w.data(), w.size());
    return static_cast<float>(chain_of_chains(w, x, block_format ? 512 : 64));
  }
  if (block_format) return quantized(rows, o, args, r);
  std::vector<float> w(rows.row_values);
  gguf::dequantize(rows.format, rows.row(o), w.data(), w.size());
  return chain_of_chains(w, x, 64);
}

}  // namespace tw::lane::cpu::reference
