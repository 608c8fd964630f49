#include "spatial/lower/conv.h"

#include <fmt/format.h>

#include "spatial/lower/conv_parts.h"
#include "spatial/lower/lower.h"

namespace tw::spatial::lower {

// ---- parts ----

Result<Conv> conv_of(const OpView& op) {
  const OpTensor &x = op[0], &w = op[1], &ring = op[2];
  Conv c{.rows = x.rows, .taps = w.rows, .chan = x.cols};
  if (c.rows * c.taps * c.chan == 0)
    return refuse(RefusalKind::Unsupported, op.subject(),
                  fmt::format("convolves {} rows of {} channels with {} taps", c.rows, c.chan, c.taps),
                  "Give it at least one of each.");
  if (w.cols != c.chan || ring.cols != c.chan || ring.rows != c.taps)
    return refuse(RefusalKind::Unsupported, op.subject(),
                  fmt::format("convolves {} channels with weights of {}x{} over a ring of {}x{}", c.chan, w.rows,
                              w.cols, ring.rows, ring.cols),
                  "Give weights and ring one row a tap and one column a channel.");
  TW_TRY(c.x, element_of(op, x));
  c.w = w.stored(c.x);
  c.ring = ring.stored(c.x);
  c.out = op.result.stored(c.x);
  TW_TRY(c.accumulator, accumulator_for(op.target, c.x, op.subject()));
  return c;
}

TensorId conv_ring(Builder& b, const OpView& op, const Conv& c, bool dense, TensorRole role) {
  const OpTensor& ring = op[2];
  return b.tensor(ring.name, role, dense ? c.taps : 1, dense ? c.chan : c.taps * c.chan, c.ring,
                  init_of(ring.fill, ring.size()));
}

TensorId conv_weight(Builder& b, const OpView& op, const Conv& c, bool dense) {
  const OpTensor& w = op[1];
  return b.tensor(w.name, w.read_role(), dense ? c.taps : 1, dense ? c.chan : c.taps * c.chan, c.w,
                  init_of(w.fill, w.size()));
}

Result<void> conv_fits_tile(const OpView& op, const Conv& c) {
  if (c.taps <= op.target.tile.rows) return {};
  return refuse(RefusalKind::Unsupported, op.subject(),
                fmt::format("convolves {} taps, which are rows of a tile; target {} has tiles of {}", c.taps,
                            op.target.name, op.target.tile.rows),
                "Choose a target with taller tiles, or run single rows over a ring that fits a page.");
}

Result<std::vector<Program>> conv_sections(const OpView& op, Result<Program> first, Result<Program> second) {
  std::vector<Program> sections;
  for (Result<Program>* section : {&first, &second}) {
    if (!*section) {
      Refusal refusal = section->refusal();
      refusal.subject = op.subject();
      return refusal;
    }
    sections.push_back(std::move(**section));
  }
  return sections;
}

NumericsClaim conv_ring_claim(const Conv& c) { return moved("convolution ring", c.x, c.ring); }

// ---- the choice ----

bool conv_ring_is_dense(const OpView& op) {
  if (op.target.wide(op[1].size())) return true;
  OpView step = op;
  step.operands[0]->rows = step.result.rows = 1;
  const Result<std::vector<Program>> sections = conv_step_flat(step);
  return !sections || !fits((*sections)[0], op.target) || !fits((*sections)[1], op.target);
}

Result<Lowered> lower(const graph::CausalConv&, const OpView& view) {
  TW_TRY(const Conv c, conv_of(view));
  const bool dense = conv_ring_is_dense(view);
  const uint64_t tiles = view.target.tiles(c.taps * c.chan);
  const std::string why =
      dense ? view.target.wide(c.taps * c.chan) ? over_a_page(view.target, tiles) : "the flat step does not fit a site"
            : within_a_page(view.target, tiles);
  if (c.rows > 1) {
    TW_TRY(std::vector<Program> sections, conv_block(view, dense));
    return Lowered{std::move(sections), "block of rows",
                   fmt::format("{} rows over a {} ring: {}", c.rows, dense ? "dense" : "flat", why)};
  }
  TW_TRY(std::vector<Program> sections, dense ? conv_step_matrix(view) : conv_step_flat(view));
  return Lowered{std::move(sections), dense ? "dense ring" : "flat ring", why};
}

}  // namespace tw::spatial::lower
