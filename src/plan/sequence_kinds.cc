#include "plan/sequence_kinds.h"

#include <vector>

#include "lane/uses.h"

namespace tw::plan {

namespace {

using lane::ArgMax;
using lane::Attention;
using lane::Buffer;
using lane::BufferId;
using lane::Conv;
using lane::ConvPart;
using lane::ConvParts;
using lane::Delta;
using lane::Dst;
using lane::Fill;
using lane::Gates;
using lane::index;
using lane::Join;
using lane::kNoBuffer;
using lane::Launch;
using lane::OutForms;
using lane::Rope;
using lane::RopeParts;
using lane::RopeSide;
using lane::Schedule;
using lane::SetRow;
using lane::Span;
using lane::Use;

// What one sequence's launch has for itself: everything else must be equal over the sequences.
class Own {
 public:
  explicit Own(const Schedule& schedule) : s_(schedule) {}

  // `width` values that are the sequence's part of an array.
  void part(BufferId& id, uint64_t width) {
    if (present(id)) parts_.push_back({&id, width});
  }
  // The same, all of a buffer: a state, or a table that rows are set in.
  void whole(BufferId& id) { part(id, s_.at(id).size()); }
  void position(BufferId& id) { positions_.push_back(&id); }
  // A result of `width` values of its own, or rows of the sequence's table at its position.
  void result(Dst& dst, uint64_t width) {
    if (!dst.row) return part(dst.buf, width);
    whole(dst.buf);
    position(dst.row->param);
  }
  // `width` values that begin `offset` into a buffer; the next sequence's follow.
  void piece(BufferId& id, uint64_t& offset, uint64_t width) {
    if (present(id)) pieces_.push_back({&id, &offset, width});
  }
  // A slot of what the sequences share, one a sequence.
  void item(uint32_t& slot) { items_.push_back(&slot); }

  struct Part {
    BufferId* id;
    uint64_t width;
  };
  struct Piece {
    BufferId* id;
    uint64_t* offset;
    uint64_t width;
  };
  std::vector<Part> parts_;
  std::vector<BufferId*> positions_;
  std::vector<Piece> pieces_;
  std::vector<uint32_t*> items_;

