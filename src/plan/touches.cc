#include "plan/touches.h"

#include <algorithm>

#include "base/check.h"
#include "lane/uses.h"

namespace tw::plan {

using lane::BufferId;
using lane::Fill;
using lane::index;
using lane::Schedule;
using lane::Span;

std::vector<Span> spans_of(const Schedule& schedule) {
  std::vector<Span> spans(schedule.buffers.size());  // without a root: not known yet
  std::vector<BufferId> path;
  for (uint32_t i = 0; i < spans.size(); ++i) {
    BufferId id{i};
    for (; !present(spans[index(id)].root) && schedule.at(id).fill == Fill::Alias; id = schedule.at(id).alias_of) {
      path.push_back(id);
      TW_CHECK(path.size() <= spans.size(), "the aliases of {} form a ring", schedule.at(id).name);
    }
    if (!present(spans[index(id)].root)) spans[index(id)] = {id, 0, schedule.at(id).size()};
    for (; !path.empty(); path.pop_back()) {
      const lane::Buffer& alias = schedule.at(path.back());
      const Span& source = spans[index(alias.alias_of)];
      const uint64_t from = source.from + alias.alias_offset;
      spans[index(path.back())] = {source.root, from, from + alias.size()};
    }
  }
  return spans;
}

Touches::Touches(const Schedule& schedule) : schedule_(schedule), spans_(spans_of(schedule)) {
  of_.reserve(schedule.launches.size());
  for (const lane::Planned& planned : schedule.launches) {
    const uint64_t begin = touches_.size();
    collect(planned.launch, touches_);
    of_.push_back({begin, touches_.size() - begin});
  }
  touches_.emplace_back();  // so that there is one to point at where a launch touches nothing
  readers_ = lists(&Touch::reads);
  writers_ = lists(&Touch::writes);
}

void Touches::collect(const lane::Launch& launch, std::vector<Touch>& to) const {
  for (const lane::Use& use : uses(launch, schedule_.numerics)) {
    const Span& span = spans_[index(use.buffer)];
    if (use.form == lane::TouchForm::Weight || schedule_.at(span.root).fill == Fill::Constant) continue;
    to.push_back({span.root, span.from, span.to, use.reads, use.writes});
  }
}

Touches::Lists Touches::lists(bool Touch::*kind) const {
  constexpr uint32_t kNone = ~uint32_t{0};
  // Calls each(root, place) once for every launch and root that it touches so.
  const auto walk = [&](auto each) {
    std::vector<uint32_t> last(schedule_.buffers.size(), kNone);
    for (uint32_t at = 0; at < of_.size(); ++at) {
      for (const Touch& touch : of(at)) {
        if (!(touch.*kind) || last[index(touch.root)] == at) continue;
        last[index(touch.root)] = at;
        each(index(touch.root), at);
      }
    }
  };
  Lists lists;
  lists.begins.resize(schedule_.buffers.size() + 1);
  walk([&](uint32_t root, uint32_t) { ++lists.begins[root + 1]; });
  for (size_t root = 1; root < lists.begins.size(); ++root) lists.begins[root] += lists.begins[root - 1];
  lists.places.resize(lists.begins.back());
  std::vector<uint64_t> next = lists.begins;
  walk([&](uint32_t root, uint32_t at) { lists.places[next[root]++] = at; });
  return lists;
}

void Touches::replace(uint32_t at, const lane::Launch& launch) {
  std::vector<Touch> touches;
  collect(launch, touches);
  TW_CHECK(touches.size() <= of_[at].count, "{} touches where there were {}", touches.size(), of_[at].count);
  of_[at].count = touches.size();
  std::copy(touches.begin(), touches.end(), touches_.begin() + static_cast<ptrdiff_t>(of_[at].begin));
}

}  // namespace tw::plan
