// Any bytes parse or are refused; what parses prints, reads back equal, and can be validated.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "spatial/text.h"
#include "spatial/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const tw::Result<tw::spatial::Program> parsed = tw::spatial::parse_program(text, "fuzz");
  if (!parsed) return 0;
  for (const tw::spatial::Finding& finding : tw::spatial::validate(*parsed))
    TW_CHECK(!to_text(*parsed, finding).empty(), "a finding without text");
  const std::string printed = tw::spatial::print(*parsed);
  const tw::Result<tw::spatial::Program> again = tw::spatial::parse_program(printed, "printed");
  TW_CHECK(again.ok(), "{}\n{}", to_text(again.refusal()), printed);
  TW_CHECK(*again == *parsed, "reads back otherwise:\n{}", printed);
  return 0;
}
