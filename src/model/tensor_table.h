#pragma once

// The tensors of a checkpoint: a family lists name patterns and shapes in a table; the table is walked to check the
// file against the hyperparameters, and (by synth) to write a file that fits.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/checkpoint.h"
#include "model/hyper.h"

namespace tw::model {

// The parts a layer is made of; a tensor belongs to the layers that have its part.
enum class Part : uint8_t {
  Model,
  Layer,
  Attention,
  OwnCaches,        // of attention over caches of its own
  OthersCaches,     // of attention over those of an earlier layer
  Latent,           // latent attention, and of its ways of storing queries and keys:
  LatentQuery,      // queries at once
  LatentLowQuery,   // queries by a latent of their own
  LatentSplitKeys,  // keys and values in a tensor each
  LatentJointKeys,  // keys and values in one
  Delta,
  ChannelDelta,
  ShortConv,
  Dense,
  Mixture,
  SharedExpert,
  LayerInput,
  ModelInputs,  // what all layers' inputs are made of
};

// What kind of numbers a tensor holds: which formats are natural, and what synth fills in.
enum class Content : uint8_t { Matrix, Norm, Bias, Router, Vector, Taps, Rate, Step, Frequencies };

struct TensorSpec {
  std::string_view pattern;  // the name; '*' stands for the layer
  std::string_view shape;    // dimensions from the row length on, separated by spaces: "width q"
  Part part = Part::Layer;
  Need need = Need::Required;
  Content content = Content::Matrix;
  std::string_view unless = {};        // a pattern: when the file has that tensor, this one must be absent
  std::string_view written_with = {};  // of an optional tensor: the switch of a synthesized shape that writes it
};

using TensorTable = std::span<const TensorSpec>;

// The dimensions that shapes name, with their values in one layer.
using Dims = std::map<std::string_view, uint64_t>;

struct LayerLayout {
  std::vector<Part> parts;
  Dims dims;
};

struct Layout {
  Dims dims;  // of the model's own parts
  std::vector<Part> parts = {Part::Model};
  std::vector<LayerLayout> layers;
  uint32_t blocks = 0;  // of the file; those after `layers` take no part in the step
};

std::string tensor_name(std::string_view pattern, uint32_t layer);

// A row of a table for one layer (or the model): the full name and shape.
struct WantedTensor {
  const TensorSpec* spec;
  std::string name;
  std::string unless;
  std::vector<uint64_t> shape;
};
std::vector<WantedTensor> wanted_tensors(const Layout& layout, std::span<const TensorTable> tables);

// Checks every tensor of the file: what the tables ask for is there, with its shape and a float format; nothing else is
// there, but for the blocks that take no part. Gives the number of values of the tensors that take part.
Result<uint64_t> check_tensors(const gguf::Checkpoint& checkpoint, std::string_view architecture, const Layout& layout,
                               std::span<const TensorTable> tables);

}  // namespace tw::model
