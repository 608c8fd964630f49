#pragma once

// The mixture of experts (graph::Moe), as phases with a barrier between them. Every (row, pick) has a slot; slots are
// sorted by expert, so an expert's weights are read once for all rows that chose it. A slot's values depend on its row
// and expert alone.
//
//   phase    items                                  computes
//   logits   panels of the router                   x router + router_bias
//   choose   rows                                   P; the picks, their scores and factors
//   group    1                                      slots, sorted by expert
//   hidden   active experts x blocks of 32 hidden   act(gate + bias, up + bias), quantized
//   down     panels of d                            down + bias; y = c_1 y_1, then y = fma(c_i, y_i, y) in the order of
//                                                   the picks
//   combine  rows                                   the sums, where they are wanted
//
// Items of hidden go through one expert after the other, whose weights so are read on and on, and whose rows' inputs
// are put together once by the thread that multiplies them: a row's own, or its score times it, quantized. An item of
// down is a panel of all experts, so that the results of slots are summed while they are in its thread's cache.
//
// A shared expert is a SwiGLU network of its own over every row: its products are further items of the phases hidden
// and down, and combine adds its row to the finished sum, rounded.
//
// With P_i the score of pick i and s their sum, chained in the order of the picks:
//   c_i = P_i;  renormalize: c_i = c_i / max(s, 2^-14);  then c_i = c_i * scale, and with scales of experts c_i = c_i *
//   expert_scale. With weigh_inputs an expert reads (P_i * scale) * x, and c_i begins as 1 and takes no scale.

#include <cstddef>
#include <cstdint>

#include "graph/op.h"
#include "lane/cpu/glu.h"
#include "lane/cpu/isa.h"
#include "lane/cpu/pack_layout.h"
#include "lane/cpu/quant.h"
#include "lane/cpu/simd.h"

namespace tw::lane::cpu {

// What the phases of one launch hand on, in memory all threads share.
struct MoeWork {
  float* scores = nullptr;           // [rows][experts]: logits, then P
  uint32_t* picks = nullptr;         // [rows][used]: experts
  float* pick_scores = nullptr;      // [rows][used]
  float* factors = nullptr;          // [rows][used]: c
  uint32_t* slots = nullptr;         // [rows][used]: slot of the pick
  uint32_t* pick_of = nullptr;       // [slots]: row * used + pick
  uint32_t* active = nullptr;        // [experts]: experts with slots, ascending
  uint32_t* first = nullptr;         // [experts + 1]: first slot of the a-th active expert, and the end
  uint32_t* active_count = nullptr;  // [1]
  float* hidden = nullptr;           // [slots][hidden], where its plain form is read
  QuantView hidden_quant;            // where its quantized form is read
  float* sums = nullptr;             // [rows][d]
  float* shared_hidden = nullptr;    // [rows][shared hidden], where its plain form is read
  QuantView shared_quant;            // where its quantized form is read
  float* shared_output = nullptr;    // [rows][d]
  size_t bytes = 0;
};

// The shared expert: gate and up of hidden x d, down of d x hidden.
struct MoeShared {
  Packed gate, up, down;
};

// router: experts x d; gate, up: groups = experts of hidden x d; down: groups = experts of d x hidden.
// Requires used <= experts, and groups_kept groups to hold at least `used` experts.
struct MoeArgs {
  graph::Moe spec;
  uint64_t rows = 0;
  uint64_t d = 0;
  int words = 1;             // as in ProductArgs
  const float* x = nullptr;  // plain input, where router, gate or up (the shared ones too) are floating-point, the
                             // inputs weighed, or words 0
  uint64_t x_pitch = 0;
  QuantView quant;  // quantized input, where words > 0 and router, gate or up are quantized; row r at value r * d
  Packed router, gate, up, down;
  const float* router_bias = nullptr;  // the biases may be absent
  const float* select_bias = nullptr;
  const float* expert_scale = nullptr;
  const float* gate_bias = nullptr;
  const float* up_bias = nullptr;
  const float* down_bias = nullptr;
  MoeShared shared;
  bool with_shared = false;
  Store y;       // unit r: the d values of row r
  MoeWork work;  // of moe_work(args, storage)
};

// Cuts `storage`, 64-byte aligned; its size is the result's `bytes`, which does not depend on storage.
MoeWork moe_work(const MoeArgs& args, std::byte* storage);

// What a thread works in during the phases hidden and down.
struct MoeScratch {
  float* gates = nullptr;    // [rows][32]
  float* ups = nullptr;      // [rows][32]
  float* input = nullptr;    // [rows][d], of an expert, where the plain form is read
  QuantView input_quant;     // where the quantized form is read
  float* outputs = nullptr;  // [panels of a pass][slots][16]
  ProductScratch product;
  size_t bytes = 0;
};
// Cuts `storage`, 64-byte aligned; the result's `bytes` are what a thread needs in any phase.
MoeScratch moe_scratch(const MoeArgs& args, std::byte* storage);
// Panels of d that a pass over all experts multiplies.
uint64_t moe_pass_panels(const MoeArgs& args);

using MoeKernel = void (*)(const MoeArgs& args, Range range, std::byte* scratch);
struct MoePhase {
  MoeKernel run;
  uint64_t (*items)(const MoeArgs& args);
  bool varies = false;  // the count depends on what earlier phases chose
};
inline constexpr int kMoePhases = 6;
inline constexpr int kMoeChoose = 1, kMoeGroup = 2;
struct MoeKernels {
  MoePhase phases[kMoePhases];  // in the order above
};
const MoeKernels& moe_kernels(Isa isa);

uint64_t moe_logits_items(const MoeArgs& args);
uint64_t moe_row_items(const MoeArgs& args);
uint64_t moe_one_item(const MoeArgs& args);
uint64_t moe_hidden_items(const MoeArgs& args);
uint64_t moe_down_items(const MoeArgs& args);
// The items of hidden that are the experts' and come first; the shared expert's follow, in down after args.down's
// panels.
uint64_t moe_expert_hidden_items(const MoeArgs& args);

// Items of the shared expert's products, counted from their first, by the kernels of an instruction set.
void moe_shared_hidden(const MoeArgs& args, Range range, std::byte* scratch, GluKernel kernel);
void moe_shared_down(const MoeArgs& args, Range range, std::byte* scratch, ProductKernel kernel);

bool moe_reads_plain(const MoeArgs& args);       // the experts' plain input
bool moe_reads_quantized(const MoeArgs& args);   // the experts' quantized input
bool moe_quantizes_hidden(const MoeArgs& args);  // between the products

// The picks of one row from its scores P, and their factors: `taken` is room for `experts` bytes. The same code for all
// instruction sets.
void moe_choose_row(const MoeArgs& args, uint64_t row, uint8_t* taken);
// Fills the slots from the picks.
void moe_group(const MoeArgs& args, Range range, std::byte* scratch);

}  // namespace tw::lane::cpu
