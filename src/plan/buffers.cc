#include "plan/buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "lane/uses.h"
#include "plan/arena.h"

namespace tw::plan {

namespace {

using lane::Attention;
using lane::Buffer;
using lane::BufferId;
using lane::bytes_of;
using lane::Delta;
using lane::Dtype;
using lane::Fill;
using lane::index;
using lane::kind_of;
using lane::Launch;
using lane::Layout;
using lane::name;
using lane::Numerics;
using lane::plain_bytes;
using lane::Planned;
using lane::present;
using lane::quantized_home;
using lane::Schedule;
using lane::span_of;
using lane::TouchForm;
using lane::Use;
using lane::uses;
using lane::View;

Fill fill_of(graph::Role role) {
  switch (role) {
    case graph::Role::Param: return Fill::Param;
    case graph::Role::State: return Fill::State;
    case graph::Role::Constant: return Fill::Constant;
    case graph::Role::Table:
    case graph::Role::Activation: return Fill::Computed;
  }
  return Fill::Computed;
}

// A state that an attention reads is a cache. One that is only ever written by rows and read as keys (or as values) of
// attentions of one shape may be laid out for the lane's kernels; others stay row after row.
class Caches {
 public:
  explicit Caches(size_t buffers) : uses_(buffers) {}

  void note(const Launch& launch) {
    if (const auto* attention = std::get_if<Attention>(&launch)) return note_attention(*attention);
    for (const Use& use : uses(launch, Numerics::Precise)) {
      if (!use.rows) note(use.buffer, Layout::Kind::RowMajor, 0, 0);
    }
  }

  [[nodiscard]] bool is_cache(BufferId id) const { return uses_[index(id)].cache; }
  [[nodiscard]] Layout layout(BufferId id) const {
    const Seen& seen = uses_[index(id)];
    return seen.any && !seen.conflict ? seen.layout : Layout{};
  }

 private:
  struct Seen {
    bool any = false, conflict = false, cache = false;
    Layout layout;
  };

  void note_attention(const Attention& a) {
    const auto kv_heads = static_cast<uint32_t>(a.heads / a.group);
    const bool plain_values = a.v_offset == 0 && a.v_stride == kv_heads * a.vd;
    note(a.k, a.split ? Layout::Kind::RowMajor : Layout::Kind::KeyBlocks, kv_heads, static_cast<uint32_t>(a.hd));
    note(a.v, plain_values ? Layout::Kind::ValueRows : Layout::Kind::RowMajor, kv_heads, static_cast<uint32_t>(a.vd));
    uses_[index(a.k)].cache = uses_[index(a.v)].cache = true;
    for (const BufferId id : {a.q, a.position, a.sinks, a.out, a.gate}) note(id, Layout::Kind::RowMajor, 0, 0);
  }

  void note(BufferId id, Layout::Kind kind, uint32_t heads, uint32_t width) {
    if (!present(id)) return;
    Seen& seen = uses_[index(id)];
    const Layout layout{kind, heads, width};
    if (seen.any && seen.layout != layout) seen.conflict = true;
    seen.any = true;
    seen.layout = layout;
  }

