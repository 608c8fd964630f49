#include "lane/print.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lane/uses.h"

namespace tw::lane {

namespace {

std::string_view word(graph::Arithmetic op) {
  constexpr std::string_view kNames[] = {"add", "sub", "mul", "div", "min", "max"};
  return kNames[static_cast<size_t>(op)];
}
std::string_view word(graph::ActivationKind kind) {
  constexpr std::string_view kNames[] = {"silu", "sigmoid", "gelu_tanh", "relu", "softplus", "tanh", "exp"};
  return kNames[static_cast<size_t>(kind)];
}
std::string_view word(graph::NormKind kind) { return kind == graph::NormKind::Rms ? "rms" : "layer"; }
std::string_view word(graph::ScoreKind kind) { return kind == graph::ScoreKind::Softmax ? "softmax" : "sigmoid"; }
std::string_view word(graph::GateKind kind) { return kind == graph::GateKind::Silu ? "silu" : "sigmoid"; }
std::string_view word(graph::KeyHeadOf of) { return of == graph::KeyHeadOf::Modulo ? "modulo" : "grouped"; }
std::string_view word(gguf::Format format) { return gguf::name(format); }

nlohmann::json value_of(const Part& part) { return {{"pitch", part.pitch}, {"offset", part.offset}}; }
nlohmann::json value_of(const graph::Window& window) {
  constexpr std::string_view kNames[] = {"none", "sliding", "chunked"};
  if (window.kind == graph::Window::Kind::None) return "none";
  return fmt::format("{}:{}", kNames[static_cast<size_t>(window.kind)], window.size);
}
nlohmann::json value_of(const graph::MoeAct& act) {
  switch (act.kind) {
    case graph::MoeAct::Kind::SwiGlu: return "swiglu";
    case graph::MoeAct::Kind::GeGlu: return "geglu";
    case graph::MoeAct::Kind::ClampedSwiGlu: return fmt::format("clamped_swiglu:{}:{}", act.limit, act.slope);
  }
  return nullptr;
}
template <class T>
nlohmann::json value_of(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return word(value);
  } else if constexpr (std::is_same_v<T, float>) {
    return std::stod(fmt::format("{}", value));  // the shortest digits that read back as this float
  } else {
    return value;
  }
}
template <class T>
nlohmann::json value_of(const std::optional<T>& value) {
  return value ? value_of(*value) : nlohmann::json(nullptr);
}

// Walks a launch's declaration into JSON: operands by name with the buffer, fields by name. A name that comes again
// (the parts of a launch in parts) gets a number.
class JsonVisitor {
 public:
  explicit JsonVisitor(const Schedule& schedule) : schedule_(schedule) {}

  void read(std::string_view name, BufferId id, bool = false) { operand(name, id); }
  void read_quantized(std::string_view name, BufferId id) { operand(name, id, " (quantized)"); }
  void projected(std::string_view name, BufferId id) {
    operand(name, id, quantizes(schedule_.numerics) ? " (quantized)" : "");
  }
  void weight(std::string_view name, BufferId id) { operand(name, id); }
  void write(std::string_view name, BufferId id, uint64_t, OutForms forms) {
    if (forms.plain) operand(name, id, "", true);
    if (forms.quantized) operand(name, id, " (quantized)", true);
  }
  void dst(std::string_view name, const Dst& dst, uint64_t, uint64_t, bool, OutForms forms) {
    std::string where;
    if (dst.row) where += place(*dst.row);
    if (dst.unit) where += fmt::format("[unit {}+{}]", dst.unit->pitch, dst.unit->offset);
    if (forms.plain) operand(name, dst.buf, where, true);
    if (forms.quantized) operand(name, dst.buf, where + " (quantized)", true);
  }
  void rows(std::string_view name, BufferId id, const RowAt& at, uint64_t, uint64_t, OutForms) {
    operand(name, id, place(at), true);
  }
  void update(std::string_view name, BufferId id, bool = false) {
    operand(name, id);
    operand(name, id, "", true);
  }
  void field(std::string_view, BufferId) {}  // a view's ends, printed by its kind
  template <class T>
  void field(std::string_view name, const T& value) {
    const nlohmann::json json = value_of(value);
    if (!json.is_null()) fields_[unused(fields_, name)] = json;
  }

  nlohmann::ordered_json reads_ = nlohmann::ordered_json::object();
  nlohmann::ordered_json writes_ = nlohmann::ordered_json::object();
  nlohmann::ordered_json fields_ = nlohmann::ordered_json::object();

 private:
  [[nodiscard]] std::string place(const RowAt& at) const {
    return present(at.param) ? fmt::format("[row {}]", schedule_.at(at.param).name) : fmt::format("[row {}]", at.fixed);
  }
  void operand(std::string_view name, BufferId id, std::string_view suffix = "", bool writes = false) {
    if (!present(id)) return;
    auto& list = writes ? writes_ : reads_;
    list[unused(list, name)] = schedule_.at(id).name + std::string(suffix);
  }
  static std::string unused(const nlohmann::ordered_json& list, std::string_view name) {
    std::string key(name);
    for (int number = 2; list.contains(key); ++number) key = fmt::format("{}.{}", name, number);
    return key;
  }

