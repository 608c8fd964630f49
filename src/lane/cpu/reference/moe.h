#pragma once

// The mixture of experts as graph::Moe and docs/numerics.md write it, row by row from the rows of the file, for tests.

#include <vector>

#include "graph/constants.h"
#include "lane/cpu/moe.h"

namespace tw::lane::cpu::reference {

struct MoeRows {
  const graph::Rows* router;
  const graph::Rows* gate;
  const graph::Rows* up;
  const graph::Rows* down;
  const graph::Rows* shared_gate = nullptr;  // the shared expert's, or none
  const graph::Rows* shared_up = nullptr;
  const graph::Rows* shared_down = nullptr;
};

// The d values of row `r`. args.work is not looked at.
std::vector<float> moe(const MoeArgs& args, const MoeRows& weights, uint64_t r);

}  // namespace tw::lane::cpu::reference
