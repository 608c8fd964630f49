#include "spatial/step/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human_text.h"

namespace tw::spatial::step {
namespace {

constexpr std::string_view kStyle = R"(
body { font: 15px/1.45 system-ui, sans-serif; color: #1c2733; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
h3 { font-size: .95rem; margin: 1rem 0 .3rem; }
code, pre, .name { font-family: ui-monospace, monospace; font-size: .86em; }
pre { background: #f4f6f8; padding: .7rem; overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; margin: .3rem 0; }
th, td { border-bottom: 1px solid #dde3e9; padding: .15rem .7rem .15rem 0; text-align: left; vertical-align: top; }
th { color: #5a6b7b; font-weight: 600; }
details { border-left: 3px solid #dde3e9; margin: .25rem 0; padding-left: .7rem; }
details[open] { border-color: #7aa7d0; }
summary { cursor: pointer; padding: .15rem 0; }
.section { margin-left: .8rem; }
.why, .quiet { color: #5a6b7b; }
.tag { background: #e7eef5; border-radius: .6rem; padding: 0 .5rem; font-size: .8rem; }
.ok { color: #1d7a46; }
.bad { color: #b3261e; font-weight: 600; }
.bar { display: inline-block; width: 7rem; height: .7rem; background: #e4e9ee; vertical-align: middle; }
.bar span { display: block; height: 100%; background: #4c86bd; }
.bar span.over { background: #b3261e; }
svg { max-width: 100%; height: auto; margin: .3rem 0; }
svg text { font: 11px ui-monospace, monospace; fill: #1c2733; }
)";

// ---- drawings ----

constexpr int kSite = 18;
// A wider grid is drawn as one cell for several sites.
constexpr uint32_t kMostCells = 32;

constexpr int kBoxWidth = 230, kBoxHeight = 22, kColumn = 330, kLine = 34, kMargin = 8;
constexpr size_t kMostLetters = 32;

struct Box {
  int x = 0;
  int y = 0;
};

size_t column_of(const Stage& stage) { return stage.load() ? 0 : stage.store() ? 2 : 1; }

std::string shortened(std::string_view name) {
  if (name.size() <= kMostLetters) return escaped(name);
  return escaped(name.substr(0, kMostLetters - 1)) + "…";
}

// From light for one item to dark for the most.
std::string shade(uint64_t items, uint64_t most) {
  if (items == 0) return "#f4f6f8";
  const double part = most <= 1 ? 0.0 : static_cast<double>(items - 1) / static_cast<double>(most - 1);
  return fmt::format("hsl(210,50%,{:.0f}%)", 75 - 35 * part);
}

}  // namespace

std::string_view style_sheet() { return kStyle; }

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string counted(uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string bar(uint64_t part, uint64_t whole, std::string_view title) {
  const double percent = whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("<span class=\"bar\" title=\"{}\"><span{} style=\"width:{:.1f}%\"></span></span>", escaped(title),
                     part > whole ? " class=\"over\"" : "", std::min(percent, 100.0));
}

std::string site_grid(const Target& target, const SectionPlacement& shares) {
  const uint32_t step_r = (target.site_rows + kMostCells - 1) / kMostCells;
  const uint32_t step_c = (target.site_cols + kMostCells - 1) / kMostCells;
  const uint32_t rows = (target.site_rows + step_r - 1) / step_r, cols = (target.site_cols + step_c - 1) / step_c;
  std::vector<uint64_t> items(uint64_t{rows} * cols);
  for (const SiteShare& share : shares)
    items[uint64_t{share.site_row / step_r} * cols + share.site_col / step_c] += share.count;
  const uint64_t most = *std::max_element(items.begin(), items.end());
  std::string svg = fmt::format("<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">",
                                cols * kSite + 1, rows * kSite + 1);
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t c = 0; c < cols; ++c) {
      const uint64_t count = items[uint64_t{r} * cols + c];
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#c3ccd5\"><title>site {}, {}: "
          "{}</title></rect>",
          c * kSite, r * kSite, kSite, kSite, shade(count, most), r * step_r, c * step_c, counted(count, "item"));
    }
  return svg + "</svg>";
}

std::string flow(const Program& program, const std::vector<EdgeEvidence>& edges) {
  std::array<int, 3> used{};
  std::vector<Box> boxes;
  for (const Stage& stage : program.stages) {
    const size_t column = column_of(stage);
    boxes.push_back({kMargin + static_cast<int>(column) * kColumn, kMargin + kLine * used[column]++});
  }
  const int lines = *std::max_element(used.begin(), used.end());
  std::string svg = fmt::format("<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">",
                                2 * kColumn + kBoxWidth + 2 * kMargin, lines * kLine + kMargin);
  for (const EdgeEvidence& edge : edges) {
    const Box from = boxes[index(edge.producer)], to = boxes[index(edge.consumer)];
    const bool same = from.x == to.x;
    const int x1 = same ? from.x + kBoxWidth / 8 : from.x + kBoxWidth, x2 = same ? x1 : to.x;
    const int y1 = same ? from.y + kBoxHeight : from.y + kBoxHeight / 2, y2 = same ? to.y : to.y + kBoxHeight / 2;
    svg += fmt::format(
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#7aa7d0\" stroke-width=\"1.5\"><title>{}: {} an item, "
        "{} each</title></line>",
        x1, y1, x2, y2, escaped(program.at(edge.buffer).name), counted(edge.pushes, "page"),
        human_bytes(program.page_bytes(edge.buffer)));
  }
  for (size_t s = 0; s < boxes.size(); ++s) {
    const Stage& stage = program.stages[s];
    const std::string_view fill = stage.load() ? "#eaf2e3" : stage.store() ? "#f7ead9" : "#e3ecf5";
    svg += fmt::format(
        "<g><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"#aebbc7\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text><title>{}</title></g>",
        boxes[s].x, boxes[s].y, kBoxWidth, kBoxHeight, fill, boxes[s].x + 7, boxes[s].y + 15, shortened(stage.name),
        escaped(stage.name));
  }
  return svg + "</svg>";
}

std::string Table::text() const {
  if (rows_.empty()) return {};
  std::string text = "<table><tr>";
  for (const std::string_view head : heads_) text += fmt::format("<th>{}</th>", head);
  text += "</tr>\n";
  for (const std::vector<std::string>& row : rows_) {
    text += "<tr>";
    for (const std::string& cell : row) text += fmt::format("<td>{}</td>", cell);
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

}  // namespace tw::spatial::step
