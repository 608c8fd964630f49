#include "plan/sequence_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "plan/touches.h"

namespace tw::plan {

namespace {

using lane::Buffer;
using lane::BufferId;
using lane::Fill;
using lane::index;
using lane::kNoBuffer;
using lane::kQuantBlock;
using lane::Layout;
using lane::Planned;
using lane::Schedule;
using lane::SetRow;

constexpr std::string_view kArraySuffix = "_s";

using Family = std::vector<BufferId>;  // by sequence

// A table whose rows the members become, and the sets that disappear, by sequence.
struct Table {
  BufferId id = kNoBuffer;
  std::vector<uint32_t> sets, writers;
};

class Arrays {
 public:
  Arrays(Schedule& schedule, uint64_t& steps)
      : s_(schedule),
        steps_(steps),
        sequences_(static_cast<uint32_t>(schedule.io.sequences.size())),
        touches_(schedule),
        removed_(schedule.launches.size(), false) {}

  Positions run() {
    const std::vector<Family> all = families();
    s_.buffers.reserve(s_.buffers.size() + all.size() + 1);  // no buffer moves, nor its name
    for (const Buffer& buffer : s_.buffers) {
      if (buffer.name.ends_with(kArraySuffix)) taken_.insert(buffer.name);
    }
    Positions positions = lay_out_positions();
    for (const Family& family : all) {
      if (const std::optional<Table> table = table_of(family)) {
        set_into(*table, family);
      } else {
        lay_out(family);
      }
    }
    uint32_t at = 0;
    std::erase_if(s_.launches, [&](const Planned&) { return removed_[at++]; });
    return positions;
  }

 private:
  [[nodiscard]] static bool alike(const Buffer& a, const Buffer& b) {
    return a.rows == b.rows && a.cols == b.cols && a.dtype == b.dtype && a.fill == b.fill && a.plain == b.plain &&
           a.quantized == b.quantized && a.layout == b.layout;
  }

  // ---- which buffers are families ----

  [[nodiscard]] bool may_be_member(const Buffer& buffer) const {
    if (!buffer.sequence || *buffer.sequence >= sequences_ || buffer.sequences != 1 || buffer.weight) return false;
    if (buffer.fill != Fill::State && buffer.fill != Fill::Computed) return false;
    if (!buffer.plain && !buffer.quantized) return false;
    return buffer.size() != 0 && (!buffer.quantized || buffer.size() % kQuantBlock == 0);
  }

  // In order of their first member.
  std::vector<Family> families() {
    std::vector<Family> all;
    std::unordered_map<std::string_view, size_t> by_name;
    for (uint32_t i = 0; i < s_.buffers.size(); ++i) {
      ++steps_;
      const Buffer& buffer = s_.buffers[i];
      if (!may_be_member(buffer)) continue;
      const auto [found, first] = by_name.try_emplace(base_name(buffer), all.size());
      if (first) all.emplace_back();
      all[found->second].push_back(BufferId{i});
    }
    std::erase_if(all, [&](Family& family) { return !complete(family); });
    return all;
  }

  // Puts the members in the order of their sequences; false when they are not one a sequence, all alike.
  [[nodiscard]] bool complete(Family& family) const {
    if (family.size() != sequences_) return false;
    std::ranges::sort(family, {}, [this](BufferId id) { return *s_.at(id).sequence; });
    for (uint32_t b = 0; b < sequences_; ++b) {
      if (*s_.at(family[b]).sequence != b || !alike(s_.at(family[b]), s_.at(family[0]))) return false;
    }
    return true;
  }

  // ---- arrays ----

  void alias(BufferId member, BufferId array, uint32_t sequence) {
    Buffer& buffer = s_.buffers[index(member)];
    buffer.fill = Fill::Alias;
    buffer.alias_of = array;
    buffer.alias_offset = sequence * buffer.size();
  }

  BufferId lay_out(const Family& family) {
    steps_ += family.size();
    Buffer array = s_.at(family[0]);
    array.name = fmt::format("{}{}", base_name(array), kArraySuffix);
    if (taken_.contains(array.name)) return kNoBuffer;
    array.sequence.reset();
    array.sequences = sequences_;
    array.rows *= sequences_;
    const BufferId id{static_cast<uint32_t>(s_.buffers.size())};
    s_.buffers.push_back(std::move(array));
    taken_.insert(s_.buffers.back().name);
    for (uint32_t b = 0; b < sequences_; ++b) alias(family[b], id, b);
    return id;
  }

