#include <fmt/format.h>

#include <array>
#include <functional>
#include <limits>
#include <unordered_map>

#include "base/near_name.h"
#include "graph/field_text.h"
#include "graph/infer.h"
#include "graph/lexer.h"
#include "graph/text.h"

namespace tw::graph {
namespace {

// Every op with the fields' values that stand when the text names none.
template <size_t... I>
std::array<OpSpec, sizeof...(I)> all_ops(std::index_sequence<I...>) {
  return {OpSpec(std::in_place_index<I>)...};
}
const std::array kOps = all_ops(std::make_index_sequence<std::variant_size_v<OpSpec>>{});

std::string near_remedy(std::string_view name, std::span<const std::string_view> known) {
  const std::optional<std::string_view> near = near_name(name, known);
  return near ? fmt::format("Did you mean {}?", *near) : std::string();
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view label) : lexer_(text, label) {}

  Result<ParsedGraph> run() {
    TW_TRY_VOID(advance());
    TW_TRY_VOID(skip_line_ends());
    TW_TRY_VOID(parse_header());
    while (true) {
      TW_TRY_VOID(skip_line_ends());
      if (token_.kind == Token::Kind::End) return std::move(parsed_);
      TW_TRY_VOID(parse_statement());
      if (token_.kind != Token::Kind::LineEnd && token_.kind != Token::Kind::End)
        return unexpected("the end of the line");
    }
  }

 private:
  // ---- tokens ----

  Result<void> advance() {
    TW_TRY(token_, lexer_.next());
    return {};
  }
  Result<void> skip_line_ends() {
    while (token_.kind == Token::Kind::LineEnd) TW_TRY_VOID(advance());
    return {};
  }
  [[nodiscard]] Refusal unexpected(std::string_view expected, std::string remedy = {}) const {
    return lexer_.refuse_at(token_, found_text(token_), expected, std::move(remedy));
  }
  [[nodiscard]] bool at_name() const { return token_.kind == Token::Kind::Word || token_.kind == Token::Kind::Quoted; }
  Result<void> take_mark(char mark, std::string_view where) {
    if (!token_.is(mark)) return unexpected(fmt::format("\"{}\" {}", mark, where));
    return advance();
  }
  // A word, and the token it was.
  Result<Token> take_word(std::string_view expected) {
    const Token word = token_;
    if (word.kind != Token::Kind::Word) return unexpected(expected);
    TW_TRY_VOID(advance());
    return word;
  }
  Result<std::string> take_name(std::string_view expected) {
    if (!at_name()) return unexpected(expected);
    std::string name = name_of(token_);
    TW_TRY_VOID(advance());
    return name;
  }
  template <class T>
  Result<T> take_value(std::string_view what) {
    T value{};
    if (token_.kind != Token::Kind::Word || !parse_value(token_.text, value)) {
      std::string remedy;
      if constexpr (std::is_enum_v<T>) remedy = near_remedy(token_.text, kEnumNames<T>);
      return unexpected(fmt::format("{} for {}", value_kind(value), what), std::move(remedy));
    }
    TW_TRY_VOID(advance());
    return value;
  }

  // ---- statements ----

  Result<void> parse_header() {
    constexpr std::string_view kExpected = "\"graph NAME FORM\" in the first line";
    if (!token_.is_word("graph")) return unexpected(kExpected);
    TW_TRY_VOID(advance());
    TW_TRY(parsed_.graph.name, take_name(kExpected));
    constexpr std::string_view kForms = "a form: decode, chunk:ROWS, chunk:ROWS:all (1 to 512 rows) or batch:SEQUENCES";
    const std::optional<Form> form = token_.kind == Token::Kind::Word ? parse_form(token_.text) : std::nullopt;
    if (!form) return unexpected(kForms);
    parsed_.graph.form = *form;
    TW_TRY_VOID(advance());
    if (token_.kind != Token::Kind::LineEnd && token_.kind != Token::Kind::End)
      return unexpected("the end of the line");
    return {};
  }

