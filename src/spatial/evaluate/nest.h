#pragma once

// A Generic stage compiled to vector loops. One axis, the strip axis, is taken kStrip points at a time: every node of
// the body is a loop over the strip, an affine read a strided copy, and a select cuts the strip into the runs of points
// that take one branch, so that a branch reads only where it is taken.
//
// The strip axis is a parallel one, or the innermost reduced one; sums keep their order either way. When anything goes
// wrong the stage is run once more a point at a time in the order of the specification, which finds the first fault.

#include <array>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "spatial/evaluate/fault.h"
#include "spatial/evaluate/lanes.h"
#include "spatial/program.h"

namespace tw::spatial::evaluate {

// A fault as a stage knows it: without the names.
struct StageFault {
  FaultKind kind = FaultKind::IndexRange;
  BufferId page{};
  int64_t value = 0;
  int64_t low = 0;
  int64_t high = 0;
};

template <class Lanes>
class Nest {
 public:
  // Requires a Generic stage of a valid program.
  Nest(const Program& program, const Stage& stage);

  // pages: the page of each operand. out: the page to write; points outside the space are left alone.
  std::optional<StageFault> run(std::span<const std::byte* const> pages, std::byte* out);

 private:
  using Value = typename Lanes::Value;

  struct Read {
    BufferId page{};
    Precision dtype = Precision::F32;
    int64_t size = 0;  // elements of the page
    ElemAccess map;
    bool guard = false;    // its index is itself
    bool uniform = false;  // one element for the whole strip
    bool widen = false;    // read so often that its page is better widened once
    std::vector<Value> wide;
  };
  struct Loop {
    Axis axis = Axis::Col;
    uint64_t extent = 1;
  };
  // The elements of a strip in their page.
  struct Place {
    int64_t first = 0;
    int64_t step = 0;
    bool gathered = false;  // at offsets_ instead
  };

  void compile_reads(const Program& program, const Stage& stage, const Generic& generic);
  void choose_strip(const Generic& generic);
  void find_contraction();
  uint32_t assign_slots(const Expr& body, NodeId node, uint32_t slot);

  // Whole loops. They answer false when a fault was found.
  bool parallel(size_t depth, size_t n);
  bool fold(size_t n);
  bool reduced(size_t depth, size_t n, bool first);
  bool take(const Value* values, size_t n, bool first);
  bool take_product(size_t n);
  bool contract(const Loop& loop, size_t n);
  bool take_position(const Value* values, size_t n, bool first);
  bool land(const Value* values, size_t n);
  bool land_position(size_t n);
  template <class Store>
  bool place_codes(size_t n, Store&& store);
  bool overflowed(const int64_t* values, size_t n);

  // Strips: points lane to lane + n of the current one.
  const Value* eval(NodeId node, size_t lane, size_t n);
  const Value* read(uint32_t operand, size_t lane, size_t n, Value* out);
  const Value* select(const SelectNode& node, size_t lane, size_t n, Value* out);
  // The first `n` points take `head`, the others `tail`.
  const Value* join(NodeId head, NodeId tail, size_t lane, size_t n, size_t split, Value* out);
  const Value* runs(const SelectNode& node, const int64_t* bounds, size_t lane, size_t n, Value* out);
  // Of an integer operand: n values, or one when it is uniform.
  const int64_t* integers(uint32_t operand, size_t lane, size_t n);
  bool locate(uint32_t operand, size_t lane, size_t n, Place& place);
  bool check_indices(uint32_t operand, const int64_t* values, size_t n, uint64_t modulus);

  // The elements of an operand in the domain, if they are there.
  [[nodiscard]] const Value* elements(uint32_t operand) const;
  [[nodiscard]] int64_t axis_value(Axis axis, size_t lane) const;
  bool fail(FaultKind kind, BufferId page, int64_t value, int64_t low, int64_t high);
  bool check(Trouble trouble);

  Lanes lanes_;
  Integers integers_;
  Expr body_;
  std::vector<Read> reads_;
  std::vector<Loop> parallel_, reduced_;
  Axis strip_ = Axis::Col;
  bool strip_reduced_ = false;
  std::optional<Pool> pool_;
  // A sum lane by lane, of a body that is a product; and, if its factors are one element for the strip and neighbours,
  // read where they are, the operands that they are.
  struct Contraction {
    uint32_t one = 0;
    uint32_t many = 0;
  };
  bool sums_products_ = false;
  std::optional<Contraction> contraction_;
  Landing landing_ = Landing::Point;
  BufferId out_page_{};
  Precision out_dtype_ = Precision::F32;
  size_t code_bytes_ = 0;
  uint64_t width_ = 0, tile_rows_ = 0;

  std::vector<uint32_t> slot_of_;   // by node: where its strip is kept; of a constant, its strip of constants
  std::vector<Value> slots_;        // strips
  std::vector<Value> constants_;    // strips
  std::vector<int64_t> indices_;    // a strip an operand
  std::vector<int64_t> offsets_;    // one strip
  std::vector<Value> folded_;       // one strip
  std::vector<int64_t> positions_;  // one strip
  std::vector<std::byte> codes_;    // one strip of results

  // Of the run.
  std::span<const std::byte* const> pages_;
  std::byte* out_ = nullptr;
  size_t limit_ = kStrip;
  std::array<int64_t, kAxes> point_{};  // the strip axis at the start of its strip
  std::optional<StageFault> fault_;
};

using AnyNest = std::variant<Nest<Singles>, Nest<Doubles>, Nest<Integers>>;
AnyNest compile_nest(const Program& program, const Stage& stage);

}  // namespace tw::spatial::evaluate
