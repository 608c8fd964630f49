#pragma once

// The reference lane: every launch in scalar code written straight from docs/numerics.md, slow and short. It shares
// only the scalar functions and the argument structs with the kernels.

#include <vector>

#include "base/half.h"
#include "base/math_contract.h"
#include "lane/cpu/kernels.h"

namespace tw::lane::cpu::reference {

// LT over the terms: fma(x[i], y[i], acc) with two operands, acc + x[i] with one.
float lane_tree(const std::vector<float>& x, const std::vector<float>& y);
float lane_tree(const std::vector<float>& x);

// CC(segment) over fma(x[i], y[i], acc).
float chain_of_chains(const std::vector<float>& x, const std::vector<float>& y, size_t segment);

float activate(graph::ActivationKind act, float x);
float widen(Dtype type, const void* data, uint64_t element);
void narrow(Dtype type, void* data, uint64_t element, float value);
// (v * rsq(LT(v^2) / n + eps)) (* weight) (+ bias)
std::vector<float> rms_norm(const std::vector<float>& v, float eps, const float* weight, const float* bias);
// One block of 32 values.
void quantize(const float* x, const QuantView& to, uint64_t block, int words);
// Values first, first + 1, ... of a unit, in every form that is wanted.
void store(const Store& to, uint64_t unit, uint64_t first, const std::vector<float>& values);

void norm(const NormArgs& a, Range range, std::byte*);
void l2_norm(const L2NormArgs& a, Range range, std::byte*);
void softmax(const SoftmaxArgs& a, Range range, std::byte*);
void quant(const QuantArgs& a, Range range, std::byte*);
void binary(const BinaryArgs& a, Range range, std::byte*);
void scale(const ScaleArgs& a, Range range, std::byte*);
void swiglu(const SwiGluArgs& a, Range range, std::byte*);
void unary(const UnaryArgs& a, Range range, std::byte*);
void gates(const GatesArgs& a, Range range, std::byte*);
void rope(const RopeArgs& a, Range range, std::byte*);
void rope_parts(const RopePartsArgs& a, Range range, std::byte*);
void gather(const GatherArgs& a, Range range, std::byte*);
void copy(const CopyArgs& a, Range range, std::byte*);
void join(const JoinArgs& a, Range range, std::byte*);
void transpose(const TransposeArgs& a, Range range, std::byte*);
void cache_write(const CacheWriteArgs& a, Range range, std::byte*);
void conv(const ConvArgs& a, Range range, std::byte*);
void conv_parts(const ConvPartsArgs& a, Range range, std::byte*);
void delta_update(const DeltaArgs& a, Range range, std::byte*);
void delta_chunks(const DeltaArgs& a, Range range, std::byte*);
void delta_norm(const DeltaArgs& a, Range range, std::byte*);
void argmax_scan(const ArgMaxArgs& a, Range range, std::byte*);
void argmax_merge(const ArgMaxArgs& a, Range range, std::byte*);
void attention_chunks(const AttentionArgs& a, Range range, std::byte*);
void attention_merge(const AttentionArgs& a, Range range, std::byte*);
void attention_rows(const AttentionArgs& a, Range range, std::byte*);

}  // namespace tw::lane::cpu::reference
