#include "lane/cpu/moe.h"

#include <algorithm>
#include <type_traits>

#include "lane/cpu/product.h"

namespace tw::lane::cpu {

extern const MoeKernels kMoeScalar;
extern const MoeKernels kMoeAvx2;
extern const MoeKernels kMoeAvx512;

namespace {

// What the results of a pass over the experts may take of a thread's cache.
constexpr uint64_t kPassBytes = uint64_t{256} << 10;

class Cutter {
 public:
  explicit Cutter(std::byte* storage) : storage_(storage) {}
  void skip(size_t bytes) { bytes_ += bytes; }
  template <class T>
  void take(T*& pointer, uint64_t count) {
    pointer = count == 0 ? nullptr : reinterpret_cast<T*>(storage_ + bytes_);
    bytes_ += (count * sizeof(T) + 63) / 64 * 64;
  }
  QuantView take_quant(uint64_t values, int words) {
    std::byte* at = storage_ + bytes_;
    bytes_ += quant_bytes(values, words);
    return quant_view(at, values, words);
  }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  std::byte* storage_;
  size_t bytes_ = 0;
};

float selection(const MoeArgs& args, const float* scores, uint32_t expert) {
  return args.select_bias ? scores[expert] + args.select_bias[expert] : scores[expert];
}

// The first of the largest values among those not taken. Requires one.
template <class Value>
uint32_t largest(uint32_t count, const uint8_t* taken, Value value) {
  uint32_t best = count;
  for (uint32_t i = 0; i < count; ++i)
    if (taken[i] == 0 && (best == count || value(i) > value(best))) best = i;
  return best;
}

// Takes the experts out of the choice whose groups are not among the best.
void limit_groups(const MoeArgs& args, const float* scores, uint8_t* taken) {
  const uint32_t size = args.spec.experts / args.spec.groups;
  const auto worth = [&](uint32_t group) {
    float first = selection(args, scores, group * size);
    if (size == 1) return first;
    float second = selection(args, scores, group * size + 1);
    if (second > first) std::swap(first, second);
    for (uint32_t e = group * size + 2; e < (group + 1) * size; ++e) {
      const float value = selection(args, scores, e);
      if (value > first) {
        second = first;
        first = value;
      } else if (value > second) {
        second = value;
      }
    }
    return first + second;
  };
  uint8_t* kept = taken + args.spec.experts;
  std::fill_n(kept, args.spec.groups, uint8_t{0});
  for (uint32_t i = 0; i < args.spec.groups_kept; ++i) kept[largest(args.spec.groups, kept, worth)] = 1;
  for (uint32_t e = 0; e < args.spec.experts; ++e) taken[e] = kept[e / size] == 0;
}

bool shared_quantizes_hidden(const MoeArgs& args) { return args.words != 0 && !is_float(args.shared.down.layout); }

// The shared expert's products.
struct SharedProducts {
  explicit SharedProducts(const MoeArgs& args) {
    gate_up[0].w = args.shared.gate;
    gate_up[1].w = args.shared.up;
    glu.product.parts = gate_up;
    glu.product.part_count = 2;
    glu.product.rows = args.rows;
    glu.product.words = args.words;
    glu.product.x = args.x;
    glu.product.x_pitch = args.x_pitch;
    glu.product.quant = args.quant;
    const uint64_t hidden = args.shared.gate.n;
    glu.out = store_rows(args.work.shared_hidden, hidden);
    glu.out.quant = args.work.shared_quant;
    glu.out.words = args.words;
    down_part.w = args.shared.down;
    down_part.y = store_rows(args.work.shared_output, args.d);
    down.parts = &down_part;
    down.part_count = 1;
    down.rows = args.rows;
    down.words = args.words;
    down.x = args.work.shared_hidden;
    down.x_pitch = hidden;
    down.quant = args.work.shared_quant;
  }
  SharedProducts(const SharedProducts&) = delete;
  SharedProducts& operator=(const SharedProducts&) = delete;

