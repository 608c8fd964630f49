#include "model/rope_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tw::model {

namespace {

constexpr KeySpec kRopeKeys[] = {
    {.key = "rope.dimension_count", .fallback = 0, .low = 2, .high = 65536},
    {.key = "rope.freq_base", .type = KeyType::Real, .fallback = 10000, .low = 1.0009765625, .high = 1e15},
    {.key = "rope.scaling.type", .type = KeyType::Text, .texts = "linear none yarn"},
    {.key = "rope.scaling.factor", .type = KeyType::Real, .fallback = 0, .low = 0, .high = 1e6},
    {.key = "rope.scale_linear", .type = KeyType::Real, .fallback = 0, .low = 0, .high = 1e6},
    {.key = "rope.scaling.original_context_length", .fallback = 0},
    {.key = "rope.scaling.attn_factor", .type = KeyType::Real, .fallback = 1, .low = 1e-3, .high = 1e3},
    {.key = "rope.scaling.yarn_log_multiplier", .type = KeyType::Real, .fallback = 0, .low = 0, .high = 1e3},
    {.key = "rope.scaling.yarn_beta_fast", .type = KeyType::Real, .fallback = 32, .low = 1e-3, .high = 1e6},
    {.key = "rope.scaling.yarn_beta_slow", .type = KeyType::Real, .fallback = 1, .low = 1e-3, .high = 1e6},
    {.key = "rope.scaling.yarn_ext_factor",
     .type = KeyType::Real,
     .fallback = 1,
     .low = 1,
     .high = 1,
     .feature = "a partial YaRN blend"},
    {.key = "rope.scaling.yarn_attn_factor",
     .type = KeyType::Real,
     .fallback = 1,
     .low = 1,
     .high = 1,
     .feature = "a YaRN attention factor of its own"},
    {.key = "rope.scaling.alpha",
     .type = KeyType::Real,
     .fallback = 0,
     .low = 0,
     .high = 0,
     .feature = "dynamic rotation scaling"},
};

// The pair that turns `turns` times over the original context (YaRN, Peng et al. 2023, section 3.2).
double pair_of_turns(const RopeSpec& spec, double turns) {
  return spec.width * std::log(spec.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(spec.base));
}

// How much of the unscaled frequency a pair keeps: 1 below the first pair of the ramp, 0 above its last.
double yarn_kept(const RopeSpec& spec, uint32_t pair) {
  const double low = std::max(0.0, std::floor(pair_of_turns(spec, spec.beta_fast)));
  const double high = std::min(spec.width - 1.0, std::ceil(pair_of_turns(spec, spec.beta_slow)));
  const double along = (pair - low) / std::max(0.001, high - low);
  return 1 - std::clamp(along, 0.0, 1.0);
}

double yarn_log_magnitude(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 1 + 0.1 * multiplier * std::log(factor);
}

}  // namespace

double rope_frequency(const RopeSpec& spec, uint32_t pair) {
  const double divisor = spec.divisors.empty() ? 1.0 : spec.divisors[pair];
  const double plain = std::pow(spec.base, -2.0 * pair / spec.width) / divisor;
  if (spec.scaling == RopeSpec::Scaling::None) return plain;
  const double scaled = plain / spec.factor;
  if (spec.scaling == RopeSpec::Scaling::Linear) return scaled;
  const double kept = yarn_kept(spec, pair);
  return scaled * (1 - kept) + plain * kept;
}

double rope_magnitude(const RopeSpec& spec) {
  if (spec.scaling != RopeSpec::Scaling::Yarn) return spec.attention_factor;
  const double own = yarn_log_magnitude(spec.factor, 1);
  const double of_all = spec.log_multiplier == 0 ? 1.0 : yarn_log_magnitude(spec.factor, spec.log_multiplier);
  return spec.attention_factor * own / of_all;
}

RopeTables rope_tables(const RopeSpec& spec, uint32_t positions) {
  const uint32_t pairs = spec.pairs();
  const double magnitude = rope_magnitude(spec);
  std::vector<double> frequency(pairs);
  for (uint32_t pair = 0; pair < pairs; ++pair)
    frequency[pair] = !spec.still.empty() && spec.still[pair] ? 0.0 : rope_frequency(spec, pair);
  RopeTables out;
  out.cos.resize(size_t{positions} * pairs);
  out.sin.resize(size_t{positions} * pairs);
  for (uint32_t position = 0; position < positions; ++position)
    for (uint32_t pair = 0; pair < pairs; ++pair) {
      const double angle = position * frequency[pair];
      out.cos[size_t{position} * pairs + pair] = static_cast<float>(std::cos(angle) * magnitude);
      out.sin[size_t{position} * pairs + pair] = static_cast<float>(std::sin(angle) * magnitude);
    }
  return out;
}

RopeTables temperature_tables(const Temperature& spec, uint32_t positions) {
  RopeTables out;
  out.sin.resize(size_t{positions} * spec.pairs);
  out.cos.reserve(out.sin.size());
  for (uint32_t position = 0; position < positions; ++position) {
    const uint32_t run = (position + 1) / spec.run;
    out.cos.insert(out.cos.end(), spec.pairs, static_cast<float>(1 + spec.scale * std::log(run + 1.0)));
  }
  return out;
}

KeyTable rope_keys() { return kRopeKeys; }

Result<RopeSpec> read_rope(const Hyper& hyper, uint32_t head) {
  RopeSpec spec;
  spec.width = hyper.has("rope.dimension_count") ? hyper.count("rope.dimension_count") : head;
  if (spec.width % 2 != 0 || spec.width > head)
    return refuse(RefusalKind::Malformed, hyper.subject("rope.dimension_count"),
                  fmt::format("is {}; expected an even number up to the head's width, {}", spec.width, head));
  spec.base = hyper.real("rope.freq_base");
  const double factor = hyper.real(hyper.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear");
  spec.factor = factor == 0 ? 1 : factor;
  spec.attention_factor = hyper.real("rope.scaling.attn_factor");
  const std::string& type = hyper.text("rope.scaling.type");
  if (type == "linear" && spec.factor != 1) spec.scaling = RopeSpec::Scaling::Linear;
  if (type == "yarn") spec.scaling = RopeSpec::Scaling::Yarn;
  const uint32_t original = hyper.count("rope.scaling.original_context_length");
  spec.original_context = original == 0 ? hyper.count("context_length") : original;
  spec.beta_fast = hyper.real("rope.scaling.yarn_beta_fast");
  spec.beta_slow = hyper.real("rope.scaling.yarn_beta_slow");
  spec.log_multiplier = hyper.real("rope.scaling.yarn_log_multiplier");
  return spec;
}

std::vector<bool> still_pairs(const std::vector<int64_t>& sections, uint32_t pairs) {
  std::vector<bool> still(pairs, false);
  const int64_t period = sections[0] + sections[1] + sections[2] + sections[3];
  for (uint32_t pair = 0; pair < pairs; ++pair) {
    const int64_t sector = pair % period;
    still[pair] = sector >= 3 * sections[static_cast<size_t>(sector % 3)];
  }
  return still;
}

}  // namespace tw::model
