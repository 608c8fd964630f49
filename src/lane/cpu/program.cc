#include "lane/cpu/program.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/round.h"
#include "lane/cpu/binder.h"
#include "lane/cpu/large_memory.h"
#include "lane/cpu/program_data.h"

namespace tw::lane::cpu {

namespace {

constexpr uint64_t kLine = 64;

// Stands in for StepTimes::Recorder where nothing is recorded.
struct Untimed {
  void begin(size_t) {}
  void end(size_t) {}
};

template <class Recorder>
void run_calls(Program::Data& d, Pool& pool, unsigned thread, Recorder recorder) {
  std::byte* scratch = d.scratch[thread].get();
  for (size_t i = 0; i < d.calls.size(); ++i) {
    const Call& call = d.calls[i];
    if (call.barrier && i != 0) pool.barrier();
    recorder.begin(i);
    run_call(call, d.turns[i], scratch, thread, pool.threads());
    recorder.end(i);
  }
}

}  // namespace

Aligned::Aligned(uint64_t bytes) : bytes_(round_up(bytes, kLine)) {
  if (bytes_ == 0) return;
  const bool large = bytes_ >= kHugePage;
  const uint64_t boundary = large ? kHugePage : kLine;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(boundary, round_up(bytes_, boundary))));
  if (data_ == nullptr) throw std::bad_alloc();
  if (large) want_huge_pages(data_.get(), bytes_);
  std::memset(data_.get(), 0, bytes_);
}

void Aligned::Free::operator()(std::byte* p) const { std::free(p); }

Program::Program(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Program::~Program() = default;

Result<std::unique_ptr<Program>> Program::compile(const Schedule& schedule, Isa isa, const WeightStore& weights,
                                                  States& states, uint32_t threads) {
  TW_CHECK(threads > 0, "a program runs on at least one thread");
  auto data = std::make_unique<Data>();
  data->schedule = schedule;
  data->threads = threads;
  TW_TRY_VOID(bind_schedule(*data, isa, weights, states));
  data->turns = std::make_unique<Turn[]>(data->calls.size());
  std::unique_ptr<Program> program(new Program(std::move(data)));
  std::vector<uint32_t> slots(program->data_->sequences.size());
  for (uint32_t s = 0; s < slots.size(); ++s) slots[s] = s;
  program->bind(slots);
  return program;
}

void Program::bind(std::span<const uint32_t> slots) {
  TW_CHECK(slots.size() >= data_->sequences.size(), "{} slots for {} sequences", slots.size(), data_->sequences.size());
  std::copy_n(slots.begin(), data_->slots.size(), data_->slots.begin());
  for (const StatePointer& pointer : data_->state_pointers) {
    *pointer.field = pointer.state->data + slots[pointer.sequence] * pointer.state->bytes + pointer.offset;
  }
}

std::span<int32_t> Program::tokens() {
  const Buffer& buffer = data_->schedule.at(data_->schedule.io.tokens);
  return {data_->tokens, buffer.size()};
}
int32_t& Program::position(uint32_t sequence) { return *data_->sequences[sequence].position; }
std::span<const float> Program::logits(uint32_t sequence) const {
  return {data_->sequences[sequence].logits, data_->sequences[sequence].logits_size};
}
std::span<const int32_t> Program::next(uint32_t sequence) const {
  return {data_->sequences[sequence].next, data_->sequences[sequence].next_size};
}
std::span<std::byte> Program::arena() { return {data_->arena.get(), data_->arena.size()}; }
std::span<const Call> Program::calls() const { return data_->calls; }
const Schedule& Program::schedule() const { return data_->schedule; }
uint64_t Program::bytes() const {
  uint64_t bytes = data_->arena.size() + data_->shared.size();
  for (const Aligned& scratch : data_->scratch) bytes += scratch.size();
  return bytes;
}

void Program::run(Pool& pool, StepTimes* times) {
  Data& d = *data_;
  TW_CHECK(pool.threads() <= d.threads, "compiled for {} threads, run on {}", d.threads, pool.threads());
  for (size_t i = 0; i < d.calls.size(); ++i) d.turns[i].reset(d.calls[i]);
  if (times == nullptr) return pool.run([&](unsigned thread) { run_calls(d, pool, thread, Untimed{}); });
  TW_CHECK(times->calls() == d.calls.size() && times->threads() == pool.threads(), "the times are of another program");
  times->step().begin = StepTimes::now();
  pool.run([&](unsigned thread) { run_calls(d, pool, thread, times->recorder(thread)); });
  times->step().end = StepTimes::now();
}

}  // namespace tw::lane::cpu
