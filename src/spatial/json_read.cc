#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "spatial/json.h"
#include "spatial/names.h"
#include "spatial/real_text.h"

namespace tw::spatial {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostNesting = 64;

// A value and where it stands. Reads are refused with the path; the first refusal is kept and everything after it reads
// as nothing, so that readers need no check a field.
class Value {
 public:
  Value(const Json* json, std::string path, std::string_view label, std::optional<Refusal>& refusal)
      : json_(json), path_(std::move(path)), label_(label), refusal_(refusal) {}

  [[nodiscard]] bool has(const char* key) const { return json_ && json_->is_object() && json_->contains(key); }
  [[nodiscard]] Value operator[](const char* key) const {
    const std::string path = path_.empty() ? key : fmt::format("{}.{}", path_, key);
    if (has(key)) return {&(*json_)[key], path, label_, refusal_};
    if (json_ && !json_->is_object()) fail("an object");
    if (json_) Value(json_, path, label_, refusal_).refuse_as("nothing", "a value");
    return {nullptr, path, label_, refusal_};
  }
  [[nodiscard]] size_t size() const {
    if (json_ && !json_->is_array()) fail("a list");
    return json_ && json_->is_array() ? json_->size() : 0;
  }
  [[nodiscard]] Value item(size_t i) const {
    return {i < size() ? &(*json_)[i] : nullptr, fmt::format("{}[{}]", path_, i), label_, refusal_};
  }
  template <class T, class F>
  [[nodiscard]] std::vector<T> list(F each) const {
    std::vector<T> all;
    for (size_t i = 0, count = size(); i < count && !refusal_; ++i) all.push_back(each(item(i)));
    return all;
  }

  [[nodiscard]] std::string text() const {
    if (json_ && json_->is_string()) return json_->get<std::string>();
    return fail("a string"), std::string();
  }
  [[nodiscard]] bool flag() const {
    if (json_ && json_->is_boolean()) return json_->get<bool>();
    return fail("true or false"), false;
  }
  template <class N>
  [[nodiscard]] N number() const {
    if (json_ && json_->is_number_unsigned()) {
      const auto value = json_->get<uint64_t>();
      if (value <= static_cast<uint64_t>(std::numeric_limits<N>::max())) return static_cast<N>(value);
    } else if (json_ && json_->is_number_integer() && std::numeric_limits<N>::is_signed) {
      return static_cast<N>(json_->get<int64_t>());
    }
    return fail(fmt::format("a whole number from {} to {}", std::numeric_limits<N>::min(),
                            std::numeric_limits<N>::max())),
           N{};
  }
  [[nodiscard]] double real() const {
    double value = 0;
    if (json_ && json_->is_string() && parse_real(json_->get_ref<const std::string&>(), value)) return value;
    return fail("a string that is a number"), 0.0;
  }
  template <class E>
  [[nodiscard]] E one_of() const {
    const std::optional<E> value = enum_of_name<E>(text());
    if (!value) fail(enum_choices<E>());
    return value.value_or(E{});
  }
  [[nodiscard]] Precision precision() const {
    const std::optional<Precision> value = parse_precision(text());
    if (!value) fail("a precision");
    return value.value_or(Precision::F32);
  }
  template <class Id>
  [[nodiscard]] Id id() const {
    return Id{number<uint32_t>()};
  }
  // [a, b]
  template <class N>
  void pair(N& first, N& second) const {
    if (size() != 2) fail("a list of two numbers");
    first = item(0).number<N>();
    second = item(1).number<N>();
  }
  void fail(std::string_view expected) const { refuse_as(found(), expected); }

 private:
  void refuse_as(std::string_view found, std::string_view expected) const {
    if (refusal_) return;
    refusal_ = refuse(RefusalKind::Malformed, label_,
                      fmt::format("{}: found {}, expected {}", path_.empty() ? "the top" : path_, found, expected));
  }
  [[nodiscard]] std::string found() const {
    if (!json_) return "nothing";
    if (json_->is_structured()) return json_->is_array() ? "a list" : "an object";
    return json_->dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 48);
  }

  const Json* json_;
  std::string path_;
  std::string label_;
  std::optional<Refusal>& refusal_;
};

// ---- tensors ----

