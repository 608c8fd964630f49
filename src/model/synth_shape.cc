#include "model/synth_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "gguf/writer.h"
#include "model/registry.h"
#include "model/synth.h"

namespace tw::model {

namespace {

enum class Unit : uint8_t { Count, Real, Percent, Flag, Switch };

// What a name of a shape becomes in the metadata. A Switch is no key: synth itself looks at it.
struct ShapeKey {
  std::string_view name;
  std::string_view key;
  Unit unit = Unit::Count;
};

constexpr ShapeKey kShapeKeys[] = {
    {"layers", "block_count"},
    {"width", "embedding_length"},
    {"heads", "attention.head_count"},
    {"kv_heads", "attention.head_count_kv"},
    {"head", "attention.key_length"},
    {"head", "attention.value_length"},
    {"window_head", "attention.key_length_swa"},
    {"window_head", "attention.value_length_swa"},
    {"shared_caches", "attention.shared_kv_layers"},
    {"layer_input", "embedding_length_per_layer_input"},
    {"rotated", "rope.dimension_count"},
    {"hidden", "feed_forward_length"},
    {"experts", "expert_count"},
    {"used", "expert_used_count"},
    {"expert_hidden", "expert_feed_forward_length"},
    {"shared_hidden", "expert_shared_feed_forward_length"},
    {"leading_dense", "leading_dense_block_count"},
    {"shared", "expert_shared_count"},
    {"score", "expert_gating_func"},
    {"renormalize", "expert_weights_norm", Unit::Flag},
    {"groups", "expert_group_count"},
    {"groups_kept", "expert_group_used_count"},
    {"moe_step", "interleave_moe_layer_step"},
    {"query_rank", "attention.q_lora_rank"},
    {"latent", "attention.kv_lora_rank"},
    {"latent_key", "attention.key_length_mla"},
    {"latent_value", "attention.value_length_mla"},
    {"interval", "full_attention_interval"},
    {"taps", "ssm.conv_kernel"},
    {"short_taps", "shortconv.l_cache"},
    {"key_heads", "ssm.group_count"},
    {"value_heads", "ssm.time_step_rank"},
    {"state", "ssm.state_size"},
    {"delta_state", "kda.head_dim"},
    {"rope_base", "rope.freq_base", Unit::Real},
    {"embedding_scale", "embedding_scale", Unit::Real},
    {"residual_percent", "residual_scale", Unit::Percent},
    {"logit_scale", "logit_scale", Unit::Real},
    {"score_cap", "attn_logit_softcapping", Unit::Real},
    {"logit_cap", "final_logit_softcapping", Unit::Real},
    {"window", "attention.sliding_window"},
    {"period", "attention.sliding_window_pattern"},
    {"window_rope_base", "rope.freq_base_swa", Unit::Real},
    {"context", "context_length"},
    {"vocabulary", "vocab_size"},
    {"attention_interval", "", Unit::Switch},
    {"select_bias", "", Unit::Switch},
    {"full_interval", "", Unit::Switch},
    {"own_values", "", Unit::Switch},
    {"output_scales", "", Unit::Switch},
    {"expert_scales", "", Unit::Switch},
    {"tied", "", Unit::Switch},
    {"biases", "", Unit::Switch},
    {"rope_divisors", "", Unit::Switch},
};

struct Named {
  NamedShape shape;
  std::string_view items;
};

// One size of hybrid for two families, so that they compare.
constexpr std::string_view kSmallHybrid =
    "layers=16,width=1024,heads=8,kv_heads=2,head=256,rotated=64,hidden=2048,experts=64,used=8,expert_hidden=256,"
    "shared_hidden=256,key_heads=8,value_heads=16,state=128,rope_base=10000000,vocabulary=151936,context=32768,tied=1";

// Widths, heads and vocabularies as the makers published them; the "-1b" hybrids and mixtures are our own sizes.
constexpr Named kNamed[] = {
    {{"llama-1b", "llama", "Llama 3.2 1B"},
     "layers=16,width=2048,heads=32,kv_heads=8,head=64,hidden=8192,vocabulary=128256,context=131072,rope_base=500000,"
     "rope_divisors=1,tied=1"},
    {{"llama-8b", "llama", "Llama 3.1 8B"},
     "layers=32,width=4096,heads=32,kv_heads=8,head=128,hidden=14336,vocabulary=128256,context=131072,"
     "rope_base=500000,rope_divisors=1"},
    {{"tinyllama", "llama", "TinyLlama 1.1B"},
     "layers=22,width=2048,heads=32,kv_heads=4,head=64,hidden=5632,vocabulary=32000,context=2048"},
    {{"qwen2-0.5b", "qwen2", "Qwen2.5 0.5B"},
     "layers=24,width=896,heads=14,kv_heads=2,head=64,hidden=4864,vocabulary=151936,context=32768,tied=1"},
    {{"qwen3-0.6b", "qwen3", "Qwen3 0.6B"},
     "layers=28,width=1024,heads=16,kv_heads=8,head=128,hidden=3072,vocabulary=151936,context=40960,tied=1"},
    {{"qwen3-1.7b", "qwen3", "Qwen3 1.7B"},
     "layers=28,width=2048,heads=16,kv_heads=8,head=128,hidden=6144,vocabulary=151936,context=40960,tied=1"},
    {{"qwen3-4b", "qwen3", "Qwen3 4B"},
     "layers=36,width=2560,heads=32,kv_heads=8,head=128,hidden=9728,vocabulary=151936,context=40960,tied=1"},
    {{"qwen3-8b", "qwen3", "Qwen3 8B"},
     "layers=36,width=4096,heads=32,kv_heads=8,head=128,hidden=12288,vocabulary=151936,context=40960"},
    {{"qwen3moe-30b-a3b", "qwen3moe", "Qwen3 30B A3B: 128 experts, 8 used"},
     "layers=48,width=2048,heads=32,kv_heads=4,head=128,hidden=6144,experts=128,used=8,expert_hidden=768,"
     "vocabulary=151936,context=40960"},
    {{"qwen3moe-235b-a22b", "qwen3moe", "Qwen3 235B A22B: 128 experts, 8 used"},
     "layers=94,width=4096,heads=64,kv_heads=4,head=128,hidden=12288,experts=128,used=8,expert_hidden=1536,"
     "vocabulary=151936,context=40960"},
    {{"qwen3next-80b-a3b", "qwen3next", "Qwen3-Next 80B A3B: 512 experts, 10 used"},
     "layers=48,width=2048,heads=16,kv_heads=2,head=256,rotated=64,hidden=5120,experts=512,used=10,expert_hidden=512,"
     "shared_hidden=512,key_heads=16,value_heads=32,state=128,rope_base=10000000,vocabulary=151936,context=262144"},
    {{"qwen3next-1b", "qwen3next", "a small Qwen3-Next: 1.1 billion weights, 64 experts, 8 used"}, kSmallHybrid},
    {{"qwen35-0.8b", "qwen35", "Qwen3.5 0.8B"},
     "layers=24,width=1024,heads=8,kv_heads=2,head=256,rotated=64,hidden=3584,key_heads=16,value_heads=16,state=128,"
     "rope_base=10000000,vocabulary=248320,context=32768,tied=1"},
    {{"qwen35moe-1b", "qwen35moe", "a small Qwen3.5 mixture: 1.1 billion weights, 64 experts, 8 used"}, kSmallHybrid},
    {{"gpt-oss-20b", "gpt-oss", "gpt-oss 20B: 32 experts, 4 used"},
     "layers=24,width=2880,heads=64,kv_heads=8,head=64,window=128,hidden=2880,experts=32,used=4,expert_hidden=2880,"
     "vocabulary=201088,context=131072"},
    {{"gpt-oss-1b", "gpt-oss", "a small gpt-oss: 1.1 billion weights, 24 experts, 4 used"},
     "layers=12,width=1024,heads=16,kv_heads=4,head=64,window=128,hidden=1024,experts=24,used=4,expert_hidden=1024,"
     "vocabulary=65536,context=32768"},
};

std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    if (to > from) out.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

Result<void> set_item(const FamilyInfo& family, std::string_view item, SynthShape& shape) {
  const size_t equals = item.find('=');
  const std::string name(item.substr(0, equals));
  const std::string_view number = item.substr(equals + 1);
  const auto found = shape.find(name);
  if (found == shape.end()) {
    std::vector<std::string_view> known;
    for (const ShapeItem& own : family.toy) known.push_back(own.name);
    return refuse(
        RefusalKind::Usage, fmt::format("shape item {}", item),
        fmt::format("architecture {} has no such number; it has {}", family.architecture, fmt::join(known, ", ")));
  }
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), found->second);
  if (error != std::errc{} || end != number.data() + number.size() || found->second > UINT32_MAX)
    return refuse(RefusalKind::Usage, fmt::format("shape item {}", item),
                  fmt::format("\"{}\" is not a whole number from 0 to {}", number, UINT32_MAX));
  return {};
}

