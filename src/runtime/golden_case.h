#pragma once

// What golden.json says beyond model/golden_files.h: the reference's own error, arg-max, margins and greedy text. Used
// by tests only; tests/golden/README.md says how to compare.

#include <string>
#include <vector>

#include "model/golden_files.h"
#include "runtime/engine.h"

namespace tw::runtime::golden {

struct Case {
  std::string name;
  std::filesystem::path model;
  std::string format;
  std::vector<Token> tokens;
  size_t first_row = 0;                     // position of the first row of logits
  std::vector<float> logits_ref;            // rows of the last positions: the reference on F32 weights
  std::vector<float> logits;                // the reference on the model itself
  double float_tolerance = 0;               // f32_math_vs_ref.max
  double rounded_max = 0, rounded_rms = 0;  // rounded_activations_vs_ref
  std::vector<Token> argmax_ref;            // of every position from argmax_first on
  std::vector<double> margin_ref;
  size_t argmax_first = 0;
  std::vector<Token> greedy_ref;
  std::vector<double> greedy_margin_ref;
};

inline std::vector<float> read_floats(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<float> values(static_cast<size_t>(file.tellg()) / sizeof(float));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  return values;
}

inline Case load(const std::string& name) {
  const std::filesystem::path folder = model::golden_folder() / name;
  std::ifstream file(folder / "golden.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  Case c;
  c.name = name;
  c.model = folder / "model.gguf";
  c.format = json["format"];
  c.tokens = json["tokens"].get<std::vector<Token>>();
  c.first_row = json["logits_ref"]["positions"][0];
  c.logits_ref = read_floats(folder / "logits_ref.f32");
  c.logits = read_floats(folder / "logits.f32");
  const nlohmann::json& tolerance = json["suggested_tolerance"];
  c.float_tolerance = tolerance["f32_math_vs_ref"]["max"];
  c.rounded_max = tolerance["rounded_activations_vs_ref"]["max"];
  c.rounded_rms = tolerance["rounded_activations_vs_ref"]["rms"];
  c.argmax_first = json["positions"][0];
  c.argmax_ref = json["argmax_ref"].get<std::vector<Token>>();
  c.margin_ref = json["margin_ref"].get<std::vector<double>>();
  c.greedy_ref = json["greedy_ref"]["ids"].get<std::vector<Token>>();
  c.greedy_margin_ref = json["greedy_ref"]["margins"].get<std::vector<double>>();
  return c;
}

}  // namespace tw::runtime::golden
