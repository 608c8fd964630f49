#pragma once

// The model families this build knows.

#include <span>
#include <string_view>

#include "model/family.h"

namespace tw::model {

std::span<const FamilyInfo* const> families();
// None when the architecture is not known.
const FamilyInfo* find_family(std::string_view architecture);
// The refusal of an unknown architecture: names it and the known ones.
Refusal refuse_architecture(std::string_view subject, std::string_view architecture);

// One a family, defined in its own file.
const FamilyInfo& llama_family();
const FamilyInfo& qwen2_family();
const FamilyInfo& qwen3_family();
const FamilyInfo& qwen3moe_family();
const FamilyInfo& qwen3next_family();
const FamilyInfo& qwen35_family();
const FamilyInfo& qwen35moe_family();
const FamilyInfo& granite_family();
const FamilyInfo& granitemoe_family();
const FamilyInfo& olmo2_family();
const FamilyInfo& gemma2_family();
const FamilyInfo& gemma3_family();
const FamilyInfo& gemma4_family();
const FamilyInfo& lfm2_family();
const FamilyInfo& lfm2moe_family();
const FamilyInfo& gpt_oss_family();
const FamilyInfo& glm4moe_family();
const FamilyInfo& minimax_m2_family();
const FamilyInfo& deepseek2_family();
const FamilyInfo& llama4_family();
const FamilyInfo& kimi_linear_family();

}  // namespace tw::model
