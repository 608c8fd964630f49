#include "spatial/step/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>

#include "spatial/certify/certificate_json.h"
#include "spatial/json.h"
#include "spatial/text.h"

namespace tw::spatial::step {
namespace {

using nlohmann::ordered_json;

struct Totals {
  uint64_t sections = 0, relayouts = 0, loaded = 0, stored = 0;
};

Totals totals_of(const Examined& step) {
  Totals totals{.sections = step.figures.size()};
  for (const LoweredOp& op : step.lowered.ops) totals.relayouts += op.relayouts.size();
  for (const SectionFigures& figures : step.figures) {
    totals.loaded += figures.tiles_loaded;
    totals.stored += figures.tiles_stored;
  }
  return totals;
}

bool is_relayout(const LoweredOp& op, uint32_t section) {
  return std::find(op.relayouts.begin(), op.relayouts.end(), section) != op.relayouts.end();
}

std::string_view s(uint64_t count) { return count == 1 ? "" : "s"; }

std::string section_line(const Examined& step, const LoweredOp& op, uint32_t section) {
  const SectionFigures& f = step.figures[section];
  const uint64_t sites = step.placement[section].size();
  return fmt::format("      {:<40} {:>5} item{:<1} {:>4} site{:<1} {:>9} bytes a site {:>7} tiles in {:>6} out  {}{}\n",
                     step.program(section).name, f.items, s(f.items), sites, s(sites), f.footprint, f.tiles_loaded,
                     f.tiles_stored, step.failed[section].empty() ? "certified" : "NOT CERTIFIED",
                     is_relayout(op, section) ? ", relayout" : "");
}

ordered_json section_json(const Examined& step, const LoweredOp& op, uint32_t section) {
  const SectionFigures& f = step.figures[section];
  const Program& program = step.program(section);
  ordered_json failures = ordered_json::array();
  for (const size_t failure : step.failed[section])
    failures.push_back(to_text(step.lowered.composition, step.verdict.failures[failure]));
  return {{"name", program.name},
          {"relayout", is_relayout(op, section)},
          {"claim", program.claim.exact ? "exact" : program.claim.reason},
          {"items", f.items},
          {"sites", step.placement[section].size()},
          {"footprint_bytes", f.footprint},
          {"tiles_loaded", f.tiles_loaded},
          {"tiles_stored", f.tiles_stored},
          {"bytes_loaded", f.bytes_loaded},
          {"bytes_stored", f.bytes_stored},
          {"certified", failures.empty()},
          {"failures", failures}};
}

// A name as part of a file's name.
std::string file_part(std::string_view name) {
  std::string part;
  for (const char c : name.substr(0, 80))
    part += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ? c : '_';
  return part;
}

Result<void> write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return refuse(RefusalKind::Io, path.string(), "cannot be written");
  return {};
}

}  // namespace

std::string summary(const Examined& step) {
  const Totals t = totals_of(step);
  const Composition& composition = step.lowered.composition;
  const size_t failures = step.verdict.failures.size();
  return fmt::format("{} for {}: {} op{} as {} section{} ({} relayout{}), {} tiles loaded, {} stored, {}",
                     composition.name, composition.target, step.lowered.ops.size(), s(step.lowered.ops.size()),
                     t.sections, s(t.sections), t.relayouts, s(t.relayouts), t.loaded, t.stored,
                     failures == 0 ? "certified" : fmt::format("not certified: {} failure{}", failures, s(failures)));
}

std::string listing(const Examined& step) {
  std::string text;
  for (const LoweredOp& lowered : step.lowered.ops) {
    const graph::Op& op = step.graph.at(lowered.op);
    text += fmt::format("{:>4}  {} {}  {}: {}\n", index(lowered.op), op_name(op.spec), step.graph.at(op.result).name,
                        lowered.form, lowered.why);
    for (uint32_t section = lowered.first; section < lowered.first + lowered.count; ++section)
      text += section_line(step, lowered, section);
  }
  for (const StepFailure& failure : step.verdict.failures)
    text += fmt::format("failed {}\n", to_text(step.lowered.composition, failure));
  return text + summary(step) + "\n";
}

ordered_json listing_json(const Examined& step) {
  const Totals t = totals_of(step);
  ordered_json ops = ordered_json::array(), failures = ordered_json::array();
  for (const LoweredOp& lowered : step.lowered.ops) {
    const graph::Op& op = step.graph.at(lowered.op);
    ordered_json sections = ordered_json::array();
    for (uint32_t section = lowered.first; section < lowered.first + lowered.count; ++section)
      sections.push_back(section_json(step, lowered, section));
    ops.push_back({{"op", index(lowered.op)},
                   {"kind", op_name(op.spec)},
                   {"result", step.graph.at(op.result).name},
                   {"form", lowered.form},
                   {"why", lowered.why},
                   {"sections", std::move(sections)}});
  }
  for (const StepFailure& failure : step.verdict.failures)
    failures.push_back(to_text(step.lowered.composition, failure));
  return {{"step", step.lowered.composition.name},
          {"target", step.target.name},
          {"local_bytes", step.target.local_bytes},
          {"sites", step.target.sites()},
          {"sections", t.sections},
          {"relayouts", t.relayouts},
          {"tiles_loaded", t.loaded},
          {"tiles_stored", t.stored},
          {"certified", step.verdict.ok()},
          {"failures", std::move(failures)},
          {"ops", std::move(ops)}};
}

Result<void> write_files(const Examined& step, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return refuse(RefusalKind::Io, folder.string(), fmt::format("cannot be made: {}", error.message()));
  TW_TRY_VOID(write_text(folder / "step.spatial", print(step.lowered.composition)));
  if (step.verdict.ok())
    TW_TRY_VOID(write_certificate(step.verdict.certificate, (folder / "step.certificate.json").string()));
  for (uint32_t section = 0; section < step.figures.size(); ++section) {
    const Program& program = step.program(section);
    const std::string stem = (folder / fmt::format("{:04}_{}", section, file_part(program.name))).string();
    TW_TRY_VOID(write_text(stem + ".spatial", print(program)));
    TW_TRY_VOID(write_text(stem + ".json", to_json(program, 1) + "\n"));
    if (step.failed[section].empty())
      TW_TRY_VOID(write_certificate(step.verdict.certificate.sections[section], stem + ".certificate.json"));
  }
  return {};
}

}  // namespace tw::spatial::step
