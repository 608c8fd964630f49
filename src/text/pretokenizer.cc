#include "text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>

#include "base/check.h"
#include "text/utf8.h"

namespace tw::text {
namespace {

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
using Code = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;
using MatchData = std::unique_ptr<pcre2_match_data, FreeMatchData>;
using MatchContext = std::unique_ptr<pcre2_match_context, FreeMatchContext>;

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

// \s of PCRE2 also takes U+180E, which has not been white space since Unicode 6.3.
std::string with_white_space_property(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      out.push_back(pattern[i]);
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's')
      out.append(R"(\p{White_Space})");
    else if (escaped == 'S')
      out.append(R"(\P{White_Space})");
    else
      out.append({'\\', escaped});
  }
  return out;
}

Code compile(std::string_view pattern) {
  const std::string text = with_white_space_property(pattern);
  int error = 0;
  size_t at = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP, &error, &at,
                          nullptr),
            pcre2_code_free);
  TW_CHECK(code != nullptr, "pattern {} at byte {}: {}", text, at, error_text(error));
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // where there is no JIT the interpreter serves
  return code;
}

// The words that begin in valid UTF-8 text and the runs of bytes that are none.
std::vector<std::string_view> split_by_validity(std::string_view text, std::vector<bool>& valid) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  bool last = true;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    if (at > begin && next.valid != last) {
      out.push_back(text.substr(begin, at - begin));
      valid.push_back(last);
      begin = at;
    }
    last = next.valid;
    at += next.bytes;
  }
  if (begin < text.size()) {
    out.push_back(text.substr(begin));
    valid.push_back(last);
  }
  return out;
}

// Cuts `run` every three characters, counted from its end.
void cut_in_threes(std::string_view run, std::vector<std::string_view>& out) {
  size_t characters = 0;
  for (size_t at = 0; at < run.size(); at += decode_utf8(run, at).bytes) ++characters;
  size_t begin = 0;
  for (size_t at = 0; at < run.size(); --characters) {
    if (at > begin && characters % 3 == 0) {
      out.push_back(run.substr(begin, at - begin));
      begin = at;
    }
    at += decode_utf8(run, at).bytes;
  }
  out.push_back(run.substr(begin));
}

}  // namespace

struct PreTokenizer::Compiled {
  Code code;
  bool groups_of_three = false;

  // Appends the pieces of `piece`, which is valid UTF-8 and not empty.
  void split(std::string_view piece, pcre2_match_data* data, pcre2_match_context* context,
             std::vector<std::string_view>& out) const {
    const auto subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    size_t done = 0;
    for (size_t from = 0; from < piece.size();) {
      int rc = pcre2_match(code.get(), subject, piece.size(), from, PCRE2_NO_UTF_CHECK, data, context);
      if (rc == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter keeps its stack on the heap
        rc = pcre2_match(code.get(), subject, piece.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, context);
      if (rc == PCRE2_ERROR_NOMATCH) break;
      TW_CHECK(rc >= 0, "splitting {} bytes: {}", piece.size(), error_text(rc));
      const size_t* bounds = pcre2_get_ovector_pointer(data);
      TW_CHECK(bounds[1] > bounds[0], "a pre-tokenizer pattern matches nothing at byte {}", bounds[0]);
      if (bounds[0] > done) out.push_back(piece.substr(done, bounds[0] - done));
      const std::string_view match = piece.substr(bounds[0], bounds[1] - bounds[0]);
      if (groups_of_three)
        cut_in_threes(match, out);
      else
        out.push_back(match);
      from = done = bounds[1];
    }
    if (done < piece.size()) out.push_back(piece.substr(done));
  }
};

PreTokenizer::PreTokenizer(std::span<const SplitRule> rules) {
  for (const SplitRule& rule : rules) rules_.push_back({compile(rule.pattern), rule.groups_of_three});
}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  const MatchData data(pcre2_match_data_create(1, nullptr));
  const MatchContext context(pcre2_match_context_create(nullptr));
  TW_CHECK(data != nullptr && context != nullptr, "no memory to match a pattern");
  // The patterns are ours and linear, so a limit would only fail long texts.
  pcre2_set_match_limit(context.get(), UINT32_MAX);
  std::vector<bool> valid;
  std::vector<std::string_view> pieces = split_by_validity(text, valid);
  for (const Compiled& rule : rules_) {
    std::vector<std::string_view> next;
    std::vector<bool> next_valid;
    next.reserve(pieces.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (valid[i])
        rule.split(pieces[i], data.get(), context.get(), next);
      else
        next.push_back(pieces[i]);
      next_valid.resize(next.size(), valid[i]);
    }
    pieces = std::move(next);
    valid = std::move(next_valid);
  }
  return pieces;
}

}  // namespace tw::text
