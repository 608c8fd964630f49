#pragma once

// Support for tests: random step graphs that use every op, with values for their constants, all from a seed.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "graph/constants.h"
#include "graph/step_graph.h"

namespace tw::graph::testing {

struct RandomGraphOptions {
  Form form;
  uint32_t blocks = 6;     // parts that add to the residual, each of a kind drawn at random
  bool integers = true;    // whether parts of integer ops take part
  uint32_t context = 600;  // positions of caches and rotation tables, at least the form's rows
};

struct RandomGraph {
  StepGraph graph;
  Constants constants;  // plain values, moderate in size
  uint32_t vocabulary = 0;
};

// A step with tokens, positions, logits and arg-max that verifies without findings. The constants and the states of one
// seed have the same names, shapes and values in every form, so that forms can be compared.
RandomGraph random_graph(uint64_t seed, const RandomGraphOptions& options = {});

// Token ids that the graph of a seed takes, 1-based.
std::vector<int32_t> random_tokens(uint64_t seed, uint32_t vocabulary, uint32_t count);

// Evaluates a graph written as text (without its first line) whose constants have values, and its params values in
// `params`; the values of `tensor` afterwards. `kept` holds the states from one call to the next.
using NamedValues = std::unordered_map<std::string, std::vector<double>>;
Result<std::vector<double>> value_of(std::string_view text, std::string_view tensor, const NamedValues& params = {},
                                     NamedValues* kept = nullptr);

}  // namespace tw::graph::testing
