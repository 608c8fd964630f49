#include "text/pretokenizer_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::text {
namespace {

// Patterns are those of the models' own tokenizers (the pre_tokenizer of a tokenizer.json), with what would take
// quadratic time written as an equal pattern that does not.

// Shared parts.
#define TW_CONTRACTION R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
#define TW_SPACE_RUNS R"(\s+(?!\S)|\s+)"
#define TW_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define TW_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define TW_ASCII_PUNCTUATION R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])"
// Han and Kana, as the DeepSeek family counts them.
#define TW_HAN_KANA R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"
#define TW_HAN_HANGUL R"([\x{800}-\x{9FA5}\x{AC00}-\x{D7FF}]+)"

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|)" TW_SPACE_RUNS;
constexpr std::string_view kLlama3 =
    TW_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)" TW_SPACE_RUNS;
constexpr std::string_view kQwen2 =
    TW_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)" TW_SPACE_RUNS;
constexpr std::string_view kQwen35 =
    TW_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|)" TW_SPACE_RUNS;
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?)" TW_UPPER "*" TW_LOWER "+" TW_CONTRACTION R"(?|[^\r\n\p{L}\p{N}]?)" TW_UPPER "+" TW_LOWER
    "*" TW_CONTRACTION R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)" TW_SPACE_RUNS;
constexpr std::string_view kTekken = R"([^\r\n\p{L}\p{N}]?)" TW_UPPER "*" TW_LOWER R"(+|[^\r\n\p{L}\p{N}]?)" TW_UPPER
                                     "+" TW_LOWER R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)" TW_SPACE_RUNS;
constexpr std::string_view kDeepseek3 = TW_ASCII_PUNCTUATION
    R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|)" TW_SPACE_RUNS;
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
constexpr std::string_view kLines = R"([^\n]+|\n+)";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";

// The cased letters that the DeepSeek LLM tokenizer lists.
constexpr std::string_view kDeepseekWords =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC})"
    R"(\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
    R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE})"
    R"(\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
    R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"
    R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kDeepseekPunctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
// White space at the end of the text. A run that ends elsewhere is passed over whole.
constexpr std::string_view kTrailingSpace = R"(\s++(?:\z|(*SKIP)(*FAIL)))";

constexpr std::string_view kYoutuScripts =
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+)"
    R"(|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+)"
    R"(|[\x{3105}-\x{312F}]+|)" TW_HAN_KANA;
constexpr std::string_view kYoutu =
    R"([^\r\n\p{L}\p{N}]?)" TW_UPPER "*" TW_LOWER "+" TW_CONTRACTION R"(?|[^\r\n\p{L}\p{N}]?)" TW_UPPER "+" TW_LOWER
    "*" TW_CONTRACTION R"(?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)" TW_SPACE_RUNS;

// As gpt-4o, but Han runs are words of their own: the letter classes are written as what they leave out.
#define TW_UPPER_NOT_HAN R"([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}])"
#define TW_LOWER_NOT_HAN R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}])"
constexpr std::string_view kKimi =
    R"(\p{sc:Han}+|[^\r\n\p{L}\p{N}]?)" TW_UPPER_NOT_HAN "*" TW_LOWER_NOT_HAN "+" TW_CONTRACTION
    R"(?|[^\r\n\p{L}\p{N}]?)" TW_UPPER_NOT_HAN "+" TW_LOWER_NOT_HAN "*" TW_CONTRACTION
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)" TW_SPACE_RUNS;

constexpr std::string_view kAfmoeScripts =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F})"
    R"(\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
    R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";

// Digits up to a word boundary. A run that ends in a letter is passed over whole.
constexpr std::string_view kDigitWord = R"(\d++(?:\b|(*SKIP)(*FAIL)))";

// A piece of white space without line ends is cut into powers of two from its start. Written as a pass of its own:
// tried among the other alternatives, the search for a line end would scan the rest of the run from every cut.
constexpr std::string_view kSpacePowers =
    R"((?:\A(?=[^\S\r\n]++\z)|(?!\A)\G)(?:\s{512}|\s{256}|\s{128}|\s{64}|\s{32}|\s{16}|\s{8}|\s{4}|\s{1,2}))";
constexpr std::string_view kBailing =
    R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|)" TW_SPACE_RUNS;
constexpr std::string_view kSeedCoder =
    TW_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|)" TW_SPACE_RUNS;
constexpr std::string_view kUfakzeka =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)" TW_SPACE_RUNS;
constexpr std::string_view kExaoneMoe = TW_CONTRACTION
    R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|)" TW_SPACE_RUNS;
