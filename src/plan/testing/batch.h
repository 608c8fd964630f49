#pragma once

// Schedules of a batch made by hand, launch by launch. Used by tests and benchmarks.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "lane/schedule.h"
#include "lane/uses.h"

namespace tw::plan {

class Batch {
 public:
  explicit Batch(uint32_t sequences) : sequences_(sequences) {
    schedule.name = "batch";
    schedule.form = {graph::Form::Kind::Batch, sequences, false};
    schedule.io.tokens =
        add({.name = "tokens", .rows = sequences, .dtype = lane::Dtype::I32, .fill = lane::Fill::Param}, 1);
    for (uint32_t b = 0; b < sequences; ++b) {
      lane::ScheduleIo::Sequence io;
      io.position = add(
          {.name = fmt::format("position_s{}", b), .rows = 1, .dtype = lane::Dtype::I32, .fill = lane::Fill::Param}, 1);
      schedule.io.sequences.push_back(io);
    }
  }

  [[nodiscard]] uint32_t sequences() const { return sequences_; }
  [[nodiscard]] lane::BufferId position(uint32_t b) const { return schedule.io.sequences[b].position; }

  // A buffer that the sequences share, one row of `cols` values or `rows` of them.
  lane::BufferId shared(const std::string& name, uint64_t cols, uint64_t rows = 1,
                        lane::Fill fill = lane::Fill::Computed) {
    return add({.name = name, .rows = rows, .fill = fill}, cols);
  }
  lane::BufferId constant(const std::string& name, uint64_t cols) {
    return shared(name, cols, 1, lane::Fill::Constant);
  }
  // Sequence b's buffer `name`.
  lane::BufferId own(const std::string& name, uint32_t b, uint64_t cols, uint64_t rows = 1,
                     lane::Fill fill = lane::Fill::Computed) {
    return add({.name = fmt::format("{}_s{}", name, b), .rows = rows, .fill = fill, .sequence = b}, cols);
  }
  lane::BufferId state(const std::string& name, uint32_t b, uint64_t rows, uint64_t cols) {
    return own(name, b, cols, rows, lane::Fill::State);
  }
  // Elements offset.. of another buffer.
  lane::BufferId alias(const std::string& name, lane::BufferId of, uint64_t offset, uint64_t cols) {
    return add({.name = name, .rows = 1, .fill = lane::Fill::Alias, .alias_of = of, .alias_offset = offset}, cols);
  }
  // The buffer of a name that is there.
  [[nodiscard]] lane::BufferId find(const std::string& name) const {
    for (uint32_t i = 0; i < schedule.buffers.size(); ++i) {
      if (schedule.buffers[i].name == name) return lane::BufferId{i};
    }
    TW_CHECK(false, "the schedule has no buffer {}", name);
    return lane::kNoBuffer;
  }
  [[nodiscard]] lane::Buffer& at(const std::string& name) { return schedule.buffers[index(find(name))]; }

  // A launch of one op of its own. What it touches counts as touched.
  void add(lane::Launch launch) {
    for (const lane::Use& use : uses(launch, schedule.numerics)) {
      lane::Buffer& buffer = schedule.buffers[index(use.buffer)];
      (use.form == lane::TouchForm::Quantized ? buffer.quantized : buffer.plain) = true;
    }
    schedule.launches.push_back({std::move(launch), {graph::OpId{static_cast<uint32_t>(schedule.op_count++)}}});
  }

  lane::Schedule schedule;

 private:
  lane::BufferId add(lane::Buffer buffer, uint64_t cols) {
    buffer.cols = cols;
    const auto [found, isnew] = ids_.try_emplace(buffer.name, static_cast<uint32_t>(schedule.buffers.size()));
    if (isnew) schedule.buffers.push_back(std::move(buffer));
    return lane::BufferId{found->second};
  }

  uint32_t sequences_;
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace tw::plan
