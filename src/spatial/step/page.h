#pragma once

// One self-contained HTML page about a lowered step: no scripts, nothing from the network. Ops and their sections fold
// open; a section shows the grid of sites with its items, its stages and what flows between them, buffers and how full
// they get, tiles moved, and the checks of its certificate.

#include <string>

#include "spatial/step/examine.h"

namespace tw::spatial::step {

std::string page(const Examined& step);

}  // namespace tw::spatial::step
