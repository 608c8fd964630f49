#pragma once

// Where activations are quantized: in the store of the launch that makes them, or by a launch of its own.

#include <span>
#include <string_view>
#include <vector>

#include "fuse/graph.h"
#include "fuse/optimize.h"
#include "lane/schedule.h"

namespace tw::fuse {

// The names of the launches that quantize what they store.
std::span<const std::string_view> quantizing_classes();

// The launches of an optimized graph in order, with a Quant before the first launch that reads an activation quantized
// whose producer does not quantize it. With `fuse`, a producer that can does; each such use is named in `fired` by its
// class.
std::vector<lane::Planned> with_quantizations(Graph graph, const Shim& shim, lane::Numerics numerics, bool fuse,
                                              std::vector<Fired>& fired);

}  // namespace tw::fuse
