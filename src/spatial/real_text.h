#pragma once

// A double as text that reads back with the same bits: a NaN by its bits.

#include <string>
#include <string_view>

namespace tw::spatial {

std::string real_text(double value);
// False when the text is no number.
bool parse_real(std::string_view text, double& value);

}  // namespace tw::spatial
