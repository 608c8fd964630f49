#include "lane/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lane/intervals.h"
#include "lane/uses.h"

namespace tw::lane {

namespace {

// Where a use's elements lie: a root buffer's plain form, or the buffer that holds the quantized form.
struct Place {
  BufferId home = kNoBuffer;
  bool quantized = false;
  uint64_t from = 0, to = 0;
};

class Verifier {
 public:
  explicit Verifier(const Schedule& schedule) : s_(schedule), written_(2 * schedule.buffers.size()) {}

  std::vector<Finding> run() {
    if (!check_ranges()) return std::move(findings_);  // the other checks index by what this one proves
    check_ops();
    check_aliases();
    collect_uses();
    for (size_t at = 0; at < s_.launches.size(); ++at) check_launch(at);
    check_views();
    check_caches();
    check_arena();
    return std::move(findings_);
  }

 private:
  void find(std::string code, std::string about, std::string text) {
    findings_.push_back({std::move(code), std::move(about), std::move(text)});
  }
  [[nodiscard]] std::string about(size_t at) const {
    return fmt::format("launch {} ({})", at, kind_of(s_.launches[at].launch));
  }
  [[nodiscard]] bool in_range(BufferId id) const { return index(id) < s_.buffers.size(); }

  bool check_ranges() {
    bool good = true;
    const auto bad = [&](std::string who, BufferId id) {
      good = false;
      find("S0", std::move(who), fmt::format("names buffer {} of {}", index(id), s_.buffers.size()));
    };
    for (const Buffer& buffer : s_.buffers) {
      if (buffer.fill == Fill::Alias && !in_range(buffer.alias_of)) bad(buffer.name, buffer.alias_of);
      if (buffer.sequences != 0 && buffer.rows % buffer.sequences == 0) continue;
      good = false;
      find("S0", buffer.name, fmt::format("has {} rows for {} sequences", buffer.rows, buffer.sequences));
    }
    for (size_t at = 0; at < s_.launches.size(); ++at) {
      Launch launch = s_.launches[at].launch;
      rename_buffers(launch, [&](BufferId id) {
        if (!in_range(id)) bad(about(at), id);
        return id;
      });
    }
    if (good) good = check_alias_rings();
    return good;
  }

  bool check_alias_rings() {
    for (size_t i = 0; i < s_.buffers.size(); ++i) {
      BufferId id{static_cast<uint32_t>(i)};
      for (size_t hops = 0; s_.at(id).fill == Fill::Alias; ++hops) {
        if (hops > s_.buffers.size()) {
          find("S8", s_.buffers[i].name, "its aliases form a ring");
          return false;
        }
        id = s_.at(id).alias_of;
      }
    }
    return true;
  }

  void check_ops() {
    std::vector<bool> covered(s_.op_count, false);
    const auto note = [&](const std::vector<graph::OpId>& ops, const std::string& who, const char* code) {
      for (const graph::OpId op : ops) {
        if (graph::index(op) < s_.op_count) {
          covered[graph::index(op)] = true;
        } else {
          find(code, who, fmt::format("names op {} of {}", graph::index(op), s_.op_count));
        }
      }
    };
    for (size_t at = 0; at < s_.launches.size(); ++at) note(s_.launches[at].ops, about(at), "S1");
    for (size_t op = 0; op < covered.size(); ++op) {
      if (!covered[op]) find("S1", fmt::format("op {}", op), "is computed by no launch");
    }
    for (const Firing& firing : s_.fusions) note(firing.ops, "rule " + firing.rule, "S10");
  }

  void check_aliases() {
    for (size_t i = 0; i < s_.buffers.size(); ++i) {
      const Buffer& buffer = s_.buffers[i];
      if (buffer.fill != Fill::Alias) continue;
      const Span span = span_of(s_, BufferId{static_cast<uint32_t>(i)});
      const Buffer& root = s_.at(span.root);
      if (span.to > root.size()) {
        find("S8", buffer.name,
             fmt::format("ends at element {} of {}, which holds {}", span.to, root.name, root.size()));
      }
      if (root.fill == Fill::State && root.sequences > 1) check_part(buffer, span, root);
      if (buffer.dtype != root.dtype) {
        find("S8", buffer.name,
             fmt::format("is {} and lies in {}, which is {}", name(buffer.dtype), root.name, name(root.dtype)));
      }
    }
  }

