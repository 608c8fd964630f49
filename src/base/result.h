#pragma once

// Refusal: what a user can cause (a file, a flag, a model, a request). Result<T>: a value or a refusal.
// No exceptions cross a component; what only a bug can cause is TW_CHECK (check.h).

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace tw {

enum class RefusalKind { Malformed, Unsupported, Missing, TooLarge, Conflict, Usage, Io, Interrupted };

std::string_view name(RefusalKind kind);

struct Refusal {
  RefusalKind kind = RefusalKind::Malformed;
  std::string subject;  // the file, tensor, key, op, edge or flag it is about
  std::string reason;   // one sentence, with the two numbers that disagree
  std::string remedy;   // what the reader can change; may be empty

  bool operator==(const Refusal&) const = default;
};

// The terminal rendering: "subject: reason. remedy".
std::string to_text(const Refusal& refusal);

inline Refusal refuse(RefusalKind kind, std::string_view subject, std::string reason, std::string remedy = {}) {
  return Refusal{kind, std::string(subject), std::move(reason), std::move(remedy)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}

  explicit operator bool() const { return state_.index() == 0; }
  [[nodiscard]] bool ok() const { return state_.index() == 0; }

  // Requires ok().
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

  // Requires !ok().
  [[nodiscard]] const Refusal& refusal() const {
    TW_CHECK(state_.index() == 1, "a refusal was asked of a value");
    return *std::get_if<1>(&state_);
  }

 private:
  T& checked() {
    if (state_.index() != 0) fail_check("Result::ok()", __FILE__, __LINE__, to_text(*std::get_if<1>(&state_)));
    return *std::get_if<0>(&state_);
  }
  std::variant<T, Refusal> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Refusal refusal) : refusal_(std::move(refusal)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return !refusal_; }
  [[nodiscard]] bool ok() const { return !refusal_; }
  [[nodiscard]] const Refusal& refusal() const {
    TW_CHECK(refusal_.has_value(), "a refusal was asked of a success");
    return *refusal_;
  }

 private:
  std::optional<Refusal> refusal_;
};

}  // namespace tw

#define TW_CONCAT_INNER(a, b) a##b
#define TW_CONCAT(a, b) TW_CONCAT_INNER(a, b)

// TW_TRY(lhs, expr): evaluates a Result; returns its refusal from the calling function, else binds its value to lhs.
#define TW_TRY(lhs, expr) TW_TRY_NAMED(TW_CONCAT(tw_result_, __LINE__), lhs, expr)
#define TW_TRY_NAMED(result, lhs, expr) \
  auto result = (expr);                 \
  if (!result) return result.refusal(); \
  lhs = std::move(*result) /* caller adds ; */

// TW_TRY_VOID(expr): the same for a Result whose value is not wanted.
#define TW_TRY_VOID(expr)                                                \
  do {                                                                   \
    if (auto tw_result = (expr); !tw_result) return tw_result.refusal(); \
  } while (false)
