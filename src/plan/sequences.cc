#include "plan/sequences.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "plan/sequence_arrays.h"
#include "plan/sequence_kinds.h"
#include "plan/span_set.h"
#include "plan/touches.h"

namespace tw::plan {

namespace {

using lane::BufferId;
using lane::index;
using lane::Launch;
using lane::Planned;
using lane::Schedule;

// The launches of one kind whose results are parts of one array, by sequence and then by place.
using Members = std::vector<std::pair<uint32_t, uint32_t>>;
using Run = std::vector<uint32_t>;  // places, by sequence

class SequencesPass {
 public:
  SequencesPass(Schedule& schedule, Positions positions, SequenceCounts& counts, std::vector<fuse::Missed>* missed)
      : s_(schedule),
        positions_(std::move(positions)),
        counts_(counts),
        missed_(missed),
        sequences_(static_cast<uint32_t>(schedule.io.sequences.size())),
        touches_(schedule),
        live_(schedule.launches.size(), true),
        alone_(schedule.launches.size(), true) {}

  void run() {
    auto kinds = members();
    const size_t before =
        missed_ != nullptr ? missed_->size() : 0;  // a round's misses take the place of the last one's
    // A producer that a consumer of a later kind was in the way of may move once that has.
    for (size_t round = 0; round < kSequenceKinds; ++round) {
      const uint64_t merged = counts_.merged;
      blocked_ = false;
      if (missed_ != nullptr) missed_->resize(before);
      for (auto& arrays : kinds) {
        for (auto& [array, members] : arrays) merge_all(members);
      }
      if (!blocked_ || counts_.merged == merged) break;
    }
    uint32_t at = 0;
    std::erase_if(s_.launches, [&](const Planned&) { return !live_[at++]; });
  }

 private:
  using ByArray = std::map<BufferId, Members>;

  std::array<ByArray, kSequenceKinds> members() {
    std::array<ByArray, kSequenceKinds> kinds;
    for (uint32_t at = 0; at < s_.launches.size(); ++at) {
      ++counts_.steps;
      const auto member = sequence_member(s_, s_.launches[at].launch);
      if (!member || member->sequence >= sequences_) continue;
      kinds[static_cast<size_t>(member->kind)][member->array].emplace_back(member->sequence, at);
    }
    return kinds;
  }

  // Every run: a launch of the first sequence, then the next one of each sequence in turn.
  void merge_all(Members& members) {
    if (members.size() < sequences_) return miss(members.front().second, "not every sequence has such a launch");
    std::ranges::sort(members);
    for (size_t i = 0; i < members.size() && members[i].first == 0; ++i) {
      if (!alone_[members[i].second]) continue;
      Run run{members[i].second};
      for (uint32_t b = 1; b < sequences_; ++b) {
        ++counts_.steps;
        const auto next = next_of(members, b, run.back());
        // Nor is there one for a later launch of the first sequence.
        if (!next) return miss(run.front(), "not every sequence has such a launch after the ones before it");
        run.push_back(*next);
      }
      merge(run);
    }
  }

  [[nodiscard]] std::optional<uint32_t> next_of(const Members& members, uint32_t sequence, uint32_t after) const {
    auto at = std::ranges::lower_bound(members, std::pair{sequence, after + 1});
    while (at != members.end() && at->first == sequence && !alone_[at->second]) ++at;
    if (at == members.end() || at->first != sequence) return std::nullopt;
    return at->second;
  }

  void merge(const Run& run) {
    std::vector<const Launch*> launches;
    for (const uint32_t at : run) launches.push_back(&s_.launches[at].launch);
    std::optional<Launch> merged = merged_launch(s_, positions_, launches);
    if (!merged) return miss(run.front(), "the sequences' launches differ, or an operand is no part of an array");
    if (!may_move(run)) {
      blocked_ = true;
      return miss(run.front(), "a launch between touches what one writes, or writes what one touches");
    }
    for (const uint32_t at : run) alone_[at] = false;
    Planned& place = s_.launches[run.back()];
    for (size_t b = 0; b + 1 < run.size(); ++b) {
      const std::vector<graph::OpId>& ops = s_.launches[run[b]].ops;
      place.ops.insert(place.ops.end(), ops.begin(), ops.end());
      live_[run[b]] = false;
      touches_.clear(run[b]);
    }
    std::ranges::sort(place.ops);
    place.launch = std::move(*merged);
    touches_.replace(run.back(), place.launch);
    s_.fusions.push_back({"sequences", place.ops});
    ++counts_.merged;
  }

  void miss(uint32_t at, const char* why) {
    if (missed_ != nullptr) missed_->push_back({"sequences", s_.launches[at].ops, why});
  }

  // Whether the launches of a run may all take place where the last one does.
  bool may_move(const Run& run) {
    std::map<BufferId, bool> roots;  // whether a member writes it
    for (const uint32_t at : run) {
      for (const Touch& touch : touches_.of(at)) {
        ++counts_.steps;
        roots[touch.root] = roots[touch.root] || touch.writes;
      }
    }
    return std::ranges::all_of(roots, [&](const auto& root) { return may_move_over(run, root.first, root.second); });
  }

  // Sweeps the launches from the first member to the last that touch one root buffer. A launch between must not write
  // what a member before it touches, nor read what one writes; of a root that no member writes, only writers matter.
  bool may_move_over(const Run& run, BufferId root, bool written_by_member) {
    std::vector<uint32_t> places(run.begin(), run.end() - 1);
    const auto take = [&](std::span<const uint32_t> list) {
      places.insert(places.end(), std::ranges::upper_bound(list, run.front()),
                    std::ranges::lower_bound(list, run.back()));
    };
    take(touches_.writers(root));
    if (written_by_member) take(touches_.readers(root));
    std::ranges::sort(places);
    places.erase(std::ranges::unique(places).begin(), places.end());

    SpanSet touched, written;
    auto member = run.begin();
    for (const uint32_t at : places) {
      ++counts_.steps;
      const bool is_member = at == *member;
      if (is_member) ++member;
      for (const Touch& touch : touches_.of(at)) {
        if (touch.root != root) continue;
        if (is_member) {
          touched.insert(touch.from, touch.to);
          if (touch.writes) written.insert(touch.from, touch.to);
        } else if ((touch.writes && touched.meets(touch.from, touch.to)) ||
                   (touch.reads && written.meets(touch.from, touch.to))) {
          return false;
        }
      }
    }
    return true;
  }

  Schedule& s_;
  Positions positions_;
  SequenceCounts& counts_;
  std::vector<fuse::Missed>* missed_;
  uint32_t sequences_;
  Touches touches_;
  std::vector<bool> live_;   // not empty
  std::vector<bool> alone_;  // of one sequence still
  bool blocked_ = false;     // something was in a run's way
};

}  // namespace

SequenceCounts merge_sequences(Schedule& schedule, std::vector<fuse::Missed>* missed) {
  SequenceCounts counts;
  Positions positions = lay_out_arrays(schedule, counts.steps);
  SequencesPass(schedule, std::move(positions), counts, missed).run();
  return counts;
}

}  // namespace tw::plan
