#include "model/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/model.h"

namespace tw::model {

std::span<const FamilyInfo* const> families() {
  static const FamilyInfo* const table[] = {
      &llama_family(),       &qwen2_family(),     &qwen3_family(),      &qwen3moe_family(),   &qwen3next_family(),
      &qwen35_family(),      &qwen35moe_family(), &granite_family(),    &granitemoe_family(), &olmo2_family(),
      &gemma2_family(),      &gemma3_family(),    &gemma4_family(),     &lfm2_family(),       &lfm2moe_family(),
      &gpt_oss_family(),     &glm4moe_family(),   &minimax_m2_family(), &deepseek2_family(),  &llama4_family(),
      &kimi_linear_family(),
  };
  return table;
}

const FamilyInfo* find_family(std::string_view architecture) {
  const auto all = families();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const FamilyInfo* f) { return f->architecture == architecture; });
  return found == all.end() ? nullptr : *found;
}

std::vector<std::string_view> Model::known_architectures() {
  std::vector<std::string_view> out;
  for (const FamilyInfo* family : families()) out.push_back(family->architecture);
  return out;
}

Refusal refuse_architecture(std::string_view subject, std::string_view architecture) {
  return refuse(RefusalKind::Unsupported, subject, fmt::format("the architecture \"{}\" is not known", architecture),
                fmt::format("The known ones are {}.", fmt::join(Model::known_architectures(), ", ")));
}

}  // namespace tw::model
