// Any bytes read as a program in the JSON form or are refused.

#include <cstddef>
#include <cstdint>

#include "spatial/json.h"
#include "spatial/testing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tw::spatial::Program;
  tw::spatial::testing::check_form({reinterpret_cast<const char*>(data), size}, tw::spatial::program_of_json,
                                   [](const Program& program) { return to_json(program); });
  return 0;
}