Result<std::string_view> items_of_name(const FamilyInfo& family, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Named& named : kNamed) {
    if (named.shape.architecture != family.architecture) continue;
    if (named.shape.name == name) return named.items;
    known.push_back(named.shape.name);
  }
  return refuse(
      RefusalKind::Usage, fmt::format("shape {}", name),
      fmt::format("architecture {} has no shape of that name; it has {}", family.architecture, fmt::join(known, ", ")));
}

}  // namespace

std::vector<NamedShape> named_shapes() {
  std::vector<NamedShape> out;
  for (const Named& named : kNamed) out.push_back(named.shape);
  return out;
}

Result<SynthShape> toy_shape(std::string_view architecture) {
  const FamilyInfo* family = find_family(architecture);
  if (family == nullptr) return refuse_architecture("--arch", architecture);
  SynthShape out;
  for (const ShapeItem& item : family->toy) out[std::string(item.name)] = item.toy;
  return out;
}

Result<SynthShape> parse_shape(const FamilyInfo& family, std::string_view text) {
  TW_TRY(SynthShape shape, toy_shape(family.architecture));
  for (const std::string_view item : items_of(text)) {
    if (item.find('=') != std::string_view::npos) {
      TW_TRY_VOID(set_item(family, item, shape));
      continue;
    }
    TW_TRY(const std::string_view items, items_of_name(family, item));
    for (const std::string_view own : items_of(items)) TW_TRY_VOID(set_item(family, own, shape));
  }
  return shape;
}

