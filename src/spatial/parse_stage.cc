#include <fmt/format.h>

#include <array>

#include "spatial/text_parser.h"

namespace tw::spatial {
namespace {

using Buffers = std::vector<BufferId>;

// Reads the line of one stage.
class StageReader {
 public:
  StageReader(TokenReader& in, const NameTable& names) : in_(in), names_(names) {}

  // Each begins behind the keyword.
  Result<Stage> load() { return move(true); }
  Result<Stage> store() { return move(false); }

  Result<Stage> compute() {
    Generic generic;
    Buffers operands;
    BufferId page{};
    TW_TRY(stage_.name, in_.name("a stage's name"));
    TW_TRY_VOID(in_.fields({{"space", true, [&] { return read_space(generic.iters); }},
                            {"reads", true, [&] { return read_operands(generic.ins, operands); }},
                            {"page", true, buffer_into(page)},
                            {"ins", false, list_into(ins_)},
                            {"outs", false, list_into(outs_)},
                            {"level", false, in_.into(stage_.level)},
                            {"value", true, in_.into(generic.body, [this] { return read_expr(in_); })}}));
    stage_.kind = Compute{std::move(generic)};
    return made(std::move(operands), {page});
  }

  Result<Stage> matmul() {
    MatmulTiles shape;
    BufferId a{}, b{}, page{};
    TW_TRY(stage_.name, in_.name("a stage's name"));
    TW_TRY_VOID(in_.fields({{"a", true, buffer_into(a)},
                            {"b", true, buffer_into(b)},
                            {"page", true, buffer_into(page)},
                            {"shape", true, [&] { return read_shape(shape); }},
                            {"ins", false, list_into(ins_)},
                            {"outs", false, list_into(outs_)},
                            {"level", false, in_.into(stage_.level)}}));
    stage_.kind = Compute{shape};
    return made({a, b}, {page});
  }

 private:
  Result<Stage> move(bool load) {
    AccessPattern pattern;
    TensorId tensor{};
    BufferId page{};
    IndirectTile indirect;
    int given = 0;  // of the four fields of an index
    const auto of_index = [&given](TokenReader::Read read) -> TokenReader::Read {
      return [&given, read = std::move(read)] { return ++given, read(); };
    };
    TW_TRY(stage_.name, in_.name("a stage's name"));
    TW_TRY_VOID(
        in_.fields({{"tensor", true, in_.into(tensor, [&] { return load ? in_.source(names_) : in_.result(names_); })},
                    {"page", true, buffer_into(page)},
                    {"block", true, in_.into_pair(pattern.block_h, pattern.block_w, 'x', "ROWSxCOLS")},
                    {"base", false, in_.into(pattern.origin.base)},
                    {"steps", false, [&] { return read_steps(pattern.origin.steps); }},
                    {"stride_h", false, in_.into(pattern.stride_h)},
                    {"stride_w", false, in_.into(pattern.stride_w)},
                    {"index", false, of_index(buffer_into(indirect.index))},
                    {"per", false, of_index(in_.into(indirect.elems_per_tile))},
                    {"times", false, of_index(in_.into(indirect.tile_stride))},
                    {"within", false, of_index(in_.into_pair(indirect.low, indirect.high, ':', "LOW:HIGH"))},
                    {"ins", false, list_into(ins_)},
                    {"outs", false, list_into(outs_)},
                    {"level", false, in_.into(stage_.level)}}));
    if (given != 0 && given != 4) return in_.expected("index=, per=, times= and within=, all four or none");
    Buffers ins, outs;
    (load ? outs : ins).push_back(page);
    if (given == 4) {
      pattern.origin.indirect = indirect;
      ins.push_back(indirect.index);
    }
    if (load)
      stage_.kind = Load{tensor, std::move(pattern)};
    else
      stage_.kind = Store{tensor, std::move(pattern)};
    return made(std::move(ins), std::move(outs));
  }

  // With the pages that the kind of the stage takes, unless the line lists others.
  Result<Stage> made(Buffers ins, Buffers outs) {
    stage_.ins = ins_ ? std::move(*ins_) : std::move(ins);
    stage_.outs = outs_ ? std::move(*outs_) : std::move(outs);
    return std::move(stage_);
  }

  TokenReader::Read buffer_into(BufferId& id) {
    return in_.into(id, [this] { return in_.buffer(names_); });
  }
  TokenReader::Read list_into(std::optional<Buffers>& list) {
    return [this, &list] {
      list.emplace();
      return in_.list([this, &list]() -> Result<void> {
        TW_TRY(const BufferId id, in_.buffer(names_));
        list->push_back(id);
        return {};
      });
    };
  }

