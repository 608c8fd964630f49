#include "lane/link.h"

#include <fmt/format.h>

#include "base/check.h"

namespace tw::lane {

namespace {

using graph::Op;
using graph::Role;
using graph::Tensor;
using graph::TensorId;

// Gives an op's operands by name and makes the refusals that are about it.
class Linker {
 public:
  Linker(const LinkContext& context, graph::OpId id) : context_(context), id_(id), op_(context.graph.at(id)) {}

  Result<Launch> operator()(const graph::Matmul&) const {
    TW_TRY(const Weight w, weight("w"));
    const uint64_t k = tensor("x").cols;
    const uint64_t n = tensor("w").cols;
    if (w.quantized()) {
      Gemv launch;
      launch.x = buffer("x");
      launch.w = buffer("w");
      launch.format = w.format;
      launch.y.buf = result();
      launch.k = k, launch.n = n, launch.m = tensor("x").rows;
      launch.batch = is_batch();
      return Launch(launch);
    }
    GemvF32 launch;
    launch.x = buffer("x");
    launch.w = buffer("w");
    launch.format = w.format;
    launch.y.buf = result();
    launch.k = k, launch.n = n, launch.m = tensor("x").rows;
    launch.batch = is_batch();
    return Launch(launch);
  }

  Result<Launch> operator()(const graph::HeadMatmul& spec) const {
    TW_TRY(const Weight w, weight("w"));
    HeadGemv launch;
    launch.x = buffer("x");
    launch.w = buffer("w");
    if (w.rows) launch.format = w.format;
    launch.y.buf = result();
    launch.m = tensor("x").rows;
    launch.heads = spec.heads;
    launch.a = spec.shared ? tensor("x").cols : tensor("x").cols / spec.heads;
    launch.b = op_tensor(op_.result).cols / spec.heads;
    launch.rows_out = spec.rows_out;
    launch.shared = spec.shared;
    launch.batch = is_batch();
    return Launch(launch);
  }

  Result<Launch> operator()(const graph::Elementwise& spec) const {
    Binary launch;
    launch.op = spec.op;
    launch.a = buffer("a"), launch.b = buffer("b"), launch.out = result();
    launch.n = tensor("a").size();
    return floats(launch);
  }

  Result<Launch> operator()(const graph::RowBroadcast& spec) const {
    Binary launch;
    launch.op = spec.op;
    launch.a = buffer("a"), launch.b = buffer("b"), launch.out = result();
    launch.row = tensor("a").cols;
    launch.scalar = spec.scalar;
    launch.n = tensor("a").size();
    return floats(launch);
  }

  Result<Launch> operator()(const graph::Scale& spec) const {
    return floats(Scale{buffer("x"), result(), spec.factor, tensor("x").size()});
  }
  Result<Launch> operator()(const graph::Activate& spec) const {
    return floats(Unary{spec.kind, 0, buffer("x"), result(), tensor("x").size()});
  }
  Result<Launch> operator()(const graph::Softcap& spec) const {
    return floats(Unary{graph::ActivationKind::Tanh, spec.cap, buffer("x"), result(), tensor("x").size()});
  }

  Result<Launch> operator()(const graph::IntRequant&) const { return no_kernel(kIntegers); }
  Result<Launch> operator()(const graph::IntClamp&) const { return no_kernel(kIntegers); }
  Result<Launch> operator()(const graph::LutAttention&) const { return no_kernel(kIntegers); }

  Result<Launch> operator()(const graph::Transpose&) const {
    return Launch(Transpose{buffer("x"), result(), tensor("x").rows, tensor("x").cols});
  }

  Result<Launch> operator()(const graph::HeadSlice& spec) const {
    Slice launch;
    launch.x = buffer("x"), launch.y = result();
    launch.groups = tensor("x").size() / spec.every;
    launch.every = spec.every, launch.from = spec.from, launch.width = spec.width;
    return Launch(launch);
  }

  Result<Launch> operator()(const graph::Join& spec) const {
    Join launch;
    launch.a = buffer("a"), launch.b = buffer("b");
    launch.y.buf = result();
    launch.rows = tensor("a").rows;
    launch.heads = spec.heads;
    launch.ha = tensor("a").cols / spec.heads, launch.hb = tensor("b").cols / spec.heads;
    return Launch(launch);
  }

  // A literal row of a computed tensor is read in place; anything else is copied.
  Result<Launch> operator()(const graph::RowGather& spec) const {
    const bool literal = graph::operand(op_, "index") == graph::kNoTensor;
    if (literal && tensor("table").role == Role::Activation) {
      return Launch(View{buffer("table"), result(), uint64_t{spec.row - 1} * tensor("table").cols});
    }
    return gather(literal ? spec.row : 0, 1);
  }
  Result<Launch> operator()(const graph::RowsGather&) const { return gather(0, tensor("index").rows); }

