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

// Whether a firing of this name is one of the rule: its own, or of `fuse_quant` any of its classes.
bool is_firing_of(std::string_view firing, std::string_view rule);

struct QuantizeOptions {
  lane::Numerics numerics = lane::Numerics::Int8;
  bool fuse = true;      // a producer that can quantizes its result
  bool explain = false;  // collect where one did not
};

// The launches of an optimized graph in order, with a Quant before the first launch that reads an activation quantized
// whose producer does not quantize it. To `outcome` are added a firing for each producer that does, by its class, and a
// miss of `fuse_quant` for each that does not.
std::vector<lane::Planned> with_quantizations(Graph graph, const Shim& shim, const QuantizeOptions& options,
                                              Outcome& outcome);

}  // namespace tw::fuse