 private:
  const Schedule& s_;
};

bool at_position(const Dst& dst) { return !dst.unit && (!dst.row || present(dst.row->param)); }

// One overload of each function a launch that merges:
//   alone        whether it is of one row of one sequence, in a form that merges
//   result_of    the operand that says which sequence it is of
//   visit_own    tells `own` what it has for itself
//   spread       makes a launch of the first sequence, whose operands are whole arrays already, one over `n` sequences

bool alone(const Delta& l) { return l.rows == 1 && l.sequences == 1; }
BufferId result_of(const Delta& l) { return l.out; }
void visit_own(Delta& l, Own& own) {
  const uint64_t values = l.value_heads * l.d;
  own.part(l.q, l.key_heads * l.d);
  own.part(l.k, l.key_heads * l.d);
  for (BufferId* id : {&l.v, &l.z, &l.out}) own.part(*id, values);
  own.part(l.beta, l.value_heads);
  own.part(l.alpha, l.channel_decay ? values : l.value_heads);
  own.part(l.state, values * l.d);
}
void spread(Delta& l, uint64_t n, const Schedule&) { l.sequences = n; }

bool alone(const Gates&) { return true; }
BufferId result_of(const Gates& l) { return l.beta; }
void visit_own(Gates& l, Own& own) {
  for (BufferId* id : {&l.br, &l.ar, &l.beta, &l.decay}) own.part(*id, l.n);
}
void spread(Gates& l, uint64_t n, const Schedule&) { l.n *= n; }

bool alone(const Conv& l) { return l.rows == 1 && l.sequences == 1; }
BufferId result_of(const Conv& l) { return l.y; }
void visit_own(Conv& l, Own& own) {
  own.part(l.x, l.chan);
  own.part(l.y, l.chan);
  own.part(l.ring, l.taps * l.chan);
}
void spread(Conv& l, uint64_t n, const Schedule&) { l.sequences = n; }

bool alone(const ConvParts& l) { return l.sequences == 1 && !l.parts.empty(); }
BufferId result_of(const ConvParts& l) { return l.parts[0].y; }
void visit_own(ConvParts& l, Own& own) {
  for (ConvPart& part : l.parts) {
    own.part(part.x, part.chan);
    own.part(part.y, part.chan);
    own.part(part.ring, l.taps * part.chan);
  }
}
void spread(ConvParts& l, uint64_t n, const Schedule&) { l.sequences = n; }

bool alone(const Attention& l) { return l.rows == 1 && l.next_sequence == 0 && !l.split && present(l.position); }
BufferId result_of(const Attention& l) { return l.out; }
void visit_own(Attention& l, Own& own) {
  own.part(l.q, l.heads * l.hd);
  own.part(l.out, l.heads * l.vd);
  own.whole(l.k);
  own.whole(l.v);
  own.position(l.position);
  own.piece(l.gate, l.gate_offset, l.heads * l.vd);
}
void spread(Attention& l, uint64_t n, const Schedule& schedule) {
  l.rows = n;
  l.next_sequence = schedule.at(l.k).size() / n;
}

bool alone(const Join& l) { return l.rows == 1 && l.next_sequence == 0 && at_position(l.y); }
BufferId result_of(const Join& l) { return l.y.buf; }
void visit_own(Join& l, Own& own) {
  own.part(l.a, l.heads * l.ha);
  own.part(l.b, l.heads * l.hb);
  own.result(l.y, l.heads * (l.ha + l.hb));
}
void spread(Join& l, uint64_t n, const Schedule& schedule) {
  l.rows = n;
  if (l.y.row) l.next_sequence = schedule.at(l.y.buf).size() / n;
}

bool alone(const SetRow& l) {
  return l.count == 1 && l.next_sequence == 0 && l.forms == OutForms{} && present(l.at.param);
}
BufferId result_of(const SetRow& l) { return l.table; }
void visit_own(SetRow& l, Own& own) {
  own.part(l.src, l.cols);
  own.whole(l.table);
  own.position(l.at.param);
}
void spread(SetRow& l, uint64_t n, const Schedule& schedule) {
  l.count = n;
  l.next_sequence = schedule.at(l.table).size() / n;
}

// Heads that are read as units of a wider row go on from one sequence's row to the next one's when they fill it.
uint64_t rope_width(const std::optional<lane::Part>& part, uint64_t heads, uint64_t width) {
  return heads * (part ? part->pitch : width);
}

bool alone(const Rope& l) { return !l.sequences && l.heads == l.per_row && present(l.position) && at_position(l.y); }
BufferId result_of(const Rope& l) { return l.y.buf; }
void visit_own(Rope& l, Own& own) {
  own.part(l.x, rope_width(l.part, l.heads, l.width));
  own.result(l.y, l.heads * l.width);
  own.position(l.position);
}
void spread(Rope& l, uint64_t n, const Schedule& schedule) {
  l.sequences = true;
  l.heads *= n;
  if (l.y.row) l.next_sequence = schedule.at(l.y.buf).size() / n;
}

bool alone(const RopeParts& l) {
  if (l.sequences || l.sides.empty() || !present(l.position)) return false;
  for (const RopeSide& side : l.sides) {
    if (side.heads != side.per_row || !at_position(side.y)) return false;
  }
  return true;
}
BufferId result_of(const RopeParts& l) { return l.sides[0].y.buf; }
void visit_own(RopeParts& l, Own& own) {
  for (RopeSide& side : l.sides) {
    own.part(side.x, rope_width(side.part, side.heads, l.width));
    own.result(side.y, side.heads * l.width);
  }
  own.position(l.position);
}
void spread(RopeParts& l, uint64_t n, const Schedule& schedule) {
  l.sequences = true;
  for (RopeSide& side : l.sides) {
    side.heads *= n;
    if (side.y.row) side.next_sequence = schedule.at(side.y.buf).size() / n;
  }
}

bool alone(const ArgMax& l) { return l.rows == 1; }
BufferId result_of(const ArgMax& l) { return l.out; }
void visit_own(ArgMax& l, Own& own) {
  own.part(l.x, l.n);
  own.part(l.out, 1);
  if (!l.advance) return;
  own.position(l.advance->position);
  own.item(l.advance->item);
}
void spread(ArgMax& l, uint64_t n, const Schedule&) { l.rows = n; }

template <class L>
constexpr std::optional<SequenceKind> kKindOf = std::nullopt;
template <>
constexpr std::optional<SequenceKind> kKindOf<Delta> = SequenceKind::Delta;
template <>
constexpr std::optional<SequenceKind> kKindOf<Gates> = SequenceKind::Gates;
template <>
constexpr std::optional<SequenceKind> kKindOf<Conv> = SequenceKind::Conv;
template <>
constexpr std::optional<SequenceKind> kKindOf<ConvParts> = SequenceKind::Conv;
template <>
constexpr std::optional<SequenceKind> kKindOf<Attention> = SequenceKind::Attention;
template <>
constexpr std::optional<SequenceKind> kKindOf<Join> = SequenceKind::Join;
template <>
constexpr std::optional<SequenceKind> kKindOf<SetRow> = SequenceKind::SetRow;
template <>
constexpr std::optional<SequenceKind> kKindOf<Rope> = SequenceKind::Rope;
template <>
constexpr std::optional<SequenceKind> kKindOf<RopeParts> = SequenceKind::Rope;
template <>
constexpr std::optional<SequenceKind> kKindOf<ArgMax> = SequenceKind::ArgMax;

// The array that a buffer is a part of, one level up, and which part.
struct PartOf {
  BufferId array = kNoBuffer;
  uint64_t sequence = 0;
  bool operator==(const PartOf&) const = default;
};
std::optional<PartOf> part_of(const Schedule& schedule, BufferId id) {
  const Buffer& buffer = schedule.at(id);
  if (buffer.fill != Fill::Alias || buffer.size() == 0 || buffer.alias_offset % buffer.size() != 0) return std::nullopt;
  return PartOf{buffer.alias_of, buffer.alias_offset / buffer.size()};
}

// Merges the launches of one kind.
class Merger {
 public:
  Merger(const Schedule& schedule, const Positions& positions, uint64_t sequences)
      : s_(schedule), positions_(positions), sequences_(sequences) {}

