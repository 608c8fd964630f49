// tilewright report: a page about the step on a spatial target.

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "cli/common.h"
#include "cli/spatial.h"
#include "cli/verb.h"
#include "spatial/step/listing.h"
#include "spatial/step/page.h"

namespace tw::cli {

namespace {

struct ReportFlags {
  ExamineFlags examined;
  std::string file;
};

Result<int> report(const ReportFlags& flags) {
  if (flags.file.empty()) return refuse(RefusalKind::Usage, "-o", "is missing", "Name the HTML file to write.");
  TW_TRY(const spatial::step::Examined step, examine(flags.examined));
  const std::string page = spatial::step::page(step);
  errno = 0;
  std::ofstream file(flags.file, std::ios::binary | std::ios::trunc);
  file.write(page.data(), static_cast<std::streamsize>(page.size()));
  file.close();
  if (!file)
    return refuse(RefusalKind::Io, flags.file,
                  fmt::format("{} bytes cannot be written: {}", page.size(), std::strerror(errno)));
  fmt::print("{}\n{}: {}\n", spatial::step::summary(step), flags.file, human_bytes(page.size()));
  return step.verdict.ok() ? kFine : kFailed;
}

}  // namespace

Action add_report(const Verb& verb) {
  auto flags = std::make_shared<ReportFlags>();
  flags->examined.add_to(verb);
  verb.option("-o,--output", flags->file, "The HTML file to write");
  verb.footer(
      "Example:\n"
      "  tilewright report examples/int8_mlp.graph --target tensix -o step.html\n"
      "One page that needs nothing else: every op with its sections, the grid of sites, stages, buffers and how full\n"
      "they get, bytes over each edge, tiles moved, and the checks of the certificates.");
  return [flags] { return report(*flags); };
}

}  // namespace tw::cli
