#pragma once

// Kernels over carried memory: the causal convolution (conv.h) and the gated delta rule (delta.h). Only for the units
// that instantiate them, carried_*.cc.

#include "lane/cpu/conv_kernels.h"
#include "lane/cpu/delta_kernels.h"

#define TW_CARRIED_KERNELS(S)                                           \
  template void conv<S>(const ConvArgs&, Range, std::byte*);            \
  template void conv_parts<S>(const ConvPartsArgs&, Range, std::byte*); \
  template void delta_update<S>(const DeltaArgs&, Range, std::byte*);   \
  template void delta_chunks<S>(const DeltaArgs&, Range, std::byte*);   \
  template void delta_norm<S>(const DeltaArgs&, Range, std::byte*);
