#pragma once

// Random-weight checkpoints of a supported architecture, at real or toy shapes: speed and correctness can be tried with
// no download. The same seed gives the same file, byte for byte.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/format.h"

namespace tw::model {

struct SynthSpec {
  std::string architecture;
  std::string shape;            // a named shape ("qwen3-0.6b") or "key=value,..." over the family's toy shape
  std::string format = "Q8_0";  // a format name, or a mixture name such as "Q4_K_M"
  uint64_t seed = 1;
  bool holes = false;  // all weights zero, which take no room on disk: for looking at plans of large models
};

struct NamedShape {
  std::string_view name;
  std::string_view architecture;
  std::string_view description;
};
std::vector<NamedShape> named_shapes();
// The keys a family's shape takes, with their toy values.
Result<std::map<std::string, uint64_t>> toy_shape(std::string_view architecture);

// `interrupted`, when given, ends the work with no file left.
Result<void> synthesize(const SynthSpec& spec, const std::filesystem::path& out,
                        const std::atomic<bool>* interrupted = nullptr);

}  // namespace tw::model
