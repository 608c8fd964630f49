#pragma once

// Runs schedules made by hand: launches over named buffers with given data, compiled as any schedule and run once.
// Tests compare a fused launch with its parts through it.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/format.h"
#include "graph/constants.h"
#include "lane/cpu/isa.h"
#include "lane/cpu/product_test_data.h"
#include "lane/cpu/program.h"
#include "lane/schedule.h"

namespace tw::lane::cpu {

// Bell-shaped values of a seed.
std::vector<float> test_values(uint64_t count, uint64_t seed, float spread = 1.0F);

// What the buffers hold after a run.
class RunResult {
 public:
  // Every value of the plain form in row-major order, widened, whatever the buffer's layout and type. What nothing
  // wrote is the bytes kUnwritten.
  [[nodiscard]] const std::vector<float>& plain(BufferId id) const { return plain_.at(index(id)); }
  [[nodiscard]] const std::vector<int32_t>& integers(BufferId id) const { return integers_.at(index(id)); }
  // Scales, words and sums of the quantized form, one after the other.
  [[nodiscard]] const std::vector<std::byte>& quantized(BufferId id) const { return quantized_.at(index(id)); }

  static constexpr unsigned char kUnwritten = 0x5a;

 private:
  friend class TestSchedule;
  std::map<uint32_t, std::vector<float>> plain_;
  std::map<uint32_t, std::vector<int32_t>> integers_;
  std::map<uint32_t, std::vector<std::byte>> quantized_;
};

class TestSchedule {
 public:
  // More than one sequence: the schedule of a batch. States are then of the sequence that they name.
  explicit TestSchedule(Numerics numerics, uint32_t sequences = 1);

  // Another form than a decode step or a batch.
  void set_form(graph::Form form) { schedule_.form = form; }

  // ---- buffers ----

  BufferId computed(const std::string& name, uint64_t rows, uint64_t cols, Dtype dtype = Dtype::F32);
  // Given from outside before the step.
  BufferId input(const std::string& name, uint64_t rows, uint64_t cols, std::vector<float> values);
  BufferId integers(const std::string& name, std::vector<int32_t> values);
  // Plain values that the checkpoint holds: a bias, a norm's weight, an F32 matrix in graph order.
  BufferId constant(const std::string& name, uint64_t rows, uint64_t cols, std::vector<float> values);
  // `count` checkpoint rows of `k` values, of a seed.
  BufferId weight(const std::string& name, gguf::Format format, uint64_t count, uint64_t k, uint64_t seed);
  // Carried: `values` in row-major order before the step, zeros when empty. They must be exact in the type.
  BufferId state(const std::string& name, uint64_t rows, uint64_t cols, Dtype dtype = Dtype::F32,
                 lane::Layout layout = {}, std::vector<float> values = {}, uint32_t sequence = 0);
  // Elements offset.. of another buffer.
  BufferId alias(const std::string& name, BufferId of, uint64_t offset, uint64_t rows, uint64_t cols);

  // ---- launches ----

  void add(Launch launch);

  // ---- runs ----

  // The slot of the carried state that each sequence works on; by default its own number. Others are used when a test
  // is about that.
  void bind(std::vector<uint32_t> slots);

  // Compiles and runs one step, or answers why the schedule cannot be run. Fails the test when the verifier finds
  // anything. `look` sees the program before it runs.
  [[nodiscard]] Result<RunResult> try_run(Isa isa, uint32_t threads = 1,
                                          const std::function<void(const Program&)>& look = {}) const;
  // The same, where a refusal is a failure of the test.
  [[nodiscard]] RunResult run(Isa isa, uint32_t threads = 1) const;

  // The checkpoint rows of a weight.
  [[nodiscard]] const graph::Rows& rows(BufferId weight) const;

 private:
  BufferId add_buffer(Buffer buffer);
  [[nodiscard]] Schedule schedule() const;
  void place(Schedule& schedule) const;

  Schedule schedule_;
  graph::Constants constants_;
  std::deque<TestRows> weights_;
  std::map<uint32_t, std::vector<float>> values_;      // of inputs and states
  std::map<uint32_t, std::vector<int32_t>> integers_;  // of integer inputs
  std::vector<uint32_t> slots_;
};

}  // namespace tw::lane::cpu