  std::vector<Seen> uses_;
};

void mark_touches(Schedule& schedule) {
  for (const Planned& planned : schedule.launches) {
    for (const Use& use : uses(planned.launch, schedule.numerics)) {
      Buffer& buffer = schedule.buffers[index(use.buffer)];
      if (use.form == TouchForm::Weight) {
        buffer.weight = true;
        continue;
      }
      (use.form == TouchForm::Plain ? buffer.plain : buffer.quantized) = true;
      if (buffer.fill == Fill::Alias) {
        Buffer& root = schedule.buffers[index(span_of(schedule, use.buffer).root)];
        (use.form == TouchForm::Plain ? root.plain : root.quantized) = true;
      }
    }
  }
}

Result<void> check_typed(const Schedule& schedule) {
  for (const Planned& planned : schedule.launches) {
    for (const Use& use : uses(planned.launch, schedule.numerics)) {
      const Buffer& root = schedule.at(span_of(schedule, use.buffer).root);
      if (bytes_of(root.dtype) == 4 || use.typed || use.form != TouchForm::Plain) continue;
      return refuse(RefusalKind::Unsupported, root.name,
                    fmt::format("the {} kernel takes its operand {} only as f32, and the step keeps it as {}",
                                kind_of(planned.launch), use.name, name(root.dtype)),
                    "Keep the caches and states in f32.");
    }
  }
  return {};
}

}  // namespace

Result<void> make_buffers(const graph::StepGraph& graph, const Knobs& knobs, Schedule& schedule) {
  Caches caches(graph.tensors.size());
  for (const Planned& planned : schedule.launches) caches.note(planned.launch);
  schedule.buffers.reserve(graph.tensors.size());
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const graph::Tensor& tensor = graph.tensors[i];
    Buffer buffer;
    buffer.name = tensor.name;
    buffer.rows = tensor.rows, buffer.cols = tensor.cols;
    buffer.dtype = tensor.element == graph::Element::I32 ? Dtype::I32 : Dtype::F32;
    buffer.fill = fill_of(tensor.role);
    buffer.sequence = tensor.sequence;
    if (tensor.role == graph::Role::State) {
      const BufferId id{static_cast<uint32_t>(i)};
      buffer.layout = caches.layout(id);
      if (caches.is_cache(id)) buffer.dtype = knobs.cache;
    }
    schedule.buffers.push_back(std::move(buffer));
  }
  for (Planned& planned : schedule.launches) {
    if (auto* delta = std::get_if<Delta>(&planned.launch)) {
      schedule.buffers[index(delta->state)].dtype = knobs.state;
      if (knobs.order == lane::Order::FastDelta && knobs.state == Dtype::F32 && delta->has_chunks())
        delta->chunk = lane::kDeltaChunk;
    }
    if (const auto* view = std::get_if<View>(&planned.launch)) {
      Buffer& out = schedule.buffers[index(view->out)];
      out.fill = Fill::Alias;
      out.alias_of = view->src;
      out.alias_offset = view->offset;
    }
  }
  mark_touches(schedule);
  return check_typed(schedule);
}

namespace {

// The launches between which each form of each root buffer is in use.
struct Life {
  uint64_t first = ~uint64_t{0}, last = 0;
  void use(uint64_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
  [[nodiscard]] bool any() const { return first <= last; }
};

struct Lives {
  std::vector<Life> plain, quantized;
};

Lives lives_of(const Schedule& schedule) {
  Lives lives{std::vector<Life>(schedule.buffers.size()), std::vector<Life>(schedule.buffers.size())};
  for (uint64_t at = 0; at < schedule.launches.size(); ++at) {
    for (const Use& use : uses(schedule.launches[at].launch, schedule.numerics)) {
      if (use.form == TouchForm::Weight) continue;
      auto& of = use.form == TouchForm::Plain ? lives.plain : lives.quantized;
      of[index(use.form == TouchForm::Plain ? span_of(schedule, use.buffer).root
                                            : quantized_home(schedule, use.buffer))]
          .use(at);
    }
  }
  const auto keep = [&](BufferId id) {
    if (!present(id)) return;
    Life& life = lives.plain[index(span_of(schedule, id).root)];
    life.first = 0;
    life.last = schedule.launches.size();
  };
  keep(schedule.io.tokens);
  for (const auto& sequence : schedule.io.sequences) {
    for (const BufferId id : {sequence.position, sequence.logits, sequence.next}) keep(id);
  }
  return lives;
}

bool in_arena(const Buffer& buffer) { return buffer.fill == Fill::Param || buffer.fill == Fill::Computed; }

}  // namespace

void place_buffers(const Knobs& knobs, Schedule& schedule) {
  const Lives lives = lives_of(schedule);
  const uint32_t words = schedule.numerics == Numerics::Int8x2 ? 2 : 1;
  std::vector<Piece> pieces;
  std::vector<std::optional<uint64_t>*> places;
  const auto want = [&](const Life& life, uint64_t bytes, std::optional<uint64_t>& place) {
    if (!life.any()) return;
    pieces.push_back({bytes, life.first, life.last, 0});
    places.push_back(&place);
  };
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    Buffer& buffer = schedule.buffers[i];
    if (in_arena(buffer)) want(lives.plain[i], plain_bytes(buffer), buffer.plain_at);
    if (lives.quantized[i].any()) {
      want(lives.quantized[i], knobs.quantized_bytes(buffer.size(), words), buffer.quantized_at);
    }
  }
  schedule.arena_bytes = place_pieces(pieces);
  for (size_t i = 0; i < pieces.size(); ++i) *places[i] = pieces[i].at;
}

}  // namespace tw::plan