  ProductPart gate_up[2];
  GluArgs glu;
  ProductPart down_part;
  ProductArgs down;
};

}  // namespace

const MoeKernels& moe_kernels(Isa isa) {
  switch (isa) {
    case Isa::Scalar: break;
    case Isa::Avx2: return kMoeAvx2;
    case Isa::Avx512: return kMoeAvx512;
  }
  return kMoeScalar;
}

bool moe_reads_plain(const MoeArgs& args) {
  return args.words == 0 || args.spec.weigh_inputs || is_float(args.gate.layout) || is_float(args.up.layout);
}
bool moe_reads_quantized(const MoeArgs& args) {
  return args.words != 0 && !(is_float(args.gate.layout) && is_float(args.up.layout));
}
bool moe_quantizes_hidden(const MoeArgs& args) { return args.words != 0 && !is_float(args.down.layout); }

MoeWork moe_work(const MoeArgs& args, std::byte* storage) {
  const uint64_t picks = args.rows * args.spec.used;
  const uint64_t hidden = args.spec.hidden;
  Cutter cut(storage);
  MoeWork work;
  cut.take(work.scores, args.rows * args.spec.experts);
  cut.take(work.picks, picks);
  cut.take(work.pick_scores, picks);
  cut.take(work.factors, picks);
  cut.take(work.slots, picks);
  cut.take(work.pick_of, picks);
  cut.take(work.active, args.spec.experts);
  cut.take(work.first, uint64_t{args.spec.experts} + 1);
  cut.take(work.active_count, 1);
  if (moe_quantizes_hidden(args))
    work.hidden_quant = cut.take_quant(picks * hidden, args.words);
  else
    cut.take(work.hidden, picks * hidden);
  cut.take(work.sums, args.rows * args.d);
  if (args.with_shared) {
    const uint64_t shared_hidden = args.shared.gate.n;
    if (shared_quantizes_hidden(args))
      work.shared_quant = cut.take_quant(args.rows * shared_hidden, args.words);
    else
      cut.take(work.shared_hidden, args.rows * shared_hidden);
    cut.take(work.shared_output, args.rows * args.d);
  }
  work.bytes = cut.bytes();
  return work;
}

uint64_t moe_pass_panels(const MoeArgs& args) {
  const uint64_t panel_bytes = args.rows * args.spec.used * kPanel * sizeof(float);
  return std::clamp<uint64_t>(kPassBytes / panel_bytes, 1, args.down.group_panels());
}

MoeScratch moe_scratch(const MoeArgs& args, std::byte* storage) {
  ProductPart parts[4];
  const Packed* weights[] = {&args.gate, &args.up, &args.down, &args.router};
  for (int i = 0; i < 4; ++i) parts[i].w = *weights[i];
  ProductArgs product;
  product.parts = parts;
  product.part_count = 4;
  product.rows = args.rows;
  product.words = args.words;
  Cutter cut(storage);
  MoeScratch scratch;
  // First, so that it is the whole of what the logits' product cuts.
  scratch.product = product_scratch(product, storage);
  cut.skip(scratch.product.bytes);
  cut.take(scratch.gates, args.rows * kBlock);
  cut.take(scratch.ups, args.rows * kBlock);
  cut.take(scratch.input, moe_reads_plain(args) ? args.rows * args.d : 0);
  if (moe_reads_quantized(args)) scratch.input_quant = cut.take_quant(args.rows * args.d, args.words);
  cut.take(scratch.outputs, moe_pass_panels(args) * args.rows * args.spec.used * kPanel);
  scratch.bytes = std::max<size_t>(cut.bytes(), 2 * uint64_t{args.spec.experts});
  if (!args.with_shared) return scratch;
  const SharedProducts shared(args);
  scratch.bytes = std::max({scratch.bytes, scratch_bytes(shared.glu), scratch_bytes(shared.down)});
  return scratch;
}

uint64_t moe_logits_items(const MoeArgs& args) { return args.router.panels(); }
uint64_t moe_row_items(const MoeArgs& args) { return args.rows; }
uint64_t moe_one_item(const MoeArgs&) { return 1; }
uint64_t moe_expert_hidden_items(const MoeArgs& args) {
  return *args.work.active_count * ((args.spec.hidden + kBlock - 1) / kBlock);
}
uint64_t moe_hidden_items(const MoeArgs& args) {
  return moe_expert_hidden_items(args) + (args.with_shared ? items(SharedProducts(args).glu) : 0);
}
uint64_t moe_down_items(const MoeArgs& args) {
  return args.down.group_panels() + (args.with_shared ? args.shared.down.panels() : 0);
}

void moe_shared_hidden(const MoeArgs& args, Range range, std::byte* scratch, GluKernel kernel) {
  kernel(SharedProducts(args).glu, range, scratch);
}
void moe_shared_down(const MoeArgs& args, Range range, std::byte* scratch, ProductKernel kernel) {
  kernel(SharedProducts(args).down, range, scratch);
}

void moe_choose_row(const MoeArgs& args, uint64_t row, uint8_t* taken) {
  const graph::Moe& spec = args.spec;
  const float* scores = args.work.scores + row * spec.experts;
  std::fill_n(taken, spec.experts, uint8_t{0});
  if (spec.groups > 1) limit_groups(args, scores, taken);
  uint32_t* picks = args.work.picks + row * spec.used;
  float* pick_scores = args.work.pick_scores + row * spec.used;
  float sum = 0;
  for (uint32_t i = 0; i < spec.used; ++i) {
    picks[i] = largest(spec.experts, taken, [&](uint32_t e) { return selection(args, scores, e); });
    taken[picks[i]] = 1;
    pick_scores[i] = scores[picks[i]];
    sum = sum + pick_scores[i];
  }
  for (uint32_t i = 0; i < spec.used; ++i) {
    float factor = spec.weigh_inputs ? 1.0F : pick_scores[i];
    if (spec.renormalize) factor = factor / (sum > 0x1p-14F ? sum : 0x1p-14F);
    if (!spec.weigh_inputs) factor = factor * spec.scale;
    if (args.expert_scale) factor = factor * args.expert_scale[picks[i]];
    args.work.factors[row * spec.used + i] = factor;
  }
}

void moe_group(const MoeArgs& args, Range range, std::byte*) {
  if (range.begin >= range.end) return;
  const MoeWork& work = args.work;
  const uint64_t picks = args.rows * args.spec.used;
  // `active` first counts an expert's slots, then holds the next free one.
  std::fill_n(work.active, args.spec.experts, 0U);
  for (uint64_t p = 0; p < picks; ++p) ++work.active[work.picks[p]];
  uint32_t slot = 0;
  for (uint32_t expert = 0; expert < args.spec.experts; ++expert) {
    const uint32_t count = work.active[expert];
    work.active[expert] = slot;
    slot += count;
  }
  for (uint64_t p = 0; p < picks; ++p) {
    work.slots[p] = work.active[work.picks[p]]++;
    work.pick_of[work.slots[p]] = static_cast<uint32_t>(p);
  }
  uint32_t active = 0;
  for (slot = 0; slot < picks; ++slot) {
    const uint32_t expert = work.picks[work.pick_of[slot]];
    if (active > 0 && work.active[active - 1] == expert) continue;
    work.first[active] = slot;
    work.active[active++] = expert;
  }
  work.first[active] = slot;
  *work.active_count = active;
}

}  // namespace tw::lane::cpu
