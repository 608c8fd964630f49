#include "spatial/evaluate/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "spatial/evaluate/codec.h"

namespace tw::spatial::evaluate {
namespace {

bool put_rounded(Precision precision, double value, std::byte* codes, uint64_t at) {
  put_real(precision, value, codes, at);
  return true;
}
bool put_rounded(Precision precision, int64_t value, std::byte* codes, uint64_t at) {
  return put_integer(precision, value, codes, at);
}

// value_of(element number), row-major over the extent. Answers the number of the first element that does not fit.
template <class ValueOf>
std::optional<uint64_t> fill(Stored& stored, TileShape tile, ValueOf&& value_of) {
  const Tensor& tensor = stored.tensor;
  for (uint64_t row = 0; row < tensor.rows; ++row)
    for (uint64_t col = 0; col < tensor.cols; ++col) {
      const TilePlace place = place_of(tensor, tile, row, col);
      const uint64_t element = row * tensor.cols + col;
      if (!put_rounded(tensor.dtype, value_of(element), stored.codes.data(), place.tile * tile.size() + place.element))
        return element;
    }
  std::fill(stored.written.begin(), stored.written.end(), true);
  return std::nullopt;
}

// Contents of an init; the validator saw to it that they fit.
struct InitFill {
  Stored& stored;
  TileShape tile;

  void operator()(const ZeroInit&) const { std::fill(stored.written.begin(), stored.written.end(), true); }
  void operator()(const RealInit& init) const {
    fill(stored, tile, [&](uint64_t) { return init.value; });
  }
  void operator()(const IntegerInit& init) const {
    fill(stored, tile, [&](uint64_t) { return init.value; });
  }
  void operator()(const IntegerValues& init) const {
    fill(stored, tile, [&](uint64_t at) { return (*init.values)[at]; });
  }
  void operator()(const RealValues& init) const {
    fill(stored, tile, [&](uint64_t at) { return (*init.values)[at]; });
  }
  void operator()(const GivenInit&) const {}
  void operator()(const ExternalInit&) const {}
};

}  // namespace

Stored make_stored(const Tensor& tensor, TileShape tile) {
  Stored stored;
  stored.tensor = tensor;
  stored.grid = grid_of(tensor, tile);
  stored.codes.resize(stored.grid.tiles() * tile.size() * bytes_of(tensor.dtype));
  stored.written.resize(stored.grid.tiles());
  return stored;
}

Result<Stored*> Memory::declare(const Tensor& tensor) {
  if (Stored* there = find(tensor.name)) {
    const Tensor& old = there->tensor;
    if (old.rows == tensor.rows && old.cols == tensor.cols && old.dtype == tensor.dtype) return there;
    return refuse(RefusalKind::Conflict, tensor.name,
                  fmt::format("memory holds it as {}x{} {}, the section declares {}x{} {}", old.rows, old.cols,
                              name(old.dtype), tensor.rows, tensor.cols, name(tensor.dtype)));
  }
  Stored& stored = all_.emplace(tensor.name, make_stored(tensor, tile_)).first->second;
  std::visit(InitFill{stored, tile_}, tensor.init);
  return &stored;
}

template <class Value>
Result<void> Memory::set_values(const Tensor& tensor, std::span<const Value> values) {
  TW_TRY(Stored * stored, declare(tensor));
  if (values.size() != tensor.size())
    return refuse(RefusalKind::Malformed, tensor.name,
                  fmt::format("{} values are given, expected {}", values.size(), tensor.size()));
  const std::optional<uint64_t> misfit = fill(*stored, tile_, [&](uint64_t at) { return values[at]; });
  if (misfit)
    return refuse(
        RefusalKind::Malformed, tensor.name,
        fmt::format("element {} is {}, which {} does not hold", *misfit, values[*misfit], name(tensor.dtype)));
  return {};
}

Result<void> Memory::set(const Tensor& tensor, std::span<const double> values) {
  if (is_integer(tensor.dtype))
    return refuse(RefusalKind::Malformed, tensor.name, fmt::format("reals are given, it is {}", name(tensor.dtype)));
  return set_values(tensor, values);
}

Result<void> Memory::set(const Tensor& tensor, std::span<const int64_t> values) { return set_values(tensor, values); }

template <class Value, class Read>
Result<std::vector<Value>> Memory::values(std::string_view name, Read&& read) const {
  const Stored* stored = find(name);
  if (!stored) return refuse(RefusalKind::Missing, name, "memory has no such tensor");
  const auto hole = std::find(stored->written.begin(), stored->written.end(), false);
  if (hole != stored->written.end())
    return refuse(RefusalKind::Missing, name,
                  fmt::format("tile {} of {} was never written", hole - stored->written.begin(), stored->grid.tiles()));
  const Tensor& tensor = stored->tensor;
  std::vector<Value> values;
  values.reserve(tensor.size());
  for (uint64_t row = 0; row < tensor.rows; ++row)
    for (uint64_t col = 0; col < tensor.cols; ++col) {
      const TilePlace place = place_of(tensor, tile_, row, col);
      values.push_back(read(tensor.dtype, stored->codes.data(), place.tile * tile_.size() + place.element));
    }
  return values;
}

Result<std::vector<double>> Memory::reals(std::string_view name) const { return values<double>(name, real_at); }

Result<std::vector<int64_t>> Memory::integers(std::string_view name) const {
  if (const Stored* stored = find(name); stored && !is_integer(stored->tensor.dtype))
    return refuse(RefusalKind::Usage, name,
                  fmt::format("integers are asked for, it is {}", spatial::name(stored->tensor.dtype)));
  return values<int64_t>(name, integer_at);
}

const Stored* Memory::find(std::string_view name) const {
  const auto at = all_.find(name);
  return at == all_.end() ? nullptr : &at->second;
}
Stored* Memory::find(std::string_view name) { return const_cast<Stored*>(std::as_const(*this).find(name)); }

void Memory::replace(Stored stored) {
  std::string name = stored.tensor.name;
  all_.insert_or_assign(std::move(name), std::move(stored));
}

std::span<const std::byte> Memory::code(const Stored& stored, uint64_t row, uint64_t col) const {
  const TilePlace place = place_of(stored.tensor, tile_, row, col);
  const uint64_t bytes = bytes_of(stored.tensor.dtype);
  return std::span(stored.codes).subspan((place.tile * tile_.size() + place.element) * bytes, bytes);
}

}  // namespace tw::spatial::evaluate
