#include "spatial/lower/testing/op_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/evaluate.h"
#include "graph/infer.h"
#include "spatial/certify/certify.h"
#include "spatial/certify/recheck.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/testing/expect_values.h"
#include "spatial/testing.h"
#include "spatial/text.h"
#include "spatial/validate.h"

namespace tw::spatial::lower::testing {
namespace {

// ---- the definition ----

struct Definition {
  graph::StepGraph graph;
  graph::Environment environment;
};

std::vector<double> rounded(const CaseOperand& operand, const Target& target) {
  std::vector<double> values = operand.values;
  if (operand.tensor.integer) return values;
  const std::optional<Precision> dtype = operand.tensor.dtype ? operand.tensor.dtype : target.real_element;
  if (dtype)
    for (double& value : values) value = round_to(*dtype, value);
  return values;
}

// The graph of the one op, every operand a state with its values: what an op reads or updates makes no difference here.
graph::StepGraph graph_of(const OpCase& c) {
  graph::StepGraph graph;
  graph.name = "case";
  graph::Op op{c.spec, {}, {}};
  for (const std::optional<CaseOperand>& operand : c.operands) {
    op.operands.push_back(operand ? graph::TensorId{static_cast<uint32_t>(graph.tensors.size())} : graph::kNoTensor);
    if (!operand) continue;
    const OpTensor& t = operand->tensor;
    // One tensor may stand for two operands.
    const auto same = std::find_if(graph.tensors.begin(), graph.tensors.end(),
                                   [&](const graph::Tensor& other) { return other.name == t.name; });
    if (same != graph.tensors.end()) {
      op.operands.back() = graph::TensorId{static_cast<uint32_t>(same - graph.tensors.begin())};
      continue;
    }
    graph.tensors.push_back({t.name, static_cast<uint32_t>(t.rows), static_cast<uint32_t>(t.cols), graph::Role::State,
                             t.integer ? graph::Element::I32 : graph::Element::F32});
  }
  const size_t decls = graph::operand_decls(c.spec).size();
  op.operands.resize(std::max(op.operands.size(), decls), graph::kNoTensor);
  const Result<graph::Shape> shape = graph::infer_result(graph, c.spec, op.operands);
  EXPECT_TRUE(shape.ok()) << to_text(shape.refusal());
  if (std::holds_alternative<graph::SetRows>(c.spec)) {
    op.result = op.operands[0];
  } else if (shape.ok()) {
    op.result = graph::TensorId{static_cast<uint32_t>(graph.tensors.size())};
    graph.tensors.push_back({c.result, shape->rows, shape->cols, graph::Role::Activation, shape->element});
  }
  graph.ops.push_back(std::move(op));
  return graph;
}

Result<Definition> define(const OpCase& c, const Target& target) {
  Definition made{graph_of(c), graph::make_environment({})};
  for (const std::optional<CaseOperand>& operand : c.operands)
    if (operand) made.environment.values[operand->tensor.name] = rounded(*operand, target);
  TW_TRY_VOID(graph::evaluate(made.graph, made.environment));
  return made;
}

// ---- the sections ----

const Tensor* given(const std::vector<Program>& sections, const std::string& name) {
  for (const Program& section : sections)
    for (const Tensor& tensor : section.tensors)
      if (tensor.name == name && std::holds_alternative<GivenInit>(tensor.init)) return &tensor;
  return nullptr;
}

Result<void> bind(const std::vector<Program>& sections, const OpCase& c, const Target& target,
                  evaluate::Memory& memory) {
  for (const std::optional<CaseOperand>& operand : c.operands) {
    const Tensor* tensor = operand ? given(sections, operand->tensor.name) : nullptr;
    if (!tensor) continue;
    const std::vector<double> values = rounded(*operand, target);
    if (is_real(tensor->dtype)) {
      TW_TRY_VOID(memory.set(*tensor, std::span<const double>(values)));
    } else {
      const std::vector<int64_t> whole(values.begin(), values.end());
      TW_TRY_VOID(memory.set(*tensor, std::span<const int64_t>(whole)));
    }
  }
  return {};
}

struct Once {
  evaluate::Memory memory;
  evaluate::StepRun run;
};

Result<Once> run_once(const std::vector<Program>& sections, const OpCase& c, const Target& target,
                      const evaluate::Options& options) {
  Once once{evaluate::Memory(target.tile), {}};
  TW_TRY_VOID(bind(sections, c, target, once.memory));
  TW_TRY(evaluate::Step step, evaluate::Step::compile(sections));
  TW_TRY(once.run, step.run(once.memory, {.sections = options, .order = {}, .items = {}}));
  return once;
}

void expect_same_bits(const Once& a, const Once& b, const std::vector<Program>& sections, std::string_view what) {
  EXPECT_EQ(a.run.fault.has_value(), b.run.fault.has_value()) << what;
  if (a.run.fault || b.run.fault) return;
  for (const Program& section : sections)
    for (const Tensor& tensor : section.tensors) {
      if (!tensor.result()) continue;
      const evaluate::Stored *left = a.memory.find(tensor.name), *right = b.memory.find(tensor.name);
      ASSERT_TRUE(left && right) << tensor.name;
      EXPECT_TRUE(left->codes == right->codes) << tensor.name << " differs with " << what;
    }
}

Result<std::vector<double>> values_of(const evaluate::Memory& memory, const std::string& name) {
  const evaluate::Stored* stored = memory.find(name);
  if (stored && is_integer(stored->tensor.dtype)) {
    TW_TRY(const std::vector<int64_t> whole, memory.integers(name));
    return std::vector<double>(whole.begin(), whole.end());
  }
  return memory.reals(name);
}

uint32_t significant_bits(Precision precision) {
  return traits(precision).kind == NumberKind::Float ? traits(precision).fraction : 0;
}

void compare(const std::vector<double>& got, const std::vector<double>& want, bool exactly, Precision precision,
             Tolerance tolerance) {
  ASSERT_EQ(got.size(), want.size());
  double scale = 0;
  for (const double value : want)
    if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
  const bool fixed_point = traits(precision).kind == NumberKind::Fixed;
  const double unit = fixed_point ? std::ldexp(1.0, -static_cast<int>(traits(precision).fraction))
                                  : std::ldexp(scale, -static_cast<int>(significant_bits(precision)));
  size_t wrong = 0;
  for (size_t i = 0; i < got.size() && wrong < 5; ++i) {
    const bool nan = std::isnan(got[i]) || std::isnan(want[i]);
    const bool same = nan ? std::isnan(got[i]) && std::isnan(want[i])
                      : exactly || std::isinf(want[i]) || std::isinf(got[i])
                          ? got[i] == want[i] && (fixed_point || std::signbit(got[i]) == std::signbit(want[i]))
                          : std::fabs(got[i] - want[i]) <= tolerance.ulps * unit;
    if (same) continue;
    ++wrong;
    ADD_FAILURE() << "element " << i << " is " << got[i] << ", the definition says " << want[i] << " (scale " << scale
                  << ", unit " << unit << ")";
  }
}

}  // namespace

// ---- operands ----

CaseOperand reals(std::string name, uint64_t rows, uint64_t cols, uint64_t seed, double low, double high) {
  CaseOperand made{{.name = std::move(name), .rows = rows, .cols = cols, .fill = GivenFill{}}, {}};
  std::mt19937_64 random(seed * 2654435761U + 17);
  std::uniform_real_distribution<double> value(low, high);
  for (uint64_t i = 0; i < rows * cols; ++i) made.values.push_back(value(random));
  return made;
}

CaseOperand integers(std::string name, uint64_t rows, uint64_t cols, uint64_t seed, int64_t low, int64_t high) {
  const auto magnitude = static_cast<uint64_t>(std::max(std::abs(low), std::abs(high)));
  CaseOperand made{{.name = std::move(name), .rows = rows, .cols = cols, .fill = GivenFill{magnitude}, .integer = true},
                   {}};
  std::mt19937_64 random(seed * 2654435761U + 29);
  std::uniform_int_distribution<int64_t> value(low, high - 1);
  for (uint64_t i = 0; i < rows * cols; ++i) made.values.push_back(static_cast<double>(value(random)));
  return made;
}

CaseOperand index(std::string name, int64_t value, uint64_t magnitude) {
  const uint64_t most = std::max(magnitude, static_cast<uint64_t>(std::abs(value)));
  return {{.name = std::move(name), .fill = GivenFill{most}, .integer = true}, {static_cast<double>(value)}};
}

OpView view_of(const OpCase& c, const Target& target) {
  OpView view{target, {}, {}};
  for (const std::optional<CaseOperand>& operand : c.operands)
    view.operands.push_back(operand ? std::optional(operand->tensor) : std::nullopt);
  const graph::StepGraph graph = graph_of(c);
  const graph::Tensor& result = graph.at(graph.ops[0].result);
  view.result = {
      .name = result.name, .rows = result.rows, .cols = result.cols, .integer = result.element == graph::Element::I32};
  if (std::holds_alternative<graph::SetRows>(c.spec)) view.result = *view.operands[0];
  return view;
}

Result<std::vector<double>> reference(const OpCase& c, const Target& target) {
  TW_TRY(const Definition made, define(c, target));
  return made.environment.at(made.graph.at(made.graph.ops[0].result));
}

Result<std::vector<double>> reference_of(const OpCase& c, const Target& target, const std::string& tensor) {
  TW_TRY(Definition made, define(c, target));
  return made.environment.values[tensor];
}

// ---- running ----

void expect_sound(const Program& section, const Target& target) {
  for (const Finding& finding : validate(section)) ADD_FAILURE() << section.name << ": " << to_text(section, finding);
  EXPECT_TRUE(is_closed_algebra(section));
  const Verdict verdict = certify(section, target);
  for (const CheckFailure& failure : verdict.failures)
    ADD_FAILURE() << section.name << ": " << to_text(section, failure);
  if (verdict.ok())
    for (const std::string& text : recheck(section, target, verdict.certificate))
      ADD_FAILURE() << section.name << ": " << text;
  const Result<Program> read = parse_program(print(section), section.name);
  EXPECT_TRUE(read.ok() && *read == section) << section.name << " does not read back from its text";
}

Outcome run(const std::vector<Program>& sections, const OpCase& c, const Target& target) {
  Outcome outcome;
  for (const Program& section : sections) {
    expect_sound(section, target);
    outcome.exact = outcome.exact && section.claim.exact;
  }
  Result<Once> listed = run_once(sections, c, target, {});
  if (!listed) {
    ADD_FAILURE() << to_text(listed.refusal());
    return outcome;
  }
  const std::pair<std::string_view, evaluate::Options> others[] = {
      {"items reversed", {.order = evaluate::ItemOrder::Reversed, .items = {}}},
      {"items shuffled", {.order = evaluate::ItemOrder::Shuffled, .seed = 5, .items = {}}},
      {"poisoned pages", {.items = {}, .poison_unwritten = true}}};
  for (const auto& [what, options] : others) {
    const Result<Once> other = run_once(sections, c, target, options);
    if (other) {
      expect_same_bits(*listed, *other, sections, what);
    } else {
      ADD_FAILURE() << to_text(other.refusal());
    }
  }
  outcome.fault = listed->run.fault;
  for (const evaluate::Run& section : listed->run.runs) {
    outcome.tiles_loaded += section.tiles_loaded;
    outcome.tiles_stored += section.tiles_stored;
  }
  outcome.memory = std::move(listed->memory);
  if (!outcome.fault) {
    const std::string name = view_of(c, target).result.name;
    Result<std::vector<double>> values = values_of(outcome.memory, name);
    EXPECT_TRUE(values.ok()) << to_text(values.refusal());
    if (values.ok()) outcome.values = std::move(*values);
  }
  return outcome;
}

void expect_values(const Outcome& outcome, const OpCase& c, const Target& target, Tolerance tolerance) {
  Result<Definition> definition = define(c, target);
  ASSERT_TRUE(definition.ok()) << to_text(definition.refusal());
  const auto decls = graph::operand_decls(c.spec);
  std::vector<std::string> names = {view_of(c, target).result.name};
  for (size_t i = 0; i < decls.size(); ++i)
    if (decls[i].access == graph::Access::Update && c.operands[i]->tensor.name != names[0])
      names.push_back(c.operands[i]->tensor.name);
  for (const std::string& name : names) {
    const Result<std::vector<double>> got = values_of(outcome.memory, name);
    ASSERT_TRUE(got.ok()) << to_text(got.refusal());
    compare(*got, definition->environment.values[name], outcome.exact, outcome.memory.find(name)->tensor.dtype,
            tolerance);
  }
}

void expect_equal(const Result<std::vector<Program>>& sections, const OpCase& c, const Target& target,
                  Tolerance tolerance) {
  ASSERT_TRUE(sections.ok()) << to_text(sections.refusal());
  const Outcome outcome = run(*sections, c, target);
  ASSERT_FALSE(outcome.fault) << evaluate::to_text(*outcome.fault);
  expect_values(outcome, c, target, tolerance);
}

void expect_equal(const Result<Program>& section, const OpCase& c, const Target& target, Tolerance tolerance) {
  ASSERT_TRUE(section.ok()) << to_text(section.refusal());
  expect_equal(Result<std::vector<Program>>(std::vector<Program>{*section}), c, target, tolerance);
}

Lowered expect_lowers(const OpCase& c, const Target& target, Tolerance tolerance) {
  const Result<Lowered> lowered = lower_op(c.spec, view_of(c, target));
  EXPECT_TRUE(lowered.ok()) << to_text(lowered.refusal());
  if (!lowered.ok()) return {};
  expect_equal(Result<std::vector<Program>>(lowered->sections), c, target, tolerance);
  return *lowered;
}

Refusal expect_refused(const OpCase& c, const Target& target) {
  const Result<Lowered> lowered = lower_op(c.spec, view_of(c, target));
  EXPECT_FALSE(lowered.ok());
  return lowered.ok() ? Refusal{} : lowered.refusal();
}

evaluate::Fault expect_fault(const OpCase& c, const Target& target) {
  EXPECT_FALSE(reference(c, target).ok());
  const Result<Lowered> lowered = lower_op(c.spec, view_of(c, target));
  EXPECT_TRUE(lowered.ok()) << to_text(lowered.refusal());
  if (!lowered.ok()) return {};
  const Outcome outcome = run(lowered->sections, c, target);
  EXPECT_TRUE(outcome.fault.has_value());
  return outcome.fault.value_or(evaluate::Fault{});
}

// ---- targets ----

Target t32() { return spatial::testing::shipped_target("tensix"); }
Target t32f() {
  Target target = t32();
  target.name = "t32f";
  target.real_element = Precision::F32;
  target.matmul_operands.insert(Precision::F32);
  return target;
}
Target t4() { return spatial::testing::toy_target({4, 4}, 2); }
Target t4a() {
  Target target = t4();
  target.accumulator_tiles = 256;
  return target;
}
Target t4f() {
  Target target = t4();
  target.name = "t4f";
  target.real_element = Precision::F32;
  return target;
}
Target t16() { return spatial::testing::toy_target({16, 16}, 2); }
Target t1() { return spatial::testing::toy_target({1, 1}, 64); }
Target tall() { return spatial::testing::shipped_target("toy_tall"); }
Target without_reals() {
  Target target = t4();
  target.name = "without_reals";
  target.real_element.reset();
  target.real_accumulator.reset();
  std::erase_if(target.precisions, is_real);
  return target;
}
Target narrow_integers() {
  Target target = t4();
  target.name = "narrow_integers";
  target.integer_element = target.integer_accumulator = Precision::I8;
  std::erase_if(target.precisions, [](Precision p) { return is_integer(p) && p != Precision::I8; });
  return target;
}
Target t4_with(uint64_t memory) {
  Target target = t4();
  target.local_bytes = memory;
  return target;
}

}  // namespace tw::spatial::lower::testing
