#pragma once

// Latent attention: one cache row a position holds a normed latent and a key part that rotates, shared by all heads. A
// head's query is brought into the latent's space (the key matrix is absorbed), attends the rows as keys and their
// latents as values, and its result is brought out by the head's value matrix.

#include <cstdint>
#include <string>
#include <vector>

#include "model/rope_table.h"
#include "model/step_writer.h"
#include "model/tensor_table.h"

namespace tw::model {

struct LatentAttention {
  uint32_t heads = 0;
  uint32_t latent = 0;       // width of the latent
  uint32_t query_rank = 0;   // width of the queries' own latent; 0: attn_q makes them at once
  uint32_t still = 0;        // values of a head's query and key before the rotated part
  uint32_t shared_key = 0;   // values of the key part that all heads share
  uint32_t value_width = 0;  // of a head
  float scale = 0;
  float eps = 0;
  bool rotates = true;        // the shared key part and its queries, adjacent pairs in the file
  bool joint_keys = false;    // attn_kv_b instead of attn_k_b and attn_v_b
  std::string rope = "rope";  // prefix of the rotation tables

  [[nodiscard]] uint32_t key_width() const { return still + shared_key; }
  [[nodiscard]] uint32_t row_width() const { return latent + shared_key; }  // of the cache
  [[nodiscard]] std::string_view rotation() const { return rotates ? std::string_view(rope) : std::string_view(); }

  [[nodiscard]] std::vector<Part> parts() const;
  void add_dims(Dims& dims) const;
  void place(Placer& placer, const std::string& block) const;
  graph::TensorId write(StepWriter& step, const std::string& block, graph::TensorId x) const;

 private:
  void place_joint_keys(Placer& placer, const std::string& block) const;
  graph::TensorId write_queries(StepWriter& step, const std::string& block, graph::TensorId x) const;
};

KeyTable latent_keys();  // after attention_keys
TensorTable latent_tensors();
// Reads the keys for one layer; `checkpoint` says which way its keys and values are stored.
Result<LatentAttention> read_latent(const Hyper& hyper, const gguf::Checkpoint& checkpoint, uint32_t layer);

}  // namespace tw::model
