#pragma once

// Refusal: what a user can cause (a file, a flag, a model, a request). Result<T>: a value or a refusal.
// No exceptions cross a component; what only a bug can cause is TW_CHECK (check.h).

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace tw {

enum class RefusalKind { Malformed, Unsupported, Missing, TooLarge, Conflict, Usage, Io, Interrupted };

std::string_view name(RefusalKind kind);

// Its members are compiled once, in result.cc: every call that may be refused carries code for them.
struct Refusal {
  RefusalKind kind = RefusalKind::Malformed;
  std::string subject;  // the file, tensor, key, op, edge or flag it is about
  std::string reason;   // one sentence, with the two numbers that disagree
  std::string remedy;   // what the reader can change; may be empty

  Refusal();
  Refusal(RefusalKind kind_of, std::string_view about, std::string why, std::string what_to_change);
  Refusal(const Refusal& other);
  Refusal(Refusal&& other) noexcept;
  Refusal& operator=(const Refusal& other);
  Refusal& operator=(Refusal&& other) noexcept;
  ~Refusal();
  bool operator==(const Refusal& other) const;
};

// The terminal rendering: "subject: reason. remedy".
std::string to_text(const Refusal& refusal);

Refusal refuse(RefusalKind kind, std::string_view subject, std::string reason, std::string remedy = {});

// What a Result holds in place of a value: null, or a refusal that moves as a pointer.
class HeldRefusal {
 public:
  HeldRefusal() = default;
  explicit HeldRefusal(Refusal&& refusal);
  HeldRefusal(const HeldRefusal& other);
  HeldRefusal(HeldRefusal&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  HeldRefusal& operator=(HeldRefusal other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~HeldRefusal() {
    if (held_ != nullptr) drop();
  }

  explicit operator bool() const { return held_ != nullptr; }
  // Requires one to be held.
  [[nodiscard]] const Refusal& get() const {
    if (held_ == nullptr) fail_no_refusal();
    return *held_;
  }

 private:
  void drop() noexcept;
  [[noreturn]] static void fail_no_refusal();
  Refusal* held_ = nullptr;
};
// For a value that was asked of a refusal.
[[noreturn]] void fail_no_value(const HeldRefusal& refusal);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::in_place, std::move(value)) {}   // NOLINT(google-explicit-constructor)
  Result(Refusal refusal) : refusal_(std::move(refusal)) {}      // NOLINT(google-explicit-constructor)
  Result(HeldRefusal refusal) : refusal_(std::move(refusal)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return value_.has_value(); }
  [[nodiscard]] bool ok() const { return value_.has_value(); }

  // Requires ok().
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

  // Requires !ok(). The second hands it on, to the result of the calling function.
  [[nodiscard]] const Refusal& refusal() const { return refusal_.get(); }
  [[nodiscard]] HeldRefusal&& held() && { return std::move(refusal_); }

 private:
  T& checked() {
    if (!value_) fail_no_value(refusal_);
    return *value_;
  }
  std::optional<T> value_;
  HeldRefusal refusal_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Refusal refusal) : refusal_(std::move(refusal)) {}      // NOLINT(google-explicit-constructor)
  Result(HeldRefusal refusal) : refusal_(std::move(refusal)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return !refusal_; }
  [[nodiscard]] bool ok() const { return !refusal_; }
  [[nodiscard]] const Refusal& refusal() const { return refusal_.get(); }
  [[nodiscard]] HeldRefusal&& held() && { return std::move(refusal_); }

 private:
  HeldRefusal refusal_;
};

}  // namespace tw

#define TW_CONCAT_INNER(a, b) a##b
#define TW_CONCAT(a, b) TW_CONCAT_INNER(a, b)

// TW_TRY(lhs, expr): evaluates a Result; returns its refusal from the calling function, else binds its value to lhs.
#define TW_TRY(lhs, expr) TW_TRY_NAMED(TW_CONCAT(tw_result_, __LINE__), lhs, expr)
#define TW_TRY_NAMED(result, lhs, expr)         \
  auto result = (expr);                         \
  if (!result) return std::move(result).held(); \
  lhs = std::move(*result) /* caller adds ; */

// TW_TRY_VOID(expr): the same for a Result whose value is not wanted.
#define TW_TRY_VOID(expr)                                                        \
  do {                                                                           \
    if (auto tw_result = (expr); !tw_result) return std::move(tw_result).held(); \
  } while (false)
