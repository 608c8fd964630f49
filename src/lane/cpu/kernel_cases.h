#pragma once

// The main kernels at fixed shapes, small enough for the second-level cache, on one thread: what the price of the
// numerics contract and the kernels' instruction counts are measured on. Used by benchmarks and tools only.

#include <cmath>
#include <memory>
#include <random>

#include "base/half.h"
#include "gguf/format.h"
#include "lane/cpu/kernels.h"
#include "lane/cpu/pack.h"
#include "lane/cpu/product.h"
#include "lane/cpu/program_data.h"

namespace tw::lane::cpu::cases {

// Zeroed memory, aligned to cache lines; in huge pages where it fills one, as a model's weights and states lie: in
// small ones two equal arrays are read up to a fifth apart.
template <class T>
class Array {
 public:
  explicit Array(size_t size) : size_(size), data_(size * sizeof(T) + 64) {}
  T* get() { return reinterpret_cast<T*>(data_.get()); }
  [[nodiscard]] const T* get() const { return reinterpret_cast<const T*>(data_.get()); }
  [[nodiscard]] size_t size() const { return size_; }
  template <class Make>
  Array& fill(Make make) {
    for (size_t i = 0; i < size_; ++i) get()[i] = make();
    return *this;
  }

 private:
  size_t size_;
  Aligned data_;
};

// Numbers between -1 and 1, the same ones every time.
class Numbers {
 public:
  float operator()() { return static_cast<float>(static_cast<int32_t>(engine_())) * 0x1p-31f; }

 private:
  std::mt19937 engine_{1};
};

// A product of `rows` rows of random values by quantized ones.
struct Product {
  Product(gguf::Format format, uint64_t outputs, uint64_t inputs, uint64_t count)
      : n(outputs),
        k(inputs),
        rows(count),
        weights(packed_bytes(format, n, k)),
        x(rows * k),
        quantized(quant_bytes(rows * k, 1)),
        y(rows * n) {
    Array<float> values(n * k);
    values.fill(Numbers());
    Array<std::byte> file(gguf::bytes_of(format, k) * n);
    gguf::quantize(format, values.get(), file.get(), n * k);
    graph::Rows stored;
    stored.format = format;
    stored.data = file.get();
    stored.row_bytes = gguf::bytes_of(format, k);
    stored.row_values = k;
    stored.count = n;
    part.w = describe(format, n, k);
    part.w.data = weights.get();
    pack(stored, part.w, weights.get(), 0, part.w.panels());
    part.y = store_rows(y.get(), n);
    x.fill(Numbers());
    args.parts = &part;
    args.part_count = 1;
    args.rows = rows;
    args.words = 1;
    args.x = x.get();
    args.x_pitch = k;
    args.quant = quant_view(quantized.get(), rows * k, 1);
    const QuantArgs quantize{.x = x.get(), .to = args.quant, .rows = rows, .cols = k, .pitch = k};
    kernels(best_isa()).quant(quantize, {0, items(quantize)}, nullptr);
    scratch = std::make_unique<Array<std::byte>>(scratch_bytes(args));
  }
  void run() { product_kernel(best_isa())(args, {0, items(args)}, scratch->get()); }

  uint64_t n, k, rows;
  Array<std::byte> weights;
  Array<float> x;
  Array<std::byte> quantized;
  Array<float> y;
  ProductPart part;
  ProductArgs args;
  std::unique_ptr<Array<std::byte>> scratch;
};

// The norm of rows, with a weight.
struct RowNorm {
  RowNorm(uint64_t rows, uint64_t cols) : x(rows * cols), weight(cols), y(rows * cols) {
    x.fill(Numbers());
    weight.fill(Numbers());
    args = {.x = x.get(),
            .x_pitch = cols,
            .weight = weight.get(),
            .out = store_rows(y.get(), cols),
            .rows = rows,
            .cols = cols,
            .eps = 1e-6f};
  }
  void run() { kernels(best_isa()).norm(args, {0, items(args)}, nullptr); }

  Array<float> x, weight, y;
  NormArgs args;
};

// One row, or a tile of rows, that attends `length` positions of caches in f16.
struct Attention {
  Attention(uint64_t rows, uint64_t heads, uint64_t kv_heads, uint64_t width, uint64_t length)
      : q(rows * heads * width),
        keys(cache_elements(length, kv_heads, width)),
        values(keys.size()),
        y(q.size()),
        partials(attention_partials(1, rows, heads, width, length)) {
    Numbers numbers;
    const auto half = [&] { return f32_to_f16(numbers()); };
    q.fill([&] { return numbers(); });
    keys.fill(half);
    values.fill(half);
    position = static_cast<int32_t>(length - rows + 1);
    args = {.q = q.get(),
            .k = key_cache(keys.get(), Dtype::F16, length, kv_heads, width),
            .v = value_cache(values.get(), Dtype::F16, length, kv_heads, width),
            .position = &position,
            .out = store_rows(y.get(), width),
            .partials = partials.get(),
            .rows = rows,
            .heads = heads,
            .kv_heads = kv_heads,
            .hd = width,
            .vd = width,
            .length = length,
            .scale = 0.25f};
    scratch = std::make_unique<Array<std::byte>>(attention_scratch_bytes(args));
  }
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;
  void run() {
    const Kernels& all = kernels(best_isa());
    if (args.rows > kFewAttentionRows) return all.attention_rows(args, {0, attention_rows_items(args)}, scratch->get());
    all.attention_chunks(args, {0, attention_chunks_items(args)}, scratch->get());
    merge();
  }
  // The second half of run() of few rows.
  void merge() { kernels(best_isa()).attention_merge(args, {0, attention_merge_items(args)}, scratch->get()); }

  Array<float> q;
  Array<uint16_t> keys, values;
  Array<float> y, partials;
  int32_t position = 1;
  AttentionArgs args;
  std::unique_ptr<Array<std::byte>> scratch;
};

// Rows of the gated delta rule. The decay keeps the memory from growing however often it runs.
struct DeltaRule {
  DeltaRule(uint64_t rows, uint64_t heads, uint64_t d)
      : q(rows * heads * d),
        k(q.size()),
        v(q.size()),
        beta(rows * heads),
        alpha(beta.size()),
        state(heads * d * d),
        o(q.size()) {
    Numbers numbers;
    const float length = 1.0f / std::sqrt(static_cast<float>(d));
    for (Array<float>* each : {&q, &k, &v}) each->fill([&] { return numbers() * length; });
    beta.fill([] { return 0.5f; });
    alpha.fill([] { return 0.9f; });
    args = {.q = q.get(),
            .k = k.get(),
            .v = v.get(),
            .beta = beta.get(),
            .alpha = alpha.get(),
            .state = state.get(),
            .o = o.get(),
            .rows = rows,
            .value_heads = heads,
            .key_heads = heads,
            .d = d};
  }
  void run() { kernels(best_isa()).delta_update(args, {0, delta_update_items(args)}, nullptr); }

  Array<float> q, k, v, beta, alpha, state, o;
  DeltaArgs args;
};

}  // namespace tw::lane::cpu::cases