Init init_of(const Value& v) {
  const std::string kind = v["kind"].text();
  if (kind == "zero") return ZeroInit{};
  if (kind == "given") return GivenInit{};
  if (kind == "external") return ExternalInit{};
  if (kind == "real") return RealInit{v["value"].real()};
  if (kind == "integer") return IntegerInit{v["value"].number<int64_t>()};
  if (kind == "reals") return real_values(v["values"].list<double>([](const Value& x) { return x.real(); }));
  if (kind == "integers")
    return integer_values(v["values"].list<int64_t>([](const Value& x) { return x.number<int64_t>(); }));
  v["kind"].fail("one of zero, given, external, real, integer, reals, integers");
  return ExternalInit{};
}

Tensor tensor_of(const Value& v) {
  return {v["name"].text(),
          v["role"].one_of<TensorRole>(),
          v["rows"].number<uint64_t>(),
          v["cols"].number<uint64_t>(),
          v["dtype"].precision(),
          init_of(v["init"])};
}

Buffer buffer_of(const Value& v) {
  return {v["name"].text(), v["page_tiles"].number<uint64_t>(), v["depth"].number<uint32_t>(), v["dtype"].precision(),
          v["kind"].one_of<BufferKind>()};
}

// ---- bodies ----

Pred pred_of(const Value& v) {
  Pred pred{v["axis"].one_of<Axis>(), v["at_least"].flag(), v.has("operand"), 0};
  pred.bound = pred.by_operand ? v["operand"].number<int64_t>() : v["bound"].number<int64_t>();
  return pred;
}

Node node_of(const Value& v) {
  const std::string op = v["op"].text();
  const auto node = [&](const char* key) { return v[key].number<NodeId>(); };
  if (op == "operand") return OperandNode{v["operand"].number<uint32_t>()};
  if (op == "const") return ConstNode{v["value"].real()};
  if (op == "shr") return ShrNode{node("arg"), v["by"].number<uint32_t>()};
  if (op == "rsqrt") return RsqrtNode{node("arg"), v["eps_nano"].number<uint64_t>(), v["over"].number<uint64_t>()};
  if (op == "select") return SelectNode{pred_of(v["if"]), node("then"), node("else")};
  if (const auto binary = enum_of_name<BinaryOp>(op)) return BinaryNode{*binary, node("left"), node("right")};
  if (const auto unary = enum_of_name<UnaryOp>(op)) return UnaryNode{*unary, node("arg")};
  v["op"].fail("an operation of the algebra");
  return ConstNode{};
}

// ---- stages ----

ElemAccess map_of(const Value& v) {
  ElemAccess map{v["base"].number<int64_t>(), {}, {}};
  for (int a = 0; a < kAxes; ++a) map.coef[a] = v[kEnumNames<Axis>[static_cast<size_t>(a)].data()].number<int64_t>();
  if (!v.has("indirect")) return map;
  const Value i = v["indirect"];
  map.indirect =
      IndirectTerm{i["operand"].number<uint32_t>(), i["stride"].number<int64_t>(), i["modulus"].number<uint64_t>()};
  return map;
}

Iter iter_of(const Value& v) {
  Iter iter{v["axis"].one_of<Axis>(), v["extent"].number<uint64_t>(), {}};
  if (v.has("reduce")) iter.reduce = v["reduce"].one_of<Pool>();
  return iter;
}

AccessPattern pattern_of(const Value& v) {
  AccessPattern p;
  p.origin.base = v["base"].number<uint64_t>();
  p.origin.steps = v["steps"].list<Step>([](const Value& s) {
    return Step{s["var"].one_of<LoopVar>(), s["stride"].number<uint64_t>()};
  });
  p.block_h = v["block_h"].number<uint64_t>();
  p.block_w = v["block_w"].number<uint64_t>();
  p.stride_h = v["stride_h"].number<uint64_t>();
  p.stride_w = v["stride_w"].number<uint64_t>();
  if (!v.has("indirect")) return p;
  const Value i = v["indirect"];
  p.origin.indirect =
      IndirectTile{i["index"].id<BufferId>(), i["tile_stride"].number<uint64_t>(),
                   i["elems_per_tile"].number<uint64_t>(), i["low"].number<int64_t>(), i["high"].number<int64_t>()};
  return p;
}

