// tilewright lower: what every op of a step becomes on a spatial target.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/spatial.h"
#include "cli/verb.h"
#include "spatial/step/listing.h"

namespace tw::cli {

namespace {

struct LowerFlags {
  ExamineFlags examined;
  std::string folder;
  bool json = false;
};

Result<int> lower(const LowerFlags& flags) {
  TW_TRY(const spatial::step::Examined step, examine(flags.examined));
  if (!flags.folder.empty()) TW_TRY_VOID(spatial::step::write_files(step, flags.folder));
  if (flags.json) {
    print_json(spatial::step::listing_json(step));
  } else {
    fmt::print("{}", spatial::step::listing(step));
  }
  return step.verdict.ok() ? kFine : kFailed;
}

}  // namespace

Action add_lower(const Verb& verb) {
  auto flags = std::make_shared<LowerFlags>();
  flags->examined.add_to(verb);
  verb.option("-o,--output", flags->folder,
              "Write the programs as text and JSON, and the certificates, into this folder");
  verb.flag("--json", flags->json, "Print as JSON");
  verb.footer(
      "Example:\n"
      "  tilewright lower examples/int8_mlp.graph --target tensix --op a_scaled\n"
      "Of each op: the form that was chosen and the condition that chose it. Of each section: work items and the\n"
      "sites they run on, local memory of a site, tiles moved, and whether the certificate holds.\n"
      "Exit code 1 when a section has no certificate.");
  return [flags] { return lower(*flags); };
}

}  // namespace tw::cli
