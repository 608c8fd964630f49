// Packing, in bytes of the file a second on one thread, from memory to memory that is there already.

#include <benchmark/benchmark.h>

#include <vector>

#include "lane/cpu/pack.h"

namespace tw::lane::cpu {
namespace {

// A matrix that does not stay in a cache.
constexpr uint64_t kOutputs = 12288, kInputs = 4096;

void pack_matrix(benchmark::State& state, gguf::Format format) {
  const Packed shape = describe(format, kOutputs, kInputs);
  std::vector<std::byte> file(kOutputs * gguf::bytes_of(format, kInputs)), packed(shape.bytes() + kPackAlign);
  for (size_t i = 0; i < file.size(); ++i) file[i] = static_cast<std::byte>(i * 2654435761U >> 16);
  graph::Rows rows;
  rows.format = format;
  rows.data = file.data();
  rows.row_bytes = gguf::bytes_of(format, kInputs);
  rows.row_values = kInputs;
  rows.count = kOutputs;
  for ([[maybe_unused]] auto _ : state) {
    pack(rows, shape, packed.data(), 0, shape.panels());
    benchmark::DoNotOptimize(packed.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * file.size()));
}

const bool kRegistered = [] {
  for (const WeightFormat& entry : weight_formats()) {
    benchmark::RegisterBenchmark(std::string(gguf::name(entry.format)).c_str(), [format = entry.format](
                                                                                    benchmark::State& state) {
      pack_matrix(state, format);
    })->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace tw::lane::cpu
