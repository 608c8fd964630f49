#pragma once

// A planned step: launches in order, the buffers they work on, and which graph ops each launch computes.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/step_graph.h"
#include "lane/launch.h"

namespace tw::lane {

// What a buffer's elements are before the step.
enum class Fill : uint8_t {
  Param,     // set from outside before each step
  State,     // zeroed before the first step, carried from step to step
  Constant,  // weights and tables
  Computed,  // written by the step
  Alias,     // a span of another buffer
};
std::string_view name(Fill fill);

// How the elements of a cache lie. A lane keeps keys so that positions are adjacent and values so that a head's rows
// are.
struct Layout {
  enum class Kind : uint8_t {
    RowMajor,   // row after row
    KeyBlocks,  // [head][block of 16 positions][width][16]: `heads` heads of `width`, positions rounded up to 16
    ValueRows,  // [head][position][width], positions rounded up to 16
  };
  Kind kind = Kind::RowMajor;
  uint32_t heads = 0;
  uint32_t width = 0;
  bool operator==(const Layout&) const = default;
};

struct Buffer {
  std::string name;
  uint64_t rows = 0, cols = 0;
  Dtype dtype = Dtype::F32;
  Fill fill = Fill::Computed;
  bool plain = false;      // some launch touches its plain form
  bool quantized = false;  // some launch touches its quantized form
  bool weight = false;     // read as a product's weight or a table of checkpoint rows, in the lane's own storage
  Layout layout;
  std::optional<uint32_t> sequence;
  // More than 1: the array of a batch's sequences. It holds the part of each, rows / sequences rows in `layout`, back
  // to back; of a State, wherever the lane keeps that sequence.
  uint32_t sequences = 1;
  BufferId alias_of = kNoBuffer;  // Fill::Alias: the buffer, and the first element in it
  uint64_t alias_offset = 0;
  // Computed and Param buffers: byte offsets in the step's arena of the plain and the quantized form.
  std::optional<uint64_t> plain_at;
  std::optional<uint64_t> quantized_at;

  [[nodiscard]] uint64_t size() const { return rows * cols; }
  bool operator==(const Buffer&) const = default;
};

struct Planned {
  Launch launch;
  std::vector<graph::OpId> ops;  // the graph ops it computes; none for a quantization
  bool operator==(const Planned&) const = default;
};

// One use of a fusion rule: the rule and the graph ops of the launch it made.
struct Firing {
  std::string rule;
  std::vector<graph::OpId> ops;
  bool operator==(const Firing&) const = default;
};

struct ScheduleIo {
  struct Sequence {
    BufferId position = kNoBuffer, logits = kNoBuffer, next = kNoBuffer;
    bool operator==(const Sequence&) const = default;
  };
  BufferId tokens = kNoBuffer;
  std::vector<Sequence> sequences;
  bool operator==(const ScheduleIo&) const = default;
};

struct Schedule {
  std::string name;
  graph::Form form;
  Numerics numerics = Numerics::Int8;
  Order order = Order::Strict;
  uint64_t op_count = 0;  // ops of the graph it was planned from
  std::vector<Planned> launches;
  std::vector<Buffer> buffers;
  std::vector<Firing> fusions;
  ScheduleIo io;
  uint64_t arena_bytes = 0;

  [[nodiscard]] const Buffer& at(BufferId id) const { return buffers[index(id)]; }
  bool operator==(const Schedule&) const = default;
};

// A buffer's name less what tells the sequences of a batch apart: the "_s<b>" of sequence b, the "_s" of their array.
std::string_view base_name(const Buffer& buffer);

// The buffer that holds `id`'s elements and the first of them: follows aliases to the end.
struct Span {
  BufferId root = kNoBuffer;
  uint64_t from = 0, to = 0;  // elements
  bool operator==(const Span&) const = default;
};
Span span_of(const Schedule& schedule, BufferId id);

// The buffer whose quantized form holds `id`'s: an alias at an offset of whole blocks of 32 shares its source's, any
// other buffer has its own. `quantized_offset` is the first value in it.
BufferId quantized_home(const Schedule& schedule, BufferId id);
uint64_t quantized_offset(const Schedule& schedule, BufferId id);

// Launches by kind, views not counted.
std::map<std::string, uint64_t> census(const Schedule& schedule);

// Bytes that a buffer's plain form takes in its layout (a cache is rounded up to whole blocks of positions), of all its
// sequences or of one.
uint64_t plain_bytes(const Buffer& buffer);
uint64_t sequence_bytes(const Buffer& buffer);

}  // namespace tw::lane
