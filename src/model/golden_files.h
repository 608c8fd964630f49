#pragma once

// The golden models that tests compare with: where they are and what golden.json says. Used by tests only.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/registry.h"

namespace tw::model {

struct Golden {
  std::string name;
  std::filesystem::path folder;
  std::vector<int32_t> tokens;                // 1-based
  double tolerance = 0;                       // of exact arithmetic against the reference
  uint32_t first_row = 0;                     // of the stored logits
  std::vector<std::vector<double>> expected;  // the logits on the same weights in F32, without rounded activations
};

inline std::filesystem::path golden_folder() {
  const char* given = std::getenv("TW_GOLDEN_DIR");
  return given != nullptr ? given : "tests/golden";
}

// The golden models of the known architectures, by name.
inline std::vector<std::string> golden_names() {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder(), error)) {
    std::ifstream file(entry.path() / "golden.json");
    if (!file) continue;
    const auto json = nlohmann::json::parse(file);
    if (find_family(json["architecture"].get<std::string>()) != nullptr) out.push_back(entry.path().filename());
  }
  std::sort(out.begin(), out.end());
  return out;
}

inline Golden read_golden(const std::string& name) {
  Golden out{.name = name, .folder = golden_folder() / name};
  std::ifstream file(out.folder / "golden.json");
  const auto json = nlohmann::json::parse(file);
  for (const auto& token : json["tokens"]) out.tokens.push_back(token.get<int32_t>() + 1);
  // Where there is one, an evaluation in double precision is the sharper reference.
  const bool exact = json.contains("logits_f64");
  out.tolerance = json["suggested_tolerance"][exact ? "f32_math_vs_f64" : "f32_math_vs_ref"]["max"];
  const auto& stored = json[exact ? "logits_f64" : "logits_ref"];
  out.first_row = stored["positions"][0];
  const uint32_t rows = stored["shape"][0], cols = stored["shape"][1];
  std::ifstream data(out.folder / stored["file"].get<std::string>(), std::ios::binary);
  std::vector<float> row(cols);
  for (uint32_t r = 0; r < rows; ++r) {
    data.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(cols * sizeof(float)));
    out.expected.emplace_back(row.begin(), row.end());
  }
  return out;
}

}  // namespace tw::model