  const Schedule& schedule_;
};

nlohmann::ordered_json launch_json(const Launch& launch, const Schedule& schedule) {
  nlohmann::ordered_json json;
  json["kind"] = kind_of(launch);
  if (const auto* fold = std::get_if<Fold>(&launch)) {
    json["parts"] = {launch_json(fold->first(), schedule), launch_json(fold->then(), schedule)};
    return json;
  }
  if (const auto* view = std::get_if<View>(&launch)) {
    json["reads"]["src"] = schedule.at(view->src).name;
    json["writes"]["out"] = schedule.at(view->out).name;
    json["fields"]["offset"] = view->offset;
    return json;
  }
  JsonVisitor visitor(schedule);
  std::visit(
      [&]<class L>(const L& l) {
        if constexpr (!std::is_same_v<L, Fold>) L::visit(l, visitor);
      },
      launch);
  json["reads"] = std::move(visitor.reads_);
  json["writes"] = std::move(visitor.writes_);
  json["fields"] = std::move(visitor.fields_);
  return json;
}

std::string line_of(const nlohmann::ordered_json& launch) {
  std::string line = launch["kind"].get<std::string>();
  if (launch.contains("parts")) {
    for (const auto& part : launch["parts"]) line += " { " + line_of(part) + " }";
    return line;
  }
  for (const auto& [name, value] : launch["reads"].items())
    line += fmt::format(" {}={}", name, value.get<std::string>());
  line += " ->";
  for (const auto& [name, value] : launch["writes"].items())
    line += fmt::format(" {}={}", name, value.get<std::string>());
  line += " |";
  for (const auto& [name, value] : launch["fields"].items()) {
    line += fmt::format(" {}={}", name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return line;
}

std::string_view name(Layout::Kind kind) {
  switch (kind) {
    case Layout::Kind::RowMajor: return "rows";
    case Layout::Kind::KeyBlocks: return "key blocks";
    case Layout::Kind::ValueRows: return "value rows";
  }
  return "?";
}

nlohmann::ordered_json buffer_json(const Schedule& schedule, const Buffer& buffer) {
  nlohmann::ordered_json json{{"name", buffer.name},       {"rows", buffer.rows},
                              {"cols", buffer.cols},       {"dtype", name(buffer.dtype)},
                              {"fill", name(buffer.fill)}, {"layout", name(buffer.layout.kind)}};
  if (buffer.sequence) json["sequence"] = *buffer.sequence;
  if (buffer.sequences > 1) json["sequences"] = buffer.sequences;
  if (buffer.fill == Fill::Alias)
    json["alias"] = {{"of", schedule.at(buffer.alias_of).name}, {"offset", buffer.alias_offset}};
  if (buffer.plain_at) json["plain_at"] = *buffer.plain_at;
  if (buffer.quantized_at) json["quantized_at"] = *buffer.quantized_at;
  return json;
}

bool touched(const Buffer& buffer) {
  return buffer.plain || buffer.quantized || buffer.weight || buffer.fill == Fill::Alias;
}

}  // namespace

std::string print(const Launch& launch, const Schedule& schedule) { return line_of(launch_json(launch, schedule)); }

std::string heading(const Schedule& schedule) {
  return fmt::format("schedule {} {} {}{}", schedule.name, graph::to_text(schedule.form), name(schedule.numerics),
                     schedule.order == Order::Strict ? "" : fmt::format(" {}", name(schedule.order)));
}

std::string print(const Schedule& schedule) {
  std::string text = heading(schedule) + "\n";
  for (size_t at = 0; at < schedule.launches.size(); ++at) {
    const Planned& planned = schedule.launches[at];
    std::string ops;
    for (const graph::OpId op : planned.ops) ops += fmt::format("{}{}", ops.empty() ? "" : ",", graph::index(op));
    text += fmt::format("{:>5}  {}{}\n", at, print(planned.launch, schedule), ops.empty() ? "" : "  ops " + ops);
  }
  text += "census";
  for (const auto& [kind, count] : census(schedule)) text += fmt::format(" {}={}", kind, count);
  return text + fmt::format("\narena {} bytes\n", schedule.arena_bytes);
}

nlohmann::json to_json(const Schedule& schedule) {
  nlohmann::ordered_json json{{"name", schedule.name},
                              {"form", graph::to_text(schedule.form)},
                              {"numerics", name(schedule.numerics)},
                              {"order", name(schedule.order)},
                              {"arena_bytes", schedule.arena_bytes}};
  auto& launches = json["launches"] = nlohmann::ordered_json::array();
  for (const Planned& planned : schedule.launches) {
    nlohmann::ordered_json launch = launch_json(planned.launch, schedule);
    auto& ops = launch["ops"] = nlohmann::ordered_json::array();
    for (const graph::OpId op : planned.ops) ops.push_back(graph::index(op));
    launches.push_back(std::move(launch));
  }
  auto& buffers = json["buffers"] = nlohmann::ordered_json::array();
  for (const Buffer& buffer : schedule.buffers) {
    if (touched(buffer)) buffers.push_back(buffer_json(schedule, buffer));
  }
  json["census"] = census(schedule);
  return json;
}

}  // namespace tw::lane
