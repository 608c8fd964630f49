#pragma once

// What a lowered step is, as text and as JSON, and as a folder of files that other tools read.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "spatial/step/examine.h"

namespace tw::spatial::step {

// Per op its sections, the form and why; per section its items, sites, memory, tiles moved and certificate.
std::string listing(const Examined& step);
nlohmann::ordered_json listing_json(const Examined& step);

// One line: "llama decode for tensix: 28 ops as 54 sections (12 relayouts), 1.2 K tiles moved, certified".
std::string summary(const Examined& step);

// Writes step.spatial and step.certificate.json, and of section N named X
//   NNNN_X.spatial, NNNN_X.json, NNNN_X.certificate.json
// Certificates only of what has one. The folder is made when it is not there.
Result<void> write_files(const Examined& step, const std::filesystem::path& folder);

}  // namespace tw::spatial::step
