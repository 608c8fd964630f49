#include "lane/cpu/product.h"

#include <algorithm>
#include <type_traits>

#include "base/round.h"

namespace tw::lane::cpu {

uint64_t items(const ProductPart& part) {
  const uint64_t panels = panels_an_item(part.y);
  return part.w.groups * ceil_div(part.w.group_panels(), panels);
}

uint64_t items(const ProductArgs& args) {
  uint64_t count = 0;
  for (uint32_t p = 0; p < args.part_count; ++p) count += items(args.parts[p]);
  return count;
}

uint64_t product_rows(const ProductArgs& args) {
  if (args.upto == nullptr) return args.rows;
  return std::min(args.rows, static_cast<uint64_t>(*args.upto) + args.upto_count);
}

ProductItem product_item(const ProductArgs& args, uint64_t item) {
  uint32_t part = 0;
  while (item >= items(args.parts[part])) item -= items(args.parts[part++]);
  return {part, item};
}

ProductScratch product_scratch(const ProductArgs& args, std::byte* storage) {
  const bool precise = args.words == 0;
  bool runs = false, direct = true;
  uint64_t k = 0;
  for (uint32_t p = 0; p < args.part_count; ++p) {
    runs |= !is_float(args.parts[p].w.layout);
    direct &= stores_directly(args.parts[p].y);
    k = args.parts[p].w.k;
  }
  ProductScratch scratch{};
  const auto take = [&](auto*& pointer, uint64_t bytes) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(storage + scratch.bytes);
    scratch.bytes += (bytes + 63) / 64 * 64;
  };
  const uint64_t sums = kPassPanels * args.rows * kPanel;
  take(scratch.total, sums * sizeof(float));
  take(scratch.total64, precise ? sums * sizeof(double) : 0);
  take(scratch.widened, precise ? kSegmentBlocks * kBlock * kPanel * sizeof(double) : 0);
  take(scratch.block, direct && args.rows > 1 ? 0 : std::max(sums, uint64_t{kStreams} * kBlock) * sizeof(float));
  take(scratch.widened_x, args.x_type == Dtype::F32 ? 0 : std::min(args.rows, kWidenedRows) * k * sizeof(float));
  take(scratch.unpacked, runs && (precise || args.rows >= kBlockFrom) ? kPassPanels * sizeof(BlockWeights) : 0);
  return scratch;
}

size_t scratch_bytes(const ProductArgs& args) { return product_scratch(args, nullptr).bytes; }

ProductKernel product_kernel(Isa isa) {
  switch (isa) {
    case Isa::Scalar: return product_scalar;
    case Isa::Avx2: return product_avx2;
    case Isa::Avx512: return product_avx512;
  }
  return product_scalar;
}

}  // namespace tw::lane::cpu