  // The states of two sequences need not lie side by side, so an alias keeps to one.
  void check_part(const Buffer& buffer, const Span& span, const Buffer& root) {
    const uint64_t part = root.size() / root.sequences;
    if (part == 0 || span.from / part == (span.to - 1) / part) return;
    find("S8", buffer.name, fmt::format("lies in the {} states of more than one sequence", root.name));
  }

  void collect_uses() {
    uses_.reserve(s_.launches.size());
    for (const Planned& planned : s_.launches) uses_.push_back(uses(planned.launch, s_.numerics));
  }

  [[nodiscard]] Place place_of(const Use& use) const {
    if (use.form == TouchForm::Quantized) {
      const uint64_t from = quantized_offset(s_, use.buffer);
      return {quantized_home(s_, use.buffer), true, from, from + s_.at(use.buffer).size()};
    }
    const Span span = span_of(s_, use.buffer);
    return {span.root, false, span.from, span.to};
  }
  Intervals& written(const Place& place) { return written_[2 * index(place.home) + (place.quantized ? 1 : 0)]; }

  void check_launch(size_t at) {
    for (const Use& use : uses_[at]) {
      if (use.form == TouchForm::Quantized && s_.at(use.buffer).size() % kQuantBlock != 0) {
        find("S6", about(at),
             fmt::format("{} holds {} values, not blocks of {}", s_.at(use.buffer).name, s_.at(use.buffer).size(),
                         kQuantBlock));
      }
      if (use.reads) check_read(at, use);
    }
    check_in_place(at);
    if (const auto* delta = std::get_if<Delta>(&s_.launches[at].launch)) check_delta(at, *delta);
    for (const Use& use : uses_[at]) {
      if (use.writes) note_write(at, use);
    }
    if (s_.form.kind != graph::Form::Kind::Batch) check_single(at);
  }

  void check_delta(size_t at, const Delta& delta) {
    const bool chunks = s_.order == Order::FastDelta && delta.has_chunks() && s_.at(delta.state).dtype == Dtype::F32;
    const std::optional<uint32_t> want = chunks ? std::optional(kDeltaChunk) : std::nullopt;
    if (delta.chunk == want) return;
    find("S12", about(at),
         fmt::format("takes {}, which the order {} {}",
                     delta.chunk ? fmt::format("chunks of {} rows", *delta.chunk) : "row after row", name(s_.order),
                     want ? fmt::format("takes in chunks of {}", *want) : "takes row after row"));
  }

  void check_read(size_t at, const Use& use) {
    if (use.form == TouchForm::Weight) {
      if (s_.at(use.buffer).fill != Fill::Constant) {
        find("S2", about(at), fmt::format("its weight {} is no constant", s_.at(use.buffer).name));
      }
      return;
    }
    const Place place = place_of(use);
    const Fill fill = s_.at(place.home).fill;
    const bool there = !place.quantized && fill != Fill::Computed && fill != Fill::Alias;
    if (!there && !written(place).covers(place.from, place.to)) {
      find("S2", about(at),
           fmt::format("reads {}{} before it is wholly written", s_.at(use.buffer).name,
                       place.quantized ? " (quantized)" : ""));
    }
  }

  // The elements that a write covers, as far as they are known before the step.
  template <class Each>
  void written_ranges(const Use& use, const Place& place, Each each) const {
    if (use.rows && present(use.rows->param)) {
      each(place.from, place.to);
    } else if (use.rows) {
      const uint64_t from = place.from + uint64_t{use.rows->fixed - 1} * use.rows->pitch;
      each(from, from + use.row_count * use.rows->pitch);
    } else if (use.part) {
      for (uint64_t u = 0; u < use.units; ++u) {
        const uint64_t from = place.from + u * use.part->pitch + use.part->offset;
        each(from, from + use.width);
      }
    } else {
      each(place.from, use.whole == 0 ? place.to : place.from + use.whole);
    }
  }

