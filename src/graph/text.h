#pragma once

// The text form of a step graph: what a user writes by hand and what tests compare. docs/graph.md has the grammar.

#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/constants.h"
#include "graph/step_graph.h"

namespace tw::graph {

// Any graph prints. One reads back as an equal graph, parse(print(g))->graph == g, when its tensors have names of their
// own, its ids are in range and its set_rows fit their tables (verify.h: G1, G5, G10, G11). The line of an op that
// makes a tensor ends in a comment with the tensor's shape.
std::string print(const StepGraph& graph);
// The same with the values of those constants that are plain Values.
std::string print(const StepGraph& graph, const Constants& constants);

struct ParsedGraph {
  StepGraph graph;
  Constants constants;  // those written with values
};

// Reads the text form; `label` stands for the file in refusals, which name line, column, what was found and what was
// expected. The text may be hostile. The graph is not verified beyond what reading it takes (see verify.h).
Result<ParsedGraph> parse(std::string_view text, std::string_view label);

}  // namespace tw::graph
