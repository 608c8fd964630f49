#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "graph/field_text.h"
#include "graph/step_graph.h"
#include "spatial/compose.h"
#include "spatial/lower/lower.h"
#include "spatial/lower/testing/expect_values.h"
#include "spatial/lower/testing/random_op.h"

namespace tw::spatial::lower::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;

OpView view_of(const RandomOp& op, const Target& target) {
  OpView view = view_of(op.op, target);
  if (op.result) view.result.dtype = op.result;
  return view;
}

// ---- text ----

std::string fields_text(const graph::OpSpec& spec) {
  return std::visit(
      [](const auto& op) {
        std::string text;
        std::apply(
            [&](const auto&... f) { (..., (text += fmt::format(" {}={}", f.name, graph::value_text(op.*f.member)))); },
            op.fields());
        return text;
      },
      spec);
}

std::string operand_text(const CaseOperand& operand) {
  const OpTensor& t = operand.tensor;
  std::string text = fmt::format("{} {}x{}", t.name, t.rows, t.cols);
  if (t.size() == 1) text += fmt::format(" = {}", operand.values[0]);
  if (t.integer) text += fmt::format(" integer up to {}", magnitude_of(t.fill));
  if (t.dtype) text += fmt::format(" {}", name(*t.dtype));
  if (t.constant) text += std::holds_alternative<GivenFill>(t.fill) ? " constant" : " literal";
  if (t.dense) text += " dense";
  return text;
}

// ---- what must hold ----

// How far apart a result may be: what is rounded to a narrower precision on the way counts in a wider result as well,
// and so does the order of a long sum in a result as wide as the accumulator.
Tolerance tolerance_of(const RandomOp& op, const OpView& view, Precision stored) {
  const std::optional<Precision> element = view.target.real_element;
  if (!element || is_integer(stored)) return {op.ulps};
  const auto fraction = [](Precision p) { return static_cast<int>(traits(p).fraction); };
  int narrowest = fraction(*element);
  for (const std::optional<OpTensor>& operand : view.operands)
    if (operand && operand->dtype && !operand->integer) narrowest = std::min(narrowest, fraction(*operand->dtype));
  const double wider = std::ldexp(1.0, std::max(0, fraction(stored) - narrowest));
  return {op.ulps * wider * (narrowest >= 16 ? 64 : 1)};
}

// Malformed is an index that the definition refuses, too.
void expect_clear(const Refusal& refusal, const OpView& view, bool defined) {
  const auto kind = AnyOf(Eq(RefusalKind::Unsupported), Eq(RefusalKind::Missing), Eq(RefusalKind::TooLarge));
  EXPECT_THAT(refusal.kind, AnyOf(kind, Eq(defined ? RefusalKind::Unsupported : RefusalKind::Malformed)))
      << to_text(refusal);
  EXPECT_EQ(refusal.subject, view.result.name) << to_text(refusal);
  EXPECT_FALSE(refusal.reason.empty());
  EXPECT_FALSE(refusal.remedy.empty()) << to_text(refusal);
}

bool is_operand(const OpView& view, const std::string& name) {
  return std::any_of(view.operands.begin(), view.operands.end(),
                     [&](const std::optional<OpTensor>& operand) { return operand && operand->name == name; });
}

// Of an op's own the tensors are named after the result; those shared by all ops have their precision in the name.
void expect_named(const Lowered& lowered, const OpView& view) {
  for (const Program& section : lowered.sections)
    for (const Tensor& tensor : section.tensors) {
      if (tensor.name == view.result.name || is_operand(view, tensor.name)) continue;
      const bool own = tensor.name.starts_with(view.result.name + "__");
      const bool shared = tensor.name.ends_with(fmt::format("_{}", name(tensor.dtype)));
      EXPECT_TRUE(own || shared) << section.name << " names a tensor " << tensor.name;
      if (own) continue;
      static std::map<std::pair<std::string, std::string>, Tensor> seen;  // by target and name
      const auto [first, added] = seen.try_emplace({view.target.name, tensor.name}, tensor);
      EXPECT_TRUE(added || first->second == tensor) << tensor.name << " is two tensors of one step";
    }
}

// Sections of the op twice in one step, under two names; the second time the operands are results of earlier ops.
void expect_composes(const Lowered& lowered, const RandomOp& op, const Target& target) {
  if (std::holds_alternative<graph::SetRows>(op.op.spec)) return;  // one table: its versions follow each other
  OpView other = view_of(op, target);
  other.result.name = "z";
  for (std::optional<OpTensor>& operand : other.operands)
    if (operand && !operand->constant && std::holds_alternative<GivenFill>(operand->fill))
      operand->fill = UnknownFill{magnitude_of(operand->fill)};
  const Result<Lowered> again = lower_op(op.op.spec, other);
  ASSERT_TRUE(again.ok()) << to_text(again.refusal());
  EXPECT_EQ(again->form, lowered.form);
  for (const Program& section : again->sections) expect_sound(section, target);
  std::vector<Program> sections = lowered.sections;
  sections.insert(sections.end(), again->sections.begin(), again->sections.end());
  const Result<Composition> composed = compose(std::move(sections), {"twice", {op.op.result, "z"}});
  EXPECT_TRUE(composed.ok()) << to_text(composed.refusal());
}

// An integer that its page does not hold faults, where the definition knows only the 32 bits of its own.
bool may_overflow(const OpView& view, const Target& target, const evaluate::Fault& fault) {
  if (fault.kind != evaluate::FaultKind::Overflow) return false;
  const auto narrow = [](std::optional<Precision> p) {
    return p && is_integer(*p) && int_max(*p) < int_max(Precision::I32);
  };
  for (const std::optional<OpTensor>& operand : view.operands)
    if (operand && operand->integer && narrow(operand->dtype)) return true;
  return narrow(view.result.dtype) || narrow(target.integer_element) || narrow(target.integer_accumulator);
}

}  // namespace

std::string to_text(const RandomOp& op, const Target& target) {
  std::string text = fmt::format("{}{} on {}:", graph::op_name(op.op.spec), fields_text(op.op.spec), target.name);
  for (const std::optional<CaseOperand>& operand : op.op.operands)
    text += operand ? fmt::format(" ({})", operand_text(*operand)) : " (absent)";
  return text + (op.result ? fmt::format(" result {}", name(*op.result)) : "");
}

Checked check(const RandomOp& op, const Target& target) {
  const OpView view = view_of(op, target);
  const Result<std::vector<double>> want = reference(op.op, target);
  const Result<Lowered> lowered = lower_op(op.op.spec, view);
  if (!lowered) {
    expect_clear(lowered.refusal(), view, want.ok());
    return {RandomOutcome::Refused, lowered.refusal().reason};
  }
  EXPECT_FALSE(lowered->form.empty() || lowered->why.empty() || lowered->sections.empty());
  expect_named(*lowered, view);
  expect_composes(*lowered, op, target);
  const Outcome outcome = run(lowered->sections, op.op, target);
  if (outcome.fault) {
    EXPECT_TRUE(!want.ok() || may_overflow(view, target, *outcome.fault)) << evaluate::to_text(*outcome.fault);
    return {RandomOutcome::Faulted, lowered->form};
  }
  if (!want.ok()) {
    ADD_FAILURE() << "does not fault, but the definition refuses: " << to_text(want.refusal());
  } else {
    const Precision stored = outcome.memory.find(view.result.name)->tensor.dtype;
    expect_values(outcome, op.op, target, tolerance_of(op, view, stored));
  }
  return {RandomOutcome::Equal, lowered->form};
}

}  // namespace tw::spatial::lower::testing