  Positions lay_out_positions() {
    Positions positions;
    for (uint32_t b = 0; b < sequences_; ++b) {
      const BufferId id = s_.io.sequences[b].position;
      if (!present(id)) return {};
      const Buffer& buffer = s_.at(id);
      if (buffer.fill != Fill::Param || buffer.size() != 1 || buffer.sequence.value_or(b) != b) return {};
      positions.of.push_back(id);
    }
    if (std::unordered_set<BufferId>(positions.of.begin(), positions.of.end()).size() != sequences_) return {};
    for (uint32_t b = 0; b < sequences_; ++b) {
      Buffer& buffer = s_.buffers[index(positions.of[b])];
      if (!alike(buffer, s_.at(positions.of[0]))) return {};
    }
    for (uint32_t b = 0; b < sequences_; ++b) s_.buffers[index(positions.of[b])].sequence = b;
    positions.array = lay_out(positions.of);
    return positions;
  }

  // ---- members that are set as rows of a table ----

  [[nodiscard]] std::optional<Table> table_of(const Family& family) {
    Table table;
    const Buffer& first = s_.at(family[0]);
    if (first.fill != Fill::Computed) return std::nullopt;
    for (uint32_t b = 0; b < sequences_; ++b) {
      ++steps_;
      const std::optional<uint32_t> set = only_reader(family[b]);
      if (!set) return std::nullopt;
      const auto* launch = std::get_if<SetRow>(&s_.launches[*set].launch);
      if (launch == nullptr || !sets_row(*launch, family[b], b)) return std::nullopt;
      if (b == 0) table.id = launch->table;
      if (launch->table != table.id) return std::nullopt;
      const auto writers = touches_.writers(family[b]);
      if (writers.empty() || writers.back() >= *set) return std::nullopt;
      table.sets.push_back(*set);
      table.writers.push_back(writers.front());
    }
    if (!takes_members(s_.at(table.id), first) || touched_by_others(table)) return std::nullopt;
    return table;
  }

  [[nodiscard]] std::optional<uint32_t> only_reader(BufferId member) const {
    std::optional<uint32_t> only;
    for (const uint32_t at : touches_.readers(member)) {
      if (removed_[at]) continue;
      if (only) return std::nullopt;
      only = at;
    }
    return only;
  }

  [[nodiscard]] bool sets_row(const SetRow& set, BufferId member, uint32_t sequence) const {
    const Buffer& buffer = s_.at(member);
    return !present(set.at.param) && set.at.fixed == sequence + 1 && set.src == member && set.cols == buffer.size() &&
           set.count == 1 && set.next_sequence == 0 && set.forms.plain == buffer.plain &&
           set.forms.quantized == buffer.quantized;
  }

  [[nodiscard]] bool takes_members(const Buffer& table, const Buffer& member) const {
    return table.fill == Fill::Computed && table.cols == member.size() && table.rows == sequences_ &&
           table.dtype == member.dtype && table.layout == Layout{} && member.layout == Layout{} &&
           (table.plain || !member.plain) && (table.quantized || !member.quantized);
  }

  // Whether any launch but the sets touches the table while a member holds what is to be its row.
  [[nodiscard]] bool touched_by_others(const Table& table) const {
    const uint32_t first = std::ranges::min(table.writers), last = std::ranges::max(table.sets);
    const auto within = [&](std::span<const uint32_t> list) {
      return std::ranges::upper_bound(list, last) - std::ranges::lower_bound(list, first);
    };
    return within(touches_.writers(table.id)) != sequences_ || within(touches_.readers(table.id)) != 0;
  }

  void set_into(const Table& table, const Family& family) {
    for (uint32_t b = 0; b < sequences_; ++b) {
      alias(family[b], table.id, b);
      removed_[table.sets[b]] = true;
      std::vector<graph::OpId>& ops = s_.launches[table.writers[b]].ops;
      const std::vector<graph::OpId>& joined = s_.launches[table.sets[b]].ops;
      ops.insert(ops.end(), joined.begin(), joined.end());
    }
  }

  Schedule& s_;
  uint64_t& steps_;
  uint32_t sequences_;
  Touches touches_;
  std::vector<bool> removed_;
  std::unordered_set<std::string_view> taken_;  // names that an array cannot have
};

}  // namespace

Positions lay_out_arrays(Schedule& schedule, uint64_t& steps) { return Arrays(schedule, steps).run(); }

}  // namespace tw::plan
