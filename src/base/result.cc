#include "base/result.h"

namespace tw {

std::string_view name(RefusalKind kind) {
  switch (kind) {
    case RefusalKind::Malformed: return "malformed";
    case RefusalKind::Unsupported: return "unsupported";
    case RefusalKind::Missing: return "missing";
    case RefusalKind::TooLarge: return "too large";
    case RefusalKind::Conflict: return "conflict";
    case RefusalKind::Usage: return "usage";
    case RefusalKind::Io: return "input/output";
    case RefusalKind::Interrupted: return "interrupted";
  }
  return "unknown";
}

Refusal::Refusal() = default;
Refusal::Refusal(RefusalKind kind_of, std::string_view about, std::string why, std::string what_to_change)
    : kind(kind_of), subject(about), reason(std::move(why)), remedy(std::move(what_to_change)) {}
Refusal::Refusal(const Refusal& other) = default;
Refusal::Refusal(Refusal&& other) noexcept = default;
Refusal& Refusal::operator=(const Refusal& other) = default;
Refusal& Refusal::operator=(Refusal&& other) noexcept = default;
Refusal::~Refusal() = default;
bool Refusal::operator==(const Refusal& other) const = default;

Refusal refuse(RefusalKind kind, std::string_view subject, std::string reason, std::string remedy) {
  return {kind, subject, std::move(reason), std::move(remedy)};
}

HeldRefusal::HeldRefusal(Refusal&& refusal) : held_(new Refusal(std::move(refusal))) {}
HeldRefusal::HeldRefusal(const HeldRefusal& other) : held_(other.held_ ? new Refusal(*other.held_) : nullptr) {}
void HeldRefusal::drop() noexcept { delete held_; }
void HeldRefusal::fail_no_refusal() {
  fail_check("!Result::ok()", __FILE__, __LINE__, "a refusal was asked of a value");
}
void fail_no_value(const HeldRefusal& refusal) {
  fail_check("Result::ok()", __FILE__, __LINE__, refusal ? to_text(refusal.get()) : "the value was moved away");
}

std::string to_text(const Refusal& refusal) {
  std::string text = refusal.subject.empty() ? refusal.reason : refusal.subject + ": " + refusal.reason;
  if (!refusal.remedy.empty()) text += (text.ends_with('.') ? " " : ". ") + refusal.remedy;
  return text;
}

}  // namespace tw
