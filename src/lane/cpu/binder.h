#pragma once

// Turns the launches of a schedule into kernel calls: fills in each kernel's arguments with pointers into the program's
// arena, the constants and the carried state, and decides where threads must wait for each other.
//
// binder.cc holds what all launches need, binder_products.cc, binder_rows.cc and binder_memory.cc a function a launch.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "lane/cpu/isa.h"
#include "lane/cpu/kernels.h"
#include "lane/cpu/product.h"
#include "lane/cpu/program_data.h"
#include "lane/cpu/store.h"

namespace tw::lane::cpu {

Result<void> bind_schedule(Program::Data& data, Isa isa, const WeightStore& weights, States& states);

class Binder {
 public:
  Binder(Program::Data& data, Isa isa, const WeightStore& weights, States& states);
  Result<void> run();

 private:
  // ---- launches ----

  // binder_products.cc
  Result<void> bind(const Gemv& l);
  Result<void> bind(const GemvF32& l);
  Result<void> bind(const GemmParts& l);
  Result<void> bind(const GemvGlu& l);
  Result<void> bind(const HeadGemv& l);
  Result<void> bind(const GateProj& l);
  Result<void> bind(const Moe& l);
  Result<void> bind(const Fold& l);

  // binder_rows.cc
  Result<void> bind(const Norm& l);
  Result<void> bind(const L2Norm& l);
  Result<void> bind(const Softmax& l);
  Result<void> bind(const Quant& l);
  Result<void> bind(const Binary& l);
  Result<void> bind(const Scale& l);
  Result<void> bind(const SwiGlu& l);
  Result<void> bind(const Unary& l);
  Result<void> bind(const Rope& l);
  Result<void> bind(const RopeParts& l);
  Result<void> bind(const ArgMax& l);

  // binder_memory.cc
  Result<void> bind(const Gather& l);
  Result<void> bind(const View& l);
  Result<void> bind(const SetRow& l);
  Result<void> bind(const Attention& l);
  Result<void> bind(const Conv& l);
  Result<void> bind(const ConvParts& l);
  Result<void> bind(const Decay& l);
  Result<void> bind(const Gates& l);
  Result<void> bind(const Delta& l);
  Result<void> bind(const Slice& l);
  Result<void> bind(const Join& l);
  Result<void> bind(const Transpose& l);

  Result<void> bind_launch(const Launch& launch);
  [[nodiscard]] bool attends_by_chunks(const AttentionArgs& a) const;

  // One matrix of a product and where its result goes; `part` stays where it is.
  Result<void> set_part(ProductPart& part, const Packed& w, BufferId bias, const Dst& y, uint64_t rows, OutForms forms);
  // The activation in the forms that the parts, set before, read.
  void set_input(ProductArgs& a, BufferId x, uint64_t k, uint64_t rows);
  // Refuses a product of a batch whose rows land in the caches of several sequences.
  [[nodiscard]] Result<void> rows_of_batch(bool batch, uint64_t rows, const Dst& y) const;

  // Makes the calls from call `at` on followers of the one before it.
  void follow(size_t at, Follow how);
  static bool cut_by_rows(Call& call, const Launch& launch, uint64_t rows);

  Result<void> rope_side(RopeArgs& a, const RopeParts& l, const RopeSide& side);
  Result<void> attention_split(AttentionArgs& a, const Attention& l);

  // ---- calls ----

  template <class Args>
  Args& make() {
    auto args = std::make_shared<Args>();
    d_.args.push_back(args);
    return *args;
  }

