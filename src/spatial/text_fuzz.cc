// Any bytes read as a program in the text form or are refused.

#include <cstddef>
#include <cstdint>

#include "spatial/testing.h"
#include "spatial/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tw::spatial::Program;
  tw::spatial::testing::check_form({reinterpret_cast<const char*>(data), size}, tw::spatial::parse_program,
                                   [](const Program& program) { return print(program); });
  return 0;
}
