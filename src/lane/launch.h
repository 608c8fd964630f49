#pragma once

// One call of one kernel of a lane. A planned step is a list of launches in order (lane/schedule.h).

#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "lane/launch_memory.h"
#include "lane/launch_products.h"
#include "lane/launch_rows.h"

namespace tw::lane {

struct Fold;

using Launch = std::variant<Gather, View, Norm, Quant, Gemv, GemvF32, GemmParts, Binary, Scale, SwiGlu, Unary, Rope,
                            RopeParts, SetRow, Attention, ArgMax, Conv, ConvParts, L2Norm, Softmax, Decay, Gates,
                            GateProj, Delta, Moe, Slice, Join, Transpose, HeadGemv, GemvGlu, Fold>;

// Two launches as one: `then` consumes results of `first` as they become complete, and each computes exactly what it
// would apart. Holds exactly two launches, `first` and `then`.
struct Fold {
  std::vector<Launch> parts;

  [[nodiscard]] const Launch& first() const;
  [[nodiscard]] const Launch& then() const;
};
bool operator==(const Fold& a, const Fold& b);

// The census name: kKind, "gemm_parts" for parts above 16 rows outside a batch, and for a Fold "gather_norm",
// "gemv_rope", "moe_norm" or "gemv_norm".
std::string_view kind_of(const Launch& launch);

}  // namespace tw::lane
