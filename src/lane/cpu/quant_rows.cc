#include "lane/cpu/quant_rows.h"

#include <algorithm>

namespace tw::lane::cpu {

uint64_t quant_rows_items(const QuantRowsArgs& args) { return args.rows; }

void quant_rows(const QuantRowsArgs& args, Range range, std::byte*) {
  const auto first =
      static_cast<uint64_t>(args.position != nullptr ? *args.position : static_cast<int32_t>(args.fixed));
  const uint64_t blocks = args.cols / kQuantBlock;
  for (uint64_t row = range.begin; row < range.end; ++row) {
    const QuantView from = quant_from(args.from, row * blocks);
    const QuantView to = quant_from(args.to, (first - 1 + row) * blocks);
    std::copy_n(from.scale, blocks, to.scale);
    std::copy_n(from.high, args.cols, to.high);
    std::copy_n(from.sum_high, blocks, to.sum_high);
    std::copy_n(from.sum_half, blocks, to.sum_half);
    std::copy_n(from.wide, args.cols, to.wide);
    if (args.words == 1) continue;
    std::copy_n(from.low, args.cols, to.low);
    std::copy_n(from.sum_low, blocks, to.sum_low);
  }
}

}  // namespace tw::lane::cpu
