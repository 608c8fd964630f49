#pragma once

// Where a tile of a quantized product takes its weights from: a source answers, block by block, the codes of 16 outputs
// and their scales. RunSource reads a packed layout and unpacks in registers.
//
// A source has kTerm, kMax (the largest code, codes being unsigned; 0: signed bytes), kOffset (integer = code -
// offset), and block(b) of the segment, which has
//   pair(i, u, v)   codes of groups i and i + 4, i < 4
//   scale()         D of the term, f32 (of the halves terms without sub-scales); scale1() the second of TwoScales
//   neg_min()       -M of the term, f32 (of HalvesMin without the sub-minima)
//   sub(h), sub_min(h)   the integer sub-scale and sub-minimum of half h

#include "lane/cpu/pack_layout.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

template <class S, Layout L>
struct RunSource {
  static constexpr RunShape kShape = run_shape(L);
  static constexpr Term kTerm = kShape.term();
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
      if constexpr (kShape.scale == ScaleType::None) return half_e4m3(0);
      V d = base();
      if constexpr (kShape.subs == 1) d = S::mul(d, S::to_float(sub(0)));
      return d;
    }
    [[gnu::always_inline]] inline V scale1() const { return half_e4m3(1); }
    [[gnu::always_inline]] inline V neg_min() const {
      const V m = S::load_f16(reinterpret_cast<const uint16_t*>(run + kMinAt));
      if constexpr (kShape.add_min) return m;
      if constexpr (kShape.sub_mins == 1)
        return S::neg(
            S::mul(m, S::to_float(S::load_u8(reinterpret_cast<const uint8_t*>(run + kSubMinsAt) + index * kPanel))));
      return S::neg(m);
    }
    [[gnu::always_inline]] inline I sub(int half) const {
      if constexpr (kShape.sub_type == Subs::Signed)
        return S::load_i8(reinterpret_cast<const int8_t*>(sub_bytes(half)));
      return S::iand(S::load_u8(sub_bytes(half)), S::iset(15));
    }
    [[gnu::always_inline]] inline I sub_min(int half) const { return S::template ishr<4>(S::load_u8(sub_bytes(half))); }
    template <int i>
    [[gnu::always_inline]] inline void pair(B& u, B& v) const {
      if constexpr (kShape.low_words == 8) {
        u = S::bload(words + 64 * i);
        v = S::bload(words + 64 * (i + 4));
      } else if constexpr (kShape.low_words == 4) {
        nibbles<i>(u, v);
      } else {
        bit_pairs<i>(u, v);
      }
      if constexpr (kShape.codes == Codes::Table) {
        u = S::blookup(kShape.table, u);
        v = S::blookup(kShape.table, v);
      }
    }

   private:
    [[gnu::always_inline]] inline const uint8_t* sub_bytes(int half) const {
      return reinterpret_cast<const uint8_t*>(run + kSubsAt) +
             (index * kShape.subs + static_cast<uint32_t>(half)) * kPanel;
    }

    // d of the run.
    [[gnu::always_inline]] inline V base() const {
      if constexpr (kShape.scale == ScaleType::F32) return S::load(reinterpret_cast<const float*>(run));
      if constexpr (kShape.scale == ScaleType::E8M0Half) {
        const I e = S::load_u8(reinterpret_cast<const uint8_t*>(run));
        const I low = S::template ishl<21>(S::iadd(e, S::iset(1)));  // 2^-128 and 2^-127; less than the other from 2 on
        return S::from_bits(S::imax(S::template ishl<23>(S::isub(e, S::iset(1))), low));
      }
      const V d = S::load_f16(reinterpret_cast<const uint16_t*>(run));
      if constexpr (kShape.scale == ScaleType::F16Quarter) return S::mul(d, S::set(0.25f));
      if constexpr (kShape.scale == ScaleType::F16Eighth) return S::mul(d, S::set(0.125f));
      return d;
    }
    // The bits of E4M3 where those of an f32 with as many bits of mantissa are, denormals too, are 2^-120 of the
    // number.
    [[gnu::always_inline]] inline V half_e4m3(int half) const {
      return S::mul(S::from_bits(S::template ishl<20>(S::load_u8(sub_bytes(half)))), S::set(0x1p119f));
    }

    template <int i>
    [[gnu::always_inline]] inline void nibbles(B& u, B& v) const {
      const B both = S::bload(words + 64 * i);
      if constexpr (kShape.codes == Codes::Doubled) {
        u = S::band(S::template bshl16<1>(both), S::bset1(30));
        v = S::band(S::template bshr16<3>(both), S::bset1(30));
      } else {
        u = S::band(both, S::bset1(15));
        v = S::band(S::template bshr16<4>(both), S::bset1(15));
      }
      if constexpr (kShape.high_words == 1) {
        const B high = S::bload(words + 256);
        u = S::bor(u, moved<i, 4, 0x10>(high));
        v = S::bor(v, moved<i + 4, 4, 0x10>(high));
      }
      if constexpr (kShape.high_words == 2) {
        u = S::bor(u, moved<2 * i, 4, 0x30>(S::bload(words + 256)));
        v = S::bor(v, moved<2 * i, 4, 0x30>(S::bload(words + 320)));
      }
    }

    template <int i>
    [[gnu::always_inline]] inline void bit_pairs(B& u, B& v) const {
      constexpr bool kTernary = kShape.codes == Codes::Ternary;
      constexpr int kTo = kTernary ? 3 : 0;
      u = moved<2 * i, kTo, 3 << kTo>(S::bload(words));
      v = moved<2 * i, kTo, 3 << kTo>(S::bload(words + 64));
      if constexpr (kTernary) {
        constexpr int kEighth = kShape.subs == 2 ? i / 2 : 0;
        u = S::bor(u, offset<kEighth>(0));
        v = S::bor(v, offset<kEighth>(kShape.subs - 1));
      }
      if constexpr (kShape.high_words == 1) {
        const B high = S::bload(words + 128);
        u = S::bor(u, moved<i, 2, 4>(high));
        v = S::bor(v, moved<i + 4, 2, 4>(high));
      }
    }

    // 2 in every byte of the rows whose bit 4 + n of the sub-scale's byte is set.
    template <int n>
    [[gnu::always_inline]] inline B offset(int half) const {
      const I set = S::template isar<31>(S::template ishl<27 - n>(S::load_u8(sub_bytes(half))));
      return S::band(S::b_of(set), S::bset1(2));
    }

    // The bits of `mask` of each byte, from bit `from` to bit `to`.
    template <int from, int to, int mask>
    [[gnu::always_inline]] static inline B moved(B bytes) {
      if constexpr (from < to) bytes = S::template bshl16<to - from>(bytes);
      if constexpr (from > to) bytes = S::template bshr16<from - to>(bytes);
      return S::band(bytes, S::bset1(mask));
    }
  };

  [[gnu::always_inline]] inline Block block(uint32_t b) const { return block(b / kBlocks, b % kBlocks); }
  // Block `index` of run `run`.
  [[gnu::always_inline]] inline Block block(uint32_t run, uint32_t index) const {
    const std::byte* from = at + run * kBytes;
    return {from, from + kBlocksAt + index * kBlockBytes, index};
  }
};

}  // namespace tw::lane::cpu
