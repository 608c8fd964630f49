#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "base/near_name.h"
#include "spatial/text.h"
#include "spatial/text_parser.h"

namespace tw::spatial {
namespace {

using graph::Token;

class Parser {
 public:
  explicit Parser(TokenReader& in) : in_(in) {}

  // One program, up to the end of the text or the next program's line.
  Result<Program> run() {
    TW_TRY_VOID(read_header());
    for (;;) {
      TW_TRY_VOID(in_.skip_lines());
      if (in_.at_end() || in_.peek().is_word("program")) break;
      TW_TRY_VOID(read_statement());
      if (!in_.at_line_end()) return in_.expected("the end of the line");
    }
    if (!explicit_edges_) p_.edges = derive_edges(p_);
    return std::move(p_);
  }

 private:
  using Names = std::unordered_map<std::string, uint32_t>;
  using Read = Result<void> (Parser::*)();
  struct Statement {
    std::string_view keyword;
    Read read;
  };

  Result<void> read_header() {
    if (!in_.peek().is_word("program")) return in_.expected("a line: program NAME target=... tile=... accumulator=...");
    TW_TRY_VOID(in_.advance());
    TW_TRY(p_.name, in_.name("the program's name"));
    return in_.fields({{"target", true,
                        [&]() -> Result<void> {
                          TW_TRY(p_.target, in_.name("a target's name"));
                          return {};
                        }},
                       {"tile", true,
                        [&]() -> Result<void> {
                          const Token at = in_.peek();
                          TW_TRY(const auto sides, in_.naturals('x', 2, "ROWSxCOLS"));
                          if (std::max(sides[0], sides[1]) > ~uint32_t{0})
                            return in_.refuse_at(at, graph::found_text(at), "numbers below 2^32");
                          p_.tile = {static_cast<uint32_t>(sides[0]), static_cast<uint32_t>(sides[1])};
                          return {};
                        }},
                       {"accumulator", true, [&]() -> Result<void> {
                          TW_TRY(p_.accumulator, in_.precision());
                          return {};
                        }}});
  }

  Result<void> read_statement() {
    static constexpr std::array<Statement, 13> kStatements{{{"claim", &Parser::read_claim},
                                                            {"tensor", &Parser::read_tensor},
                                                            {"buffer", &Parser::read_buffer},
                                                            {"scratch", &Parser::read_scratch},
                                                            {"load", &Parser::read_load},
                                                            {"store", &Parser::read_store},
                                                            {"compute", &Parser::read_compute},
                                                            {"matmul", &Parser::read_matmul},
                                                            {"edges", &Parser::read_edges},
                                                            {"edge", &Parser::read_edge},
                                                            {"plan", &Parser::read_plan},
                                                            {"trip", &Parser::read_trip},
                                                            {"item", &Parser::read_item}}};
    for (const Statement& statement : kStatements) {
      if (!in_.peek().is_word(statement.keyword)) continue;
      TW_TRY_VOID(in_.advance());
      return (this->*statement.read)();
    }
    return in_.expected("claim, tensor, buffer, scratch, load, store, compute, matmul, edge, plan, trip or item");
  }

  // ---- references ----