uint64_t shape_value(const SynthShape& shape, std::string_view name) {
  const auto found = shape.find(std::string(name));
  return found == shape.end() ? 0 : found->second;
}

namespace {

// Of models that have no attention but in every `every`-th layer: 0 elsewhere.
gguf::Value kv_heads_of_layers(const SynthShape& shape, uint64_t every) {
  std::vector<int64_t> heads(shape_value(shape, "layers"));
  for (size_t layer = every - 1; layer < heads.size(); layer += every)
    heads[layer] = static_cast<int64_t>(shape_value(shape, "kv_heads"));
  return gguf::value_i32s(heads);
}

// Windowed, but for every `every`-th layer.
gguf::Value windowed_layers(const SynthShape& shape, uint64_t every) {
  std::vector<int64_t> windowed(shape_value(shape, "layers"), 1);
  for (size_t layer = every - 1; layer < windowed.size(); layer += every) windowed[layer] = 0;
  return gguf::value_i32s(windowed);
}

}  // namespace

std::vector<std::pair<std::string, gguf::Value>> shape_metadata(const FamilyInfo& family, const SynthShape& shape) {
  std::vector<std::pair<std::string, gguf::Value>> out;
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", family.architecture, name); };
  out.emplace_back("general.architecture", gguf::value_string(std::string(family.architecture)));
  out.emplace_back("general.name", gguf::value_string(fmt::format("synthetic {}", family.architecture)));
  out.emplace_back("general.quantization_version", gguf::value_u32(2));
  for (const ShapeKey& entry : kShapeKeys) {
    const uint64_t value = shape_value(shape, entry.name);
    if (entry.unit == Unit::Switch || value == 0) continue;
    if (entry.name == "kv_heads" && shape_value(shape, "attention_interval") != 0) continue;
    if (entry.unit == Unit::Real || entry.unit == Unit::Percent)
      out.emplace_back(key(entry.key),
                       gguf::value_f32(static_cast<float>(value) / (entry.unit == Unit::Percent ? 100.0F : 1.0F)));
    else if (entry.unit == Unit::Flag)
      out.emplace_back(key(entry.key), gguf::value_bool(true));
    else
      out.emplace_back(key(entry.key), gguf::value_u32(static_cast<uint32_t>(value)));
  }
  out.emplace_back(key("attention.layer_norm_rms_epsilon"), gguf::value_f32(1e-6F));
  if (const uint64_t every = shape_value(shape, "attention_interval"); every != 0)
    out.emplace_back(key("attention.head_count_kv"), kv_heads_of_layers(shape, every));
  if (const uint64_t every = shape_value(shape, "full_interval"); every != 0)
    out.emplace_back(key("attention.sliding_window_pattern"), windowed_layers(shape, every));
  const uint64_t state = shape_value(shape, "state");
  if (state == 0) return out;
  out.emplace_back(key("ssm.inner_size"),
                   gguf::value_u32(static_cast<uint32_t>(state * shape_value(shape, "value_heads"))));
  // Sections that let every pair turn; families without them ignore the key.
  const auto pairs = static_cast<int64_t>(shape_value(shape, "rotated") / 2);
  out.emplace_back(key("rope.dimension_sections"), gguf::value_i32s({(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0}));
  return out;
}

}  // namespace tw::model