StageKind kind_of(const Value& v) {
  const std::string kind = v["kind"].text();
  if (kind == "load") return Load{v["tensor"].id<TensorId>(), pattern_of(v["pattern"])};
  if (kind == "store") return Store{v["tensor"].id<TensorId>(), pattern_of(v["pattern"])};
  if (kind == "matmul")
    return Compute{
        MatmulTiles{v["rows"].number<uint32_t>(), v["cols"].number<uint32_t>(), v["inner"].number<uint32_t>()}};
  if (kind == "generic")
    return Compute{Generic{v["space"].list<Iter>(iter_of), v["maps"].list<ElemAccess>(map_of),
                           Expr(v["body"].list<Node>(node_of))}};
  v["kind"].fail("one of load, store, matmul, generic");
  return Load{};
}

Stage stage_of(const Value& v) {
  const auto ids = [](const Value& list) {
    return list.list<BufferId>([](const Value& id) { return id.id<BufferId>(); });
  };
  return {v["name"].text(), kind_of(v), ids(v["ins"]), ids(v["outs"]), v["level"].one_of<FoldLevel>()};
}

// ---- work ----

Work work_of(const Value& v) {
  Work work;
  const Value plan = v["plan"];
  plan["per_site"].pair(work.plan.per_site_m, work.plan.per_site_n);
  plan["grid"].pair(work.plan.grid_m, work.plan.grid_n);
  plan["block"].pair(work.plan.block_m, work.plan.block_n);
  work.plan.num_blocks = plan["num_blocks"].number<uint64_t>();
  work.plan.block_k = plan["block_k"].number<uint64_t>();
  work.k_tiles = v["k_tiles"].number<uint64_t>();
  work.items = v["items"].list<WorkItem>([](const Value& i) {
    WorkItem item;
    i["at"].pair(item.y, item.x);
    i["tile"].pair(item.out.row, item.out.col);
    i["size"].pair(item.out.rows, item.out.cols);
    return item;
  });
  if (!v.has("k_trip")) return work;
  const Value t = v["k_trip"];
  work.k_trip = Trip{t["tensor"].id<TensorId>(),  t["elem"].number<uint64_t>(), t["low"].number<int64_t>(),
                     t["high"].number<int64_t>(), t["bias"].number<int64_t>(),  t["per"].number<uint64_t>()};
  return work;
}

Program program_of(const Value& v) {
  Program p;
  p.name = v["name"].text();
  p.target = v["target"].text();
  v["tile"].pair(p.tile.rows, p.tile.cols);
  p.accumulator = v["accumulator"].precision();
  p.claim = {v["claim"]["exact"].flag(), v["claim"]["reason"].text()};
  p.tensors = v["tensors"].list<Tensor>(tensor_of);
  p.buffers = v["buffers"].list<Buffer>(buffer_of);
  p.stages = v["stages"].list<Stage>(stage_of);
  p.edges = v["edges"].list<Edge>([](const Value& e) {
    if (e.size() != 3) e.fail("a list of three numbers");
    return Edge{e.item(0).id<StageId>(), e.item(1).id<BufferId>(), e.item(2).id<StageId>()};
  });
  p.work = work_of(v["work"]);
  return p;
}

// Line and column of a byte.
std::string place_text(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", line, std::max<size_t>(before.size() - begin, 1));
}

}  // namespace

Result<Program> program_of_json(std::string_view text, std::string_view label) {
  bool deep = false;
  Json json;
  const auto callback = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > static_cast<int>(kMostNesting);
    return !deep;
  };
  try {
    json = Json::parse(text.begin(), text.end(), callback);
  } catch (const Json::parse_error& error) {
    return refuse(RefusalKind::Malformed, label, fmt::format("{}: is no JSON", place_text(text, error.byte)));
  } catch (const Json::out_of_range&) {
    return refuse(RefusalKind::Malformed, label, "has a number that is too large for a double");
  }
  if (deep) return refuse(RefusalKind::Malformed, label, fmt::format("nests deeper than {} levels", kMostNesting));
  std::optional<Refusal> refusal;
  Program program = program_of(Value(&json, "", label, refusal));
  if (refusal) return *refusal;
  return program;
}

}  // namespace tw::spatial
