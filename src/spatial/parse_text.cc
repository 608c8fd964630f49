#include <fmt/format.h>

#include <array>

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
  using Read = Result<void> (Parser::*)();
  struct Statement {
    std::string_view keyword;
    Read read;
  };

  Result<void> read_header() {
    if (!in_.peek().is_word("program")) return in_.expected("a line: program NAME target=... tile=... accumulator=...");
    TW_TRY_VOID(in_.advance());
    TW_TRY(p_.name, in_.name("the program's name"));
    return in_.fields({{"target", true, in_.into(p_.target, [this] { return in_.name("a target's name"); })},
                       {"tile", true, in_.into_pair(p_.tile.rows, p_.tile.cols, 'x', "ROWSxCOLS, each below 2^32")},
                       {"accumulator", true, in_.into(p_.accumulator)}});
  }

  Result<void> read_statement() {
    static constexpr std::array<Statement, 8> kStatements{{{"claim", &Parser::read_claim},
                                                           {"tensor", &Parser::read_tensor},
                                                           {"buffer", &Parser::read_buffer},
                                                           {"scratch", &Parser::read_scratch},
                                                           {"edge", &Parser::read_edge},
                                                           {"plan", &Parser::read_plan},
                                                           {"trip", &Parser::read_trip},
                                                           {"item", &Parser::read_item}}};
    if (is_stage_keyword(in_.peek())) {
      TW_TRY(Stage stage, read_stage(in_, names_));
      p_.stages.push_back(std::move(stage));
      return {};
    }
    for (const Statement& statement : kStatements) {
      if (!in_.peek().is_word(statement.keyword)) continue;
      TW_TRY_VOID(in_.advance());
      return (this->*statement.read)();
    }
    return in_.expected("claim, tensor, buffer, scratch, load, store, compute, matmul, edge, plan, trip or item");
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
    TW_TRY(tensor.role, in_.value<TensorRole>());
    TW_TRY_VOID(in_.into_pair(tensor.rows, tensor.cols, 'x', "ROWSxCOLS")());
    TW_TRY(tensor.dtype, in_.value<Precision>());
    TW_TRY(tensor.init, read_init());
    names_.declare(tensor, TensorId{static_cast<uint32_t>(p_.tensors.size())});
    p_.tensors.push_back(std::move(tensor));
    return {};
  }

  Result<Init> read_init() {
    const Token kind = in_.peek();
    if (kind.is_word("zero") || kind.is_word("given") || kind.is_word("external")) {
      TW_TRY_VOID(in_.advance());
      if (kind.is_word("zero")) return Init{ZeroInit{}};
      if (kind.is_word("given")) return Init{GivenInit{}};
      return Init{ExternalInit{}};
    }
    const auto follows = [&](std::string_view word) { return kind.is_word(word); };
    if (!follows("real") && !follows("integer") && !follows("reals") && !follows("integers"))
      return in_.expected("zero, given, external, real=, integer=, reals= or integers=");
    TW_TRY_VOID(in_.advance());
    TW_TRY_VOID(in_.mark('='));
    if (follows("real")) {
      TW_TRY(const double value, in_.value<double>());
      return Init{RealInit{value}};
    }
    if (follows("integer")) {
      TW_TRY(const int64_t value, in_.value<int64_t>());
      return Init{IntegerInit{value}};
    }
    if (follows("reals")) {
      std::vector<double> values;
      TW_TRY_VOID(read_values(values));
      return Init{real_values(std::move(values))};
    }
    std::vector<int64_t> values;
    TW_TRY_VOID(read_values(values));
    return Init{integer_values(std::move(values))};
  }

  template <class T>
  Result<void> read_values(std::vector<T>& values) {
    TW_TRY_VOID(in_.mark('['));
    while (!in_.peek().is(']')) {
      TW_TRY(const T value, in_.value<T>());
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
    TW_TRY_VOID(read_field("page", buffer.page_tiles));
    TW_TRY_VOID(read_field("depth", buffer.depth));
    TW_TRY(buffer.dtype, in_.value<Precision>());
    names_.declare(buffer, BufferId{static_cast<uint32_t>(p_.buffers.size())});
    p_.buffers.push_back(std::move(buffer));
    return {};
  }
  template <class T>
  Result<void> read_field(std::string_view key, T& value) {
    if (!in_.peek().is_word(key)) return in_.expected(fmt::format("{}=", key));
    TW_TRY_VOID(in_.advance());
    TW_TRY_VOID(in_.mark('='));
    TW_TRY(value, in_.value<T>());
    return {};
  }

  // ---- edges and work ----

  // edge PRODUCER BUFFER CONSUMER, or edge none: the edges are those listed, not the derived ones.
  Result<void> read_edge() {
    explicit_edges_ = true;
    if (in_.peek().is_word("none")) return in_.advance();
    TW_TRY(const uint32_t producer, in_.value<uint32_t>());
    TW_TRY(const uint32_t buffer, in_.value<uint32_t>());
    TW_TRY(const uint32_t consumer, in_.value<uint32_t>());
    p_.edges.push_back({StageId{producer}, BufferId{buffer}, StageId{consumer}});
    return {};
  }

  Result<void> read_plan() {
    BlockPlan& plan = p_.work.plan;
    return in_.fields({{"per_site", true, in_.into_pair(plan.per_site_m, plan.per_site_n, 'x', "ROWSxCOLS")},
                       {"grid", true, in_.into_pair(plan.grid_m, plan.grid_n, 'x', "ROWSxCOLS")},
                       {"blocks", true, in_.into(plan.num_blocks)},
                       {"block_k", true, in_.into(plan.block_k)},
                       {"block", true, in_.into_pair(plan.block_m, plan.block_n, 'x', "ROWSxCOLS")},
                       {"k_tiles", true, in_.into(p_.work.k_tiles)}});
  }

  Result<void> read_trip() {
    Trip trip;
    TW_TRY_VOID(in_.fields({{"tensor", true, in_.into(trip.tensor, [this] { return in_.source(names_); })},
                            {"elem", true, in_.into(trip.elem)},
                            {"admit", true, in_.into_pair(trip.low, trip.high, ':', "LOW:HIGH")},
                            {"bias", true, in_.into(trip.bias)},
                            {"per", true, in_.into(trip.per)}}));
    p_.work.k_trip = trip;
    return {};
  }

  Result<void> read_item() {
    WorkItem item;
    TW_TRY_VOID(in_.into_pair(item.y, item.x, ':', "Y:X")());
    TW_TRY_VOID(in_.fields({{"tile", true, in_.into_pair(item.out.row, item.out.col, ':', "ROW:COL")},
                            {"size", true, in_.into_pair(item.out.rows, item.out.cols, 'x', "ROWSxCOLS")}}));
    p_.work.items.push_back(item);
    return {};
  }

  TokenReader& in_;
  Program p_;
  NameTable names_;
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
