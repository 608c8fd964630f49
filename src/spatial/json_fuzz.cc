// Any bytes read as a program or are refused; what reads is written and reads back equal, and can be validated.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "spatial/json.h"
#include "spatial/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const tw::Result<tw::spatial::Program> read = tw::spatial::program_of_json(text, "fuzz");
  if (!read) return 0;
  for (const tw::spatial::Finding& finding : tw::spatial::validate(*read))
    TW_CHECK(!to_text(*read, finding).empty(), "a finding without text");
  const std::string written = tw::spatial::to_json(*read);
  const tw::Result<tw::spatial::Program> again = tw::spatial::program_of_json(written, "written");
  TW_CHECK(again.ok(), "{}\n{}", to_text(again.refusal()), written);
  TW_CHECK(*again == *read, "reads back otherwise:\n{}", written);
  return 0;
}