  Result<Launch> operator()(const graph::SetRows& spec) const {
    SetRow launch;
    launch.table = buffer("table"), launch.src = buffer("src");
    launch.cols = tensor("src").cols, launch.count = tensor("src").rows;
    launch.at = {buffer("index"), spec.row, launch.cols};
    return floats(launch);
  }

  Result<Launch> operator()(const graph::ArgMax&) const {
    ArgMax launch;
    launch.x = buffer("x"), launch.out = result();
    launch.n = tensor("x").cols, launch.rows = tensor("x").rows;
    return Launch(launch);
  }

  Result<Launch> operator()(const graph::RowNorm& spec) const {
    Norm launch;
    launch.x = buffer("x"), launch.add = buffer("residual"), launch.w = buffer("weight"), launch.bias = buffer("bias");
    launch.out = result();
    launch.norm = spec.kind;
    launch.cols = spec.width == 0 ? tensor("x").cols : spec.width;
    launch.rows = tensor("x").size() / launch.cols;
    launch.eps = spec.eps;
    return floats(launch);
  }

  Result<Launch> operator()(const graph::Softmax&) const {
    Softmax launch;
    launch.x = buffer("x"), launch.sinks = buffer("sinks"), launch.y = result();
    launch.rows = tensor("x").rows, launch.cols = tensor("x").cols;
    launch.sink_a_row = present(launch.sinks) && tensor("sinks").rows > 1;
    return floats(launch);
  }

  Result<Launch> operator()(const graph::L2Norm& spec) const {
    L2Norm launch;
    launch.x = buffer("x"), launch.y = result();
    launch.cols = spec.width == 0 ? tensor("x").cols : spec.width;
    launch.rows = tensor("x").size() / launch.cols;
    launch.eps = spec.eps;
    return floats(launch);
  }

  Result<Launch> operator()(const graph::Rope& spec) const {
    Rope launch;
    launch.x = buffer("x"), launch.cos = buffer("cos"), launch.sin = buffer("sin"),
    launch.position = buffer("position");
    launch.y.buf = result();
    launch.width = spec.width == 0 ? tensor("x").cols : spec.width;
    launch.half = spec.half;
    launch.per_row = tensor("x").cols / launch.width;
    launch.heads = launch.per_row * tensor("x").rows;
    return floats(launch);
  }

  Result<Launch> operator()(const graph::Attention& spec) const {
    Attention launch;
    launch.q = buffer("q"), launch.k = buffer("k"), launch.v = buffer("v");
    launch.position = buffer("position"), launch.sinks = buffer("sinks"), launch.out = result();
    launch.heads = spec.heads, launch.group = spec.heads / spec.kv_heads;
    launch.hd = tensor("q").cols / spec.heads, launch.vd = tensor("v").cols / spec.kv_heads;
    launch.len = tensor("k").rows, launch.rows = tensor("q").rows;
    launch.window = spec.window;
    launch.v_stride = tensor("v").cols;
    launch.scale = spec.scale, launch.softcap = spec.softcap;
    return floats(launch);
  }

  Result<Launch> operator()(const graph::FullAttention& spec) const {
    Attention launch;
    launch.q = buffer("q"), launch.k = buffer("k"), launch.v = buffer("v"), launch.out = result();
    launch.heads = spec.heads;
    launch.hd = tensor("q").cols / spec.heads, launch.vd = tensor("v").cols / spec.heads;
    launch.len = tensor("k").rows, launch.rows = tensor("q").rows;
    launch.v_stride = tensor("v").cols;
    launch.scale = spec.scale;
    return floats(launch);
  }

  Result<Launch> operator()(const graph::CausalConv&) const {
    Conv launch;
    launch.x = buffer("x"), launch.w = buffer("w"), launch.ring = buffer("ring"), launch.y = result();
    launch.chan = tensor("x").cols, launch.taps = tensor("w").rows, launch.rows = tensor("x").rows;
    return floats(launch);
  }

  Result<Launch> operator()(const graph::Decay&) const {
    return floats(
        Decay{buffer("x"), buffer("bias"), buffer("rate"), result(), tensor("x").size(), tensor("bias").cols});
  }

  Result<Launch> operator()(const graph::GatedDelta& spec) const {
    Delta launch;
    launch.q = buffer("q"), launch.k = buffer("k"), launch.v = buffer("v"), launch.z = buffer("z");
    launch.beta = buffer("beta"), launch.alpha = buffer("alpha");
    launch.state = buffer("state"), launch.norm = buffer("norm"), launch.out = result();
    launch.value_heads = spec.value_heads, launch.key_heads = spec.key_heads;
    launch.d = tensor("v").cols / spec.value_heads;
    launch.rows = tensor("q").rows;
    launch.eps = spec.eps;
    launch.key_head_of = spec.key_head_of, launch.gate = spec.gate;
    launch.channel_decay = tensor("alpha").cols != spec.value_heads;
    return floats(launch);
  }

