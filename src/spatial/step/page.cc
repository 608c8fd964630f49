#include "spatial/step/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human_text.h"
#include "spatial/names.h"
#include "spatial/step/listing.h"
#include "spatial/step/markup.h"
#include "spatial/text.h"

namespace tw::spatial::step {
namespace {

// A longer text of a section is left to the files that the listing writes.
constexpr size_t kMostText = 12000;

std::string name_of(std::string_view name) { return fmt::format("<span class=\"name\">{}</span>", escaped(name)); }

std::string number(uint64_t value) { return fmt::format("{}", value); }

// ---- parts of a section ----

std::string buffers_table(const Program& program, const Certificate& certificate) {
  Table table({"buffer", "kind", "page", "bytes a page", "depth", "most at a time", "fill", "bytes"});
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    const uint64_t page = program.page_bytes(BufferId{b});
    const bool known = b < certificate.buffers.size();
    const uint32_t high = known ? certificate.buffers[b].high_water : 0;
    table.row({name_of(buffer.name), std::string(enum_name(buffer.kind)),
               fmt::format("{} {}", counted(buffer.page_tiles, "tile"), name(buffer.dtype)), number(page),
               number(buffer.depth), known ? number(high) : "unknown",
               known ? bar(high, buffer.depth, fmt::format("{} of {}", high, counted(buffer.depth, "page"))) : "",
               number(page * buffer.depth)});
  }
  return table.text();
}

std::string edges_table(const Program& program, const Certificate& certificate) {
  Table table({"from", "through", "to", "pages an item", "bytes an item", "bytes of all items"});
  for (const EdgeEvidence& edge : certificate.edges) {
    const uint64_t bytes = edge.pushes * program.page_bytes(edge.buffer);
    table.row({name_of(program.at(edge.producer).name), name_of(program.at(edge.buffer).name),
               name_of(program.at(edge.consumer).name), number(edge.pushes), number(bytes),
               human_bytes(bytes * program.work.items.size())});
  }
  return table.text();
}

std::string tensors_table(const Program& program) {
  Table table({"tensor", "role", "extent", "tiles", "bytes"});
  for (const Tensor& tensor : program.tensors) {
    const uint64_t tiles = grid_of(tensor, program.tile).tiles();
    table.row({name_of(tensor.name), std::string(enum_name(tensor.role)),
               fmt::format("{} x {} {}{}", tensor.rows, tensor.cols, name(tensor.dtype), tensor.flat() ? ", flat" : ""),
               number(tiles), human_bytes(tiles * program.tile.size() * bytes_of(tensor.dtype))});
  }
  return table.text();
}

std::string moves_table(const Program& program, const Certificate& certificate) {
  Table table({"stage", "tensor", "tiles at a time", "first tile", "last tile"});
  for (const MoveEvidence& move : certificate.moves) {
    const Stage& stage = program.at(move.stage);
    table.row({name_of(stage.name), name_of(program.at(*stage.tensor()).name), number(stage.pattern()->tiles()),
               number(move.first), number(move.last)});
  }
  return table.text();
}

std::string checks_list(const Examined& step, uint32_t section) {
  const std::vector<std::string>& passed = step.verdict.certificate.sections[section].checks;
  Table table({"check", "what it shows", ""});
  for (const CheckInfo& check : certificate_checks()) {
    const bool ok = std::find(passed.begin(), passed.end(), check.name) != passed.end();
    table.row({std::string(check.name), escaped(check.claim),
               ok ? "<span class=\"ok\">holds</span>" : "<span class=\"bad\">not shown</span>"});
  }
  std::string text = table.text();
  for (const size_t failure : step.failed[section])
    text += fmt::format("<p class=\"bad\">{}</p>\n",
                        escaped(to_text(step.lowered.composition, step.verdict.failures[failure])));
  return text;
}

std::string program_text(const Program& program) {
  const std::string text = print(program);
  if (text.size() > kMostText)
    return fmt::format("<p class=\"quiet\">The program has {} letters of text; tilewright lower -o writes it.</p>\n",
                       text.size());
  return fmt::format("<details><summary>Text of the program</summary><pre>{}</pre></details>\n", escaped(text));
}

// ---- sections, ops, the page ----

std::string verdict_text(bool ok) {
  return ok ? "<span class=\"ok\">certified</span>" : "<span class=\"bad\">not certified</span>";
}

std::string section_part(const Examined& step, const LoweredOp& op, uint32_t section) {
  const Program& program = step.program(section);
  const SectionFigures& figures = step.figures[section];
  const Certificate& certificate = step.verdict.certificate.sections[section];
  const bool relayout = std::find(op.relayouts.begin(), op.relayouts.end(), section) != op.relayouts.end();
  const uint64_t sites = step.placement[section].size();
  std::string text = fmt::format(
      "<details class=\"section\"><summary>{} {}<span class=\"quiet\">{} on {}</span> {} <span class=\"quiet\">{} a "
      "site, {} loaded, {} stored</span> {}</summary>\n",
      name_of(program.name), relayout ? "<span class=\"tag\">relayout</span> " : "", counted(figures.items, "item"),
      counted(sites, "site"),
      bar(figures.footprint, step.target.local_bytes,
          fmt::format("{} of {} of local memory", human_bytes(figures.footprint),
                      human_bytes(step.target.local_bytes))),
      human_bytes(figures.footprint), counted(figures.tiles_loaded, "tile"), counted(figures.tiles_stored, "tile"),
      verdict_text(step.failed[section].empty()));
  text += fmt::format("<p>Numbers: {}. Sums in {}.</p>\n",
                      program.claim.exact ? "exact, the definition bit for bit" : escaped(program.claim.reason),
                      name(program.accumulator));
  if (program.fold())
    text += fmt::format("<p>A fold of {}{}.</p>\n", program.work.k_trip ? "at most " : "",
                        counted(program.work.plan.num_blocks, "block"));
  text += "<h3>Sites and their items</h3>\n" + site_grid(step.target, step.placement[section]);
  text += "<h3>Stages: loads, compute, stores</h3>\n" + flow(program, certificate.edges);
  text += "<h3>Tensors</h3>\n" + tensors_table(program);
  text += "<h3>Buffers of a site</h3>\n" + buffers_table(program, certificate);
  text += "<h3>What goes over the edges</h3>\n" + edges_table(program, certificate);
  text += "<h3>Tiles that are moved</h3>\n" + moves_table(program, certificate);
  text += "<h3>Certificate</h3>\n" + checks_list(step, section);
  return text + program_text(program) + "</details>\n";
}

std::string op_part(const Examined& step, const LoweredOp& lowered) {
  const graph::Op& op = step.graph.at(lowered.op);
  const graph::Tensor& result = step.graph.at(op.result);
  bool ok = true;
  for (uint32_t section = lowered.first; section < lowered.first + lowered.count; ++section)
    ok = ok && step.failed[section].empty();
  std::string text = fmt::format(
      "<details><summary>{} <b>{}</b> {} <span class=\"quiet\">{}</span> <span class=\"tag\">{}</span> <span "
      "class=\"why\">{}; {}</span>{}</summary>\n",
      index(lowered.op), op_name(op.spec), name_of(result.name), escaped(shape_text(result)), escaped(lowered.form),
      escaped(lowered.why), counted(lowered.count, "section"), ok ? "" : " " + verdict_text(false));
  for (uint32_t section = lowered.first; section < lowered.first + lowered.count; ++section)
    text += section_part(step, lowered, section);
  return text + "</details>\n";
}

std::string target_part(const Target& target) {
  Table table({"target", ""});
  table.row({"name", escaped(target.name)});
  table.row({"description", escaped(target.description)});
  table.row({"sites", fmt::format("{} x {}", target.site_rows, target.site_cols)});
  table.row({"tile", fmt::format("{} x {}", target.tile.rows, target.tile.cols)});
  table.row({"local memory of a site", human_bytes(target.local_bytes)});
  table.row({"largest computed page", counted(target.accumulator_tiles, "tile")});
  if (target.real_element)
    table.row({"reals", fmt::format("{}, summed in {}", name(*target.real_element), name(*target.real_accumulator))});
  if (target.integer_element)
    table.row({"integers",
               fmt::format("{}, summed in {}", name(*target.integer_element), name(*target.integer_accumulator))});
  return table.text();
}

std::string step_part(const Examined& step) {
  std::string text = "<h2>Certificate of the step</h2>\n";
  Table table({"check", "what it shows", ""});
  for (const CheckInfo& check : step_checks()) {
    const bool failed = std::any_of(step.verdict.failures.begin(), step.verdict.failures.end(),
                                    [&](const StepFailure& failure) { return failure.check == check.name; });
    table.row({std::string(check.name), escaped(check.claim),
               failed ? "<span class=\"bad\">does not hold</span>" : "<span class=\"ok\">holds</span>"});
  }
  text += table.text();
  for (const StepFailure& failure : step.verdict.failures)
    text += fmt::format("<p class=\"bad\">{}</p>\n", escaped(to_text(step.lowered.composition, failure)));
  return text;
}

}  // namespace

std::string page(const Examined& step) {
  const std::string title = escaped(fmt::format("{} for {}", step.lowered.composition.name, step.target.name));
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<h1>{}</h1>\n<p>{}</p>\n",
      title, style_sheet(), title, escaped(summary(step)));
  text += target_part(step.target) + step_part(step);
  text +=
      "<h2>Ops</h2>\n<p class=\"quiet\">Number, kind, result, form, and the condition that chose it. Each opens to its "
      "sections, and each section to its sites, stages, buffers and certificate.</p>\n";
  for (const LoweredOp& op : step.lowered.ops) text += op_part(step, op);
  return text + "</body>\n</html>\n";
}

}  // namespace tw::spatial::step
