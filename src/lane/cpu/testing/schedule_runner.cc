#include "lane/cpu/testing/schedule_runner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "lane/cpu/move.h"
#include "lane/cpu/pool.h"
#include "lane/cpu/program.h"
#include "lane/cpu/quant.h"
#include "lane/uses.h"
#include "lane/verify.h"

namespace tw::lane::cpu {

namespace {

// Where element `at` of a buffer, in row-major order, lies among its stored elements.
uint64_t stored_at(const Buffer& buffer, uint64_t at) {
  if (buffer.layout.kind == lane::Layout::Kind::RowMajor) return at;
  const uint64_t width = buffer.layout.width;
  const uint64_t row = at / buffer.cols, head = at % buffer.cols / width, e = at % buffer.cols % width;
  const uint64_t head_begin = head * padded_positions(buffer.rows) * width;
  if (buffer.layout.kind == lane::Layout::Kind::ValueRows) return head_begin + row * width + e;
  return head_begin + row / kPositionBlock * kPositionBlock * width + e * kPositionBlock + row % kPositionBlock;
}

float load(const Buffer& buffer, const std::byte* data, uint64_t at) {
  const std::byte* from = data + stored_at(buffer, at) * bytes_of(buffer.dtype);
  float wide;
  uint16_t narrow;
  std::memcpy(&wide, from, buffer.dtype == Dtype::F32 ? sizeof wide : 0);
  std::memcpy(&narrow, from, sizeof narrow);
  if (buffer.dtype == Dtype::F16) return f16_to_f32(narrow);
  return buffer.dtype == Dtype::BF16 ? bf16_to_f32(narrow) : wide;
}

void store(const Buffer& buffer, std::byte* data, uint64_t at, float value) {
  std::byte* to = data + stored_at(buffer, at) * bytes_of(buffer.dtype);
  const uint16_t narrow = buffer.dtype == Dtype::F16 ? f32_to_f16(value) : f32_to_bf16(value);
  if (buffer.dtype == Dtype::F32)
    std::memcpy(to, &value, sizeof value);
  else
    std::memcpy(to, &narrow, sizeof narrow);
}

std::vector<std::byte> quantized_bytes(const std::byte* storage, uint64_t n, int words) {
  const QuantView view = quant_view(const_cast<std::byte*>(storage), n, words);
  std::vector<std::byte> all;
  const auto take = [&all](const auto* from, uint64_t count) {
    const auto* bytes = reinterpret_cast<const std::byte*>(from);
    all.insert(all.end(), bytes, bytes + count * sizeof *from);
  };
  take(view.scale, n / kQuantBlock);
  take(view.high, n);
  take(view.sum_high, n / kQuantBlock);
  take(view.sum_half, n / kQuantBlock);
  take(view.wide, n);
  if (words == 2) {
    take(view.low, n);
    take(view.sum_low, n / kQuantBlock);
  }
  return all;
}

}  // namespace

std::vector<float> test_values(uint64_t count, uint64_t seed, float spread) {
  gguf::TestRandom random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = spread * static_cast<float>(random.bell());
  return values;
}

TestSchedule::TestSchedule(Numerics numerics, uint32_t sequences) {
  schedule_.name = "test";
  schedule_.numerics = numerics;
  if (sequences > 1) schedule_.form = {graph::Form::Kind::Batch, sequences, false};
  for (uint32_t s = 0; s < sequences; ++s) {
    ScheduleIo::Sequence io;
    io.position = integers(fmt::format("io.position_s{}", s), {1});
    io.logits = input(fmt::format("io.logits_s{}", s), 1, 1, {0});
    io.next = integers(fmt::format("io.next_s{}", s), {1});
    schedule_.io.sequences.push_back(io);
    slots_.push_back(s);
  }
}

BufferId TestSchedule::add_buffer(Buffer buffer) {
  schedule_.buffers.push_back(std::move(buffer));
  return BufferId{static_cast<uint32_t>(schedule_.buffers.size() - 1)};
}

BufferId TestSchedule::computed(const std::string& name, uint64_t rows, uint64_t cols, Dtype dtype) {
  return add_buffer({.name = name, .rows = rows, .cols = cols, .dtype = dtype, .fill = Fill::Computed});
}

BufferId TestSchedule::input(const std::string& name, uint64_t rows, uint64_t cols, std::vector<float> values) {
  TW_CHECK(values.size() == rows * cols, "{} values for {} of {} x {}", values.size(), name, rows, cols);
  const BufferId id = add_buffer({.name = name, .rows = rows, .cols = cols, .fill = Fill::Param});
  values_[index(id)] = std::move(values);
  return id;
}

BufferId TestSchedule::integers(const std::string& name, std::vector<int32_t> values) {
  const BufferId id =
      add_buffer({.name = name, .rows = values.size(), .cols = 1, .dtype = Dtype::I32, .fill = Fill::Param});
  integers_[index(id)] = std::move(values);
  return id;
}

BufferId TestSchedule::constant(const std::string& name, uint64_t rows, uint64_t cols, std::vector<float> values) {
  TW_CHECK(values.size() == rows * cols, "{} values for {} of {} x {}", values.size(), name, rows, cols);
  constants_[name] = graph::Values{std::make_shared<const std::vector<float>>(std::move(values)), nullptr};
  return add_buffer({.name = name, .rows = rows, .cols = cols, .fill = Fill::Constant});
}

BufferId TestSchedule::weight(const std::string& name, gguf::Format format, uint64_t count, uint64_t k, uint64_t seed) {
  constants_[name] = weights_.emplace_back(format, count, k, seed).rows();
  return add_buffer({.name = name, .rows = count, .cols = k, .fill = Fill::Constant});
}

BufferId TestSchedule::state(const std::string& name, uint64_t rows, uint64_t cols, Dtype dtype, lane::Layout layout,
                             std::vector<float> values, uint32_t sequence) {
  const bool of_batch = schedule_.io.sequences.size() > 1;
  const BufferId id = add_buffer({.name = of_batch ? fmt::format("{}_s{}", name, sequence) : name,
                                  .rows = rows,
                                  .cols = cols,
                                  .dtype = dtype,
                                  .fill = Fill::State,
                                  .layout = layout});
  if (of_batch) schedule_.buffers.back().sequence = sequence;
  values_[index(id)] = std::move(values);
  return id;
}

BufferId TestSchedule::alias(const std::string& name, BufferId of, uint64_t offset, uint64_t rows, uint64_t cols) {
  return add_buffer({.name = name,
                     .rows = rows,
                     .cols = cols,
                     .dtype = schedule_.at(of).dtype,
                     .fill = Fill::Alias,
                     .alias_of = of,
                     .alias_offset = offset});
}

void TestSchedule::add(Launch launch) { schedule_.launches.push_back({std::move(launch), {}}); }
void TestSchedule::bind(std::vector<uint32_t> slots) { slots_ = std::move(slots); }

const graph::Rows& TestSchedule::rows(BufferId weight) const {
  return std::get<graph::Rows>(constants_.at(schedule_.at(weight).name));
}

// Every buffer gets bytes of its own.
void TestSchedule::place(Schedule& s) const {
  const auto note = [&](BufferId id, TouchForm form) {
    if (!present(id)) return;
    const BufferId home = form == TouchForm::Quantized ? quantized_home(s, id) : span_of(s, id).root;
    Buffer& buffer = s.buffers[index(home)];
    (form == TouchForm::Quantized ? buffer.quantized : form == TouchForm::Weight ? buffer.weight : buffer.plain) = true;
  };
  for (const Planned& planned : s.launches) {
    for (const Use& use : uses(planned.launch, s.numerics)) note(use.buffer, use.form);
    if (const auto* fold = std::get_if<Fold>(&planned.launch)) {  // what is handed over within it
      for (const Launch& part : fold->parts)
        for (const Use& use : uses(part, s.numerics)) note(use.buffer, use.form);
    }
  }
  for (const auto& io : s.io.sequences)
    for (const BufferId id : {io.position, io.logits, io.next}) note(id, TouchForm::Plain);
  const auto take = [&s](uint64_t bytes) {
    const uint64_t at = s.arena_bytes;
    s.arena_bytes += (bytes + 63) / 64 * 64;
    return at;
  };
  for (Buffer& buffer : s.buffers) {
    const bool in_arena = buffer.fill == Fill::Computed || buffer.fill == Fill::Param;
    if (buffer.plain && in_arena) buffer.plain_at = take(plain_bytes(buffer));
    if (buffer.quantized)
      buffer.quantized_at = take(quant_bytes(buffer.size(), s.numerics == Numerics::Int8x2 ? 2 : 1));
  }
}

Schedule TestSchedule::schedule() const {
  Schedule s = schedule_;
  place(s);
  for (const Finding& finding : verify(s))
    ADD_FAILURE() << finding.code << ' ' << finding.about << ": " << finding.text;
  return s;
}

Result<RunResult> TestSchedule::try_run(Isa isa, uint32_t threads,
                                        const std::function<void(const Program&)>& look) const {
  const Schedule s = schedule();
  Pool pool(threads);
  WeightStore weights(constants_);
  TW_TRY_VOID(weights.prepare(s, pool));
  const uint32_t slots = *std::max_element(slots_.begin(), slots_.end()) + 1;
  States states(slots);
  TW_TRY_VOID(states.prepare(s));
  TW_TRY(const std::unique_ptr<Program> program, Program::compile(s, isa, weights, states, threads));
  program->bind(slots_);
  if (look) look(*program);

  std::byte* arena = program->arena().data();
  std::memset(arena, RunResult::kUnwritten, program->arena().size());
  const auto data_of = [&](const Buffer& buffer) -> std::byte* {
    if (buffer.fill != Fill::State) return arena + *buffer.plain_at;
    const States::State& state = states.of(buffer);
    return state.data + slots_[buffer.sequence.value_or(0)] * state.bytes;
  };
  for (const auto& [id, values] : values_) {
    const Buffer& buffer = s.buffers[id];
    for (uint64_t i = 0; buffer.plain && i < values.size(); ++i) store(buffer, data_of(buffer), i, values[i]);
  }
  for (const auto& [id, values] : integers_) {
    if (s.buffers[id].plain) std::memcpy(data_of(s.buffers[id]), values.data(), values.size() * sizeof(int32_t));
  }
  program->run(pool);

  RunResult result;
  for (uint32_t id = 0; id < s.buffers.size(); ++id) {
    const Buffer& buffer = s.buffers[id];
    const bool there = buffer.plain && buffer.fill != Fill::Constant;
    if (there && buffer.dtype == Dtype::I32) {
      std::vector<int32_t>& values = result.integers_[id];
      values.resize(buffer.size());
      std::memcpy(values.data(), data_of(buffer), values.size() * sizeof(int32_t));
    } else if (there) {
      std::vector<float>& values = result.plain_[id];
      for (uint64_t i = 0; i < buffer.size(); ++i) values.push_back(load(buffer, data_of(buffer), i));
    }
    if (buffer.quantized) {
      result.quantized_[id] =
          quantized_bytes(arena + *buffer.quantized_at, buffer.size(), s.numerics == Numerics::Int8x2 ? 2 : 1);
    }
  }
  return result;
}

RunResult TestSchedule::run(Isa isa, uint32_t threads) const {
  Result<RunResult> result = try_run(isa, threads);
  TW_CHECK(result.ok(), "{}", to_text(result.refusal()));
  return std::move(result).value();
}

}  // namespace tw::lane::cpu
