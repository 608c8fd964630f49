#pragma once

// Flags and small services that several verbs share.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/human_text.h"
#include "base/result.h"
#include "cli/command_line.h"
#include "gguf/checkpoint.h"
#include "graph/step_graph.h"
#include "runtime/engine.h"

namespace tw::cli {

// The model of the command line, or the one that ships with the project: TILEWRIGHT_MODEL, models/ of the current
// folder, models/ of the folder that this program was built in.
Result<std::filesystem::path> model_path(const std::string& given);
Result<gguf::Checkpoint> open_model(const std::string& given);

// How a model runs: -t -c -b --numerics --order --isa --cache --state --hold.
struct EngineFlags {
  uint32_t threads = 0;
  uint32_t context = 0;
  uint32_t chunk = 512;
  std::string numerics = "int8";
  std::string order = "strict";
  std::string isa;
  std::string cache;
  std::string state = "f32";
  std::vector<std::string> held;

  void add_to(const Verb& verb);
  // Numerics, cache and instruction set by name.
  [[nodiscard]] Result<runtime::EngineOptions> options() const;
};

// Opens an engine, with a progress bar on stderr when that is a terminal and preparing the weights takes a while.
Result<std::unique_ptr<runtime::Engine>> open_engine(const gguf::Checkpoint& checkpoint,
                                                     runtime::EngineOptions options);

// A step's form by its name on the command line.
Result<graph::Form> form_of(const std::string& text);

// A whole file as bytes of text; "-" is standard input.
Result<std::string> read_text(const std::string& path);

// "1,2,3" as numbers.
Result<std::vector<runtime::Token>> parse_tokens(const std::string& text);

// Set by Ctrl-C from the first call on; a second Ctrl-C ends the process.
const std::atomic<bool>& interrupted();
// Sets it, as when what is made cannot be written any more.
void end_early();

void print_json(const nlohmann::ordered_json& json);

}  // namespace tw::cli