  // A name that stands for one of `all`, or @ and its number.
  Result<uint32_t> reference(const Names& names, std::string_view what) {
    const Token token = in_.peek();
    if (token.kind == Token::Kind::Word && token.text.starts_with('@')) {
      uint32_t id = 0;
      const char* end = token.text.data() + token.text.size();
      const auto [stop, error] = std::from_chars(token.text.data() + 1, end, id);
      if (error != std::errc{} || stop != end) return in_.expected(fmt::format("{}, or @ and its number", what));
      TW_TRY_VOID(in_.advance());
      return id;
    }
    if (token.kind != Token::Kind::Word && token.kind != Token::Kind::Quoted) return in_.expected(what);
    const std::string name = graph::name_of(token);
    const auto at = names.find(name);
    if (at == names.end()) {
      std::vector<std::string_view> known;
      for (const auto& [each, id] : names) known.push_back(each);
      std::sort(known.begin(), known.end());
      const std::optional<std::string_view> near = near_name(name, known);
      return in_.expected(fmt::format("{} that an earlier line declares", what),
                          near ? fmt::format("Did you mean {}?", *near) : "");
    }
    TW_TRY_VOID(in_.advance());
    return at->second;
  }
  Result<BufferId> buffer_ref() {
    TW_TRY(const uint32_t id, reference(buffers_, "a buffer"));
    return BufferId{id};
  }
  // Where a name stands for an input and a result, reads mean the input and stores the result.
  Result<TensorId> tensor_ref(bool result) {
    const Token::Kind kind = in_.peek().kind;
    const bool named = kind == Token::Kind::Word || kind == Token::Kind::Quoted;
    const std::string name = named ? graph::name_of(in_.peek()) : "";
    const Names& preferred = result ? results_ : sources_;
    TW_TRY(const uint32_t id,
           reference(preferred.contains(name) ? preferred : (result ? sources_ : results_), "a tensor"));
    return TensorId{id};
  }
  Result<void> buffer_list(std::vector<BufferId>& list) {
    list.clear();
    TW_TRY_VOID(in_.mark('('));
    while (!in_.peek().is(')')) {
      if (!list.empty()) TW_TRY_VOID(in_.mark(','));
      TW_TRY(const BufferId id, buffer_ref());
      list.push_back(id);
    }
    return in_.mark(')');
  }

  // ---- declarations ----

  Result<void> read_claim() {
    const Token kind = in_.peek();
    if (!kind.is_word("exact") && !kind.is_word("approx")) return in_.expected("exact or approx");
    p_.claim.exact = kind.is_word("exact");
    TW_TRY_VOID(in_.advance());
    if (in_.at_line_end()) return {};
    TW_TRY(p_.claim.reason, in_.name("the reason of the claim"));
    return {};
  }

  Result<void> read_tensor() {
    Tensor tensor;
    TW_TRY(tensor.name, in_.name("a tensor's name"));
    TW_TRY(tensor.role, in_.one_of<TensorRole>());
    TW_TRY(const auto extents, in_.naturals('x', 2, "ROWSxCOLS"));
    tensor.rows = extents[0];
    tensor.cols = extents[1];
    TW_TRY(tensor.dtype, in_.precision());
    TW_TRY(tensor.init, read_init());
    const auto id = static_cast<uint32_t>(p_.tensors.size());
    (tensor.result() ? results_ : sources_).emplace(tensor.name, id);
    p_.tensors.push_back(std::move(tensor));
    return {};
  }

  Result<Init> read_init() {
    const Token kind = in_.peek();
    if (kind.is_word("zero") || kind.is_word("given") || kind.is_word("external")) {
      TW_TRY_VOID(in_.advance());
      if (kind.is_word("zero")) return Init{ZeroInit{}};
      return kind.is_word("given") ? Init{GivenInit{}} : Init{ExternalInit{}};
    }
    const auto follows = [&](std::string_view word) { return kind.is_word(word); };
    if (!follows("real") && !follows("integer") && !follows("reals") && !follows("integers"))
      return in_.expected("zero, given, external, real=, integer=, reals= or integers=");
    TW_TRY_VOID(in_.advance());
    TW_TRY_VOID(in_.mark('='));
    if (follows("real")) {
      TW_TRY(const double value, in_.real());
      return Init{RealInit{value}};
    }
    if (follows("integer")) {
      TW_TRY(const int64_t value, in_.integer());
      return Init{IntegerInit{value}};
    }
    if (follows("reals")) {
      std::vector<double> values;
      TW_TRY_VOID(read_values(values, &TokenReader::real));
      return Init{real_values(std::move(values))};
    }
    std::vector<int64_t> values;
    TW_TRY_VOID(read_values(values, &TokenReader::integer));
    return Init{integer_values(std::move(values))};
  }