  void note_write(size_t at, const Use& use) {
    const Place place = place_of(use);
    const Buffer& home = s_.at(place.home);
    if (!place.quantized && (home.fill == Fill::Constant || (home.fill == Fill::Param && !use.reads))) {
      find("S3", about(at), fmt::format("writes {}, which is {}", home.name, name(home.fill)));
    }
    bool outside = false, again = false;
    written_ranges(use, place, [&](uint64_t from, uint64_t to) {
      outside = outside || to > place.to;
      again = again || written(place).meets(from, std::min(to, place.to));
      written(place).insert(from, std::min(to, place.to));
    });
    if (outside) {
      find("S0", about(at),
           fmt::format("writes past the end of {}, which holds {} values", s_.at(use.buffer).name,
                       s_.at(use.buffer).size()));
    }
    const bool many_times = home.fill == Fill::State || use.reads || use.rows || place.quantized;
    if (again && !many_times) find("S3", about(at), fmt::format("writes {} again", s_.at(use.buffer).name));
  }

  void check_in_place(size_t at) {
    for (const Use& write : uses_[at]) {
      if (!write.writes || write.reads) continue;
      const Place w = place_of(write);
      for (const Use& read : uses_[at]) {
        if (!read.reads || read.writes || read.form == TouchForm::Weight) continue;
        const Place r = place_of(read);
        if (r.home == w.home && r.quantized == w.quantized && r.from < w.to && w.from < r.to) {
          find("S4", about(at), fmt::format("writes {} over {}, which it reads", write.name, read.name));
        }
      }
    }
  }

  // What a launch over one sequence says of its sequences: that they are one, or no.
  static constexpr uint64_t single(uint64_t) { return 1; }
  static constexpr uint64_t single(bool) { return 0; }

  void check_single(size_t at) {
    const bool batched = std::visit(
        []<class L>(const L& l) {
          if constexpr (requires { l.batch; }) return l.batch;
          bool several = false;
          if constexpr (requires { l.next_sequence; }) several = l.next_sequence != 0;
          if constexpr (requires { l.sequences; }) several = several || uint64_t{l.sequences} > single(l.sequences);
          return several;
        },
        s_.launches[at].launch);
    if (batched) find("S9", about(at), "is of a batch in the schedule of one sequence");
  }

  void check_views() {
    std::vector<size_t> last_read(s_.buffers.size(), 0);
    for (size_t at = 0; at < uses_.size(); ++at) {
      for (const Use& use : uses_[at]) {
        for (BufferId id = use.buffer; use.reads;) {
          last_read[index(id)] = at;
          if (s_.at(id).fill != Fill::Alias) break;
          id = s_.at(id).alias_of;
        }
      }
    }
    for (size_t at = 0; at < s_.launches.size(); ++at) {
      if (const auto* view = std::get_if<View>(&s_.launches[at].launch))
        check_view(at, *view, last_read[index(view->out)]);
    }
  }

  void check_view(size_t at, const View& view, size_t last) {
    const Span span = span_of(s_, view.out);
    for (size_t later = at + 1; later < last; ++later) {
      for (const Use& use : uses_[later]) {
        if (!use.writes || use.form != TouchForm::Plain || span_of(s_, use.buffer).root != span.root) continue;
        written_ranges(use, place_of(use), [&](uint64_t from, uint64_t to) {
          if (from < span.to && span.from < to) {
            find("S7", about(at),
                 fmt::format("views {}, which {} rewrites before launch {} reads the view", s_.at(view.src).name,
                             about(later), last));
          }
        });
      }
    }
  }

  void check_caches() {
    std::vector<Intervals> filled(s_.buffers.size()), read(s_.buffers.size());  // by root
    for (size_t at = 0; at < s_.launches.size(); ++at) {
      if (const auto* set = std::get_if<SetRow>(&s_.launches[at].launch)) {
        const Span span = span_of(s_, set->table);
        const uint32_t root = index(span.root);
        if (read[root].meets(span.from, span.to) && !filled[root].covers(span.from, span.to)) {
          find("S5", about(at),
               fmt::format("fills {} after an attention of this step has read it", s_.at(set->table).name));
        }
        filled[root].insert(span.from, span.to);
      }
      if (const auto* attention = std::get_if<Attention>(&s_.launches[at].launch)) {
        for (const BufferId id : {attention->k, attention->v}) {
          const Span span = span_of(s_, id);
          read[index(span.root)].insert(span.from, span.to);
        }
      }
    }
  }