  // Appends a call of a kernel over the items that `count` answers. The result is good until the next call is added.
  template <class Args>
  Call& add(Args& args, Kernel<Args> kernel, uint64_t (*count)(const Args&), size_t scratch = 0) {
    TW_CHECK(kernel != nullptr, "the table of kernels has a gap");
    Call call;
    call.kernel = reinterpret_cast<void (*)()>(kernel);
    call.items = reinterpret_cast<void (*)()>(count);
    call.args = &args;
    call.launch = launch_;
    call.run = [](const Call& c, Range range, std::byte* storage) {
      reinterpret_cast<Kernel<Args>>(c.kernel)(*static_cast<const Args*>(c.args), range, storage);
    };
    call.count = [](const Call& c) {
      return reinterpret_cast<uint64_t (*)(const Args&)>(c.items)(*static_cast<const Args*>(c.args));
    };
    if constexpr (requires { scratch_bytes(args); }) scratch = std::max<size_t>(scratch, scratch_bytes(args));
    scratch_bytes_ = std::max(scratch_bytes_, scratch);
    d_.calls.push_back(call);
    return d_.calls.back();
  }
  static Result<void> done(Call&) { return {}; }
  // Threads take shares of the call as they come free, in whole numbers of `together` items.
  static Result<void> turns(Call& call, int together = 1) {
    call.take_turns = true;
    call.together = static_cast<uint8_t>(together);
    return {};
  }

  bool set_solo(size_t first);
  [[nodiscard]] Refusal no_kernel(std::string_view why) const;

  // ---- operands ----

  // Words of a quantized activation; 0 in the precise numerics.
  [[nodiscard]] int words() const;

  // Sets an argument to where element `from` of the plain form of a buffer lies. The argument must stay where it is:
  // what points into carried state is rewritten when the sequence moves.
  template <class T>
  void set(T*& field, BufferId id, uint64_t from = 0) {
    const PlainPlace place = plain_place(id, from);
    field = reinterpret_cast<T*>(place.bytes);
    if (place.state == nullptr) return;
    auto** slot = reinterpret_cast<void**>(const_cast<std::remove_const_t<T>**>(&field));
    d_.state_pointers.push_back({slot, place.state, place.sequence, place.offset});
  }

  // The same where `id` may be the memories of a batch's sequences: the field is where they all begin, the answer where
  // each does.
  template <class T>
  SlotTable set_sequences(T*& field, BufferId id) {
    const SequencesPlace place = sequences_place(id);
    if (place.state == nullptr) {
      set(field, id);
      return {};
    }
    field = reinterpret_cast<T*>(place.state->data);
    return {d_.slots.data(), place.stride};
  }

  // Where a result goes, in `to`, which must stay where it is: `units` runs of `width` values. sequences > 1: the units
  // are as many a sequence, and go to rows of its own table.
  Result<void> set_store(Store& to, const Dst& dst, uint64_t units, uint64_t width, OutForms forms = {},
                         uint64_t sequences = 1);

  // Memory that a launch's kernels hand results over in: `place` gets its start once it is there.
  void shared(uint64_t bytes, std::function<void(std::byte*)> place);
  template <class T>
  void shared(T*& field, uint64_t bytes) {
    shared(bytes, [&field](std::byte* memory) { field = reinterpret_cast<T*>(memory); });
  }

  // The quantized form of a buffer.
  [[nodiscard]] QuantView quant(BufferId id) const;

  // The view of a cache, or of a batch's caches, whose data pointer is set through `data`, the view's own field.
  CacheView cache_view(BufferId id, uint64_t kv_heads, uint64_t width, const void*& data);

  struct PlainPlace {
    std::byte* bytes = nullptr;  // null for an absent buffer and for carried state
    const States::State* state = nullptr;
    uint32_t sequence = 0;
    uint64_t offset = 0;  // in the state
  };
  [[nodiscard]] PlainPlace plain_place(BufferId id, uint64_t from) const;
  struct SequencesPlace {
    const States::State* state = nullptr;  // null: the sequences do not lie in carried state
    uint64_t stride = 0;                   // elements from slot to slot
  };
  [[nodiscard]] SequencesPlace sequences_place(BufferId id) const;
  Result<void> set_sequence_store(Store& to, const Dst& dst, uint64_t units, OutForms forms, uint64_t sequences);
  void bind_io();

  Program::Data& d_;
  const Schedule& s_;
  Isa isa_;
  const Kernels& kernels_;
  const WeightStore& weights_;
  States& states_;
  uint32_t launch_ = 0;
  size_t scratch_bytes_ = 0;
  uint64_t shared_here_ = 0, shared_bytes_ = 0;
  std::vector<std::function<void(std::byte*)>> shared_users_;
};

}  // namespace tw::lane::cpu