  template <class T>
  Result<void> read_values(std::vector<T>& values, Result<T> (TokenReader::*read)()) {
    TW_TRY_VOID(in_.mark('['));
    while (!in_.peek().is(']')) {
      TW_TRY(const T value, (in_.*read)());
      values.push_back(value);
    }
    return in_.mark(']');
  }

  Result<void> read_buffer() { return read_page(BufferKind::Fifo); }
  Result<void> read_scratch() { return read_page(BufferKind::Scratch); }
  Result<void> read_page(BufferKind kind) {
    Buffer buffer;
    buffer.kind = kind;
    TW_TRY(buffer.name, in_.name("a buffer's name"));
    const auto number = [&](std::string_view key, auto& value, auto read) -> Result<void> {
      if (!in_.peek().is_word(key)) return in_.expected(fmt::format("{}=", key));
      TW_TRY_VOID(in_.advance());
      TW_TRY_VOID(in_.mark('='));
      TW_TRY(value, (in_.*read)());
      return {};
    };
    TW_TRY_VOID(number("page", buffer.page_tiles, &TokenReader::natural));
    TW_TRY_VOID(number("depth", buffer.depth, &TokenReader::natural32));
    TW_TRY(buffer.dtype, in_.precision());
    buffers_.emplace(buffer.name, static_cast<uint32_t>(p_.buffers.size()));
    p_.buffers.push_back(std::move(buffer));
    return {};
  }

  // ---- stages ----

  template <class T, class F>
  std::function<Result<void>()> into(T& value, F read) {
    return [&value, read]() -> Result<void> {
      TW_TRY(value, read());
      return {};
    };
  }
  std::function<Result<void>()> into_natural(uint64_t& value) {
    return into(value, [this] { return in_.natural(); });
  }
  std::function<Result<void>()> into_pair(uint64_t& first, uint64_t& second) {
    return [this, &first, &second]() -> Result<void> {
      TW_TRY(const auto pair, in_.naturals('x', 2, "ROWSxCOLS"));
      first = pair[0];
      second = pair[1];
      return {};
    };
  }
  std::function<Result<void>()> into_list(std::optional<std::vector<BufferId>>& list) {
    return [this, &list] { return buffer_list(list.emplace()); };
  }

  Result<void> read_load() { return read_move(true); }
  Result<void> read_store() { return read_move(false); }

  Result<void> read_move(bool load) {
    Stage stage;
    AccessPattern pattern;
    TensorId tensor{};
    BufferId page{};
    std::optional<IndirectTile> index;
    std::optional<std::vector<BufferId>> ins, outs;
    TW_TRY(stage.name, in_.name("a stage's name"));
    const auto with_index = [&](auto read) -> std::function<Result<void>()> {
      return [&index, read]() -> Result<void> {
        if (!index) index.emplace();
        return read(*index);
      };
    };
    TW_TRY_VOID(
        in_.fields({{"tensor", true, into(tensor, [&] { return tensor_ref(!load); })},
                    {"page", true, into(page, [&] { return buffer_ref(); })},
                    {"block", true, into_pair(pattern.block_h, pattern.block_w)},
                    {"base", false, into_natural(pattern.origin.base)},
                    {"steps", false, [&] { return read_steps(pattern.origin.steps); }},
                    {"stride_h", false, into_natural(pattern.stride_h)},
                    {"stride_w", false, into_natural(pattern.stride_w)},
                    {"index", false, with_index([&](IndirectTile& i) -> Result<void> {
                       TW_TRY(i.index, buffer_ref());
                       return {};
                     })},
                    {"per", false, with_index([&](IndirectTile& i) { return into_natural(i.elems_per_tile)(); })},
                    {"times", false, with_index([&](IndirectTile& i) { return into_natural(i.tile_stride)(); })},
                    {"within", false, with_index([&](IndirectTile& i) -> Result<void> {
                       TW_TRY(const auto bound, in_.integers(':', 2, "LOW:HIGH"));
                       i.low = bound[0];
                       i.high = bound[1];
                       return {};
                     })},
                    {"ins", false, into_list(ins)},
                    {"outs", false, into_list(outs)},
                    {"level", false, into(stage.level, [&] { return in_.one_of<FoldLevel>(); })}}));
    pattern.origin.indirect = index;
    (load ? stage.outs : stage.ins).push_back(page);
    if (index) stage.ins.push_back(index->index);
    if (load)
      stage.kind = Load{tensor, std::move(pattern)};
    else
      stage.kind = Store{tensor, std::move(pattern)};
    push(std::move(stage), std::move(ins), std::move(outs));
    return {};
  }

