#include "lane/cpu/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "gguf/format.h"
#include "lane/cpu/pack_all.h"
#include "lane/uses.h"

namespace tw::lane::cpu {

namespace {

// How a launch reads a constant.
enum class Reading : uint8_t { Product, Experts, Heads, HeadsInputRows, Rows, Plain };

struct Wanted {
  std::string name;
  Reading reading = Reading::Plain;
  uint64_t groups = 1, n = 0, k = 0;
  auto operator<=>(const Wanted&) const = default;

  [[nodiscard]] bool heads() const { return reading == Reading::Heads || reading == Reading::HeadsInputRows; }
};

// Lists what a schedule reads, a line a kind of launch.
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

namespace {

// One constant to pack, in the form that its reader wants.
PackItem item_of(const Wanted& wanted, const graph::Constant& place) {
  PackItem item;
  item.input_rows = wanted.reading == Reading::HeadsInputRows;
  if (const auto* stored = std::get_if<graph::Rows>(&place)) {
    item.rows = *stored;
    item.of_file = true;
  } else {
    const std::vector<float>& values = floats(std::get<graph::Values>(place), wanted.name);
    // Only a plain product's values are in graph order; experts and heads are stored as the kernels name them.
    if (wanted.reading == Reading::Product) item.turned = transposed(values, wanted.k, wanted.n);
    const uint64_t cols = item.input_rows ? wanted.n : wanted.k;
    item.rows = rows_of_values(item.turned.empty() ? values.data() : item.turned.data(), values.size() / cols, cols);
  }
  // Rows that hold outputs are turned, which only values of their own can be.
  const gguf::Format format = item.input_rows ? gguf::Format::F32 : item.rows.format;
  item.shape = wanted.heads() ? describe_heads(format, wanted.groups, wanted.n, wanted.k)
                              : describe(format, wanted.n, wanted.k, wanted.groups);
  return item;
}

}  // namespace

Result<void> WeightStore::prepare(const Schedule& schedule, Pool& pool, const Preparation& preparation) {
  std::vector<Wanted> todo;
  std::vector<PackItem> items;
  std::unordered_map<std::string, std::vector<float>> values;
  for (const Wanted& wanted : Wants(schedule).take()) {
    if (wanted.reading == Reading::Rows) continue;
    const graph::Constant& place = constant(wanted.name);
    if (wanted.reading == Reading::Plain) {
      const auto* rows = std::get_if<graph::Rows>(&place);
      if (rows != nullptr && widened_.count(wanted.name) == 0) values.emplace(wanted.name, widened(*rows));
      continue;
    }
    if ((wanted.heads() ? heads_ : products_).count(wanted.name) != 0) continue;
    todo.push_back(wanted);
    items.push_back(item_of(wanted, place));
  }
  if (!items.empty()) {
    TW_TRY(LargeMemory memory, pack_all(items, pool, preparation));
    packed_bytes_ += memory.size();
    memory_.push_back(std::move(memory));
  }
  for (size_t i = 0; i < items.size(); ++i)
    (todo[i].heads() ? heads_ : products_).emplace(std::move(todo[i].name), items[i].shape);
  widened_.merge(values);
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

const Packed& WeightStore::product(std::string_view name) const { return held_in(products_, name); }
const Packed& WeightStore::heads(std::string_view name) const { return held_in(heads_, name); }
const graph::Rows& WeightStore::rows(std::string_view name) const { return std::get<graph::Rows>(constant(name)); }

const float* WeightStore::values(std::string_view name) const {
  const graph::Constant& place = constant(name);
  if (const auto* values = std::get_if<graph::Values>(&place)) return floats(*values, name).data();
  return held_in(widened_, name).data();
}

}  // namespace tw::lane::cpu
