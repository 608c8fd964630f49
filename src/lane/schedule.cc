#include "lane/schedule.h"

#include <charconv>
#include <iterator>

#include "base/check.h"

namespace tw::lane {

std::string_view name(Fill fill) {
  switch (fill) {
    case Fill::Param: return "param";
    case Fill::State: return "state";
    case Fill::Constant: return "constant";
    case Fill::Computed: return "computed";
    case Fill::Alias: return "alias";
  }
  return "?";
}

std::string_view base_name(const Buffer& buffer) {
  if (!buffer.sequence && buffer.sequences == 1) return buffer.name;
  char text[16] = "_s";
  const char* end = text + 2;
  if (buffer.sequence) end = std::to_chars(text + 2, std::end(text), *buffer.sequence).ptr;
  const std::string_view suffix(text, static_cast<size_t>(end - text));
  std::string_view name = buffer.name;
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

Span span_of(const Schedule& schedule, BufferId id) {
  const uint64_t size = schedule.at(id).size();
  uint64_t from = 0;
  for (size_t hops = 0; schedule.at(id).fill == Fill::Alias; ++hops) {
    TW_CHECK(hops < schedule.buffers.size(), "the aliases of {} form a ring", schedule.at(id).name);
    from += schedule.at(id).alias_offset;
    id = schedule.at(id).alias_of;
  }
  return {id, from, from + size};
}

namespace {

std::pair<BufferId, uint64_t> quantized_place(const Schedule& schedule, BufferId id) {
  uint64_t from = 0;
  while (schedule.at(id).fill == Fill::Alias && schedule.at(id).alias_offset % kQuantBlock == 0) {
    from += schedule.at(id).alias_offset;
    id = schedule.at(id).alias_of;
  }
  return {id, from};
}

}  // namespace

BufferId quantized_home(const Schedule& schedule, BufferId id) { return quantized_place(schedule, id).first; }
uint64_t quantized_offset(const Schedule& schedule, BufferId id) { return quantized_place(schedule, id).second; }

std::map<std::string, uint64_t> census(const Schedule& schedule) {
  std::map<std::string, uint64_t> counts;
  for (const Planned& planned : schedule.launches) {
    if (!std::holds_alternative<View>(planned.launch)) ++counts[std::string(kind_of(planned.launch))];
  }
  return counts;
}

uint64_t plain_bytes(const Buffer& buffer) { return sequence_bytes(buffer) * buffer.sequences; }

uint64_t sequence_bytes(const Buffer& buffer) {
  constexpr uint64_t kPositions = 16;
  uint64_t rows = buffer.rows / buffer.sequences;
  if (buffer.layout.kind != Layout::Kind::RowMajor) rows = (rows + kPositions - 1) / kPositions * kPositions;
  return rows * buffer.cols * bytes_of(buffer.dtype);
}

}  // namespace tw::lane