  void push(Stage stage, std::optional<std::vector<BufferId>> ins, std::optional<std::vector<BufferId>> outs) {
    if (ins) stage.ins = std::move(*ins);
    if (outs) stage.outs = std::move(*outs);
    p_.stages.push_back(std::move(stage));
  }

  // (VAR:STRIDE, ...)
  Result<void> read_steps(std::vector<Step>& steps) {
    TW_TRY_VOID(in_.mark('('));
    while (!in_.peek().is(')')) {
      if (!steps.empty()) TW_TRY_VOID(in_.mark(','));
      const Token token = in_.peek();
      const std::vector<std::string_view> parts = split(token);
      const std::optional<LoopVar> var = parts.size() == 2 ? of_word<LoopVar>(parts[0]) : std::nullopt;
      Step step;
      if (!var || !number(parts[1], step.stride))
        return in_.expected(fmt::format("VARIABLE:STRIDE, the variable {}", words<LoopVar>()));
      step.var = *var;
      steps.push_back(step);
      TW_TRY_VOID(in_.advance());
    }
    return in_.mark(')');
  }

  static std::vector<std::string_view> split(const Token& token) {
    std::vector<std::string_view> parts;
    if (token.kind != Token::Kind::Word) return parts;
    std::string_view text = token.text;
    for (size_t colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':')) {
      parts.push_back(text.substr(0, colon));
      text.remove_prefix(colon + 1);
    }
    parts.push_back(text);
    return parts;
  }
  template <class Number>
  static bool number(std::string_view text, Number& value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end;
  }

  Result<void> read_compute() {
    Stage stage;
    Generic generic;
    BufferId page{};
    std::optional<std::vector<BufferId>> ins, outs;
    TW_TRY(stage.name, in_.name("a stage's name"));
    TW_TRY_VOID(in_.fields({{"space", true, [&] { return read_space(generic.iters); }},
                            {"reads", true, [&] { return read_operands(generic.ins, stage.ins); }},
                            {"page", true, into(page, [&] { return buffer_ref(); })},
                            {"ins", false, into_list(ins)},
                            {"outs", false, into_list(outs)},
                            {"level", false, into(stage.level, [&] { return in_.one_of<FoldLevel>(); })},
                            {"value", true, into(generic.body, [&] { return read_expr(in_); })}}));
    stage.outs.push_back(page);
    stage.kind = Compute{std::move(generic)};
    push(std::move(stage), std::move(ins), std::move(outs));
    return {};
  }

  // (AXIS:EXTENT[:POOL], ...)
  Result<void> read_space(std::vector<Iter>& iters) {
    TW_TRY_VOID(in_.mark('('));
    while (!in_.peek().is(')')) {
      if (!iters.empty()) TW_TRY_VOID(in_.mark(','));
      const std::vector<std::string_view> parts = split(in_.peek());
      Iter iter;
      const bool sized = parts.size() == 2 || parts.size() == 3;
      const std::optional<Axis> axis = sized ? of_word<Axis>(parts[0]) : std::nullopt;
      if (parts.size() == 3) iter.reduce = of_word<Pool>(parts[2]);
      if (!axis || !number(parts[1], iter.extent) || (parts.size() == 3 && !iter.reduce))
        return in_.expected("row:EXTENT, col:EXTENT or k:EXTENT, reduced with :sum, :max or :argmax");
      iter.axis = *axis;
      iters.push_back(iter);
      TW_TRY_VOID(in_.advance());
    }
    return in_.mark(')');
  }

