#include "plan/touches.h"

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

Touches::Touches(const Schedule& schedule)
    : schedule_(schedule),
      spans_(spans_of(schedule)),
      readers_(schedule.buffers.size()),
      writers_(schedule.buffers.size()) {
  of_.reserve(schedule.launches.size());
  for (uint32_t at = 0; at < schedule.launches.size(); ++at) {
    of_.push_back(touches_of(schedule.launches[at].launch));
    for (const Touch& touch : of_.back()) {
      for (auto* lists : {&readers_, &writers_}) {
        if (!(lists == &readers_ ? touch.reads : touch.writes)) continue;
        std::vector<uint32_t>& list = (*lists)[index(touch.root)];
        if (list.empty() || list.back() != at) list.push_back(at);
      }
    }
  }
}

std::vector<Touch> Touches::touches_of(const lane::Launch& launch) const {
  std::vector<Touch> touches;
  for (const lane::Use& use : uses(launch, schedule_.numerics)) {
    const Span& span = spans_[index(use.buffer)];
    if (use.form == lane::TouchForm::Weight || schedule_.at(span.root).fill == Fill::Constant) continue;
    touches.push_back({span.root, span.from, span.to, use.reads, use.writes});
  }
  return touches;
}

}  // namespace tw::plan
