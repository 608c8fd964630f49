#pragma once

// From a checkpoint to step graphs: the architecture's hyperparameters are read and checked once, its constants are
// placed once (weights stay where they lie in the file), and any form of the step is written down on demand.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"
#include "graph/constants.h"
#include "graph/step_graph.h"

namespace tw::model {

struct Options {
  // Positions the caches and rotation tables hold; 0: the smaller of the model's context length and 4096.
  uint32_t context = 0;
};

// What every family knows of itself.
struct Facts {
  std::string architecture;
  std::string name;     // general.name, may be empty
  uint32_t layers = 0;  // that take part in the step
  uint32_t width = 0;   // of the residual
  uint32_t vocabulary = 0;
  uint32_t trained_context = 0;
  uint32_t context = 0;     // positions of this model's caches
  uint64_t parameters = 0;  // weights of the step
};

class Family;  // what a loaded model keeps

class Model {
 public:
  // Refuses an unknown architecture (naming it and the known ones), a missing or ill-typed key, a missing tensor, a
  // tensor of another shape than the hyperparameters ask for, a feature the family lacks.
  static Result<Model> load(const gguf::Checkpoint& checkpoint, const Options& options = {});

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  [[nodiscard]] const Facts& facts() const;
  // The step in one form. Chunk rows 1 to 512, batch of 2 to 64 sequences, else a refusal. State tensors have the same
  // names and shapes in every form; those of sequence b of a batch have the suffix "_s<b>" and `sequence` set.
  [[nodiscard]] Result<graph::StepGraph> step(const graph::Form& form) const;
  // The constants of every form.
  [[nodiscard]] const graph::Constants& constants() const;
  // Whether and why the checkpoint's architecture is supported, without reading tensors.
  static std::vector<std::string_view> known_architectures();

 private:
  explicit Model(std::unique_ptr<Family> family);
  std::unique_ptr<Family> family_;
};

}  // namespace tw::model
