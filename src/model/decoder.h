#pragma once

// A decoder of pre-norm layers, as plain numbers: h += mix(norm(h)); h += feed(norm(h)); then a norm and the head.
// A family fills this in from its hyperparameters; placing, checking and writing work from it alone.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/attention.h"
#include "model/delta.h"
#include "model/feed_forward.h"
#include "model/rope_table.h"

namespace tw::model {

struct DecoderLayer {
  std::variant<Attention, DeltaNet> mix;
  std::variant<DenseFeedForward, MixtureFeedForward> feed;
};

struct Decoder {
  uint32_t width = 0;
  uint32_t vocabulary = 0;
  uint32_t blocks = 0;  // of the file; the layers are the first of them
  uint32_t trained_context = 0;
  float eps = 0;
  std::string_view feed_norm = "ffn_norm";
  RopeSpec rope;
  std::vector<DecoderLayer> layers;
};

// Keys and tensors of every decoder: sizes, embedding, final norm, head.
KeyTable decoder_keys();
TensorTable decoder_tensors();
TensorTable head_bias_tensors();            // output.bias
TensorTable feed_norm_tensors();            // ffn_norm
TensorTable post_attention_norm_tensors();  // the same norm under the name post_attention_norm
TensorTable rope_divisor_tensors();         // rope_freqs.weight

// The sizes all decoders share; layers are left to the family. Blocks of next-token prediction are not layers.
Result<Decoder> read_decoder(const Hyper& hyper, const gguf::Checkpoint& checkpoint);
uint32_t layer_count(const Hyper& hyper);

Layout layout_of(const Decoder& decoder);
Result<Weights> place_decoder(const gguf::Checkpoint& checkpoint, Decoder decoder, uint32_t context);
graph::StepGraph write_decoder(const Decoder& decoder, const Weights& weights, std::string name, graph::Form form,
                               uint32_t context);

}  // namespace tw::model
