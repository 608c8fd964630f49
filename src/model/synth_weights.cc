#include "model/synth_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace tw::model {

namespace {

using Blocks = std::span<std::byte>;

uint64_t finalize(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3U;
  return hash;
}

void put_half(std::byte* at, float value) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(at, &bits, sizeof bits);
}

// The deviation of integers spread evenly over 0 .. levels-1.
float spread(float levels) { return std::sqrt((levels * levels - 1) / 12); }

// Plain numbers: uniform, whose deviation is 1/sqrt(3) of its bound.
template <class T, class Narrow>
void fill_plain(Blocks out, float deviation, RandomStream& random, Narrow narrow) {
  const float bound = deviation * std::sqrt(3.0F);
  for (size_t at = 0; at < out.size(); at += sizeof(T)) {
    const T value = narrow(bound * random.uniform());
    std::memcpy(out.data() + at, &value, sizeof value);
  }
}

float random_sign(RandomStream& random, float value) { return (random.next() & 1) != 0 ? value : -value; }

// A scale d before quants that are centred on zero, or one off it: its sign is random, so that the mean is zero.
void fill_signed_scale(Blocks out, size_t block, size_t scale_at, float scale, RandomStream& random) {
  random.fill(out);
  for (size_t at = 0; at < out.size(); at += block) put_half(out.data() + at + scale_at, random_sign(random, scale));
}

// A scale d and a minimum m that centres the quants.
void fill_scale_and_minimum(Blocks out, size_t block, float levels, float deviation, RandomStream& random) {
  random.fill(out);
  const float scale = deviation / spread(levels);
  for (size_t at = 0; at < out.size(); at += block) {
    put_half(out.data() + at, scale);
    put_half(out.data() + at + 2, -scale * (levels - 1) / 2);
  }
}

// Scales of sub-blocks are whole numbers from 16 to 47, evenly spread.
constexpr uint32_t kSubLow = 16;
constexpr uint32_t kSubCount = 32;
float sub_scale_rms() {
  const float mean = kSubLow + (kSubCount - 1) / 2.0F;
  return std::sqrt(mean * mean + spread(kSubCount) * spread(kSubCount));
}
uint8_t sub_scale(uint64_t bits) { return static_cast<uint8_t>(kSubLow + bits % kSubCount); }

// Q4_K, Q5_K: eight 6-bit scales and as many minimums in 12 bytes; here a sub-block's minimum equals its scale, so that
// dmin centres the quants.
void fill_k_min(Blocks out, size_t block, float levels, float deviation, RandomStream& random) {
  random.fill(out);
  const float scale = deviation / (spread(levels) * sub_scale_rms());
  for (size_t at = 0; at < out.size(); at += block) {
    std::byte* head = out.data() + at;
    put_half(head, scale);
    put_half(head + 2, scale * (levels - 1) / 2);
    const uint64_t bits = random.next();
    for (uint32_t j = 0; j < 4; ++j) {
      const uint8_t low = sub_scale(bits >> (5 * j));
      const uint8_t high = sub_scale(bits >> (5 * (j + 4)));
      const auto packed = static_cast<std::byte>(low | (high >> 4) << 6);
      head[4 + j] = packed;
      head[8 + j] = packed;
      head[12 + j] = static_cast<std::byte>((high & 15) | (high & 15) << 4);
    }
  }
}

void fill_q6_k(Blocks out, float deviation, RandomStream& random) {
  constexpr size_t kBlock = 210, kScales = 192, kScaleCount = 16;
  fill_signed_scale(out, kBlock, kScales + kScaleCount, deviation / (spread(64) * sub_scale_rms()), random);
  for (size_t at = 0; at < out.size(); at += kBlock)
    for (size_t j = 0; j < kScaleCount; ++j) {
      std::byte& scale = out[at + kScales + j];
      const auto bits = static_cast<uint8_t>(scale);
      const int magnitude = sub_scale(bits >> 1);
      scale = static_cast<std::byte>(static_cast<int8_t>((bits & 1) != 0 ? magnitude : -magnitude));
    }
}