  // Sweeps the launches: what is in use at one time must not share bytes. Bytes come from each buffer's own places.
  struct Live {
    uint64_t first = ~uint64_t{0}, last = 0;
    uint64_t at = 0, bytes = 0;
    std::string name;
  };

  void check_arena() {
    std::vector<Live> plain(s_.buffers.size()), quantized(s_.buffers.size());
    for (size_t at = 0; at < uses_.size(); ++at) {
      for (const Use& use : uses_[at]) {
        if (use.form == TouchForm::Weight) continue;
        const Place place = place_of(use);
        Live& live = (place.quantized ? quantized : plain)[index(place.home)];
        live.first = std::min(live.first, uint64_t{at});
        live.last = std::max(live.last, uint64_t{at});
      }
    }
    const auto keep = [&](BufferId id) {  // the step's inputs and outputs are in use throughout
      if (present(id)) plain[index(span_of(s_, id).root)] = Live{0, uses_.size(), 0, 0, {}};
    };
    keep(s_.io.tokens);
    for (const auto& sequence : s_.io.sequences) keep(sequence.position), keep(sequence.logits), keep(sequence.next);
    std::vector<Live> lives;
    for (size_t i = 0; i < s_.buffers.size(); ++i) {
      const Buffer& buffer = s_.buffers[i];
      const bool in_arena = buffer.fill == Fill::Computed || buffer.fill == Fill::Param;
      if (in_arena) add_live(plain[i], buffer.plain_at, plain_bytes(buffer), buffer.name, lives);
      // The least a quantized form takes: a byte a value.
      add_live(quantized[i], buffer.quantized_at, buffer.size(), buffer.name + " (quantized)", lives);
    }
    sweep(lives);
  }

  void add_live(Live& live, std::optional<uint64_t> at, uint64_t bytes, std::string name, std::vector<Live>& lives) {
    if (live.first > live.last) return;
    if (!at) {
      find("S0", name, "is used and has no place in the arena");
      return;
    }
    if (*at + bytes > s_.arena_bytes) {
      find("S0", name, fmt::format("ends at byte {} of an arena of {}", *at + bytes, s_.arena_bytes));
    }
    live.at = *at;
    live.bytes = bytes;
    live.name = std::move(name);
    lives.push_back(live);
  }

  void sweep(std::vector<Live>& lives) {
    std::sort(lives.begin(), lives.end(), [](const Live& a, const Live& b) { return a.first < b.first; });
    std::map<uint64_t, const Live*> by_place;
    std::set<std::pair<uint64_t, const Live*>> by_end;
    for (const Live& live : lives) {
      while (!by_end.empty() && by_end.begin()->first < live.first) {
        const auto there = by_place.find(by_end.begin()->second->at);
        if (there != by_place.end() && there->second == by_end.begin()->second) by_place.erase(there);
        by_end.erase(by_end.begin());
      }
      const auto after = by_place.lower_bound(live.at);
      const Live* clash = nullptr;
      if (after != by_place.end() && after->first < live.at + live.bytes) clash = after->second;
      if (after != by_place.begin() && std::prev(after)->second->at + std::prev(after)->second->bytes > live.at) {
        clash = std::prev(after)->second;
      }
      if (clash != nullptr) {
        find("S11", live.name, fmt::format("shares bytes of the arena with {} while both are in use", clash->name));
      }
      by_place[live.at] = &live;
      by_end.insert({live.last, &live});
    }
  }

  const Schedule& s_;
  std::vector<Finding> findings_;
  std::vector<Intervals> written_;  // by buffer: plain form, quantized form
  std::vector<std::vector<Use>> uses_;
};

}  // namespace

std::vector<Finding> verify(const Schedule& schedule) { return Verifier(schedule).run(); }

}  // namespace tw::lane
