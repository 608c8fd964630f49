#pragma once

// One op, lowered for a target, certified, run, and compared with its definition in double precision
// (graph/evaluate.h).

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/op.h"
#include "spatial/evaluate/memory.h"
#include "spatial/evaluate/step.h"
#include "spatial/lower/op.h"

namespace tw::spatial::lower::testing {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

// An operand with its values. Reals are rounded to what the operand is stored as before anything sees them, so that
// both sides start from the same numbers.
struct CaseOperand {
  OpTensor tensor;
  std::vector<double> values;
};
// `low` <= value < `high`, from the seed.
CaseOperand reals(std::string name, uint64_t rows, uint64_t cols, uint64_t seed, double low = -2, double high = 2);
CaseOperand integers(std::string name, uint64_t rows, uint64_t cols, uint64_t seed, int64_t low, int64_t high);
// A one-element integer operand: a row, a position. Its fill is given, of that magnitude or a larger one.
CaseOperand index(std::string name, int64_t value, uint64_t magnitude = 0);

struct OpCase {
  graph::OpSpec spec;
  std::vector<std::optional<CaseOperand>> operands;
  // Declared integer precision of tensors of integers (absent: what the lowering chooses) is in the operands.
  std::string result = "y";
};

// The view of the case that lower_op() takes: result shape and kind from the graph's own inference, fills Given.
OpView view_of(const OpCase& c, const Target& target);

// The op's definition: the values of its result (of its table for an op that works in place), or the refusal of the
// evaluator.
Result<std::vector<double>> reference(const OpCase& c, const Target& target);
// What another tensor that the op updates holds afterwards (a ring, a memory).
Result<std::vector<double>> reference_of(const OpCase& c, const Target& target, const std::string& tensor);

// What sections made of the case's operands.
struct Outcome {
  std::optional<evaluate::Fault> fault;
  std::vector<double> values;  // of the result
  bool exact = true;           // every section claims so
  uint64_t tiles_loaded = 0;
  uint64_t tiles_stored = 0;
  evaluate::Memory memory{TileShape{}};
};

// The section is valid, of the closed algebra, certified, its certificate passes the recheck, and its text reads back
// equal.
void expect_sound(const Program& section, const Target& target);

// Runs the sections in order, having shown of each that it is valid, of the closed algebra, certified, that the
// certificate passes the recheck, that its text reads back equal; and of all that other orders of items and poisoned
// pages change no bit. Everything that fails is a test failure. Sections run over one memory.
Outcome run(const std::vector<Program>& sections, const OpCase& c, const Target& target);

// Lowers with lower_op, runs, and compares with the reference: in bits where every section claims Exact, else
//   |y - reference| <= ulps * 2^-bits * max(|reference|, scale)
// with the bits of the significand of the result's precision (fixed point: ulps of its last place), and scale the
// largest magnitude of the reference. Returns what was lowered, for looks at its form.
struct Tolerance {
  double ulps = 4;
};
Lowered expect_lowers(const OpCase& c, const Target& target, Tolerance tolerance = {});
// The same with sections made by calling a form.
void expect_equal(const Result<std::vector<Program>>& sections, const OpCase& c, const Target& target,
                  Tolerance tolerance = {});
void expect_equal(const Result<Program>& section, const OpCase& c, const Target& target, Tolerance tolerance = {});

// The refusal of lower_op; a test failure when there is none.
Refusal expect_refused(const OpCase& c, const Target& target);
// The fault of the run; a test failure when there is none. The reference must refuse the case too.
evaluate::Fault expect_fault(const OpCase& c, const Target& target);

// Targets of the checklist: 32 x 32 tiles with pages of 8 in bf16 or f32; small tiles; one element a tile; not square.
Target t32();
Target t32f();
Target t4();
Target t4a();  // T4 with 256 accumulator tiles
Target t4f();  // T4 in f32
Target t16();
Target t1();
Target tall();                    // 8 x 4
Target without_reals();           // T4 without a real datapath
Target narrow_integers();         // T4 whose widest integer has 8 bits
Target t4_with(uint64_t memory);  // T4 with that much local memory

}  // namespace tw::spatial::lower::testing