  // (BUFFER[MAP], ...)
  Result<void> read_operands(std::vector<ElemAccess>& maps, std::vector<BufferId>& pages) {
    TW_TRY_VOID(in_.mark('('));
    while (!in_.peek().is(')')) {
      if (!maps.empty()) TW_TRY_VOID(in_.mark(','));
      TW_TRY(const BufferId page, buffer_ref());
      pages.push_back(page);
      TW_TRY_VOID(in_.mark('['));
      TW_TRY(ElemAccess map, read_map());
      maps.push_back(map);
      TW_TRY_VOID(in_.mark(']'));
    }
    return in_.mark(')');
  }

  // BASE {AXIS:COEFFICIENT} [@OPERAND:STRIDE:MODULUS]
  Result<ElemAccess> read_map() {
    ElemAccess map;
    TW_TRY(map.base, in_.integer());
    while (!in_.peek().is(']')) {
      const std::vector<std::string_view> parts = split(in_.peek());
      const std::optional<Axis> axis = parts.size() == 2 ? of_word<Axis>(parts[0]) : std::nullopt;
      IndirectTerm term;
      if (axis && map.of(*axis) == 0 && number(parts[1], map.coef[static_cast<size_t>(*axis)])) {
        TW_TRY_VOID(in_.advance());
      } else if (parts.size() == 3 && parts[0].starts_with('@') && !map.indirect &&
                 number(parts[0].substr(1), term.operand) && number(parts[1], term.stride) &&
                 number(parts[2], term.modulus)) {
        map.indirect = term;
        TW_TRY_VOID(in_.advance());
      } else {
        return in_.expected("row:, col: or k: with a coefficient, each once, or @OPERAND:STRIDE:MODULUS");
      }
    }
    return map;
  }

  Result<void> read_matmul() {
    Stage stage;
    MatmulTiles matmul;
    BufferId a{}, b{}, page{};
    std::optional<std::vector<BufferId>> ins, outs;
    const auto read_buffer_id = [&] { return buffer_ref(); };
    TW_TRY(stage.name, in_.name("a stage's name"));
    TW_TRY_VOID(in_.fields({{"a", true, into(a, read_buffer_id)},
                            {"b", true, into(b, read_buffer_id)},
                            {"page", true, into(page, read_buffer_id)},
                            {"shape", true,
                             [&]() -> Result<void> {
                               const Token at = in_.peek();
                               TW_TRY(const auto shape, in_.naturals('x', 3, "ROWSxCOLSxINNER"));
                               for (const uint64_t side : shape)
                                 if (side > ~uint32_t{0})
                                   return in_.refuse_at(at, graph::found_text(at), "numbers below 2^32");
                               matmul = {static_cast<uint32_t>(shape[0]), static_cast<uint32_t>(shape[1]),
                                         static_cast<uint32_t>(shape[2])};
                               return {};
                             }},
                            {"ins", false, into_list(ins)},
                            {"outs", false, into_list(outs)},
                            {"level", false, into(stage.level, [&] { return in_.one_of<FoldLevel>(); })}}));
    stage.ins = {a, b};
    stage.outs = {page};
    stage.kind = Compute{matmul};
    push(std::move(stage), std::move(ins), std::move(outs));
    return {};
  }

  // ---- edges and work ----

