#include "lane/work.h"

#include <algorithm>

#include "gguf/format.h"

namespace tw::lane {

namespace {

Work matrix(gguf::Format format, uint64_t k, uint64_t n, uint64_t rows) {
  return {gguf::bytes_of(format, k) * n, k * n * rows};
}
Work sum(const Work& a, const Work& b) { return {a.weight_bytes + b.weight_bytes, a.products + b.products}; }

Work of(const Gemv& l) { return matrix(l.format, l.k, l.n, l.m); }
Work of(const GemvF32& l) { return matrix(l.format, l.k, l.n, l.m); }
Work of(const GemmParts& l) {
  Work all;
  for (const GemmPart& part : l.parts) all = sum(all, matrix(l.format, l.k, part.n, l.m));
  return all;
}
Work of(const GemvGlu& l) { return sum(matrix(l.formats[0], l.k, l.n, l.m), matrix(l.formats[1], l.k, l.n, l.m)); }
Work of(const HeadGemv& l) {
  return {
      gguf::bytes_of(l.format.value_or(gguf::Format::F32), l.rows_out ? l.a : l.b) * l.heads * (l.rows_out ? l.b : l.a),
      l.m * l.heads * l.a * l.b};
}
Work of(const Moe& l) {
  Work all = matrix(l.router_format, l.d, l.spec.experts, l.rows);
  const uint64_t hidden = l.spec.hidden, picks = l.rows * l.spec.used;
  const uint64_t read = std::min<uint64_t>(l.spec.experts, picks);  // experts whose weights are read
  for (const Work& one : {matrix(l.formats[0], l.d, hidden, 1), matrix(l.formats[1], l.d, hidden, 1),
                          matrix(l.formats[2], hidden, l.d, 1)}) {
    all = sum(all, {one.weight_bytes * read, one.products * picks});
  }
  if (l.shared) {
    all = sum(all, matrix(l.shared->formats[0], l.d, l.shared->hidden, l.rows));
    all = sum(all, matrix(l.shared->formats[1], l.d, l.shared->hidden, l.rows));
    all = sum(all, matrix(l.shared->formats[2], l.shared->hidden, l.d, l.rows));
  }
  return all;
}
Work of(const GateProj& l) { return {2 * 4 * l.k * l.heads, 2 * l.k * l.heads}; }
Work of(const Fold& l) { return sum(work_of(l.first()), work_of(l.then())); }
template <class L>
Work of(const L&) {
  return {};
}

}  // namespace

Work work_of(const Launch& launch) {
  return std::visit([](const auto& l) { return of(l); }, launch);
}

Work work_of(const Schedule& schedule) {
  Work all;
  for (const Planned& planned : schedule.launches) all = sum(all, work_of(planned.launch));
  return all;
}

}  // namespace tw::lane
