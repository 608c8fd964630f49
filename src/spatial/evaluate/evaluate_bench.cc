// The evaluator beside the per-element oracle, on stages as lowerings make them. Prints the ratio of the two.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

#include "base/check.h"
#include "spatial/builder.h"
#include "spatial/evaluate/evaluate.h"
#include "spatial/evaluate/testing/naive.h"
#include "spatial/evaluate/testing/random_program.h"
#include "spatial/testing.h"

namespace tw::spatial::evaluate {
namespace {

Target tensix() { return spatial::testing::shipped_target("tensix"); }

Program good(Result<Program> program) {
  TW_CHECK(program.ok(), "{}", to_text(program.refusal()));
  return std::move(*program);
}

// A page in, a page out, `items` times: the frame of one-stage sections over whole tiles.
struct Frame {
  explicit Frame(uint64_t tiles, uint64_t items, bool dense, Precision dtype = Precision::Bf16)
      : builder(tensix(), is_integer(dtype) ? Precision::I32 : Precision::F32), tiles_(tiles), items_(items) {
    const uint64_t rows = dense ? 32 : 1, cols = tiles * items * 32;
    for (int i = 0; i < 2; ++i) {
      const TensorId x = builder.tensor(fmt::format("x{}", i), TensorRole::Input, rows, cols, dtype, GivenInit{});
      in[i] = builder.buffer(fmt::format("in{}", i), tiles, dtype);
      builder.load(fmt::format("load{}", i), x, {.steps = {item_x(tiles)}}, in[i]);
    }
    y_ = builder.tensor("y", TensorRole::Output, rows, cols, dtype);
    out = builder.buffer("out", tiles, dtype);
  }
  Program finish(std::string name) {
    builder.store("store", out, y_, {.steps = {item_x(tiles_)}});
    return good(std::move(builder).finish(
        {.name = std::move(name), .items = row_items(tiles_ * items_, tiles_), .claim = approx("a benchmark")}));
  }

  Builder builder;
  BufferId in[2]{}, out{};

 private:
  TensorId y_{};
  uint64_t tiles_, items_;
};

// silu(a) * b over whole pages.
Program pointwise() {
  Frame f(8, 8, true);
  GenericStage stage = f.builder.compute("gate", {rows(32), cols(256)});
  const Expr a = stage.read(f.in[0], ident(256)), b = stage.read(f.in[1], ident(256));
  stage.write(f.out, silu(a) * b);
  return f.finish("pointwise");
}

// The same over flat rows.
Program flat_rows() {
  Frame f(8, 64, false);
  GenericStage stage = f.builder.compute("gate", flat(256));
  const Expr a = stage.read(f.in[0], at(0)), b = stage.read(f.in[1], at(0));
  stage.write(f.out, silu(a) * b);
  return f.finish("flat_rows");
}

// Sum of squares along every row, its root, the rescaled page.
Program row_norm() {
  Frame f(8, 8, true);
  const BufferId sum = f.builder.scratch("sum", 1);
  GenericStage fold = f.builder.compute("fold", {rows(32), reduce_cols(256)});
  const Expr v = fold.read(f.in[0], ident(256));
  const Expr again = fold.read(f.in[0], ident(256));
  fold.write(sum, v * again);
  GenericStage rescale = f.builder.compute("rescale", {rows(32), cols(256)});
  const Expr x = rescale.read(f.in[1], ident(256)), s = rescale.read(sum, row_of(32));
  rescale.write(f.out, x * rsqrt(s, 1000, 256));
  return f.finish("row_norm");
}

// Eight heads of 32 columns, each turned by its own band of the row.
Program banded_heads() {
  Frame f(8, 64, false);
  GenericStage stage = f.builder.compute("bands", flat(256));
  std::vector<Band> bands;
  for (int64_t h = 0; h < 8; ++h) {
    const Expr a = stage.read(f.in[0], at(h % 2 == 0 ? 32 : -32)), b = stage.read(f.in[1], fixed(32 * h));
    bands.push_back({32 * (h + 1), a * b});
  }
  stage.write(f.out, banded(bands));
  return f.finish("banded_heads");
}

// out[r][c] = sum over k of a[r][k] * b[k][c], as a loop nest.
Program contraction() {
  Frame f(1, 8, true);
  GenericStage stage = f.builder.compute("contract", {rows(32), cols(32), reduce_k(32)});
  const Expr a = stage.read(f.in[0], map3(0, 32, 0, 1)), b = stage.read(f.in[1], map3(0, 0, 1, 32));
  stage.write(f.out, a * b);
  return f.finish("contraction");
}

// An integer stage: scaled, shifted, clamped.
Program integers() {
  Frame f(8, 8, true, Precision::I32);
  GenericStage stage = f.builder.compute("requant", {rows(32), cols(256)});
  const Expr a = stage.read(f.in[0], ident(256)), b = stage.read(f.in[1], ident(256));
  stage.write(f.out, min(max(shr(a * Expr(77.0) + b, 3), -128.0), 127.0));
  return f.finish("integers");
}

Program product() { return good(spatial::testing::streamed_product(tensix(), 2, 2, 4)); }

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Reports the time of the evaluator, and how many times as long the oracle takes: medians of runs in turn.
void beside_naive(benchmark::State& state, const Program& program) {
  Memory memory(program.tile);
  testing::fill_inputs(program, memory, 1);
  Result<Evaluator> evaluator = Evaluator::compile(program);
  TW_CHECK(evaluator.ok(), "{}", to_text(evaluator.refusal()));
  std::vector<double> fast, slow;
  const auto run = [&] {
    const Result<Run> done = evaluator->run(memory);
    TW_CHECK(done.ok() && !done->fault, "{} does not run", program.name);
  };
  run();
  for ([[maybe_unused]] auto _ : state) {
    slow.push_back(seconds([&] { benchmark::DoNotOptimize(testing::run_naive(program, memory)); }));
    for (int i = 0; i < 20; ++i) fast.push_back(seconds(run));
    state.SetIterationTime(fast.back());
  }
  state.counters["fast_us"] = median(fast) * 1e6;
  state.counters["naive_us"] = median(slow) * 1e6;
  state.counters["ratio"] = median(slow) / median(fast);
}

const int kRegistered = [] {
  for (const auto& make : {pointwise, flat_rows, row_norm, banded_heads, contraction, integers, product}) {
    const Program program = make();
    benchmark::RegisterBenchmark(program.name.c_str(), [program](benchmark::State& s) { beside_naive(s, program); })
        ->Iterations(7)
        ->UseManualTime();
  }
  return 0;
}();

}  // namespace
}  // namespace tw::spatial::evaluate