  Result<Launch> operator()(const graph::Moe& spec) const {
    TW_TRY(const Weight router, weight("router"));
    TW_TRY(const Weight gate, weight("gate"));
    TW_TRY(const Weight up, weight("up"));
    TW_TRY(const Weight down, weight("down"));
    Moe launch;
    launch.x = buffer("x"), launch.router = buffer("router");
    launch.gate = buffer("gate"), launch.up = buffer("up"), launch.down = buffer("down");
    launch.router_bias = buffer("router_bias"), launch.select_bias = buffer("select_bias");
    launch.expert_scale = buffer("expert_scale");
    launch.gate_bias = buffer("gate_bias"), launch.up_bias = buffer("up_bias"), launch.down_bias = buffer("down_bias");
    launch.router_format = router.format;
    launch.formats = {gate.format, up.format, down.format};
    launch.y.buf = result();
    launch.d = tensor("x").cols, launch.rows = tensor("x").rows;
    launch.spec = spec;
    launch.batch = is_batch();
    return Launch(launch);
  }

 private:
  static constexpr std::string_view kIntegers = "this lane computes in floating point and has no integer kernels";

  struct Weight {
    gguf::Format format = gguf::Format::F32;
    bool rows = false;  // checkpoint rows, not plain values
    [[nodiscard]] bool quantized() const {
      return format != gguf::Format::F32 && format != gguf::Format::F16 && format != gguf::Format::BF16;
    }
  };

  [[nodiscard]] const Tensor& op_tensor(TensorId id) const { return context_.graph.at(id); }
  [[nodiscard]] const Tensor& tensor(std::string_view operand) const {
    const TensorId id = graph::operand(op_, operand);
    TW_CHECK(id != graph::kNoTensor, "{} has no operand {}", graph::op_name(op_.spec), operand);
    return op_tensor(id);
  }
  [[nodiscard]] BufferId buffer(std::string_view operand) const {
    const TensorId id = graph::operand(op_, operand);
    return id == graph::kNoTensor ? kNoBuffer : buffer_of(id);
  }
  [[nodiscard]] BufferId result() const { return buffer_of(op_.result); }
  [[nodiscard]] bool is_batch() const { return context_.graph.form.kind == graph::Form::Kind::Batch; }

  [[nodiscard]] Refusal no_kernel(std::string_view why, std::string remedy = {}) const {
    return refuse(RefusalKind::Unsupported, op_tensor(op_.result).name,
                  fmt::format("no kernel for op {} ({}): {}", graph::index(id_), graph::op_name(op_.spec), why),
                  std::move(remedy));
  }

  // The launch, unless one of the op's tensors that it computes with holds integers.
  template <class L>
  Result<Launch> floats(L launch) const {
    for (const std::string_view integer : {"a", "b", "x", "src", "table", "q"}) {
      const TensorId id = graph::operand(op_, integer);
      if (id != graph::kNoTensor && op_tensor(id).element == graph::Element::I32) return no_kernel(kIntegers);
    }
    return Launch(std::move(launch));
  }

  // Where a product's weight lies, or why this lane cannot multiply by it.
  [[nodiscard]] Result<Weight> weight(std::string_view operand) const {
    const Tensor& t = tensor(operand);
    if (t.role != Role::Constant) {
      return no_kernel(fmt::format("its operand {} ({}) is not a constant", operand, t.name),
                       "A product's weights must be constants.");
    }
    const auto found = context_.constants.find(t.name);
    if (found == context_.constants.end()) {
      return refuse(RefusalKind::Missing, t.name, "the constant has no place in the checkpoint");
    }
    const auto* rows = std::get_if<graph::Rows>(&found->second);
    if (rows == nullptr) {
      if (t.element == graph::Element::I32) return no_kernel(kIntegers);
      return Weight{gguf::Format::F32, false};
    }
    switch (rows->format) {
      case gguf::Format::F64:
      case gguf::Format::I8:
      case gguf::Format::I16:
      case gguf::Format::I32:
      case gguf::Format::I64:
        return no_kernel(fmt::format("the weight {} is stored as {}", t.name, gguf::name(rows->format)),
                         "Convert it to F32, F16, BF16 or a quantized format.");
      default: return Weight{rows->format, true};
    }
  }

  [[nodiscard]] Result<Launch> gather(uint32_t fixed, uint64_t count) const {
    const Tensor& table = tensor("table");
    Gather launch;
    launch.table = buffer("table"), launch.index = buffer("index"), launch.out = result();
    launch.fixed = fixed;
    launch.cols = table.cols, launch.rows = count;
    if (table.role == Role::Constant) {
      const auto found = context_.constants.find(table.name);
      if (found == context_.constants.end()) {
        return refuse(RefusalKind::Missing, table.name, "the constant has no place in the checkpoint");
      }
      if (const auto* rows = std::get_if<graph::Rows>(&found->second)) launch.format = rows->format;
    }
    return floats(launch);
  }

  const LinkContext& context_;
  graph::OpId id_;
  const Op& op_;
};

}  // namespace

Result<Launch> link(const LinkContext& context, graph::OpId id) {
  return std::visit(Linker(context, id), context.graph.at(id).spec);
}

}  // namespace tw::lane
