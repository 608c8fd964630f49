#pragma once

// Rotation tables: cos and sin of every position and pair, computed in double precision and rounded once to f32.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/hyper.h"

namespace tw::model {

struct RopeSpec {
  enum class Scaling : uint8_t { None, Linear, Yarn };

  uint32_t width = 0;  // values that rotate, in width/2 pairs
  double base = 10000;
  Scaling scaling = Scaling::None;
  double factor = 1;
  // Of YaRN.
  double original_context = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  double log_multiplier = 0;     // 0: the magnitude is 1 + 0.1 ln factor
  double attention_factor = 1;   // multiplies cos and sin, whatever the scaling
  std::vector<double> divisors;  // empty, or one a pair: divides the pair's frequency
  std::vector<bool> still;       // empty, or one a pair: a pair that does not turn

  [[nodiscard]] uint32_t pairs() const { return width / 2; }
  bool operator==(const RopeSpec&) const = default;
};

// The angle a pair turns by from one position to the next, and what cos and sin are multiplied by.
double rope_frequency(const RopeSpec& spec, uint32_t pair);
double rope_magnitude(const RopeSpec& spec);

struct RopeTables {
  std::vector<float> cos;  // positions x pairs; row r is position r (0-based)
  std::vector<float> sin;
};
RopeTables rope_tables(const RopeSpec& spec, uint32_t positions);

// Queries grow with their position p (0-based): by 1 + scale ln(floor((p + 1) / run) + 1). As tables of a rotation that
// only stretches (cos the factor, sin 0), so that a step applies it as one.
struct Temperature {
  uint32_t pairs = 0;  // of a head; 0: there is none
  double scale = 0;
  uint32_t run = 1;
};
RopeTables temperature_tables(const Temperature& spec, uint32_t positions);

// The keys every rotating family has, and the rotation they ask for. `width` is the head's width when
// rope.dimension_count is absent.
KeyTable rope_keys();
Result<RopeSpec> read_rope(const Hyper& hyper, uint32_t head);

// Sectioned rotation with interleaved axes: pair i turns with the axis that the sections give it. For text the first
// three axes are at the token's position and the fourth stays at 0.
std::vector<bool> still_pairs(const std::vector<int64_t>& sections, uint32_t pairs);

}  // namespace tw::model
