#include "lane/cpu/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <set>

#include "base/check.h"
#include "gguf/format.h"
#include "lane/uses.h"

namespace tw::lane::cpu {

namespace {

// How a launch reads a constant.
enum class Reading : uint8_t { Product, Experts, Heads, HeadsInputRows, Rows, Plain };

// Panels packed by one thread at a time: enough to be worth a turn, few enough to share out.
constexpr uint64_t kPanelsATurn = 8;

std::byte* allocate(uint64_t bytes) {
  return static_cast<std::byte*>(std::aligned_alloc(kPackAlign, (bytes + kPackAlign - 1) / kPackAlign * kPackAlign));
}
void release(std::byte* bytes) { std::free(bytes); }

}  // namespace

struct WeightStore::Wanted {
  std::string name;
  Reading reading = Reading::Plain;
  uint64_t groups = 1, n = 0, k = 0;
  auto operator<=>(const Wanted&) const = default;
};

namespace {

// Lists what a schedule reads, a line a kind of launch.
template <class Wanted>
class Wants {
 public:
  explicit Wants(const Schedule& schedule) : schedule_(schedule) {
    for (const Planned& planned : schedule.launches) note(planned.launch);
  }
  std::set<Wanted> take() && { return std::move(wants_); }

 private:
  void note(const Launch& launch) {
    std::visit(
        [this]<class L>(const L& l) {
          if constexpr (std::is_same_v<L, Fold>) {
            for (const Launch& part : l.parts) note(part);
          } else {
            note_weights(l);
          }
        },
        launch);
    if (std::holds_alternative<Fold>(launch)) return;
    for (const Use& use : uses(launch, schedule_.numerics)) {
      if (use.form == TouchForm::Plain && schedule_.at(use.buffer).fill == Fill::Constant) {
        want(use.buffer, Reading::Plain, 1, 0, 0);
      }
    }
  }

  template <class L>
  void note_weights(const L&) {}
  void note_weights(const Gemv& l) { want(l.w, Reading::Product, 1, l.n, l.k); }
  void note_weights(const GemvF32& l) { want(l.w, Reading::Product, 1, l.n, l.k); }
  void note_weights(const GemmParts& l) {
    for (const GemmPart& part : l.parts) want(part.w, Reading::Product, 1, part.n, l.k);
  }
  void note_weights(const GemvGlu& l) {
    want(l.wg, Reading::Product, 1, l.n, l.k);
    want(l.wu, Reading::Product, 1, l.n, l.k);
  }
  void note_weights(const HeadGemv& l) {
    want(l.w, l.rows_out ? Reading::Heads : Reading::HeadsInputRows, l.heads, l.b, l.a);
  }
  void note_weights(const Moe& l) {
    const uint64_t hidden = l.spec.hidden, experts = l.spec.experts;
    want(l.router, Reading::Product, 1, experts, l.d);
    want(l.gate, Reading::Experts, experts, hidden, l.d);
    want(l.up, Reading::Experts, experts, hidden, l.d);
    want(l.down, Reading::Experts, experts, l.d, hidden);
    if (!l.shared) return;
    want(l.shared->wg, Reading::Product, 1, l.shared->hidden, l.d);
    want(l.shared->wu, Reading::Product, 1, l.shared->hidden, l.d);
    want(l.shared->wd, Reading::Product, 1, l.d, l.shared->hidden);
  }
  void note_weights(const GateProj& l) {
    want(l.wb, Reading::Product, 1, l.heads, l.k);
    want(l.wa, Reading::Product, 1, l.heads, l.k);
  }
  void note_weights(const Gather& l) {
    if (l.format) want(l.table, Reading::Rows, 1, 0, 0);
  }

  void want(BufferId id, Reading reading, uint64_t groups, uint64_t n, uint64_t k) {
    if (present(id)) wants_.insert({schedule_.at(id).name, reading, groups, n, k});
  }

