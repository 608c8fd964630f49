// Any bytes parse or are refused; what parses prints, reads back equal, and can be verified.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "graph/text.h"
#include "graph/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const tw::Result<tw::graph::ParsedGraph> parsed = tw::graph::parse(text, "fuzz");
  if (!parsed) return 0;
  (void)tw::graph::verify(parsed->graph);
  const std::string printed = tw::graph::print(parsed->graph);
  const tw::Result<tw::graph::ParsedGraph> again = tw::graph::parse(printed, "printed");
  TW_CHECK(again.ok(), "{}\n{}", to_text(again.refusal()), printed);
  TW_CHECK(tw::graph::print(again->graph) == printed, "prints differently:\n{}", printed);
  return 0;
}