void fill_q8_0(Blocks out, float deviation, RandomStream& random) {
  constexpr size_t kBlock = 34;
  fill_signed_scale(out, kBlock, 0, deviation / spread(255), random);
  for (size_t at = 0; at < out.size(); at += kBlock)
    for (size_t i = 2; i < kBlock; ++i)
      if (out[at + i] == std::byte{0x80}) out[at + i] = std::byte{0x81};  // quantizers never give -128
}

// The 16 values of a 4-bit float have the mean square 8.5625; the scale is a power of two, of the two nearest ones the
// likelier the nearer.
void fill_mxfp4(Blocks out, float deviation, RandomStream& random) {
  constexpr size_t kBlock = 17;
  random.fill(out);
  const float exact = std::log2(deviation / std::sqrt(8.5625F)) + 127;
  const float below = std::floor(exact);
  // p * 4^(below+1) + (1 - p) * 4^below = 4^exact
  const float above_share = (std::exp2(2 * (exact - below)) - 1) / 3;
  for (size_t at = 0; at < out.size(); at += kBlock) {
    const bool above = (random.uniform() + 1) / 2 < above_share;
    out[at] = static_cast<std::byte>(std::clamp(below + (above ? 1.0F : 0.0F), 1.0F, 254.0F));
  }
}

using Fill = void (*)(Blocks out, float deviation, RandomStream& random);
struct FormatFill {
  gguf::Format format;
  Fill fill;
};

constexpr FormatFill kFills[] = {
    {gguf::Format::F32,
     [](Blocks out, float s, RandomStream& r) { fill_plain<float>(out, s, r, [](float v) { return v; }); }},
    {gguf::Format::F16, [](Blocks out, float s, RandomStream& r) { fill_plain<uint16_t>(out, s, r, f32_to_f16); }},
    {gguf::Format::BF16, [](Blocks out, float s, RandomStream& r) { fill_plain<uint16_t>(out, s, r, f32_to_bf16); }},
    {gguf::Format::Q4_0,
     [](Blocks out, float s, RandomStream& r) { fill_signed_scale(out, 18, 0, s / spread(16), r); }},
    {gguf::Format::Q4_1, [](Blocks out, float s, RandomStream& r) { fill_scale_and_minimum(out, 20, 16, s, r); }},
    {gguf::Format::Q5_0,
     [](Blocks out, float s, RandomStream& r) { fill_signed_scale(out, 22, 0, s / spread(32), r); }},
    {gguf::Format::Q5_1, [](Blocks out, float s, RandomStream& r) { fill_scale_and_minimum(out, 24, 32, s, r); }},
    {gguf::Format::Q8_0, fill_q8_0},
    {gguf::Format::Q4_K, [](Blocks out, float s, RandomStream& r) { fill_k_min(out, 144, 16, s, r); }},
    {gguf::Format::Q5_K, [](Blocks out, float s, RandomStream& r) { fill_k_min(out, 176, 32, s, r); }},
    {gguf::Format::Q6_K, fill_q6_k},
    {gguf::Format::MXFP4, fill_mxfp4},
};

const FormatFill* find_fill(gguf::Format format) {
  const auto* found =
      std::find_if(std::begin(kFills), std::end(kFills), [&](const FormatFill& f) { return f.format == format; });
  return found == std::end(kFills) ? nullptr : found;
}

}  // namespace

RandomStream::RandomStream(uint64_t seed, std::string_view name) : stream_(finalize(seed ^ fnv1a(name))) {}

uint64_t RandomStream::next() { return finalize(stream_ + ++counter_ * 0x9e3779b97f4a7c15U); }

float RandomStream::uniform() { return static_cast<float>(next() >> 40) * 0x1p-23F - 1; }

void RandomStream::fill(std::span<std::byte> bytes) {
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    const uint64_t word = next();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  if (at == bytes.size()) return;
  const uint64_t word = next();
  std::memcpy(bytes.data() + at, &word, bytes.size() - at);
}

bool can_fill(gguf::Format format) { return find_fill(format) != nullptr; }

void fill_blocks(gguf::Format format, float deviation, RandomStream& random, std::span<std::byte> blocks) {
  const FormatFill* entry = find_fill(format);
  TW_CHECK(entry != nullptr, "no random blocks of format {}", gguf::name(format));
  entry->fill(blocks, deviation, random);
}

}  // namespace tw::model
