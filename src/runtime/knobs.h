#pragma once

#include "plan/plan.h"
#include "runtime/engine.h"

namespace tw::runtime {

// The knobs that an engine with these options plans its steps with.
plan::Knobs knobs_of(const EngineOptions& options);

// What keys and values are stored as.
lane::Dtype cache_of(const EngineOptions& options);

// The threads that an engine with these options runs on.
uint32_t threads_of(const EngineOptions& options);

}  // namespace tw::runtime
