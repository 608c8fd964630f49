#include "lane/cpu/kernels.h"

#include "lane/cpu/reference/reference.h"

namespace tw::lane::cpu {

const Kernels& reference_kernels() {
  static constexpr Kernels kTable{.norm = reference::norm,
                                  .l2_norm = reference::l2_norm,
                                  .softmax = reference::softmax,
                                  .quant = reference::quant,
                                  .binary = reference::binary,
                                  .scale = reference::scale,
                                  .swiglu = reference::swiglu,
                                  .unary = reference::unary,
                                  .gates = reference::gates,
                                  .rope = reference::rope,
                                  .rope_parts = reference::rope_parts,
                                  .gather = reference::gather,
                                  .copy = reference::copy,
                                  .join = reference::join,
                                  .transpose = reference::transpose,
                                  .cache_write = reference::cache_write,
                                  .conv = reference::conv,
                                  .conv_parts = reference::conv_parts,
                                  .delta_update = reference::delta_update,
                                  .delta_chunks = reference::delta_chunks,
                                  .delta_norm = reference::delta_norm,
                                  .argmax_scan = reference::argmax_scan,
                                  .argmax_merge = reference::argmax_merge,
                                  .attention_chunks = reference::attention_chunks,
                                  .attention_merge = reference::attention_merge,
                                  .attention_rows = reference::attention_rows};
  return kTable;
}

}  // namespace tw::lane::cpu