  Result<void> parse_statement() {
    constexpr std::string_view kExpected = "a declaration, an op or io";
    const Token first = token_;
    if (!at_name()) return unexpected(kExpected);
    TW_TRY_VOID(advance());
    if (token_.is('=')) {
      TW_TRY_VOID(advance());
      return parse_op(&first);
    }
    if (first.is_word(SetRows::kName) && token_.is('(')) return parse_call(first, nullptr);
    if (first.is_word("io")) return parse_io();
    if (const std::optional<Role> role = enum_of_name<Role>(first.text); role && first.kind == Token::Kind::Word)
      return parse_declaration(*role);
    constexpr std::array<std::string_view, 7> kStarts{"param", "state",      "table",   "const",
                                                      "io",    "activation", "set_rows"};
    return lexer_.refuse_at(first, found_text(first),
                            "param, state, table, const, activation, io, set_rows or NAME = OP",
                            near_remedy(first.text, kStarts));
  }

  Result<TensorId> make_tensor(const Token& at, Tensor tensor) {
    StepGraph& graph = parsed_.graph;
    if (graph.tensors.size() >= index(kNoTensor)) return lexer_.refuse_at(at, "one tensor more", "fewer tensors");
    const TensorId id{static_cast<uint32_t>(graph.tensors.size())};
    if (!ids_.emplace(tensor.name, id).second)
      return lexer_.refuse_at(at, found_text(at), "a name that no other tensor has");
    graph.tensors.push_back(std::move(tensor));
    return id;
  }

  Result<void> parse_declaration(Role role) {
    Tensor tensor{.role = role};
    if (role == Role::Param) tensor.element = Element::I32;
    const Token at = token_;
    TW_TRY(tensor.name, take_name("the tensor's name"));
    TW_TRY_VOID(parse_shape(tensor));
    if (token_.kind == Token::Kind::Word && token_.text != "sequence") {
      TW_TRY(tensor.element, take_value<Element>("the tensor's element"));
    }
    if (token_.is_word("sequence")) TW_TRY_VOID(parse_sequence(tensor));
    TW_TRY(const TensorId id, make_tensor(at, std::move(tensor)));
    if (role == Role::Constant && token_.is('=')) return parse_values(parsed_.graph.at(id));
    return {};
  }

  // "64x128"; "64" is one column of 64 rows.
  Result<void> parse_shape(Tensor& tensor) {
    const Token at = token_;
    const std::string_view word = at.kind == Token::Kind::Word ? at.text : std::string_view();
    const size_t cross = word.find('x');
    const bool column = cross == std::string_view::npos;
    if (!parse_value(word.substr(0, cross), tensor.rows) ||
        (!column && !parse_value(word.substr(cross + 1), tensor.cols)))
      return unexpected("a shape ROWSxCOLUMNS, or ROWS for one column");
    return advance();
  }

  // At "sequence": "sequence=2".
  Result<void> parse_sequence(Tensor& tensor) {
    TW_TRY_VOID(advance());
    TW_TRY_VOID(take_mark('=', "after sequence"));
    TW_TRY(tensor.sequence, take_value<uint32_t>("sequence"));
    return {};
  }

  // ---- values of constants ----

  // "= [1 2 3; 4 5 6]"
  Result<void> parse_values(const Tensor& tensor) {
    TW_TRY_VOID(advance());
    Values values;
    if (tensor.element == Element::F32) {
      TW_TRY(values.f32, parse_matrix<float>(tensor));
    } else {
      TW_TRY(values.i32, parse_matrix<int32_t>(tensor));
    }
    parsed_.constants.emplace(tensor.name, std::move(values));
    return {};
  }

