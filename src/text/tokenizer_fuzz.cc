// Any bytes through every kind of tokenizer: encode, decode, stream. The byte-level one must give the bytes back, the
// SentencePiece one too where the text has no U+2581 of its own, which it cannot tell from a space.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/sample_vocabularies.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace {

using tw::text::StreamDecoder;
using tw::text::Tokenizer;
namespace sample = tw::text::sample;

const std::vector<Tokenizer>& tokenizers() {
  static const std::vector<Tokenizer> made = [] {
    std::vector<Tokenizer> all;
    for (const char* pre : {"gpt-2", "llama-bpe", "gpt-4o", "deepseek-llm", "tiny_aya", "kimi-k2"})
      all.push_back(*Tokenizer::make(sample::byte_level(sample::english_merges(), pre)));
    all.push_back(*Tokenizer::make(sample::sentence_piece(sample::english_pieces())));
    all.push_back(*Tokenizer::make(sample::word_piece({sample::marked("_a"), "a", "b", sample::marked("_!")})));
    all.push_back(*Tokenizer::make(sample::unigram({{sample::marked("_"), -2.0f}, {"a", -3.0f}, {"ab", -4.0f}})));
    return all;
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Tokenizer& tokenizer : tokenizers()) {
    const auto tokens = tokenizer.encode(text);
    const auto plain = tokenizer.encode(text, {.add_special = false, .parse_special = false});
    const bool no_mark = text.find(tw::text::kSpaceMark) == std::string_view::npos;
    if (tokenizer.kind() == "gpt2" || (tokenizer.kind() == "llama" && no_mark))
      TW_CHECK(tokenizer.decode(plain) == text, "{} {} lost bytes", tokenizer.kind(), tokenizer.pre());
    StreamDecoder stream(tokenizer);
    for (const auto token : tokens) stream.push(token);
    stream.flush();
  }
  return 0;
}
