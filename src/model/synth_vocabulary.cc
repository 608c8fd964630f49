#include "model/synth_vocabulary.h"

#include <fmt/format.h>

#include <array>

#include "gguf/writer.h"

namespace tw::model {

namespace {

constexpr std::string_view kLetters = "etaoinshrdlucmfwygpbvkxjqz";
constexpr std::array<std::string_view, 3> kControls = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
constexpr int64_t kNormal = 1;
constexpr int64_t kControl = 3;

// How byte-level BPE writes a byte: printable Latin-1 as itself, the others as code points from 256 on, in order.
std::vector<std::string> byte_texts() {
  std::vector<std::string> out;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    const uint32_t code = printable ? byte : next++;
    if (code < 128)
      out.emplace_back(1, static_cast<char>(code));
    else
      out.push_back({static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))});
  }
  return out;
}

// Appends merged tokens until there are `count` merges.
class MergeList {
 public:
  MergeList(uint64_t count, std::vector<std::string>& tokens) : count_(count), tokens_(tokens) {}

  void add_all(const std::vector<std::string>& left, const std::vector<std::string>& right,
               std::vector<std::string>& made) {
    for (const std::string& a : left)
      for (const std::string& b : right) {
        if (merges_.size() == count_) return;
        merges_.push_back(a + " " + b);
        made.push_back(a + b);
        tokens_.push_back(a + b);
      }
  }
  std::vector<std::string> take() && { return std::move(merges_); }

 private:
  uint64_t count_;
  std::vector<std::string>& tokens_;
  std::vector<std::string> merges_;
};

constexpr uint64_t kFixed = 256 + kControls.size();
constexpr uint64_t kMostMerges = 26 + 26 * 26 + 26 * 26 + 26 * 26 * 26 * 26;

}  // namespace

Result<std::vector<std::pair<std::string, gguf::Value>>> vocabulary_metadata(std::string_view pre_tokenizer,
                                                                             uint64_t size) {
  if (size < kFixed || size > kFixed + kMostMerges)
    return refuse(RefusalKind::Usage, "shape item vocabulary",
                  fmt::format("is {}; a made-up vocabulary has {} to {} tokens", size, kFixed, kFixed + kMostMerges));
  std::vector<std::string> tokens = byte_texts();
  const std::vector<std::string> space = {tokens[' ']};
  std::vector<std::string> letters;
  for (const char letter : kLetters) letters.emplace_back(1, letter);

  MergeList merges(size - kFixed, tokens);
  std::vector<std::string> starts, pairs, words;
  merges.add_all(space, letters, starts);
  merges.add_all(letters, letters, pairs);
  merges.add_all(starts, letters, words);
  merges.add_all(pairs, pairs, words);

  std::vector<int64_t> types(tokens.size(), kNormal);
  const auto first_control = static_cast<uint32_t>(tokens.size());
  for (const std::string_view control : kControls) {
    tokens.emplace_back(control);
    types.push_back(kControl);
  }
  std::vector<std::pair<std::string, gguf::Value>> out;
  out.emplace_back("tokenizer.ggml.model", gguf::value_string("gpt2"));
  out.emplace_back("tokenizer.ggml.pre", gguf::value_string(std::string(pre_tokenizer)));
  out.emplace_back("tokenizer.ggml.tokens", gguf::value_strings(std::move(tokens)));
  out.emplace_back("tokenizer.ggml.token_type", gguf::value_i32s(std::move(types)));
  out.emplace_back("tokenizer.ggml.merges", gguf::value_strings(std::move(merges).take()));
  out.emplace_back("tokenizer.ggml.bos_token_id", gguf::value_u32(first_control));
  out.emplace_back("tokenizer.ggml.eos_token_id", gguf::value_u32(first_control));
  out.emplace_back("tokenizer.ggml.add_bos_token", gguf::value_bool(false));
  return out;
}

}  // namespace tw::model
