#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <map>

#include "spatial/lower/testing/random_op.h"

namespace tw::spatial::lower {
namespace {

using testing::RandomOutcome;

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// What is being checked, for an abort: a check that fails prints no trace.
std::string current;
extern "C" void tell_current(int) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, current.data(), current.size());
}

class RandomOpsSlow : public ::testing::TestWithParam<std::string_view> {};

// TW_DRAWS draws of a target from seed TW_SEED on; TW_TELL=1 lists forms and refusals with how often each occurred.
TEST_P(RandomOpsSlow, ARefusalOrTheDefinition) {
  const uint64_t draws = number_of("TW_DRAWS", 40), first = number_of("TW_SEED", 1);
  std::map<std::string, uint64_t> outcomes;
  std::signal(SIGABRT, tell_current);
  for (const Target& target : testing::random_op_targets())
    for (uint64_t seed = first; seed < first + draws; ++seed) {
      const testing::RandomOp op = testing::random_op(GetParam(), target, seed);
      current = fmt::format("seed {}, {}\n", seed, to_text(op, target));
      SCOPED_TRACE(current);
      const testing::Checked checked = testing::check(op, target);
      ++outcomes[fmt::format("{} {}",
                             checked.outcome == RandomOutcome::Refused   ? "refused"
                             : checked.outcome == RandomOutcome::Faulted ? "faulted"
                                                                         : "equal",
                             checked.form)];
    }
  std::signal(SIGABRT, SIG_DFL);
  if (number_of("TW_TELL", 0) != 0)
    for (const auto& [outcome, count] : outcomes) fmt::print("{:6} {}\n", count, outcome);
}

INSTANTIATE_TEST_SUITE_P(Ops, RandomOpsSlow, ::testing::ValuesIn(testing::random_op_kinds()),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace tw::spatial::lower
