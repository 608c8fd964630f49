#include <gtest/gtest.h>

#include "spatial/lower/testing/random_op.h"

namespace tw::spatial::lower {
namespace {

// A few of what random_ops_slow_test draws by the thousands.
TEST(RandomOps, ARefusalOrTheDefinition) {
  const std::vector<Target> targets = testing::random_op_targets();
  for (const std::string_view kind : testing::random_op_kinds())
    for (uint64_t seed = 0; seed < targets.size(); ++seed) {
      const Target& target = targets[seed];
      const testing::RandomOp op = testing::random_op(kind, target, seed);
      SCOPED_TRACE(to_text(op, target));
      testing::check(op, target);
    }
}

}  // namespace
}  // namespace tw::spatial::lower
