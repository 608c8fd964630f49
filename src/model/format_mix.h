#pragma once

// Which format each matrix of a model gets when the model is asked for by one name: a format, or a mixture of formats.

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "gguf/format.h"

namespace tw::model {

// `better` is for what loses most (the head, values, down products of some layers), `experts` for the experts'
// matrices.
struct FormatMix {
  std::string_view name;
  gguf::Format base;
  gguf::Format better;
  gguf::Format experts;
};

// "Q4_K_M" and its like, or a format that `allowed` admits. Refuses another name, listing those there are.
Result<FormatMix> find_mix(std::string_view name, bool (*allowed)(gguf::Format));

// The format of the matrix `tensor`, whose rows hold row_length values: as the mix says, or where its rows are not
// whole blocks Q8_0 or F16. head: it makes the logits. layers: of the model.
gguf::Format matrix_format(const FormatMix& mix, std::string_view tensor, uint64_t row_length, bool head,
                           uint32_t layers);

}  // namespace tw::model
