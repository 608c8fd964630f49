#pragma once

// The text and JSON forms of a schedule: launches in order with their operands and fields, the ops each computes,
// buffers, census. The order is fixed and nothing depends on addresses.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lane/schedule.h"

namespace tw::lane {

// "schedule NAME FORM NUMERICS", and the order if it is not strict.
std::string heading(const Schedule& schedule);
std::string print(const Launch& launch, const Schedule& schedule);
std::string print(const Schedule& schedule);
nlohmann::json to_json(const Schedule& schedule);

}  // namespace tw::lane
