// Moves: what a launch can read or write in place needs no copy.

#include <array>

#include "fuse/rules.h"

namespace tw::fuse {

namespace {

using lane::BufferId;
using lane::Dst;
using lane::Part;

// `launch` reading units of `slice.x` where it read the dense slice; nothing when it cannot.
std::optional<lane::Launch> reading_part(const lane::Launch& launch, const lane::Slice& slice) {
  const Part part{slice.every, slice.from};
  if (const auto* norm = std::get_if<lane::Norm>(&launch)) {
    if (norm->x != slice.y || norm->add == slice.y || norm->part || norm->cols != slice.width) return std::nullopt;
    lane::Norm out = *norm;
    out.x = slice.x, out.part = part;
    return out;
  }
  if (const auto* rope = std::get_if<lane::Rope>(&launch)) {
    if (rope->x != slice.y || rope->part || rope->width != slice.width) return std::nullopt;
    lane::Rope out = *rope;
    out.x = slice.x, out.part = part;
    return out;
  }
  if (const auto* product = std::get_if<lane::HeadGemv>(&launch)) {
    if (product->x != slice.y || product->part || product->a != slice.width) return std::nullopt;
    lane::HeadGemv out = *product;
    out.x = slice.x, out.part = part;
    return out;
  }
  return std::nullopt;
}

Match slice_read(const Context& c, NodeId at) {
  const auto& slice = *c.graph.as<lane::Slice>(at);
  if (c.graph.outlives(slice.y)) return miss("the slice is wanted after the step", slice.y);
  if (c.graph.tensor(slice.x).role == graph::Role::State) return miss("the slice is of carried state", slice.x);
  Rewrite out;
  out.vanish = {at};
  for (const NodeId reader : c.graph.readers(slice.y)) {
    auto launch = reading_part(c.graph.at(reader).launch, slice);
    if (!launch) return miss("a reader takes no part of a unit", slice.y);
    out.become.emplace_back(reader, std::move(*launch));
  }
  if (out.become.empty()) return miss("nothing reads the slice", slice.y);
  return out;
}

// The place where a launch puts its plain result `result`, or null when it has no such place.
Dst* destination(lane::Launch& launch, BufferId result) {
  if (auto* fold = std::get_if<lane::Fold>(&launch)) {
    Dst* then = destination(fold->parts.back(), result);
    return then != nullptr ? then : destination(fold->parts.front(), result);
  }
  if (auto* norm = std::get_if<lane::Norm>(&launch)) {
    if (norm->out != result || norm->into) return nullptr;
    norm->into = Dst{norm->out, {}, {}};
    return &*norm->into;
  }
  if (auto* parts = std::get_if<lane::GemmParts>(&launch)) {
    for (lane::GemmPart& part : parts->parts) {
      if (part.y.buf == result) return &part.y;
    }
    return nullptr;
  }
  if (auto* parts = std::get_if<lane::RopeParts>(&launch)) {
    for (lane::RopeSide& side : parts->sides) {
      if (side.y.buf == result) return &side.y;
    }
    return nullptr;
  }
  Dst* dst = nullptr;
  if (auto* l = std::get_if<lane::Gemv>(&launch)) dst = &l->y;
  if (auto* l = std::get_if<lane::GemvF32>(&launch)) dst = &l->y;
  if (auto* l = std::get_if<lane::Rope>(&launch)) dst = &l->y;
  if (auto* l = std::get_if<lane::Moe>(&launch)) dst = &l->y;
  if (auto* l = std::get_if<lane::Join>(&launch)) dst = &l->y;
  if (auto* l = std::get_if<lane::HeadGemv>(&launch)) dst = &l->y;
  return dst != nullptr && dst->buf == result ? dst : nullptr;
}

Match row_write(const Context& c, NodeId at) {
  const auto& set = *c.graph.as<lane::SetRow>(at);
  const NodeId from = c.graph.producer(set.src);
  if (!present(from)) return no_match();
  lane::Launch out = c.graph.at(from).launch;
  Dst* dst = destination(out, set.src);
  if (dst == nullptr) return miss("its producer writes no rows of a table", set.src);
  if (!dst->own()) return miss("its producer lands somewhere else already", set.src);
  if (c.graph.sole_reader(set.src) != at) return miss("the rows have another reader", set.src);
  dst->buf = set.table;
  dst->row = set.at;
  dst->row->pitch = set.cols;
  return join_nodes(c, {from, at}, std::move(out));
}

// `launch`, its dense units of `width` values landing as units of `to`; nothing when it cannot.
std::optional<lane::Launch> writing_units(lane::Launch launch, BufferId result, uint64_t width, const Dst& to) {
  uint64_t own = 0;
  if (const auto* l = std::get_if<lane::Norm>(&launch)) own = l->cols;
  if (const auto* l = std::get_if<lane::Rope>(&launch)) own = l->width;
  if (const auto* l = std::get_if<lane::HeadGemv>(&launch)) own = l->b;
  if (own == 0 || own != width) return std::nullopt;
  Dst* dst = destination(launch, result);
  if (dst == nullptr || !dst->own()) return std::nullopt;
  *dst = to;
  return launch;
}

Match join_in_place(const Context& c, NodeId at) {
  const auto& join = *c.graph.as<lane::Join>(at);
  if (join.y.unit || join.a == join.b) return no_match();
  struct Half {
    BufferId buffer;
    uint64_t width, offset;
  };
  Rewrite out;
  out.vanish = {at};
  for (const Half& half : std::array<Half, 2>{Half{join.a, join.ha, 0}, Half{join.b, join.hb, join.ha}}) {
    const NodeId from = c.graph.producer(half.buffer);
    if (!present(from)) return miss("a half is no launch's own result", half.buffer);
    Dst to = join.y;
    to.unit = Part{join.ha + join.hb, half.offset};
    auto launch = writing_units(c.graph.at(from).launch, half.buffer, half.width, to);
    if (!launch) return miss("the launch of a half writes no units", half.buffer);
    if (c.graph.sole_reader(half.buffer) != at) return miss("a half has another reader", half.buffer);
    out.become.emplace_back(from, std::move(*launch));
  }
  return out;
}

Match strided_values(const Context& c, NodeId at) {
  const auto& attention = *c.graph.as<lane::Attention>(at);
  const NodeId from = c.graph.producer(attention.v);
  const auto* slice = c.graph.as<lane::Slice>(from);
  if (slice == nullptr || attention.split) return no_match();
  if (slice->x != attention.k) return miss("the values are a slice of something else than the keys", attention.v);
  if (slice->every != c.graph.tensor(attention.k).cols) return miss("the slice is not of whole key rows", attention.v);
  if (attention.v_offset != 0 || attention.v_stride != slice->width)
    return miss("the values are strided already", attention.v);
  if (c.graph.sole_reader(attention.v) != at) return miss("the slice has another reader", attention.v);
  lane::Attention out = attention;
  out.v = attention.k;
  out.v_stride = slice->every;
  out.v_offset = slice->from;
  return join_nodes(c, {from, at}, out);
}

}  // namespace

const Rule kSliceRead{"slice_read", "s = slice(x), read by norms, rotations and per-head products alone",
                      "the readers read parts of x's units", kinds<lane::Slice>(), slice_read};
const Rule kRowWrite{"row_write", "p = a launch's own result, rows of a table = p",
                     "the launch writes the table's rows", kinds<lane::SetRow>(), row_write};
const Rule kJoinInPlace{"join_in_place", "j = join(a, b), a and b of norms, rotations or per-head products",
                        "both write their units of the joined tensor", kinds<lane::Join>(), join_in_place};
const Rule kStridedValues{"strided_values", "v = slice(keys), attention(q, keys, v)",
                          "attention that reads values in the key rows", kinds<lane::Attention>(), strided_values};

}  // namespace tw::fuse
