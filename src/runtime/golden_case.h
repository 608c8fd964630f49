#pragma once

// The golden models of tests/golden, for tests: tests/golden/README.md says what the numbers are and how to compare.

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace tw::runtime::golden {

struct Case {
  std::string name;
  std::filesystem::path model;
  std::string architecture;
  std::string format;
  std::vector<Token> tokens;
  size_t first_row = 0;           // position of the first row of logits
  std::vector<float> logits_ref;  // rows of the last positions: the reference on F32 weights
  std::vector<float> logits;      // the reference on the model itself
  size_t vocabulary = 0;
  double float_tolerance = 0;               // f32_math_vs_ref.max
  double rounded_max = 0, rounded_rms = 0;  // rounded_activations_vs_ref
  std::vector<Token> argmax_ref;            // of every position from argmax_first on
  std::vector<double> margin_ref;
  size_t argmax_first = 0;
  std::vector<Token> greedy_ref;
  std::vector<double> greedy_margin_ref;
};

// The names of the folders, sorted.
std::vector<std::string> names();
Case load(const std::string& name);

}  // namespace tw::runtime::golden
