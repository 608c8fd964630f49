#include "spatial/lower/lower.h"

#include <fmt/format.h>

namespace tw::spatial::lower {
namespace {

template <class Op>
constexpr bool kHasLowering = requires(const Op& op, const OpView& view) {
  lower(op, view);
};

}  // namespace

Result<Lowered> lower_op(const graph::OpSpec& spec, const OpView& view) {
  Result<Lowered> lowered = std::visit(
      [&](const auto& op) -> Result<Lowered> {
        using Op = std::decay_t<decltype(op)>;
        if constexpr (kHasLowering<Op>) {
          return lower(op, view);
        } else {
          return refuse(RefusalKind::Unsupported, view.subject(),
                        fmt::format("{} has no lowering to spatial programs", Op::kName),
                        "Run the model on a lane, or lower the ops one by one");
        }
      },
      spec);
  if (lowered) return lowered;
  // Sections of intermediate results are refused by their names.
  Refusal refusal = lowered.refusal();
  refusal.subject = view.subject();
  return refusal;
}

}  // namespace tw::spatial::lower
