#include "spatial/evaluate/fault.h"

#include <fmt/format.h>

#include <array>

namespace tw::spatial::evaluate {
namespace {

// {0} the subject, {1} the value, {2} and {3} the ends of what is admitted.
struct Wording {
  std::string_view name;
  std::string_view text;
};
constexpr std::array<Wording, kFaultKinds> kWordings{{
    {"index_range", "an index in {0} is {1}, admitted are {2} to {3}"},
    {"tile_index_range", "the tile index in {0} is {1}, admitted are {2} to {3}"},
    {"page_offset", "reads offset {1} of page {0}, which has {2} to {3}"},
    {"tile_address", "moves tile {1} of {0}, which has {2} to {3}"},
    {"trip_range", "the block count in {0} is {1}, admitted are {2} to {3}"},
    {"overflow", "an integer for page {0} leaves the range {2} to {3}; it is {1}, or on the way to it"},
    {"division_by_zero", "divides an integer for page {0} by zero"},
    {"unwritten_read", "reads tile {1} of {0}, which nobody wrote"},
    {"stale_read", "tile {1} of {0} is read and written in one section, and nothing orders the two"},
    {"write_conflict", "stores tile {1} of {0} a second time"},
    {"wrong_version", "{0} has been written {1} times, expected {2}"},
    {"page_missing", "reads {0}, which holds no page"},
    {"page_overrun", "pushes into {0}, which holds {1} pages already"},
    {"page_left", "{1} pages of {0} are left at the end of the item"},
}};

}  // namespace

std::string_view name(FaultKind kind) { return kWordings.at(static_cast<size_t>(kind)).name; }

std::string to_text(const Fault& fault) {
  std::string where = fmt::format("section {}", fault.section);
  if (!fault.stage.empty()) where += fmt::format(", stage {}, item {}", fault.stage, fault.item);
  const std::string_view text = kWordings.at(static_cast<size_t>(fault.kind)).text;
  return fmt::format("{}: {}", where,
                     fmt::vformat(fmt::string_view(text.data(), text.size()),
                                  fmt::make_format_args(fault.subject, fault.value, fault.low, fault.high)));
}

}  // namespace tw::spatial::evaluate
