#include "text/tokenizer.h"
#include "text/utf8.h"

namespace tw::text {

std::string StreamDecoder::push(Token token) {
  pending_.append(tokenizer_->running_piece(token, first_));
  const size_t whole = pending_.size() - incomplete_tail(pending_);
  std::string out = valid_utf8(std::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return out;
}

std::string StreamDecoder::flush() {
  std::string out = valid_utf8(pending_);
  pending_.clear();
  return out;
}

}  // namespace tw::text
