#include "runtime/golden_case.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace tw::runtime::golden {

namespace {

const std::filesystem::path kFolder = "tests/golden";

std::vector<float> read_floats(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  TW_CHECK(file.good(), "{} is not there", path.string());
  std::vector<float> values(static_cast<size_t>(file.tellg()) / sizeof(float));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  return values;
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, error)) {
    if (std::filesystem::exists(entry.path() / "golden.json")) all.push_back(entry.path().filename().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

Case load(const std::string& name) {
  const std::filesystem::path folder = kFolder / name;
  std::ifstream file(folder / "golden.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  Case c;
  c.name = name;
  c.model = folder / "model.gguf";
  c.architecture = json["architecture"];
  c.format = json["format"];
  c.tokens = json["tokens"].get<std::vector<Token>>();
  c.vocabulary = json["n_vocab"];
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
