#pragma once

// The step graph: one forward step of a model as tensors and ops in order. Ops run in order; State and Table tensors
// are updated in place, every Activation is the result of exactly one op.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"

namespace tw::graph {

// Strong ids: an index into StepGraph::tensors or ::ops.
enum class TensorId : uint32_t {};
enum class OpId : uint32_t {};
inline constexpr TensorId kNoTensor{0xffffffffU};
constexpr uint32_t index(TensorId id) { return static_cast<uint32_t>(id); }
constexpr uint32_t index(OpId id) { return static_cast<uint32_t>(id); }

enum class Role : uint8_t {
  Param,       // set at run time before the step: tokens, positions
  State,       // carried from step to step: caches, convolution rings, delta memories
  Table,       // filled row by row within a step by SetRows, not carried
  Constant,    // weights and tables
  Activation,  // the result of one op
};

enum class Element : uint8_t { F32, I32 };

struct Tensor {
  std::string name;
  uint32_t rows = 1;
  uint32_t cols = 1;
  Role role = Role::Activation;
  Element element = Element::F32;
  // Which sequence of a batch the tensor belongs to (0-based); none for what the sequences share.
  std::optional<uint32_t> sequence = {};

  [[nodiscard]] uint64_t size() const { return uint64_t{rows} * cols; }
  bool operator==(const Tensor&) const = default;
};

struct Op {
  OpSpec spec;
  std::vector<TensorId> operands;  // one per OperandDecl of the spec, kNoTensor where absent
  TensorId result = kNoTensor;     // of SetRows: the table
  bool operator==(const Op&) const = default;
};

inline constexpr uint32_t kMaxChunkRows = 512;

// The form of a step.
struct Form {
  enum class Kind : uint8_t { Decode, Chunk, Batch };
  Kind kind = Kind::Decode;
  uint32_t rows = 1;        // Chunk: rows of the one sequence, 1 to 512; Batch: sequences, at least 2; Decode: 1
  bool all_logits = false;  // Chunk: logits of every row instead of the last one only
  bool operator==(const Form&) const = default;
};
std::string to_text(const Form& form);  // "decode", "chunk:64", "chunk:64:all", "batch:3"
std::optional<Form> parse_form(std::string_view text);

struct SequenceIo {
  TensorId position = kNoTensor;  // Param, 1 x 1, i32: the 1-based position of the sequence's first row of this step
  TensorId logits = kNoTensor;    // 1 x vocabulary, or rows x vocabulary for a chunk with all logits
  TensorId next = kNoTensor;      // i32: the arg-max of each row of logits (1-based)
  bool operator==(const SequenceIo&) const = default;
};

// What the outside sets and reads of a step.
struct StepIo {
  TensorId tokens = kNoTensor;        // Param, rows x 1, i32, 1-based token ids
  std::vector<SequenceIo> sequences;  // one, or one a sequence of a batch
  bool operator==(const StepIo&) const = default;
};

struct StepGraph {
  std::string name;
  Form form;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  StepIo io;

  [[nodiscard]] const Tensor& at(TensorId id) const { return tensors[index(id)]; }
  [[nodiscard]] const Op& at(OpId id) const { return ops[index(id)]; }
  bool operator==(const StepGraph&) const = default;
};

std::string_view op_name(const OpSpec& spec);
// The operand declarations of an op; they live as long as the program.
std::span<const OperandDecl> operand_decls(const OpSpec& spec);
// The operand named `name`, or kNoTensor.
TensorId operand(const Op& op, std::string_view name);
// "4x128 f32"
std::string shape_text(const Tensor& tensor);

}  // namespace tw::graph
