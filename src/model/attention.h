#pragma once

// Grouped-query attention over a key and a value cache: projections, optional norms of heads, rotation, optional output
// gate, output product. Without attn_v the keys, before norm and rotation, are the values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/step_writer.h"
#include "model/tensor_table.h"

namespace tw::model {

struct Attention {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t key_width = 0;    // of a head
  uint32_t value_width = 0;  // of a head
  uint32_t rotated = 0;      // values of a head that rotate, from its first on; 0: the layer does not rotate
  float scale = 0;
  float softcap = 0;            // of the scores; 0: none
  float eps = 0;                // of the head norms
  bool head_norms = false;      // attn_q_norm, attn_k_norm, of every head
  bool row_norms = false;       // attn_q_norm, attn_k_norm, of all heads of a row as one
  bool value_norms = false;     // heads of v are normed without a weight
  bool unit_heads = false;      // heads of q and k are normed without a weight, after they rotate
  bool tempered = false;        // queries are stretched with the position, by the tables "temperature"
  bool gated = false;           // attn_q holds [query | gate] a head; sigmoid(gate) multiplies the output
  bool adjacent_pairs = false;  // the file's weights are for pairs (2i, 2i + 1)
  std::string rope = "rope";    // prefix of the rotation tables
  graph::Window window;
  std::optional<uint32_t> caches_of;  // an earlier layer, whose keys and values this one attends in place of its own

  // Prefix of the rotation tables this layer reads; empty when it rotates nothing.
  [[nodiscard]] std::string_view rotation() const { return rotated == 0 ? std::string_view() : rope; }
  [[nodiscard]] uint32_t query_rows() const { return heads * key_width * (gated ? 2 : 1); }

  [[nodiscard]] std::vector<Part> parts() const {
    return {Part::Attention, caches_of ? Part::OthersCaches : Part::OwnCaches};
  }
  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId x) const;

 private:
  // The sequence's own rows of all queries or keys (`which` is "q" or "k"), normed and rotated.
  graph::TensorId write_heads(SequenceWriter& own, const std::string& block, std::string_view which,
                              graph::TensorId all) const;
  // The caches this layer attends: its own, into which the sequence's rows of `k` and `v` are set, or another layer's.
  struct Caches {
    graph::TensorId keys, values;
  };
  Caches write_caches(SequenceWriter& own, const std::string& block, graph::TensorId k, graph::TensorId v) const;
};

// Keys and tensors of every attention; its projections may come fused.
KeyTable attention_keys();
TensorTable attention_tensors();
TensorTable attention_bias_tensors();         // optional, of q, k, v
TensorTable attention_output_bias_tensors();  // optional
TensorTable head_norm_tensors();
TensorTable optional_head_norm_tensors();
TensorTable row_norm_tensors();  // the same names, as wide as all heads
TensorTable sink_tensors();      // attn_sinks: a logit a head that takes part in the softmax
// Reads the keys for one layer and checks that they fit together.
Result<Attention> read_attention(const Hyper& hyper, uint32_t layer);

}  // namespace tw::model
