#include "lane/uses.h"

#include <algorithm>

#include "base/check.h"

namespace tw::lane {

namespace {

// Collects the operands that a launch declares.
class Collector {
 public:
  explicit Collector(Numerics numerics) : numerics_(numerics) {}

  void read(std::string_view name, BufferId id, bool typed = false) {
    add(simple(name, id, TouchForm::Plain, true, false, typed));
  }
  void read_quantized(std::string_view name, BufferId id) { add(simple(name, id, TouchForm::Quantized, true)); }
  void projected(std::string_view name, BufferId id) {
    add(simple(name, id, quantizes(numerics_) ? TouchForm::Quantized : TouchForm::Plain, true));
  }
  void weight(std::string_view name, BufferId id) { add(simple(name, id, TouchForm::Weight, true)); }
  void write(std::string_view name, BufferId id, uint64_t elements, OutForms forms) {
    Use use = simple(name, id, TouchForm::Plain, false, true);
    use.whole = elements;
    add_forms(use, forms);
  }
  void dst(std::string_view name, const Dst& dst, uint64_t units, uint64_t width, bool typed, OutForms forms) {
    Use use = simple(name, dst.buf, TouchForm::Plain, false, true, typed);
    if (dst.own()) use.whole = units * width;
    use.rows = dst.row;
    const uint64_t values = units * (dst.unit ? dst.unit->pitch : width);
    if (dst.row) use.row_count = dst.row->pitch == 0 ? 0 : values / dst.row->pitch;
    use.part = dst.unit;
    use.units = units;
    use.width = width;
    add_forms(use, forms);
    if (dst.row) read("row", dst.row->param);
  }
  void rows(std::string_view name, BufferId id, const RowAt& at, uint64_t cols, uint64_t count, OutForms forms) {
    Use use = simple(name, id, TouchForm::Plain, false, true, true);
    use.rows = at;
    use.rows->pitch = cols;
    use.row_count = count;
    add_forms(use, forms);
  }
  void update(std::string_view name, BufferId id, bool typed = false) {
    add(simple(name, id, TouchForm::Plain, true, true, typed));
  }
  template <class T>
  void field(std::string_view, const T&) {}

  std::vector<Use> take() && { return std::move(uses_); }

 private:
  static Use simple(std::string_view name, BufferId id, TouchForm form, bool reads, bool writes = false,
                    bool typed = false) {
    Use use;
    use.name = name, use.buffer = id, use.form = form;
    use.reads = reads, use.writes = writes, use.typed = typed;
    return use;
  }
  void add(const Use& use) {
    if (present(use.buffer)) uses_.push_back(use);
  }
  void add_forms(Use use, OutForms forms) {
    if (forms.plain) add(use);
    use.form = TouchForm::Quantized;
    if (forms.quantized) add(use);
  }

  Numerics numerics_;
  std::vector<Use> uses_;
};

// Renames every buffer that a launch declares.
class Renamer {
 public:
  explicit Renamer(const std::function<BufferId(BufferId)>& change) : change_(change) {}

  void read(std::string_view, BufferId& id, bool = false) { apply(id); }
  void read_quantized(std::string_view, BufferId&) {}  // the same member is visited as the plain read's or table's
  void projected(std::string_view, BufferId& id) { apply(id); }
  void weight(std::string_view, BufferId& id) { apply(id); }
  void write(std::string_view, BufferId& id, uint64_t, OutForms) { apply(id); }
  void dst(std::string_view, Dst& dst, uint64_t, uint64_t, bool, OutForms) {
    apply(dst.buf);
    if (dst.row) apply(dst.row->param);
  }
  void rows(std::string_view, BufferId& id, RowAt&, uint64_t, uint64_t, OutForms) { apply(id); }
  void update(std::string_view, BufferId& id, bool = false) { apply(id); }
  void field(std::string_view, BufferId& id) { apply(id); }
  template <class T>
  void field(std::string_view, const T&) {}

 private:
  // A member may be visited twice (Quant's x, a mixture's x): it is renamed once.
  void apply(BufferId& id) {
    if (!present(id) || std::find(done_.begin(), done_.end(), &id) != done_.end()) return;
    done_.push_back(&id);
    id = change_(id);
  }

  const std::function<BufferId(BufferId)>& change_;
  std::vector<const BufferId*> done_;
};

bool writes_same(const Use& write, const Use& read) {
  return write.writes && write.buffer == read.buffer && write.form == read.form;
}

std::vector<Use> fold_uses(const Fold& fold, Numerics numerics) {
  std::vector<Use> all = uses(fold.first(), numerics);
  const size_t first_count = all.size();
  for (const Use& use : uses(fold.then(), numerics)) {
    const bool handed_over = use.reads && !use.writes &&
                             std::any_of(all.begin(), all.begin() + static_cast<ptrdiff_t>(first_count),
                                         [&](const Use& write) { return writes_same(write, use); });
    if (!handed_over) all.push_back(use);
  }
  return all;
}

}  // namespace

std::vector<Use> uses(const Launch& launch, Numerics numerics) {
  return std::visit(
      [&]<class L>(const L& l) {
        if constexpr (std::is_same_v<L, Fold>) {
          return fold_uses(l, numerics);
        } else {
          Collector collector(numerics);
          L::visit(l, collector);
          return std::move(collector).take();
        }
      },
      launch);
}

void rename_buffers(Launch& launch, const std::function<BufferId(BufferId)>& change) {
  std::visit(
      [&]<class L>(L& l) {
        if constexpr (std::is_same_v<L, Fold>) {
          for (Launch& part : l.parts) rename_buffers(part, change);
        } else {
          Renamer renamer(change);
          L::visit(l, renamer);
        }
      },
      launch);
}

BufferId projected_input(const Launch& launch) {
  if (const auto* fold = std::get_if<Fold>(&launch)) return projected_input(fold->first());
  for (const Use& use : uses(launch, Numerics::Int8)) {
    if (use.reads && !use.writes && use.form == TouchForm::Quantized && !std::holds_alternative<SetRow>(launch)) {
      return use.buffer;
    }
  }
  return kNoBuffer;
}

}  // namespace tw::lane
