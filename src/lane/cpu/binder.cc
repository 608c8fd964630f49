#include "lane/cpu/binder.h"

#include "lane/cpu/barriers.h"
#include "lane/uses.h"

namespace tw::lane::cpu {

Binder::Binder(Program::Data& data, Isa isa, const WeightStore& weights, States& states)
    : d_(data), s_(data.schedule), isa_(isa), kernels_(kernels(isa)), weights_(weights), states_(states) {}

Result<void> Binder::run() {
  d_.arena = Aligned(s_.arena_bytes);
  d_.slots.resize(s_.io.sequences.size());
  std::vector<LaunchRun> runs;
  std::vector<size_t> first_call;
  for (uint32_t at = 0; at < s_.launches.size(); ++at) {
    launch_ = at;
    shared_here_ = 0;
    first_call.push_back(d_.calls.size());
    TW_TRY_VOID(bind_launch(s_.launches[at].launch));
    runs.push_back({shared_here_ != 0, set_solo(first_call.back())});
    shared_bytes_ = std::max(shared_bytes_, shared_here_);
  }
  const std::vector<bool> barriers = barriers_before(s_, runs);
  for (size_t at = 0; at < barriers.size(); ++at) {
    if (first_call[at] < d_.calls.size() && d_.calls[first_call[at]].launch == at) {
      d_.calls[first_call[at]].barrier = barriers[at];
    }
  }
  d_.shared = Aligned(shared_bytes_);
  for (const auto& place : shared_users_) place(d_.shared.get());
  for (uint32_t t = 0; t < d_.threads; ++t) d_.scratch.emplace_back(scratch_bytes_);
  bind_io();
  return {};
}

// Calls of one item in every step, from `first` on, are solo, and wait for nobody where all that the launch did since
// it last waited is solo too. Answers whether all calls are.
bool Binder::set_solo(size_t first) {
  bool all = true, alone = true;
  for (size_t at = first; at < d_.calls.size(); ++at) {
    Call& call = d_.calls[at];
    call.solo = !call.varies && call.count(call) == 1;
    all = all && call.solo;
    const bool waits = call.barrier;
    if (at != first && call.solo && alone) call.barrier = false;
    alone = call.solo && (alone || waits);
  }
  return all;
}

Result<void> Binder::bind_launch(const Launch& launch) {
  return std::visit([this](const auto& l) { return bind(l); }, launch);
}

Refusal Binder::no_kernel(std::string_view why) const {
  return refuse(RefusalKind::Unsupported, fmt::format("launch {} ({})", launch_, kind_of(s_.launches[launch_].launch)),
                fmt::format("the CPU lane has no kernel for it: {}", why));
}

int Binder::words() const { return s_.numerics == Numerics::Precise ? 0 : s_.numerics == Numerics::Int8 ? 1 : 2; }

Binder::PlainPlace Binder::plain_place(BufferId id, uint64_t from) const {
  if (!present(id)) return {};
  const lane::Span span = span_of(s_, id);
  const Buffer& root = s_.at(span.root);
  const uint64_t offset = (span.from + from) * bytes_of(root.dtype);
  if (root.fill == Fill::Constant) {
    auto* values = const_cast<float*>(weights_.values(root.name) + span.from + from);
    return {reinterpret_cast<std::byte*>(values), nullptr, 0, 0};
  }
  if (root.fill == Fill::State) {
    const uint64_t size = root.size() / root.sequences;
    const auto part = static_cast<uint32_t>(span.from / size);
    TW_CHECK(span.to <= (part + 1) * size, "{} is of several sequences, whose states need not be together", root.name);
    const uint64_t begin = part * size * bytes_of(root.dtype);
    return {nullptr, &states_.of(root), root.sequence.value_or(part), offset - begin};
  }
  TW_CHECK(root.plain_at.has_value(), "{} has no place in the arena", root.name);
  return {d_.arena.get() + *root.plain_at + offset, nullptr, 0, 0};
}

Binder::SequencesPlace Binder::sequences_place(BufferId id) const {
  const lane::Span span = span_of(s_, id);
  const Buffer& root = s_.at(span.root);
  const bool of_all = root.sequences > 1 && span.to - span.from == root.size();
  if (root.fill != Fill::State || !of_all) return {};
  const States::State& state = states_.of(root);
  return {&state, state.bytes / bytes_of(root.dtype)};
}

Result<void> Binder::set_store(Store& to, const Dst& dst, uint64_t units, uint64_t width, OutForms forms,
                               uint64_t sequences) {
  const lane::Span span = span_of(s_, dst.buf);
  const Buffer& buffer = s_.at(span.root);
  to.type = buffer.dtype;
  to.unit_pitch = dst.unit ? dst.unit->pitch : width;
  to.unit_offset = dst.unit ? dst.unit->offset : 0;
  if (buffer.layout.kind != lane::Layout::Kind::RowMajor) {
    const bool whole = span.from % (buffer.size() / buffer.sequences) == 0;
    if (!dst.row || dst.row->pitch != buffer.cols || !whole) {
      return no_kernel(fmt::format("it writes {}, which is laid out as a cache, other than by its rows", buffer.name));
    }
    to.form = buffer.layout.kind == lane::Layout::Kind::KeyBlocks ? Store::Form::KeyBlocks : Store::Form::ValueRows;
    to.head_width = buffer.layout.width;
    to.head_stride = padded_positions(buffer.rows / buffer.sequences) * buffer.layout.width;
  }
  if (dst.row) {
    to.row_pitch = dst.row->pitch;
    to.fixed = dst.row->fixed;
    set(to.position, dst.row->param);
  }
  if (sequences > 1) return set_sequence_store(to, dst, units, forms, sequences);
  if (forms.plain) set(to.data, dst.buf);
  if (!forms.quantized) return {};
  const uint64_t last = units > 1 ? to.unit_pitch : 0;
  if (width % kQuantBlock != 0 || to.unit_offset % kQuantBlock != 0 || last % kQuantBlock != 0 ||
      to.row_pitch % kQuantBlock != 0) {
    return no_kernel(
        fmt::format("its quantized result has runs of {} values that are not whole blocks of {}", width, kQuantBlock));
  }
  to.quant = quant(dst.buf);
  to.words = words();
  return {};
}

Result<void> Binder::set_sequence_store(Store& to, const Dst& dst, uint64_t units, OutForms forms, uint64_t sequences) {
  if (!dst.row || !present(dst.row->param) || forms.quantized) {
    return no_kernel("several sequences land in plain rows at their positions or in one array, and nowhere else");
  }
  to.sequence_units = units / sequences;
  to.size = s_.at(dst.buf).size() / sequences;
  to.tables = set_sequences(to.data, dst.buf);
  return {};
}

void Binder::shared(uint64_t bytes, std::function<void(std::byte*)> place) {
  const uint64_t at = shared_here_;
  shared_here_ += (bytes + 63) / 64 * 64;
  shared_users_.push_back([at, place = std::move(place)](std::byte* memory) { place(memory + at); });
}

QuantView Binder::quant(BufferId id) const {
  const Buffer& home = s_.at(quantized_home(s_, id));
  TW_CHECK(home.quantized_at.has_value(), "{} has no quantized form", home.name);
  const QuantView view = quant_view(d_.arena.get() + *home.quantized_at, home.size(), words());
  return quant_from(view, quantized_offset(s_, id) / kQuantBlock);
}

CacheView Binder::cache_view(BufferId id, uint64_t kv_heads, uint64_t width, const void*& data) {
  const Buffer& buffer = s_.at(id);
  const uint64_t rows = buffer.rows / buffer.sequences;
  CacheView view;
  switch (buffer.layout.kind) {
    case lane::Layout::Kind::KeyBlocks: view = key_cache(nullptr, buffer.dtype, rows, kv_heads, width); break;
    case lane::Layout::Kind::ValueRows: view = value_cache(nullptr, buffer.dtype, rows, kv_heads, width); break;
    case lane::Layout::Kind::RowMajor: view = cache_rows(nullptr, buffer.dtype, rows, kv_heads, width); break;
  }
  if (buffer.sequences > 1) {
    view.table = set_sequences(data, id);
  } else {
    set(data, id);
  }
  view.data = data;
  return view;
}

void Binder::bind_io() {
  set(d_.tokens, s_.io.tokens);
  for (const ScheduleIo::Sequence& io : s_.io.sequences) {
    Program::Data::SequencePlaces places;
    set(places.position, io.position);
    set(places.logits, io.logits);
    set(places.next, io.next);
    places.logits_size = s_.at(io.logits).size();
    places.next_size = s_.at(io.next).size();
    d_.sequences.push_back(places);
  }
}

Result<void> bind_schedule(Program::Data& data, Isa isa, const WeightStore& weights, States& states) {
  return Binder(data, isa, weights, states).run();
}

}  // namespace tw::lane::cpu
