#include "plan/plan.h"

#include <fmt/format.h>

#include <unordered_set>

#include "base/check.h"
#include "lane/link.h"
#include "lane/uses.h"
#include "lane/verify.h"
#include "plan/buffers.h"

namespace tw::plan {

namespace {

using lane::buffer_of;
using lane::BufferId;
using lane::Finding;
using lane::index;
using lane::kNoBuffer;
using lane::kQuantBlock;
using lane::Launch;
using lane::link;
using lane::Numerics;
using lane::Quant;
using lane::Schedule;
using lane::ScheduleIo;
using lane::TouchForm;
using lane::Use;
using lane::uses;
using lane::verify;

// A quantized read of whole blocks: the value, and the tensor that a block-aligned view of it lies in, since one
// quantization serves both.
Result<void> check_whole_blocks(const graph::StepGraph& graph, const Launch& launch, Numerics numerics) {
  for (const Use& use : uses(launch, numerics)) {
    if (use.form != TouchForm::Quantized || !use.reads) continue;
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

// Links every op in order and puts a Quant launch before the first quantized read of each activation.
class Linking {
 public:
  Linking(const lane::LinkContext& context, Schedule& schedule) : context_(context), schedule_(schedule) {}

  Result<void> run() {
    for (uint32_t i = 0; i < context_.graph.ops.size(); ++i) {
      TW_TRY(Launch launch, link(context_, graph::OpId{i}));
      TW_TRY_VOID(check_whole_blocks(context_.graph, launch, schedule_.numerics));
      add_quants(launch);
      forget_rewritten(launch);
      schedule_.launches.push_back({std::move(launch), {graph::OpId{i}}});
    }
    return {};
  }

 private:
  void add_quants(const Launch& launch) {
    for (const Use& use : uses(launch, schedule_.numerics)) {
      if (use.form != TouchForm::Quantized || !use.reads) continue;
      if (!quantized_.insert(index(use.buffer)).second) continue;
      schedule_.launches.push_back({Quant{use.buffer, context_.graph.tensors[index(use.buffer)].size()}, {}});
    }
  }

  // A table's quantized form is stale once more of its rows are set.
  void forget_rewritten(const Launch& launch) {
    for (const Use& use : uses(launch, schedule_.numerics)) {
      if (use.writes && use.form == TouchForm::Plain) quantized_.erase(index(use.buffer));
    }
  }

  const lane::LinkContext& context_;
  Schedule& schedule_;
  std::unordered_set<uint32_t> quantized_;
};

ScheduleIo io_of(const graph::StepIo& io) {
  const auto buffer = [](graph::TensorId id) { return id == graph::kNoTensor ? kNoBuffer : buffer_of(id); };
  ScheduleIo out;
  out.tokens = buffer(io.tokens);
  for (const graph::SequenceIo& sequence : io.sequences) {
    out.sequences.push_back({buffer(sequence.position), buffer(sequence.logits), buffer(sequence.next)});
  }
  return out;
}

}  // namespace

Result<lane::Schedule> plan_step(const graph::StepGraph& graph, const graph::Constants& constants, const Knobs& knobs) {
  TW_CHECK(knobs.quantized_bytes != nullptr, "the lane gave no size for quantized activations");
  Schedule schedule;
  schedule.name = graph.name;
  schedule.form = graph.form;
  schedule.numerics = knobs.numerics;
  schedule.op_count = graph.ops.size();
  schedule.io = io_of(graph.io);
  TW_TRY_VOID(Linking({graph, constants}, schedule).run());
  TW_TRY_VOID(make_buffers(graph, knobs, schedule));
  place_buffers(knobs, schedule);
#ifndef NDEBUG
  const std::vector<Finding> findings = verify(schedule);
  TW_CHECK(findings.empty(), "the schedule of {} breaks {}: {}", schedule.name, findings[0].code, findings[0].text);
#endif
  return schedule;
}

}  // namespace tw::plan