  template <class L>
  std::optional<Launch> run(std::span<const Launch* const> launches) {
    L merged = std::get<L>(*launches[0]);
    if (!alone(merged)) return std::nullopt;
    Own all(s_);
    visit_own(merged, all);
    std::vector<BufferId> arrays;
    for (const Own::Part& part : all.parts_) {
      const auto of = part_of(s_, *part.id);
      if (!of || s_.at(of->array).size() != sequences_ * part.width) return std::nullopt;
      arrays.push_back(of->array);
    }
    for (uint64_t b = 0; b < sequences_; ++b) {
      const auto* one = std::get_if<L>(launches[b]);
      if (one == nullptr || !alone(*one)) return std::nullopt;
      L same = *one;
      Own own(s_);
      visit_own(same, own);
      if (!is_of_sequence(own, all, arrays, b) || !(same == merged)) return std::nullopt;
    }
    for (size_t i = 0; i < arrays.size(); ++i) *all.parts_[i].id = arrays[i];
    for (BufferId* position : all.positions_) *position = positions_.array;
    for (const Own::Piece& piece : all.pieces_) place(piece);
    spread(merged, sequences_, s_);
    Launch launch(std::move(merged));
    if (reads_its_results(launch)) return std::nullopt;
    return launch;
  }

 private:
  // Checks what sequence b's launch has for itself against the first one's, and makes it that.
  bool is_of_sequence(Own& own, const Own& all, const std::vector<BufferId>& arrays, uint64_t b) const {
    if (own.parts_.size() != all.parts_.size() || own.positions_.size() != all.positions_.size() ||
        own.pieces_.size() != all.pieces_.size() || own.items_.size() != all.items_.size()) {
      return false;
    }
    for (size_t i = 0; i < own.parts_.size(); ++i) {
      const Own::Part& part = own.parts_[i];
      if (part.width != all.parts_[i].width || s_.at(*part.id).size() != part.width) return false;
      if (part_of(s_, *part.id) != PartOf{arrays[i], b}) return false;
      *part.id = *all.parts_[i].id;
    }
    for (size_t i = 0; i < own.positions_.size(); ++i) {
      if (!present(positions_.array) || *own.positions_[i] != positions_.of[b]) return false;
      *own.positions_[i] = *all.positions_[i];
    }
    for (size_t i = 0; i < own.pieces_.size(); ++i) {
      if (start(own.pieces_[i]) != after(start(all.pieces_[i]), b * all.pieces_[i].width)) return false;
      *own.pieces_[i].id = *all.pieces_[i].id;
      *own.pieces_[i].offset = *all.pieces_[i].offset;
    }
    for (size_t i = 0; i < own.items_.size(); ++i) {
      if (*own.items_[i] != b) return false;
      *own.items_[i] = *all.items_[i];
    }
    return true;
  }

