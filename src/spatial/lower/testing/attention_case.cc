#include "spatial/lower/testing/attention_case.h"

namespace tw::spatial::lower::testing {

OpCase attention(const AttentionSetting& s, uint64_t seed) {
  const uint64_t value_width = s.value_width == 0 ? s.key_width : s.value_width;
  OpCase made{
      graph::Attention{.heads = static_cast<uint32_t>(s.heads),
                       .kv_heads = static_cast<uint32_t>(s.kv_heads),
                       .scale = s.scale,
                       .softcap = s.softcap,
                       .window = s.window},
      {reals("q", s.rows, s.heads * s.key_width, seed), reals("k", s.cached, s.kv_heads * s.key_width, seed + 1),
       reals("v", s.cached, s.kv_heads * value_width, seed + 2), std::nullopt, std::nullopt}};
  if (s.position) made.operands[3] = s.literal ? literal_index("p", *s.position) : index("p", *s.position, s.cached);
  if (s.sinks) made.operands[4] = reals("s", 1, s.heads, seed + 3, s.sink - 1, s.sink + 1);
  return made;
}

OpCase full_attention(uint64_t rows, uint64_t heads, uint64_t width, uint64_t seed) {
  return {graph::FullAttention{.heads = static_cast<uint32_t>(heads), .scale = 0.5F},
          {reals("q", rows, heads * width, seed), reals("k", rows, heads * width, seed + 1),
           reals("v", rows, heads * width, seed + 2)}};
}

CaseOperand literal_index(std::string name, int64_t value) {
  CaseOperand made = index(std::move(name), value);
  made.tensor.fill = IntegerInit{value};
  made.tensor.constant = true;
  return made;
}

graph::Window sliding(uint32_t size) { return {graph::Window::Kind::Sliding, size}; }
graph::Window chunked(uint32_t size) { return {graph::Window::Kind::Chunked, size}; }

}  // namespace tw::spatial::lower::testing
