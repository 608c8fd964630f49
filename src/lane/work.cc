#include "lane/work.h"

#include <algorithm>

#include "gguf/format.h"

namespace tw::lane {

namespace {

Work matrix(gguf::Format format, uint64_t k, uint64_t n, uint64_t rows) {
  return {gguf::bytes_of(format, k) * n, 0, k * n * rows};
}
Work sum(Work a, const Work& b) { return a += b; }

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
      0, l.m * l.heads * l.a * l.b};
}
Work of(const Moe& l) {
  Work all = matrix(l.router_format, l.d, l.spec.experts, l.rows);
  const uint64_t hidden = l.spec.hidden, picks = l.rows * l.spec.used;
  const uint64_t read = std::min<uint64_t>(l.spec.experts, picks);  // experts whose weights are read
  for (const Work& one : {matrix(l.formats[0], l.d, hidden, 1), matrix(l.formats[1], l.d, hidden, 1),
                          matrix(l.formats[2], hidden, l.d, 1)}) {
    all = sum(all, {one.weight_bytes * read, 0, one.products * picks});
  }
  if (l.shared) {
    all = sum(all, matrix(l.shared->formats[0], l.d, l.shared->hidden, l.rows));
    all = sum(all, matrix(l.shared->formats[1], l.d, l.shared->hidden, l.rows));
    all = sum(all, matrix(l.shared->formats[2], l.shared->hidden, l.d, l.rows));
  }
  return all;
}
Work of(const GateProj& l) { return {2 * 4 * l.k * l.heads, 0, 2 * l.k * l.heads}; }
Work of(const Fold& l) { return sum(work_of(l.first()), work_of(l.then())); }
template <class L>
Work of(const L&) {
  return {};
}

// ---- carried memory ----

struct Carried {
  const Schedule& schedule;
  std::span<const uint32_t> before;

  [[nodiscard]] uint64_t value_bytes(BufferId id) const {
    return present(id) ? bytes_of(schedule.at(span_of(schedule, id).root).dtype) : 0;
  }
  // Positions that sequence s had taken.
  [[nodiscard]] uint64_t taken(uint64_t s) const { return s < before.size() ? before[s] : 0; }
};

struct Attended {
  uint64_t begin = 0, end = 0;
};

// What the row that comes after `taken` positions attends.
Attended attended(const Attention& l, uint64_t taken) {
  const uint64_t n = present(l.position) ? std::min(taken + 1, l.len) : l.len;
  const uint64_t size = l.window.size;
  if (n == 0 || size == 0 || l.window.kind == graph::Window::Kind::None) return {0, n};
  if (l.window.kind == graph::Window::Kind::Sliding) return {n > size ? n - size : 0, n};
  return {(n - 1) / size * size, n};
}

Work carried(const Attention& l, const Carried& c) {
  const bool batch = l.next_sequence != 0;
  const uint64_t own = c.schedule.at(span_of(c.schedule, l.k).root).sequence.value_or(0);
  uint64_t read = 0, pairs = 0;
  Attended all{UINT64_MAX, 0};
  for (uint64_t r = 0; r < l.rows; ++r) {
    const Attended one = attended(l, batch ? c.taken(r) : c.taken(own) + r);
    pairs += one.end - one.begin;
    if (batch) {
      read += one.end - one.begin;
    } else {
      all = {std::min(all.begin, one.begin), std::max(all.end, one.end)};
    }
  }
  if (!batch && all.begin < all.end) read = all.end - all.begin;
  const uint64_t kv_heads = l.heads / std::max<uint64_t>(l.group, 1);
  uint64_t position = kv_heads * l.vd * c.value_bytes(l.v);
  if (l.split) {
    position += kv_heads * l.split->own * c.value_bytes(l.k) + (l.hd - l.split->own) * c.value_bytes(l.split->k_tail);
  } else if (l.k != l.v) {
    position += kv_heads * l.hd * c.value_bytes(l.k);
  } else {  // values that are a part of the key rows
    position = std::max(position, kv_heads * l.hd * c.value_bytes(l.k));
  }
  return {0, read * position, pairs * l.heads * (l.hd + l.vd)};
}
Work carried(const Delta& l, const Carried& c) {
  const uint64_t memory = l.sequences * l.value_heads * l.d * l.d;
  return {0, memory * c.value_bytes(l.state), 3 * memory * l.rows};  // against k, into the memory, against q
}
Work ring(uint64_t sequences, uint64_t rows, uint64_t channels, uint64_t taps) {
  return {0, sequences * channels * taps * sizeof(float), sequences * rows * channels * taps};
}
Work carried(const Conv& l, const Carried&) { return ring(l.sequences, l.rows, l.chan, l.taps); }
Work carried(const ConvParts& l, const Carried&) {
  Work all;
  for (const ConvPart& part : l.parts) all += ring(l.sequences, 1, part.chan, l.taps);
  return all;
}
Work carried_by(const Launch& launch, const Carried& c);
Work carried(const Fold& l, const Carried& c) { return sum(carried_by(l.first(), c), carried_by(l.then(), c)); }
template <class L>
Work carried(const L&, const Carried&) {
  return {};
}
Work carried_by(const Launch& launch, const Carried& c) {
  return std::visit([&](const auto& l) { return carried(l, c); }, launch);
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  weight_bytes += other.weight_bytes;
  state_bytes += other.state_bytes;
  products += other.products;
  return *this;
}

Work work_of(const Launch& launch) {
  return std::visit([](const auto& l) { return of(l); }, launch);
}

Work work_of(const Schedule& schedule) {
  Work all;
  for (const Planned& planned : schedule.launches) all += work_of(planned.launch);
  return all;
}

Work work_of(const Launch& launch, const Schedule& schedule, std::span<const uint32_t> before) {
  return sum(work_of(launch), carried_by(launch, {schedule, before}));
}

Work work_of(const Schedule& schedule, std::span<const uint32_t> before) {
  Work all;
  for (const Planned& planned : schedule.launches) all += work_of(planned.launch, schedule, before);
  return all;
}

}  // namespace tw::lane
