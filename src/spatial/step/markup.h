#pragma once

// Pieces of the page: escaped text, numbers that read well, drawings.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spatial/certify/certificate.h"
#include "spatial/place.h"
#include "spatial/program.h"

namespace tw::spatial::step {

// Text that holds no markup.
std::string escaped(std::string_view text);
// "1 tile", "3 tiles".
std::string counted(uint64_t count, std::string_view thing);

// A bar that is `part` of `whole` full, with a sentence for who points at it.
std::string bar(uint64_t part, uint64_t whole, std::string_view title);
// The grid of sites, each as dark as it has items.
std::string site_grid(const Target& target, const SectionPlacement& shares);
// Stages in three columns, loads, compute and stores, with a line for each edge of the evidence.
std::string flow(const Program& program, const std::vector<EdgeEvidence>& edges);

// A table whose cells are markup already.
class Table {
 public:
  explicit Table(std::vector<std::string_view> heads) : heads_(std::move(heads)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] std::string text() const;  // nothing when there are no rows

 private:
  std::vector<std::string_view> heads_;
  std::vector<std::vector<std::string>> rows_;
};

// The contents of the page's style element.
std::string_view style_sheet();

}  // namespace tw::spatial::step
