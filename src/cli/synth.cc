// tilewright synth: checkpoints with random weights.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/verb.h"
#include "model/model.h"
#include "model/synth.h"

namespace tw::cli {

namespace {

struct SynthFlags {
  model::SynthSpec spec;
  std::string out;
  bool list = false, json = false;
};

int list_shapes(bool json) {
  auto shapes = nlohmann::ordered_json::array();
  for (const model::NamedShape& shape : model::named_shapes()) {
    if (!json) fmt::print("{:<22} {:<12} {}\n", shape.name, shape.architecture, shape.description);
    shapes.push_back({{"name", shape.name}, {"architecture", shape.architecture}, {"description", shape.description}});
  }
  if (json) print_json(shapes);
  return kFine;
}

Result<int> synth(const SynthFlags& flags) {
  if (flags.list) return list_shapes(flags.json);
  if (flags.out.empty()) return refuse(RefusalKind::Usage, "-o", "is missing", "Name the file to write.");
  model::SynthSpec spec = flags.spec;
  for (const model::NamedShape& shape : model::named_shapes()) {
    if (spec.architecture.empty() && shape.name == spec.shape) spec.architecture = shape.architecture;
  }
  if (spec.architecture.empty()) {
    return refuse(RefusalKind::Usage, "--arch", "is missing, and --shape is no named shape that would tell",
                  "See the named shapes with tilewright synth --list.");
  }
  TW_TRY_VOID(model::synthesize(spec, flags.out, &interrupted()));
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(flags.out, error);
  if (flags.json) {
    print_json({{"file", flags.out}, {"architecture", spec.architecture}, {"format", spec.format}, {"bytes", bytes}});
  } else {
    fmt::print("{}: {} {}, {}\n", flags.out, spec.architecture, spec.format, human_bytes(bytes));
  }
  return kFine;
}

}  // namespace

Action add_synth(const Verb& verb) {
  auto flags = std::make_shared<SynthFlags>();
  verb.option("--arch", flags->spec.architecture,
              fmt::format("The architecture: {}", fmt::join(model::Model::known_architectures(), ", ")));
  verb.option("--shape", flags->spec.shape, "A named shape, or key=value,... over the architecture's toy shape");
  verb.option("--format", flags->spec.format, "Format of the matrices: Q8_0, Q4_K, Q4_K_M, F16, ...").shows_default();
  verb.option("--seed", flags->spec.seed, "The same seed gives the same file").shows_default();
  verb.flag("--holes", flags->spec.holes,
            "Leave all weights zero, in a file that takes no room for them: to look at plans of large models");
  verb.option("-o,--output", flags->out, "The file to write");
  verb.flag("--list", flags->list, "List the named shapes");
  verb.flag("--json", flags->json, "Print as JSON");
  return [flags] { return synth(*flags); };
}

}  // namespace tw::cli