  template <class T>
  Result<std::shared_ptr<const std::vector<T>>> parse_matrix(const Tensor& tensor) {
    TW_TRY_VOID(take_mark('[', "before the values"));
    auto values = std::make_shared<std::vector<T>>();
    const std::string what = fmt::format("the values of {}", tensor.name);
    for (uint64_t r = 0; r < tensor.rows; ++r) {
      if (r > 0 && !token_.is(';'))
        return unexpected(fmt::format("\";\" after {} values, before row {} of {}", tensor.cols, r + 1, tensor.rows));
      if (r > 0) TW_TRY_VOID(advance());
      for (uint64_t c = 0; c < tensor.cols; ++c) {
        if (token_.kind != Token::Kind::Word)
          return unexpected(fmt::format("value {} of {} of row {}", c + 1, tensor.cols, r + 1));
        TW_TRY(const T value, take_value<T>(what));
        values->push_back(value);
      }
    }
    if (!token_.is(']')) return unexpected(fmt::format("\"]\" after {} rows of {} values", tensor.rows, tensor.cols));
    TW_TRY_VOID(advance());
    return std::shared_ptr<const std::vector<T>>(std::move(values));
  }

  // ---- ops ----

  Result<void> parse_op(const Token* result) {
    const Token name = token_;
    TW_TRY_VOID(take_word("the name of an op"));
    return parse_call(name, result);
  }

  // After the op's name. `result` is null for set_rows, whose result is its table.
  Result<void> parse_call(const Token& name, const Token* result) {
    TW_TRY(OpSpec spec, op_of_name(name));
    const bool sets = std::holds_alternative<SetRows>(spec);
    if (sets && result)
      return lexer_.refuse_at(*result, found_text(*result), "set_rows(...) alone: it has no result of its own");
    Op op{.spec = spec};
    TW_TRY_VOID(parse_operands(op));
    std::optional<uint32_t> sequence;
    TW_TRY_VOID(parse_fields(op.spec, sequence));
    if (sets) {
      op.result = op.operands[0];
      TW_TRY_VOID(check_fit(name, op));
    } else {
      TW_TRY(op.result, result_of(name, *result, op, sequence));
    }
    parsed_.graph.ops.push_back(std::move(op));
    return {};
  }

  Result<OpSpec> op_of_name(const Token& name) {
    std::vector<std::string_view> names;
    for (const OpSpec& op : kOps) {
      if (op_name(op) == name.text) return op;
      names.push_back(op_name(op));
    }
    return lexer_.refuse_at(name, found_text(name), "the name of an op", near_remedy(name.text, names));
  }

  Result<void> parse_operands(Op& op) {
    const std::span<const OperandDecl> decls = operand_decls(op.spec);
    op.operands.assign(decls.size(), kNoTensor);
    TW_TRY_VOID(take_mark('(', "after the name of the op"));
    while (!token_.is(')')) {
      TW_TRY_VOID(parse_operand(op, decls));
      if (!token_.is(',') && !token_.is(')')) return unexpected("\",\" or \")\" after an operand");
      if (token_.is(',')) TW_TRY_VOID(advance());
    }
    return advance();
  }

  Result<void> parse_operand(Op& op, std::span<const OperandDecl> decls) {
    std::vector<std::string_view> names;
    for (const OperandDecl& decl : decls) names.push_back(decl.name);
    const std::string expected = fmt::format("an operand of {}: {}", op_name(op.spec), fmt::join(names, ", "));
    size_t i = 0;
    while (i < names.size() && !token_.is_word(names[i])) ++i;
    if (i == names.size()) return unexpected(expected, near_remedy(token_.text, names));
    if (op.operands[i] != kNoTensor) return unexpected(fmt::format("operand {} once", names[i]));
    TW_TRY_VOID(advance());
    TW_TRY_VOID(take_mark('=', "after the name of an operand"));
    TW_TRY(op.operands[i], take_tensor());
    return {};
  }

  Result<TensorId> take_tensor() {
    constexpr std::string_view kExpected = "a tensor that an earlier line makes";
    if (!at_name()) return unexpected(kExpected);
    const std::string name = name_of(token_);
    const auto found = ids_.find(name);
    if (found == ids_.end()) {
      std::vector<std::string_view> names;
      for (const Tensor& tensor : parsed_.graph.tensors) names.push_back(tensor.name);
      return unexpected(kExpected, near_remedy(name, names));
    }
    TW_TRY_VOID(advance());
    return found->second;
  }

