#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "fuse/graph.h"
#include "fuse/quantize.h"
#include "fuse/rules.h"
#include "lane/link.h"
#include "lane/uses.h"
#include "lane/verify.h"
#include "plan/buffers.h"
#include "plan/running.h"
#include "plan/sequences.h"

namespace tw::plan {

namespace {

using lane::buffer_of;
using lane::BufferId;
using lane::index;
using lane::kNoBuffer;
using lane::kQuantBlock;
using lane::Schedule;
using lane::ScheduleIo;
using lane::Use;

// A quantized read of whole blocks: the value, and the tensor that a block-aligned view of it lies in, since one
// quantization serves both.
Result<void> check_whole_blocks(const graph::StepGraph& graph, const lane::Launch& launch, lane::Numerics numerics) {
  for (const Use& use : uses(launch, numerics)) {
    if (use.form != lane::TouchForm::Quantized || !use.reads) continue;
    const graph::Tensor& tensor = graph.tensors[index(use.buffer)];
    if (tensor.size() % kQuantBlock == 0 && tensor.cols % kQuantBlock == 0) continue;
    const uint64_t next = (tensor.cols / kQuantBlock + 1) * kQuantBlock;
    return refuse(
        RefusalKind::Unsupported, tensor.name,
        fmt::format("a product reads it in blocks of {}, and its rows hold {} values (the next whole number of "
                    "blocks is {})",
                    kQuantBlock, tensor.cols, next),
        "Run with --numerics precise.");
  }
  return {};
}

ScheduleIo io_of(const graph::StepIo& io) {
  const auto buffer = [](graph::TensorId id) { return id == graph::kNoTensor ? kNoBuffer : buffer_of(id); };
  ScheduleIo out;
  out.tokens = buffer(io.tokens);
  for (const graph::SequenceIo& sequence : io.sequences) {
    out.sequences.push_back({buffer(sequence.position), buffer(sequence.logits), buffer(sequence.next)});
  }
  return out;
}

// The launches of the step, fused as far as the knobs allow.
Result<void> make_launches(const graph::StepGraph& graph, const graph::Constants& constants, const Knobs& knobs,
                           Schedule& schedule, Explanation& explanation, bool explain) {
  TW_TRY(fuse::Graph fused, fuse::Graph::lift(graph, constants));
  for (uint32_t i = 0; i < fused.size(); ++i) {
    TW_TRY_VOID(check_whole_blocks(graph, fused.at(fuse::NodeId{i}).launch, knobs.numerics));
  }
  static const fuse::AnyLaunch any;
  const fuse::Shim& shim = knobs.shim != nullptr ? *knobs.shim : any;
  if (knobs.shim != nullptr) explanation = fuse::optimize(fused, shim, {knobs.numerics, knobs.held, explain});
  const bool fuse_quant = knobs.shim != nullptr && knobs.fuse_quant && !knobs.holds("fuse_quant");
  schedule.launches =
      fuse::with_quantizations(std::move(fused), shim, {knobs.numerics, fuse_quant, explain}, explanation);
  for (const fuse::Fired& fired : explanation.fired) {
    schedule.fusions.push_back({std::string(fired.rule), fired.covers});
  }
  return {};
}

}  // namespace

bool Knobs::holds(std::string_view rule) const { return std::find(held.begin(), held.end(), rule) != held.end(); }

Result<lane::Schedule> plan_step(const graph::StepGraph& graph, const graph::Constants& constants, const Knobs& knobs,
                                 Explanation* explanation) {
  TW_CHECK(knobs.quantized_bytes != nullptr, "the lane gave no size for quantized activations");
  TW_TRY_VOID(fuse::check_held(knobs.held));
  Schedule schedule;
  schedule.name = graph.name;
  schedule.form = graph.form;
  schedule.numerics = knobs.numerics;
  schedule.order = knobs.order;
  schedule.op_count = graph.ops.size();
  schedule.io = io_of(graph.io);
  Explanation own;
  Explanation& told = explanation != nullptr ? *explanation : own;
  std::vector<fuse::Missed>* missed = explanation != nullptr ? &told.missed : nullptr;
  TW_TRY_VOID(make_launches(graph, constants, knobs, schedule, told, explanation != nullptr));
  set_running_parameters(knobs, schedule, missed);
  TW_TRY_VOID(make_buffers(graph, knobs, schedule));
  if (schedule.form.kind == graph::Form::Kind::Batch && !knobs.holds("sequences")) merge_sequences(schedule, missed);
  place_buffers(knobs, schedule);
#ifndef NDEBUG
  const std::vector<lane::Finding> findings = verify(schedule);
  TW_CHECK(findings.empty(), "the schedule of {} breaks {}: {}: {}", schedule.name, findings[0].code, findings[0].about,
           findings[0].text);
#endif
  return schedule;
}

}  // namespace tw::plan
