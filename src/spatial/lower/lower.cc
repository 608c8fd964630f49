#include "spatial/lower/lower.h"

#include <fmt/format.h>

#include "spatial/sizing.h"

namespace tw::spatial::lower {
namespace {

template <class Op>
constexpr bool kHasLowering = requires(const Op& op, const OpView& view) {
  lower(op, view);
};

// Sections of intermediate results are refused by their names.
Refusal with_subject(Refusal refusal, std::string_view subject) {
  refusal.subject = subject;
  return refusal;
}

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
  if (!lowered) return with_subject(lowered.refusal(), view.subject());
  // Forms that choose by size have looked at it already.
  for (const Program& section : lowered->sections)
    if (!fits(section, view.target)) return with_subject(too_large(section, view.target), view.subject());
  return lowered;
}

}  // namespace tw::spatial::lower