  // "eps=1e-06 width=64 sequence=1" to the end of the line.
  Result<void> parse_fields(OpSpec& spec, std::optional<uint32_t>& sequence) {
    std::vector<std::string> seen;
    while (token_.kind == Token::Kind::Word) {
      const Token name = token_;
      for (const std::string& other : seen)
        if (other == name.text) return unexpected(fmt::format("field {} once", other));
      seen.emplace_back(name.text);
      TW_TRY_VOID(advance());
      if (name.text != "sequence" || std::holds_alternative<SetRows>(spec)) {
        TW_TRY_VOID(std::visit([&](auto& op) { return parse_field(op, name); }, spec));
      } else {
        TW_TRY_VOID(take_mark('=', "after the name of a field"));
        TW_TRY(sequence, take_value<uint32_t>("sequence"));
      }
    }
    return {};
  }

  template <class Op>
  Result<void> parse_field(Op& op, const Token& name) {
    std::vector<std::string_view> names;
    std::optional<Result<void>> read;
    for_each_field<Op>([&](const auto& field) {
      names.push_back(field.name);
      if (field.name == name.text) read = read_field(op.*field.member, field.name);
    });
    if (read) return *read;
    return lexer_.refuse_at(name, found_text(name),
                            names.empty() ? fmt::format("no field: {} has none", Op::kName)
                                          : fmt::format("a field of {}: {}", Op::kName, fmt::join(names, ", ")),
                            near_remedy(name.text, names));
  }

  template <class T>
  Result<void> read_field(T& value, std::string_view name) {
    TW_TRY_VOID(take_mark('=', "after the name of a field"));
    TW_TRY(value, take_value<T>(name));
    return {};
  }

  Result<Shape> check_fit(const Token& name, const Op& op) {
    Result<Shape> shape = infer_result(parsed_.graph, op.spec, op.operands);
    if (shape) return shape;
    return refuse(
        RefusalKind::Malformed, lexer_.label(),
        fmt::format("line {}, column {}: {}: {}", name.line, name.column, op_name(op.spec), shape.refusal().reason));
  }

  // The activation the op makes; or the tensor of that name, when an earlier line made it.
  Result<TensorId> result_of(const Token& name, const Token& result, const Op& op, std::optional<uint32_t> sequence) {
    std::string tensor_name = name_of(result);
    if (const auto found = ids_.find(tensor_name); found != ids_.end()) return found->second;
    TW_TRY(const Shape shape, check_fit(name, op));
    return make_tensor(result, {.name = std::move(tensor_name),
                                .rows = shape.rows,
                                .cols = shape.cols,
                                .role = Role::Activation,
                                .element = shape.element,
                                .sequence = sequence});
  }

  // ---- io ----

  // After "io": "tokens=NAME", or "sequence" and what is known of it.
  Result<void> parse_io() {
    StepIo& io = parsed_.graph.io;
    if (token_.is_word("tokens")) return parse_io_tensor("tokens", io.tokens);
    if (!token_.is_word("sequence")) return unexpected("tokens=NAME, or sequence with position=, logits= and next=");
    TW_TRY_VOID(advance());
    SequenceIo& sequence = io.sequences.emplace_back();
    while (token_.kind == Token::Kind::Word) {
      if (token_.text == "position") {
        TW_TRY_VOID(parse_io_tensor("position", sequence.position));
      } else if (token_.text == "logits") {
        TW_TRY_VOID(parse_io_tensor("logits", sequence.logits));
      } else if (token_.text == "next") {
        TW_TRY_VOID(parse_io_tensor("next", sequence.next));
      } else {
        return unexpected("position=, logits= or next=");
      }
    }
    return {};
  }

  Result<void> parse_io_tensor(std::string_view what, TensorId& id) {
    if (id != kNoTensor) return unexpected(fmt::format("{} once", what));
    TW_TRY_VOID(advance());
    TW_TRY_VOID(take_mark('=', fmt::format("after {}", what)));
    TW_TRY(id, take_tensor());
    return {};
  }

  Lexer lexer_;
  Token token_;
  ParsedGraph parsed_;
  std::unordered_map<std::string, TensorId> ids_;
};

}  // namespace

Result<ParsedGraph> parse(std::string_view text, std::string_view label) { return Parser(text, label).run(); }

}  // namespace tw::graph
