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

std::string to_text(const Refusal& refusal) {
  std::string text = refusal.subject.empty() ? refusal.reason : refusal.subject + ": " + refusal.reason;
  if (!refusal.remedy.empty()) text += (text.ends_with('.') ? " " : ". ") + refusal.remedy;
  return text;
}

}  // namespace tw
