#pragma once

// Unpacks a segment of a panel for many rows, in the form that an instruction set's dots want.

#include <type_traits>

#include "lane/cpu/block_weights.h"
#include "lane/cpu/product_source.h"
#include "lane/cpu/product_term.h"

namespace tw::lane::cpu {

enum class BlockForm : uint8_t {
  Wide,   // 16-bit integers, two a step: dot2 with the wide words
  Small,  // unsigned codes, four a step, summed in 16 bits as long as they fit
  Dots,   // unsigned codes, four a step: dot4
};

// The sums of the halves are taken apart; else Small multiplies its 16-bit sums by the sub-scales.
constexpr bool is_apart(Term term, BlockForm form) { return has_halves(term) && form != BlockForm::Small; }
constexpr uint32_t block_words(BlockForm form) { return (form == BlockForm::Wide ? 16 : 8) * kPanel; }

// What a tile has to know of a format; formats that agree in it share their tiles. kFlush: steps of Small whose 16-bit
// sums fit together.
template <Term T, int kWordsOfX, BlockForm Form, int kFlushSteps>
struct BlockFormat {
  static constexpr Term kTerm = T;
  static constexpr int kWords = kWordsOfX;
  static constexpr BlockForm kForm = Form;
  static constexpr int kFlush = kFlushSteps;
  static constexpr bool kHalves = has_halves(T);
  static constexpr bool kApart = is_apart(T, Form);
  // Codes exceed integers, by BlockWeights::code_excess, which is to be taken off the sums.
  static constexpr bool kExcess = Form != BlockForm::Wide && !has_min(T);
  using Word = std::conditional_t<kForm == BlockForm::Wide, int16_t, int8_t>;
  static constexpr uint32_t kBlockWords = block_words(Form);
};

template <class S, class Source, int kWords>
struct BlockFormChoice {
  static constexpr Term kTerm = Source::kTerm;
  static constexpr bool kSigned = Source::kMax == 0;
  static constexpr BlockForm kForm = kWords == 2 || (S::kPairSums && kSigned) ? BlockForm::Wide
                                     : S::kPairSums                           ? BlockForm::Small
                                                                              : BlockForm::Dots;
  static constexpr int kSteps = has_sub_scales(kTerm) ? 4 : 8;  // that may be summed together
  static constexpr int kFlush = kForm == BlockForm::Small ? steps_in_16_bits(kSteps, 2 * 127 * Source::kMax) : 0;
  // Of wide weights without sub-scales and minima one tile serves any words.
  static constexpr bool kAnyWords = kForm == BlockForm::Wide && !has_sub_scales(kTerm) && !has_min(kTerm);
  using Type = BlockFormat<kTerm, kAnyWords ? 1 : kWords, kForm, kFlush>;  // NOLINT(bugprone-branch-clone): of one word
};
template <class S, class Source, int kWords>
using BlockFormOf = typename BlockFormChoice<S, Source, kWords>::Type;

template <class S, class Source, BlockForm kForm>
struct UnpackBlocks {
  using I = typename S::I;
  using B = typename S::B;
  using Block = typename Source::Block;
  static constexpr Term kTerm = Source::kTerm;
  static constexpr bool kSigned = Source::kMax == 0;
  static constexpr bool kApart = is_apart(kTerm, kForm);
  static constexpr int32_t kExcess = kForm == BlockForm::Wide ? 0 : kSigned ? 128 : Source::kOffset;
  static_assert((kExcess != 0) == BlockFormat<kTerm, 1, kForm, 1>::kExcess);

  // (low, high) in 16 bits each.
  TW_SIMD I pairs(I low, I high) { return S::ior(S::iand(low, S::iset(0xffff)), S::template ishl<16>(high)); }

  TW_SIMD void put(B codes, uint32_t group, int32_t* words) {
    if constexpr (kSigned) codes = S::bxor(codes, S::bset1(0x80));
    if constexpr (kForm != BlockForm::Wide) {
      S::istore(words + group * kPanel, S::i_of(codes));
    } else {
      constexpr int32_t kLess = -(kSigned ? 128 : Source::kOffset);
      const B less = S::bset4(static_cast<int32_t>((static_cast<uint32_t>(kLess) << 16) | (kLess & 0xffff)));
      S::istore(words + 2 * group * kPanel, S::i_of(S::badd16(S::bwiden01(codes), less)));
      S::istore(words + (2 * group + 1) * kPanel, S::i_of(S::badd16(S::bwiden23(codes), less)));
    }
  }

  template <int i>
  TW_SIMD void put_pair(const Block& block, int32_t* words) {
    B u, v;
    block.template pair<i>(u, v);
    put(u, i, words);
    put(v, i + 4, words);
  }

  [[gnu::noinline]] static void run(const std::byte* runs, uint32_t blocks, BlockWeights& out) {
    const Source source{runs};
    out.code_excess = kExcess;
    for (uint32_t b = 0; b < blocks; ++b) {
      const Block block = source.block(b);
      S::store(out.scale[b], block.scale());
      if constexpr (kTerm == Term::TwoScales) S::store(out.scale1[b], block.scale1());
      if constexpr (has_min(kTerm)) S::store(out.neg_min[b], block.neg_min());
      if constexpr (has_sub_scales(kTerm)) {
        const I s0 = block.sub(0), s1 = block.sub(1);
        S::istore(out.sub[b][0], kApart ? s0 : pairs(s0, s0));
        S::istore(out.sub[b][1], kApart ? s1 : pairs(s1, s1));
        if constexpr (!kApart) {
          const I excess = S::iset(kExcess);
          S::istore(out.excess[b], pairs(S::imul(s0, excess), S::imul(s1, excess)));
        }
      }
      if constexpr (kTerm == Term::HalvesMin) {
        S::istore(out.sub_min[b][0], block.sub_min(0));
        S::istore(out.sub_min[b][1], block.sub_min(1));
      }
      int32_t* words = out.words + b * block_words(kForm);
      put_pair<0>(block, words);
      put_pair<1>(block, words);
      put_pair<2>(block, words);
      put_pair<3>(block, words);
    }
  }
};

}  // namespace tw::lane::cpu
