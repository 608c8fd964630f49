#pragma once

// Turns the launches of a schedule into kernel calls: fills in each kernel's arguments with pointers into the program's
// arena, the constants and the carried state, and decides where threads must wait for each other.

#include "base/result.h"
#include "lane/cpu/isa.h"
#include "lane/cpu/program_data.h"

namespace tw::lane::cpu {

Result<void> bind_schedule(Program::Data& data, Isa isa, const WeightStore& weights, States& states);

}  // namespace tw::lane::cpu
