#include <nlohmann/json.hpp>

#include "spatial/json.h"
#include "spatial/names.h"
#include "spatial/real_text.h"

namespace tw::spatial {
namespace {

using Json = nlohmann::ordered_json;

template <class T, class F>
Json array_of(const T& all, F each) {
  Json array = Json::array();
  for (const auto& one : all) array.push_back(each(one));
  return array;
}

// ---- tensors ----

Json init_json(const ZeroInit&) { return {{"kind", "zero"}}; }
Json init_json(const RealInit& init) { return {{"kind", "real"}, {"value", real_text(init.value)}}; }
Json init_json(const IntegerInit& init) { return {{"kind", "integer"}, {"value", init.value}}; }
Json init_json(const GivenInit&) { return {{"kind", "given"}}; }
Json init_json(const ExternalInit&) { return {{"kind", "external"}}; }
Json init_json(const IntegerValues& init) {
  return {{"kind", "integers"}, {"values", init.values ? Json(*init.values) : Json::array()}};
}
Json init_json(const RealValues& init) {
  Json values = Json::array();
  if (init.values)
    for (const double value : *init.values) values.push_back(real_text(value));
  return {{"kind", "reals"}, {"values", std::move(values)}};
}

Json tensor_json(const Tensor& t) {
  return {{"name", t.name},         {"role", enum_name(t.role)},
          {"rows", t.rows},         {"cols", t.cols},
          {"dtype", name(t.dtype)}, {"init", std::visit([](const auto& init) { return init_json(init); }, t.init)}};
}

Json buffer_json(const Buffer& b) {
  return {{"name", b.name},
          {"kind", enum_name(b.kind)},
          {"page_tiles", b.page_tiles},
          {"depth", b.depth},
          {"dtype", name(b.dtype)}};
}

// ---- bodies: nodes in order, children by number ----

Json pred_json(const Pred& p) {
  return {{"axis", enum_name(p.axis)}, {"at_least", p.at_least}, {p.by_operand ? "operand" : "bound", p.bound}};
}
Json node_json(const OperandNode& n) { return {{"op", "operand"}, {"operand", n.operand}}; }
Json node_json(const ConstNode& n) { return {{"op", "const"}, {"value", real_text(n.value)}}; }
Json node_json(const BinaryNode& n) { return {{"op", enum_name(n.op)}, {"left", n.left}, {"right", n.right}}; }
Json node_json(const ShrNode& n) { return {{"op", "shr"}, {"arg", n.arg}, {"by", n.by}}; }
Json node_json(const UnaryNode& n) { return {{"op", enum_name(n.op)}, {"arg", n.arg}}; }
Json node_json(const RsqrtNode& n) {
  return {{"op", "rsqrt"}, {"arg", n.arg}, {"eps_nano", n.eps_nano}, {"over", n.over}};
}
Json node_json(const SelectNode& n) {
  return {{"op", "select"}, {"if", pred_json(n.cond)}, {"then", n.then}, {"else", n.otherwise}};
}

// ---- stages ----

Json map_json(const ElemAccess& m) {
  Json json{{"base", m.base}, {"row", m.of(Axis::Row)}, {"col", m.of(Axis::Col)}, {"k", m.of(Axis::K)}};
  if (m.indirect)
    json["indirect"] = {
        {"operand", m.indirect->operand}, {"stride", m.indirect->stride}, {"modulus", m.indirect->modulus}};
  return json;
}

Json iter_json(const Iter& i) {
  Json json{{"axis", enum_name(i.axis)}, {"extent", i.extent}};
  if (i.reduce) json["reduce"] = enum_name(*i.reduce);
  return json;
}

Json pattern_json(const AccessPattern& p) {
  Json json{{"base", p.origin.base},
            {"steps", array_of(p.origin.steps,
                               [](const Step& s) {
                                 return Json{{"var", enum_name(s.var)}, {"stride", s.stride}};
                               })},
            {"block_h", p.block_h},
            {"block_w", p.block_w},
            {"stride_h", p.stride_h},
            {"stride_w", p.stride_w}};
  if (const auto& i = p.origin.indirect)
    json["indirect"] = {{"index", index(i->index)},
                        {"tile_stride", i->tile_stride},
                        {"elems_per_tile", i->elems_per_tile},
                        {"low", i->low},
                        {"high", i->high}};
  return json;
}

Json kind_json(const Load& s) {
  return {{"kind", "load"}, {"tensor", index(s.tensor)}, {"pattern", pattern_json(s.pattern)}};
}
Json kind_json(const Store& s) {
  return {{"kind", "store"}, {"tensor", index(s.tensor)}, {"pattern", pattern_json(s.pattern)}};
}
Json op_json(const MatmulTiles& m) {
  return {{"kind", "matmul"}, {"rows", m.rows}, {"cols", m.cols}, {"inner", m.inner}};
}
Json op_json(const Generic& g) {
  return {{"kind", "generic"},
          {"space", array_of(g.iters, iter_json)},
          {"maps", array_of(g.ins, map_json)},
          {"body", array_of(g.body.nodes(), [](const Node& node) {
             return std::visit([](const auto& n) { return node_json(n); }, node);
           })}};
}
Json kind_json(const Compute& s) {
  return std::visit([](const auto& op) { return op_json(op); }, s.op);
}

Json stage_json(const Stage& s) {
  const auto id = [](BufferId buffer) { return Json(index(buffer)); };
  Json json{
      {"name", s.name}, {"level", enum_name(s.level)}, {"ins", array_of(s.ins, id)}, {"outs", array_of(s.outs, id)}};
  json.update(std::visit([](const auto& kind) { return kind_json(kind); }, s.kind));
  return json;
}

// ---- work ----

Json work_json(const Work& w) {
  const BlockPlan& p = w.plan;
  Json json{{"plan",
             {{"per_site", {p.per_site_m, p.per_site_n}},
              {"grid", {p.grid_m, p.grid_n}},
              {"num_blocks", p.num_blocks},
              {"block_k", p.block_k},
              {"block", {p.block_m, p.block_n}}}},
            {"k_tiles", w.k_tiles},
            {"items", array_of(w.items, [](const WorkItem& i) {
               return Json{{"at", {i.y, i.x}}, {"tile", {i.out.row, i.out.col}}, {"size", {i.out.rows, i.out.cols}}};
             })}};
  if (const auto& t = w.k_trip)
    json["k_trip"] = {{"tensor", index(t->tensor)},
                      {"elem", t->elem},
                      {"low", t->low},
                      {"high", t->high},
                      {"bias", t->bias},
                      {"per", t->per}};
  return json;
}

}  // namespace

std::string to_json(const Program& p, int indent) {
  const Json json{{"name", p.name},
                  {"target", p.target},
                  {"tile", {p.tile.rows, p.tile.cols}},
                  {"accumulator", name(p.accumulator)},
                  {"claim", {{"exact", p.claim.exact}, {"reason", p.claim.reason}}},
                  {"tensors", array_of(p.tensors, tensor_json)},
                  {"buffers", array_of(p.buffers, buffer_json)},
                  {"stages", array_of(p.stages, stage_json)},
                  {"edges", array_of(p.edges,
                                     [](const Edge& e) {
                                       return Json{index(e.producer), index(e.buffer), index(e.consumer)};
                                     })},
                  {"work", work_json(p.work)}};
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tw::spatial
