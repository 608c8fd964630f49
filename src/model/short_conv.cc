#include "model/short_conv.h"

#include <fmt/format.h>

namespace tw::model {

using graph::TensorId;

namespace {

constexpr KeySpec kShortConvKeys[] = {
    {.key = "shortconv.l_cache", .need = Need::Required, .low = 1, .high = 64},
};

constexpr TensorSpec kShortConvTensors[] = {
    {.pattern = "blk.*.shortconv.in_proj.weight", .shape = "width three_channels", .part = Part::ShortConv},
    {.pattern = "blk.*.shortconv.conv.weight",
     .shape = "taps channels",
     .part = Part::ShortConv,
     .content = Content::Taps},
    {.pattern = "blk.*.shortconv.out_proj.weight", .shape = "channels width", .part = Part::ShortConv},
};

}  // namespace

KeyTable short_conv_keys() { return kShortConvKeys; }
TensorTable short_conv_tensors() { return kShortConvTensors; }

ShortConv read_short_conv(const Hyper& hyper) {
  return {.channels = hyper.count("embedding_length"), .taps = hyper.count("shortconv.l_cache")};
}

void ShortConv::add_dims(Dims& dims) const {
  dims["channels"] = channels;
  dims["three_channels"] = 3 * uint64_t{channels};
  dims["taps"] = taps;
}

void ShortConv::place(Placer& placer, const std::string& block) const {
  uint64_t from = 0;
  for (const std::string_view part : {"b", "c", "x"}) {
    placer.matrix(fmt::format("{}conv_{}.weight", block, part), block + "shortconv.in_proj.weight",
                  RowRange{from, channels});
    from += channels;
  }
  placer.transposed(block + "conv.weight", block + "shortconv.conv.weight", RowRange{0, channels});
  placer.matrix(block + "conv_out.weight", block + "shortconv.out_proj.weight");
}

TensorId ShortConv::write(StepWriter& step, const std::string& block, TensorId x) const {
  const auto product = [&](std::string_view part) {
    const std::string stem = fmt::format("{}conv_{}", block, part);
    return step.product(stem, x, stem);
  };
  const TensorId b = product("b"), c = product("c"), in = product("x");
  const TensorId gated = step.elementwise(block + "conv_in", graph::Arithmetic::Mul, b, in);
  const TensorId conv = step.each_sequence(block + "conv", channels, [&](SequenceWriter& own) {
    const TensorId ring = own.state(block + "conv_ring", taps, channels);
    const TensorId rows = own.rows(block + "conv_in_row", gated);
    return own.add(block + "conv", graph::CausalConv{}, {rows, step.constant(block + "conv.weight"), ring});
  });
  const TensorId opened = step.elementwise(block + "conv_gated", graph::Arithmetic::Mul, c, conv);
  return step.product(block + "conv_out", opened, block + "conv_out");
}

}  // namespace tw::model