  // `edges N` says that the edges are not the derived ones; the lines that follow list them.
  Result<void> read_edges() {
    TW_TRY_VOID(skip_number());
    explicit_edges_ = true;
    return {};
  }
  Result<void> skip_number() {
    TW_TRY(const uint64_t count, in_.natural());
    (void)count;
    return {};
  }
  Result<void> read_edge() {
    explicit_edges_ = true;
    TW_TRY(const uint32_t producer, in_.natural32());
    TW_TRY(const uint32_t buffer, in_.natural32());
    TW_TRY(const uint32_t consumer, in_.natural32());
    p_.edges.push_back({StageId{producer}, BufferId{buffer}, StageId{consumer}});
    return {};
  }

  Result<void> read_plan() {
    BlockPlan& plan = p_.work.plan;
    return in_.fields({{"per_site", true, into_pair(plan.per_site_m, plan.per_site_n)},
                       {"grid", true, into_pair(plan.grid_m, plan.grid_n)},
                       {"blocks", true, into_natural(plan.num_blocks)},
                       {"block_k", true, into_natural(plan.block_k)},
                       {"block", true, into_pair(plan.block_m, plan.block_n)},
                       {"k_tiles", true, into_natural(p_.work.k_tiles)}});
  }

  Result<void> read_trip() {
    Trip trip;
    TW_TRY_VOID(in_.fields({{"tensor", true, into(trip.tensor, [&] { return tensor_ref(false); })},
                            {"elem", true, into_natural(trip.elem)},
                            {"admit", true,
                             [&]() -> Result<void> {
                               TW_TRY(const auto bound, in_.integers(':', 2, "LOW:HIGH"));
                               trip.low = bound[0];
                               trip.high = bound[1];
                               return {};
                             }},
                            {"bias", true, into(trip.bias, [&] { return in_.integer(); })},
                            {"per", true, into_natural(trip.per)}}));
    p_.work.k_trip = trip;
    return {};
  }

  Result<void> read_item() {
    WorkItem item;
    TW_TRY(const auto coord, in_.naturals(':', 2, "Y:X"));
    item.y = coord[0];
    item.x = coord[1];
    TW_TRY_VOID(in_.fields({{"tile", true,
                             [&]() -> Result<void> {
                               TW_TRY(const auto tile, in_.naturals(':', 2, "ROW:COL"));
                               item.out.row = tile[0];
                               item.out.col = tile[1];
                               return {};
                             }},
                            {"size", true, into_pair(item.out.rows, item.out.cols)}}));
    p_.work.items.push_back(item);
    return {};
  }

  TokenReader& in_;
  Program p_;
  Names sources_, results_, buffers_;
  bool explicit_edges_ = false;
};

}  // namespace

Result<Program> parse_program(std::string_view text, std::string_view label) {
  TokenReader in(text, label);
  TW_TRY_VOID(in.start());
  TW_TRY_VOID(in.skip_lines());
  TW_TRY(Program program, Parser(in).run());
  if (!in.at_end()) return in.expected("one program");
  return program;
}

Result<Composition> parse_composition(std::string_view text, std::string_view label) {
  TokenReader in(text, label);
  ComposeOptions options;
  TW_TRY_VOID(in.start());
  TW_TRY_VOID(in.skip_lines());
  if (!in.peek().is_word("step")) return in.expected("a line: step NAME");
  TW_TRY_VOID(in.advance());
  TW_TRY(options.name, in.name("the step's name"));
  for (;;) {
    if (!in.at_line_end()) return in.expected("the end of the line");
    TW_TRY_VOID(in.skip_lines());
    if (!in.peek().is_word("output")) break;
    TW_TRY_VOID(in.advance());
    TW_TRY(std::string output, in.name("an output's name"));
    options.outputs.push_back(std::move(output));
  }
  std::vector<Program> sections;
  while (!in.at_end()) {
    TW_TRY(Program section, Parser(in).run());
    sections.push_back(std::move(section));
  }
  return compose(std::move(sections), options);
}

}  // namespace tw::spatial
