#pragma once

// Where a tile of a quantized product takes its weights from: a source answers, block by block, the codes of 16 outputs
// and their scales. RunSource reads a packed layout and unpacks in registers; DecodedSource reads a segment that
// decode_rows (decoded.h) unpacked to bytes.
//
// A source has kTerm, kMax (the largest code, codes being unsigned; 0: signed bytes), kOffset (integer = code -
// offset), and block(b) of the segment, which has
//   pair(i, u, v)   codes of groups i and i + 4, i < 4
//   scale()         D of the term, f32 (of the halves terms without sub-scales); scale1() the second of TwoScales
//   neg_min()       -M of the term, f32 (of HalvesMin without the sub-minima)
//   sub(h), sub_min(h)   the integer sub-scale and sub-minimum of half h

#include "lane/cpu/decoded.h"
#include "lane/cpu/pack_layout.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

template <class S, Layout L>
struct RunSource {
  static constexpr RunShape kShape = run_shape(L);
  static constexpr Term kTerm = kShape.subs == 2 ? Term::Halves : kShape.min ? Term::ScaleMin : Term::Scale;
  static constexpr int kMax = kShape.max;
  static constexpr int kOffset = kShape.offset;
  static constexpr uint32_t kBlocks = kShape.blocks;
  static constexpr uint32_t kBytes = kShape.bytes();
  static constexpr uint32_t kMinAt = kShape.min_at();
  static constexpr uint32_t kSubsAt = kShape.subs_at();
  static constexpr uint32_t kSubMinsAt = kShape.sub_mins_at();
  static constexpr uint32_t kBlocksAt = kShape.blocks_at();
  static constexpr uint32_t kBlockBytes = kShape.block_bytes();
  using V = typename S::V;
  using I = typename S::I;
  using B = typename S::B;

  const std::byte* at;  // a whole number of runs into the panel

  struct Block {
    const std::byte* run;
    const std::byte* words;
    uint32_t index;  // within the run

    [[gnu::always_inline]] inline V scale() const {
      V d;
      if constexpr (kShape.scale == ScaleType::F16) {
        d = S::load_f16(reinterpret_cast<const uint16_t*>(run));
      } else {
        const I e = S::load_u8(reinterpret_cast<const uint8_t*>(run));
        const I low = S::iadd(S::iset(0x00200000), S::imul(e, S::iset(0x00200000)));  // 2^-128, 2^-127
        const I high = S::template ishl<23>(S::isub(e, S::iset(1)));
        d = S::from_bits(S::iselect(S::igreater(e, S::iset(1)), high, low));
      }
      if constexpr (kShape.subs == 1) d = S::mul(d, S::to_float(sub(0)));
      return d;
    }
    [[gnu::always_inline]] inline V scale1() const { return scale(); }
    [[gnu::always_inline]] inline V neg_min() const {
      const V m = S::load_f16(reinterpret_cast<const uint16_t*>(run + kMinAt));
      if constexpr (kShape.add_min) return m;
      if constexpr (kShape.sub_mins == 1)
        return S::neg(
            S::mul(m, S::to_float(S::load_u8(reinterpret_cast<const uint8_t*>(run + kSubMinsAt) + index * kPanel))));
      return S::neg(m);
    }
    [[gnu::always_inline]] inline I sub(int half) const {
      return S::load_i8(reinterpret_cast<const int8_t*>(run + kSubsAt) +
                        (index * kShape.subs + static_cast<uint32_t>(half)) * kPanel);
    }
    [[gnu::always_inline]] inline I sub_min(int) const { return S::izero(); }
    template <int i>
    [[gnu::always_inline]] inline void pair(B& u, B& v) const {
      if constexpr (kShape.low_words == 8) {
        u = S::bload(words + 64 * i);
        v = S::bload(words + 64 * (i + 4));
      } else {
        const B nibbles = S::bset1(15);
        const B both = S::bload(words + 64 * i);
        u = S::band(both, nibbles);
        v = S::band(S::template bshr16<4>(both), nibbles);
        if constexpr (kShape.high_words == 1) {
          const B bit = S::bset1(16);
          const B high = S::bload(words + 256);
          u = S::bor(u, S::band(S::template bshl16<4 - i>(high), bit));
          v = S::bor(v, S::band(S::template bshr16<i>(high), bit));
        }
        if constexpr (kShape.high_words == 2) {
          u = S::bor(u, bit_pair<i>(S::bload(words + 256)));
          v = S::bor(v, bit_pair<i>(S::bload(words + 320)));
        }
        if constexpr (kShape.codes == Codes::Iq4) {
          u = S::blookup(kIq4Values, u);
          v = S::blookup(kIq4Values, v);
        }
        if constexpr (kShape.codes == Codes::Mxfp4) {
          u = S::blookup(kMxfp4Values, u);
          v = S::blookup(kMxfp4Values, v);
        }
      }
    }

   private:
    // Bits 2i and 2i + 1 of each byte, to bits 4 and 5.
    template <int i>
    [[gnu::always_inline]] static inline B bit_pair(B high) {
      if constexpr (i < 2) return S::band(S::template bshl16<4 - 2 * i>(high), S::bset1(0x30));
      if constexpr (i == 2) return S::band(high, S::bset1(0x30));
      return S::band(S::template bshr16<2>(high), S::bset1(0x30));
    }
  };

  [[gnu::always_inline]] inline Block block(uint32_t b) const { return block(b / kBlocks, b % kBlocks); }
  // Block `index` of run `run`.
  [[gnu::always_inline]] inline Block block(uint32_t run, uint32_t index) const {
    const std::byte* from = at + run * kBytes;
    return {from, from + kBlocksAt + index * kBlockBytes, index};
  }
};

template <class S, Term T>
struct DecodedSource {
  static constexpr Term kTerm = T;
  static constexpr int kMax = 0;
  static constexpr int kOffset = 0;
  using V = typename S::V;
  using I = typename S::I;
  using B = typename S::B;

  const Decoded* decoded;

  struct Block {
    const Decoded* d;
    uint32_t b;

    [[gnu::always_inline]] inline V scale() const { return S::load(d->scale[b]); }
    [[gnu::always_inline]] inline V scale1() const { return S::load(d->scale1[b]); }
    [[gnu::always_inline]] inline V neg_min() const { return S::load(d->neg_min[b]); }
    [[gnu::always_inline]] inline I sub(int half) const { return S::iload(d->sub[b][half]); }
    [[gnu::always_inline]] inline I sub_min(int half) const { return S::iload(d->sub_min[b][half]); }
    template <int i>
    [[gnu::always_inline]] inline void pair(B& u, B& v) const {
      u = S::bload(d->codes[b][i]);
      v = S::bload(d->codes[b][i + 4]);
    }
  };

  [[gnu::always_inline]] inline Block block(uint32_t b) const { return {decoded, b}; }
};

}  // namespace tw::lane::cpu