  // Where a piece begins in its root buffer; what it is read through makes no difference.
  [[nodiscard]] Span start(const Own::Piece& piece) const {
    const Span span = span_of(s_, *piece.id);
    return {span.root, span.from + *piece.offset, 0};
  }
  [[nodiscard]] static Span after(Span span, uint64_t elements) {
    span.from += elements;
    return span;
  }
  void place(const Own::Piece& piece) const {
    const Span span = start(piece);
    *piece.id = span.root;
    *piece.offset = span.from;
  }

  // Whether a result lies over an operand, which one launch over all sequences may have overwritten when a later
  // sequence reads it. An update in place is the sequence's own.
  [[nodiscard]] bool reads_its_results(const Launch& launch) const {
    const std::vector<Use> all = uses(launch, s_.numerics);
    for (const Use& write : all) {
      if (!write.writes) continue;
      const Span to = span_of(s_, write.buffer);
      for (const Use& read : all) {
        if (!read.reads || read.writes || read.form == lane::TouchForm::Weight) continue;
        const Span from = span_of(s_, read.buffer);
        if (from.root == to.root && from.from < to.to && to.from < from.to) return true;
      }
    }
    return false;
  }

  const Schedule& s_;
  const Positions& positions_;
  uint64_t sequences_;
};

}  // namespace

std::optional<SequenceMember> sequence_member(const Schedule& schedule, const Launch& launch) {
  return std::visit(
      [&]<class L>(const L& l) -> std::optional<SequenceMember> {
        if constexpr (kKindOf<L>) {
          if (!alone(l)) return std::nullopt;
          const std::optional<PartOf> part = part_of(schedule, result_of(l));
          if (!part) return std::nullopt;
          return SequenceMember{*kKindOf<L>, part->array, static_cast<uint32_t>(part->sequence)};
        } else {
          return std::nullopt;
        }
      },
      launch);
}

std::optional<Launch> merged_launch(const Schedule& schedule, const Positions& positions,
                                    std::span<const Launch* const> launches) {
  return std::visit(
      [&]<class L>(const L&) -> std::optional<Launch> {
        if constexpr (kKindOf<L>) {
          return Merger(schedule, positions, launches.size()).run<L>(launches);
        } else {
          return std::nullopt;
        }
      },
      *launches[0]);
}

}  // namespace tw::plan