constexpr std::string_view kMinicpm5 =
    TW_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)" TW_SPACE_RUNS;
constexpr std::string_view kSpark =
    TW_ASCII_PUNCTUATION R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|)" TW_SPACE_RUNS;

const std::vector<PreTokenizerRow>& rows() {
  static const std::vector<PreTokenizerRow> all = {
      {{"default"}, {{R"([\p{P}\$\+<=>\^~\|]+)"}, {kGpt2}, {R"(\p{N}+)"}, {kThreeDigits}}},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       {{kLlama3}},
       kIgnoreMerges | kAddBos},
      {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {{kLlama3}}},
      {{"jais-2"}, {{kLlama3}, {kSpacePowers}}},
      {{"minicpm5"}, {{R"(\p{N}{1,3})"}, {kMinicpm5}}, kIgnoreMerges},
      {{"deepseek-llm"},
       {{R"([\r\n])"}, {kDeepseekWords}, {kDeepseekPunctuation}, {kTrailingSpace}, {TW_HAN_HANGUL}, {R"(\p{N}+)"}}},
      {{"deepseek-coder"}, {{R"([\r\n])"}, {R"(\s?\p{L}+)"}, {R"(\s?\p{P}+)"}, {TW_HAN_HANGUL}, {R"(\p{N})"}}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, {{R"(\p{N}{1,3})"}, {TW_HAN_KANA}, {kDeepseek3}}},
      {{"spark2_5"}, {{R"(\p{N}{1,3})"}, {TW_HAN_KANA}, {kSpark}, {R"(\p{N})"}}},
      {{"youtu"}, {{kYoutuScripts}, {kYoutu}}, kIgnoreMerges},
      {{"falcon"}, {{R"([\p{P}\$\+<=>\^~\|`]+)"}, {kGpt2}, {kThreeDigits}}},
      {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
       {{R"(\p{N})"}, {kGpt2}}},
      {{"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe",
        "gigachat", "a.x-4.0", "mellum", "modern-bert", "mpt", "olmo", "jais", "trillion", "granite-docling",
        "exaone4"},
       {{kGpt2}}},
      {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"},
       {{kQwen2}}},
      {{"qwen35"}, {{kQwen35}}},
      {{"ufakzeka"}, {{kUfakzeka}}},
      {{"seed-coder"}, {{kSeedCoder}}},
      {{"laguna"}, {{kLines}, {kQwen2}}},
      {{"poro-chat", "bloom", "gpt3-finnish"}, {{kBloom}}},
      {{"viking"}, {{kBloom}, {R"(\p{N})"}}},
      {{"tekken"}, {{kTekken}}, kIgnoreMerges | kAddBos},
      {{"chameleon"},
       {{"<sentinel:[0-9]+>"},
        {"IMGIMG[A-I]{1,4}Z"},
        {R"([\t\n]|    |  )"},
        {R"(\p{N})"},
        {R"([\p{P}!-/:-@\[-`{-~])"},
        {kGpt2}},
       kAddBos},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {{kGpt4o}}},
      {{"granite-embed-multi-97m"}, {{kGpt4o}}, kIgnoreMerges},
      {{"tiny_aya", "cohere2moe"}, {{kDigitWord, true}, {kGpt4o}}},
      {{"superbpe"}, {{R"(\p{N}+)"}, {R"(\d+)", true}}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, {{kBailing}}},
      {{"kimi-k2"}, {{kKimi}}},
      {{"afmoe"}, {{R"(\p{N}+)", true}, {kAfmoeScripts}, {kDeepseek3}}},
      {{"exaone-moe"}, {{kExaoneMoe}}},
      {{"gemma4", "granite-embed-multi-311m"}, {{kLines}}, kRawUtf8 | kLineRuns | kForceBos},
      {{"sarvam-moe"}, {{kLines}}, kRawUtf8},
  };
  return all;
}

}  // namespace

std::span<const PreTokenizerRow> pretokenizer_rows() { return rows(); }

const PreTokenizerRow* find_pretokenizer(std::string_view name) {
  for (const PreTokenizerRow& row : rows()) {
    if (std::find(row.names.begin(), row.names.end(), name) != row.names.end()) return &row;
  }
  return nullptr;
}

std::string pretokenizer_names() {
  std::vector<std::string_view> names;
  for (const PreTokenizerRow& row : rows()) names.insert(names.end(), row.names.begin(), row.names.end());
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace tw::text
