#include "spatial/lower/attention_parts.h"

#include <fmt/format.h>

#include "spatial/lower/attention_shape.h"
#include "spatial/lower/flat_build.h"
#include "spatial/lower/index.h"

namespace tw::spatial::lower {

TensorId declare_operand(Builder& builder, const OpTensor& operand, uint64_t rows, uint64_t cols, Precision dtype) {
  const std::vector<Tensor>& there = builder.program().tensors;
  for (uint32_t i = 0; i < there.size(); ++i)
    if (there[i].name == operand.name) return TensorId{i};
  return builder.tensor(operand.name, operand.read_role(), rows, cols, dtype, init_of(operand.fill, operand.size()));
}

BufferId checked_count(Builder& builder, BufferId page, Precision dtype, uint64_t most) {
  dtype = wider(dtype, builder.dtype(page));
  const BufferId biased = builder.scratch("count_biased", 1, dtype, 1);
  GenericStage bias = builder.compute("count_biased", flat(1));
  const Expr position = bias.read(page, fixed(0));
  bias.write(biased, position - Expr(1.0));
  const BufferId checked = builder.scratch("count_checked", 1, dtype, 1);
  GenericStage check = builder.compute("count_checked", flat(1));
  const Expr value = check.guarded(biased, most);
  check.write(checked, value + Expr(1.0));
  return checked;
}

BufferId load_position(Builder& builder, const OpTensor& position, Precision dtype, uint64_t most) {
  const Precision stored = position.stored(dtype);
  const TensorId tensor = declare_operand(builder, position, 1, 1, stored);
  const BufferId page = builder.buffer("in_" + position.name, 1, stored, 1);
  builder.load("load_" + position.name, tensor, {}, page);
  return checked_count(builder, page, dtype, most);
}

Result<Program> spread_sinks(const OpView& op, const OpTensor& sinks, const std::string& name, uint64_t n,
                             const HeadOf& head_of) {
  const OpView spread{op.target, {sinks}, {.name = name}};
  TW_TRY(const Precision precision, element_of(op, sinks));
  TW_TRY(FlatBuild build, FlatBuild::open(spread, precision));
  const BufferId page = build.input(sinks);
  PointwiseStage stage("spread_sinks");
  std::vector<Band> bands;
  std::optional<uint64_t> last;
  for (uint64_t e = 0; e < n; ++e) {
    const std::optional<uint64_t> head = head_of(e);
    if (bands.empty() || head != last)
      bands.push_back({0, head ? stage.read(page, fixed(static_cast<int64_t>(*head))) : Expr(kMasked)});
    bands.back().end = static_cast<int64_t>(e + 1);
    last = head;
  }
  stage.body(banded(bands));
  return about(std::move(build).pointwise(std::move(stage), n, fmt::format("spread_sinks_{}", n), exact()),
               op.subject());
}

}  // namespace tw::spatial::lower
