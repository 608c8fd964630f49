#pragma once

// For tests of whole steps: a graph written as text, or an empty one and a failure that says the refusal.

#include <gtest/gtest.h>

#include <string_view>

#include "base/expect_good.h"
#include "graph/text.h"

namespace tw::spatial::step::testing {

inline graph::ParsedGraph parsed(std::string_view text) { return good(graph::parse(text, "test")); }

}  // namespace tw::spatial::step::testing
