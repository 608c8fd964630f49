#pragma once

// For tests: good(result) is the value, or a default one and a failure that says the refusal.

#include <gtest/gtest.h>

#include <utility>

#include "base/result.h"

namespace tw {

template <class T>
T good(Result<T> result) {
  EXPECT_TRUE(result.ok()) << to_text(result.refusal());
  return result.ok() ? std::move(*result) : T{};
}

}  // namespace tw