  // The parts of a word between colons; of another token none.
  [[nodiscard]] std::vector<std::string_view> parts() const {
    return in_.at_word() ? split(in_.peek().text, ':') : std::vector<std::string_view>{};
  }

  // (VAR:STRIDE, ...)
  Result<void> read_steps(std::vector<Step>& steps) {
    return in_.list([&]() -> Result<void> {
      const std::vector<std::string_view> part = parts();
      Step step;
      if (part.size() != 2 || !parse_value(part[0], step.var) || !parse_value(part[1], step.stride))
        return in_.expected(fmt::format("VARIABLE:STRIDE, the variable {}", enum_choices<LoopVar>()));
      steps.push_back(step);
      return in_.advance();
    });
  }

  // (AXIS:EXTENT[:POOL], ...)
  Result<void> read_space(std::vector<Iter>& iters) {
    return in_.list([&]() -> Result<void> {
      const std::vector<std::string_view> part = parts();
      Iter iter;
      const bool sized = part.size() == 2 || part.size() == 3;
      bool good = sized && parse_value(part[0], iter.axis) && parse_value(part[1], iter.extent);
      if (good && part.size() == 3) good = parse_value(part[2], iter.reduce.emplace());
      if (!good) return in_.expected("row:EXTENT, col:EXTENT or k:EXTENT, reduced with :sum, :max or :argmax");
      iters.push_back(iter);
      return in_.advance();
    });
  }

  // (BUFFER[MAP], ...)
  Result<void> read_operands(std::vector<ElemAccess>& maps, Buffers& pages) {
    return in_.list([&]() -> Result<void> {
      TW_TRY(const BufferId page, in_.buffer(names_));
      pages.push_back(page);
      TW_TRY_VOID(in_.mark('['));
      TW_TRY(ElemAccess map, read_map());
      maps.push_back(map);
      return in_.mark(']');
    });
  }

  // BASE {AXIS:COEFFICIENT} [@OPERAND:STRIDE:MODULUS]
  Result<ElemAccess> read_map() {
    ElemAccess map;
    std::array<bool, kAxes> named{};
    TW_TRY(map.base, in_.value<int64_t>());
    while (!in_.peek().is(']')) {
      if (!read_axis_term(map, named) && !read_indirect_term(map))
        return in_.expected("row:, col: or k: with a coefficient, each once, or @OPERAND:STRIDE:MODULUS");
      TW_TRY_VOID(in_.advance());
    }
    return map;
  }
  bool read_axis_term(ElemAccess& map, std::array<bool, kAxes>& named) const {
    const std::vector<std::string_view> part = parts();
    Axis axis{};
    if (part.size() != 2 || !parse_value(part[0], axis)) return false;
    const auto at = static_cast<size_t>(axis);
    return !std::exchange(named[at], true) && parse_value(part[1], map.coef[at]);
  }
  bool read_indirect_term(ElemAccess& map) const {
    const std::vector<std::string_view> part = parts();
    IndirectTerm term;
    if (part.size() != 3 || !part[0].starts_with('@') || map.indirect) return false;
    if (!parse_value(part[0].substr(1), term.operand) || !parse_value(part[1], term.stride) ||
        !parse_value(part[2], term.modulus))
      return false;
    map.indirect = term;
    return true;
  }

  Result<void> read_shape(MatmulTiles& shape) {
    TW_TRY(const auto sides, (in_.numbers<uint32_t, 3>('x', "ROWSxCOLSxINNER, each below 2^32")));
    shape = {sides[0], sides[1], sides[2]};
    return {};
  }

  TokenReader& in_;
  const NameTable& names_;
  Stage stage_;
  std::optional<Buffers> ins_, outs_;  // where the line lists them
};

struct Keyword {
  std::string_view word;
  Result<Stage> (StageReader::*read)();
};
constexpr std::array<Keyword, 4> kKeywords{{{"load", &StageReader::load},
                                            {"store", &StageReader::store},
                                            {"compute", &StageReader::compute},
                                            {"matmul", &StageReader::matmul}}};

const Keyword* keyword_of(const graph::Token& token) {
  for (const Keyword& keyword : kKeywords)
    if (token.is_word(keyword.word)) return &keyword;
  return nullptr;
}

}  // namespace

bool is_stage_keyword(const graph::Token& token) { return keyword_of(token) != nullptr; }

Result<Stage> read_stage(TokenReader& in, const NameTable& names) {
  const Keyword* keyword = keyword_of(in.peek());
  if (!keyword) return in.expected("load, store, compute or matmul");
  TW_TRY_VOID(in.advance());
  StageReader reader(in, names);
  return (reader.*keyword->read)();
}

}  // namespace tw::spatial
