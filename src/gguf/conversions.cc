#include "gguf/conversions.h"

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <utility>
#include <variant>

#include "gguf/names.h"

namespace tw::gguf {
namespace {

template <class T>
concept Integer = std::same_as<T, uint64_t> || std::same_as<T, int64_t>;

// Whether a value of the one type may stand for the other, if it fits.
template <class From, class To>
concept Serves = std::same_as<From, To> ||(Integer<From> && (Integer<To> || std::same_as<To, double>));

// Nothing when the value does not fit.
template <class To, class From>
requires Serves<From, To> std::optional<To> convert(const From& value) {
  if constexpr (std::same_as<From, To>) {
    return value;
  } else if constexpr (Integer<To>) {
    if (std::in_range<To>(value)) return static_cast<To>(value);
  } else {
    constexpr int64_t kExact = int64_t{1} << 53;  // every integer up to here is a double
    if (std::cmp_less_equal(value, kExact) && std::cmp_greater_equal(value, -kExact)) return static_cast<To>(value);
  }
  return std::nullopt;
}

std::string show(const Scalar& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return quote(*text);
  return std::visit([](const auto& number) { return fmt::format("{}", number); }, value);
}

std::string show(const Value& value) {
  if (const auto* scalar = std::get_if<Scalar>(&value.data))
    return fmt::format("{} ({})", show(*scalar), name(value.type));
  return fmt::format("an {}", describe(value));
}

Refusal mismatch(const Entry& entry, std::string_view label, std::string_view what, std::string_view found,
                 std::string_view expected) {
  return refuse(RefusalKind::Malformed, entry.key,
                fmt::format("at byte {} of {}: {} is {}, expected {}", entry.offset, label, what, found, expected));
}

template <class To>
Result<To> to_scalar(const Entry& entry, std::string_view label, std::string_view expected) {
  if (const auto* scalar = std::get_if<Scalar>(&entry.value.data)) {
    auto converted = std::visit(
        []<class From>(const From& value) -> std::optional<To> {
          if constexpr (Serves<From, To>) return convert<To>(value);
          return std::nullopt;
        },
        *scalar);
    if (converted) return *std::move(converted);
  }
  return mismatch(entry, label, "the value", show(entry.value), expected);
}

template <class To, class From>
Result<std::vector<To>> to_items(const Entry& entry, const std::vector<From>& items, std::string_view label,
                                 std::string_view expected) {
  if constexpr (Serves<From, To>) {
    std::vector<To> converted;
    converted.reserve(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      std::optional<To> item = convert<To, From>(items[i]);
      if (!item) return mismatch(entry, label, fmt::format("item {}", i), show(Scalar(items[i])), expected);
      converted.push_back(*std::move(item));
    }
    return converted;
  }
  return mismatch(entry, label, "the value", show(entry.value), expected);
}

template <class To>
Result<std::vector<To>> to_array(const Entry& entry, std::string_view label, std::string_view expected) {
  const auto* array = std::get_if<Array>(&entry.value.data);
  if (!array) return mismatch(entry, label, "the value", show(entry.value), expected);
  return std::visit([&](const auto& items) { return to_items<To>(entry, items, label, expected); }, array->items);
}

}  // namespace

Result<uint64_t> to_u64(const Entry& entry, std::string_view label) {
  return to_scalar<uint64_t>(entry, label, "an integer that is not negative");
}

Result<double> to_f64(const Entry& entry, std::string_view label) {
  return to_scalar<double>(entry, label, "a number that a double holds exactly");
}

Result<bool> to_bool(const Entry& entry, std::string_view label) { return to_scalar<bool>(entry, label, "a bool"); }

Result<std::string> to_string(const Entry& entry, std::string_view label) {
  return to_scalar<std::string>(entry, label, "a string");
}

Result<std::vector<std::string>> to_strings(const Entry& entry, std::string_view label) {
  return to_array<std::string>(entry, label, "an array of strings");
}

Result<std::vector<double>> to_f64s(const Entry& entry, std::string_view label) {
  return to_array<double>(entry, label, "an array of numbers that a double holds exactly");
}

Result<std::vector<int64_t>> to_i64s(const Entry& entry, std::string_view label) {
  return to_array<int64_t>(entry, label, "an array of integers that fit 64 bits with a sign");
}

Result<std::vector<bool>> to_bools(const Entry& entry, std::string_view label) {
  return to_array<bool>(entry, label, "an array of bools");
}

}  // namespace tw::gguf
