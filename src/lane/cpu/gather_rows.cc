#include "lane/cpu/gather_rows.h"

#include "base/check.h"

namespace tw::lane::cpu {

void gather_rows(const GatherRowsArgs& args, Range range, std::byte*) {
  const graph::Rows& table = *args.table;
  for (uint64_t r = range.begin; r < range.end; ++r) {
    const auto row = static_cast<uint64_t>(args.index[r]) - 1;
    TW_CHECK(row < table.count, "row {} of a table of {}", args.index[r], table.count);
    float* out = args.out + r * table.row_values;
    gguf::dequantize(table.format, table.row(row), out, table.row_values);
    if (args.scale == 1.0F) continue;
    for (uint64_t i = 0; i < table.row_values; ++i) out[i] = args.scale * out[i];
  }
}

}  // namespace tw::lane::cpu