  const Schedule& schedule_;
  std::set<Wanted> wants_;
};

// A matrix of plain values in graph order (inputs by outputs) as rows of outputs.
std::vector<float> transposed(const std::vector<float>& values, uint64_t k, uint64_t n) {
  std::vector<float> out(values.size());
  for (uint64_t t = 0; t < k; ++t) {
    for (uint64_t o = 0; o < n; ++o) out[o * k + t] = values[t * n + o];
  }
  return out;
}

std::vector<float> widened(const graph::Rows& rows) {
  std::vector<float> values(rows.count * rows.row_values);
  for (uint64_t r = 0; r < rows.count; ++r) {
    gguf::dequantize(rows.format, rows.row(r), values.data() + r * rows.row_values, rows.row_values);
  }
  return values;
}

const std::vector<float>& floats(const graph::Values& values, std::string_view name) {
  TW_CHECK(values.f32 != nullptr, "the constant {} holds no f32 values", name);
  return *values.f32;
}

}  // namespace

const graph::Constant& WeightStore::constant(std::string_view name) const {
  const auto found = constants_->find(std::string(name));
  TW_CHECK(found != constants_->end(), "the constant {} has no place", name);
  return found->second;
}

Result<void> WeightStore::pack_one(const Wanted& wanted, Pool& pool) {
  const graph::Constant& place = constant(wanted.name);
  const bool heads = wanted.reading == Reading::Heads || wanted.reading == Reading::HeadsInputRows;
  const bool input_rows = wanted.reading == Reading::HeadsInputRows;
  std::vector<float> turned;
  graph::Rows rows;
  if (const auto* stored = std::get_if<graph::Rows>(&place)) {
    rows = *stored;
  } else {
    const std::vector<float>& values = floats(std::get<graph::Values>(place), wanted.name);
    // Only a plain product's values are in graph order; experts and heads are stored as the kernels name them.
    if (wanted.reading == Reading::Product) turned = transposed(values, wanted.k, wanted.n);
    const uint64_t cols = input_rows ? wanted.n : wanted.k;
    rows = rows_of_values(turned.empty() ? values.data() : turned.data(), values.size() / cols, cols);
  }
  Held held;
  // Rows that hold outputs are turned, which only values of their own can be.
  const gguf::Format format = input_rows ? gguf::Format::F32 : rows.format;
  held.shape = heads ? describe_heads(format, wanted.groups, wanted.n, wanted.k)
                     : describe(format, wanted.n, wanted.k, wanted.groups);
  const uint64_t bytes = held.shape.bytes();
  held.bytes = {allocate(bytes), release};
  if (held.bytes == nullptr) {
    return refuse(RefusalKind::TooLarge, wanted.name, fmt::format("the machine gives no room for its {} bytes", bytes));
  }
  held.shape.data = held.bytes.get();
  packed_bytes_ += bytes;
  ItemCounter panels;
  pool.run([&](unsigned) {
    const auto next = [&] { return panels.next(held.shape.panels(), kPanelsATurn); };
    for (Range range = next(); range.begin < range.end; range = next()) {
      (input_rows ? pack_input_rows : pack)(rows, held.shape, held.bytes.get(), range.begin, range.end);
    }
  });
  (heads ? heads_ : products_).emplace(wanted.name, std::move(held));
  return {};
}

Result<void> WeightStore::prepare(const Schedule& schedule, Pool& pool,
                                  const std::function<void(uint64_t, uint64_t)>& progress,
                                  const std::function<void(const graph::Rows&)>& packed) {
  std::vector<Wanted> todo;
  uint64_t total = 0, done = 0;
  const auto bytes_of = [this](const Wanted& wanted) {
    const auto* rows = std::get_if<graph::Rows>(&constant(wanted.name));
    return rows == nullptr ? uint64_t{0} : rows->count * rows->row_bytes;
  };
  for (const Wanted& wanted : Wants<Wanted>(schedule).take()) {
    const bool is_heads = wanted.reading == Reading::Heads || wanted.reading == Reading::HeadsInputRows;
    if (wanted.reading == Reading::Rows) continue;
    if (wanted.reading == Reading::Plain) {
      const auto* rows = std::get_if<graph::Rows>(&constant(wanted.name));
      if (rows != nullptr && widened_.count(wanted.name) == 0) widened_.emplace(wanted.name, widened(*rows));
      continue;
    }
    if ((is_heads ? heads_ : products_).count(wanted.name) != 0) continue;
    total += bytes_of(wanted);
    todo.push_back(wanted);
  }
  for (const Wanted& wanted : todo) {
    TW_TRY_VOID(pack_one(wanted, pool));
    done += bytes_of(wanted);
    if (packed) {
      if (const auto* rows = std::get_if<graph::Rows>(&constant(wanted.name))) packed(*rows);
    }
    if (progress) progress(done, total);
  }
  return {};
}

namespace {

template <class Map>
const auto& held_in(const Map& map, std::string_view name) {
  const auto found = map.find(std::string(name));
  TW_CHECK(found != map.end(), "the constant {} was not prepared for this use", name);
  return found->second;
}

}  // namespace

const Packed& WeightStore::product(std::string_view name) const { return held_in(products_, name).shape; }
const Packed& WeightStore::heads(std::string_view name) const { return held_in(heads_, name).shape; }
const graph::Rows& WeightStore::rows(std::string_view name) const { return std::get<graph::Rows>(constant(name)); }

const float* WeightStore::values(std::string_view name) const {
  const graph::Constant& place = constant(name);
  if (const auto* values = std::get_if<graph::Values>(&place)) return floats(*values, name).data();
  return held_in(widened_, name).data();
}

}  // namespace tw::lane::cpu
