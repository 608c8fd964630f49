#pragma once

// The table of the lane's kernels, one a set of instructions. A kernel computes the items [begin, end) of its launch,
// items being independent outputs: any partition over threads gives the same bits. No kernel allocates or locks.
// `scratch` is the calling thread's own, 64-byte aligned, of the bytes that the argument header names; null where none
// is named.

#include "lane/cpu/argmax.h"
#include "lane/cpu/attention.h"
#include "lane/cpu/conv.h"
#include "lane/cpu/delta.h"
#include "lane/cpu/elementwise.h"
#include "lane/cpu/isa.h"
#include "lane/cpu/join.h"
#include "lane/cpu/move.h"
#include "lane/cpu/norm.h"
#include "lane/cpu/quant.h"
#include "lane/cpu/rope.h"

namespace tw::lane::cpu {

template <class Args>
using Kernel = void (*)(const Args& args, Range items, std::byte* scratch);

struct Kernels {
  Kernel<NormArgs> norm;
  Kernel<L2NormArgs> l2_norm;
  Kernel<SoftmaxArgs> softmax;
  Kernel<QuantArgs> quant;
  Kernel<BinaryArgs> binary;
  Kernel<ScaleArgs> scale;
  Kernel<SwiGluArgs> swiglu;
  Kernel<UnaryArgs> unary;
  Kernel<GatesArgs> gates;
  Kernel<RopeArgs> rope;
  Kernel<RopePartsArgs> rope_parts;
  Kernel<GatherArgs> gather;
  Kernel<CopyArgs> copy;
  Kernel<JoinArgs> join;
  Kernel<TransposeArgs> transpose;
  Kernel<CacheWriteArgs> cache_write;
  Kernel<ConvArgs> conv;
  Kernel<ConvPartsArgs> conv_parts;
  Kernel<DeltaArgs> delta_update;
  Kernel<DeltaArgs> delta_chunks;
  Kernel<DeltaArgs> delta_norm;
  Kernel<ArgMaxArgs> argmax_scan;
  Kernel<ArgMaxArgs> argmax_merge;
  Kernel<AttentionArgs> attention_chunks;
  Kernel<AttentionArgs> attention_merge;
  Kernel<AttentionArgs> attention_rows;
};

// Requires supported(isa).
const Kernels& kernels(Isa isa);

// The reference lane: the same launches in scalar code written from docs/numerics.md, for tests.
const Kernels& reference_kernels();

}  // namespace tw::lane::cpu
