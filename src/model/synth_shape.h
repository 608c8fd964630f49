#pragma once

// Shapes of synthesized models: the names they use, the metadata each name becomes, and the shapes with a name.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gguf/value.h"
#include "model/family.h"

namespace tw::model {

using SynthShape = std::map<std::string, uint64_t>;

// `text`: items separated by commas; an item is a named shape or "name=number". Later items override earlier ones and
// all override the family's toy shape. Refuses a name the family has not, naming those it has.
Result<SynthShape> parse_shape(const FamilyInfo& family, std::string_view text);

// The value of a name, 0 when the shape lacks it.
uint64_t shape_value(const SynthShape& shape, std::string_view name);

// The metadata of a model of that shape, without its tokenizer.
std::vector<std::pair<std::string, gguf::Value>> shape_metadata(const FamilyInfo& family, const SynthShape& shape);

}  // namespace tw::model
