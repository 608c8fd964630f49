#include "spatial/evaluate/testing/compare.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "spatial/evaluate/codec.h"

namespace tw::spatial::evaluate::testing {
namespace {

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

}  // namespace

std::string difference(const Program& program, const Memory& a, const Memory& b) {
  for (const Tensor& tensor : program.tensors) {
    const Stored *left = a.find(tensor.name), *right = b.find(tensor.name);
    if (!left || !right) {
      if (left != right) return fmt::format("{} is in one memory alone", tensor.name);
      continue;
    }
    if (left->written != right->written) return fmt::format("{} is not written in the same tiles", tensor.name);
    const Precision dtype = tensor.dtype;
    const uint64_t count = left->codes.size() / bytes_of(dtype);
    for (uint64_t i = 0; i < count; ++i) {
      const double x = real_at(dtype, left->codes.data(), i), y = real_at(dtype, right->codes.data(), i);
      if (is_integer(dtype) ? integer_at(dtype, left->codes.data(), i) != integer_at(dtype, right->codes.data(), i)
                            : !same(x, y))
        return fmt::format("{}: element {} of tile {} is {} and {}", tensor.name, i % a.tile().size(),
                           i / a.tile().size(), x, y);
    }
  }
  return {};
}

}  // namespace tw::spatial::evaluate::testing
