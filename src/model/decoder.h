#pragma once

// A decoder, as plain numbers: of every layer h += post_norm(mix(norm(h))) and h += post_norm(feed(norm(h))), where a
// family leaves out the norms it has not; then what the layer makes of its input, and a factor; in the end a norm and
// the head.
// A family fills this in from its hyperparameters; placing, checking and writing work from it alone.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/attention.h"
#include "model/channel_delta.h"
#include "model/delta.h"
#include "model/feed_forward.h"
#include "model/latent.h"
#include "model/layer_input.h"
#include "model/paired_feed_forward.h"
#include "model/rope_table.h"
#include "model/short_conv.h"

namespace tw::model {

struct DecoderLayer {
  std::variant<Attention, LatentAttention, DeltaNet, ChannelDelta, ShortConv> mix;
  std::variant<DenseFeedForward, MixtureFeedForward, PairedFeedForward> feed;
};

struct Decoder {
  uint32_t width = 0;
  uint32_t vocabulary = 0;
  uint32_t blocks = 0;  // of the file; the layers are the first of them
  uint32_t trained_context = 0;
  float eps = 0;
  // Norms of a layer by tensor, before and after its halves; empty: there is none.
  std::string_view mix_norm = "attn_norm";
  std::string_view post_mix_norm = {};
  std::string_view feed_norm = "ffn_norm";
  std::string_view post_feed_norm = {};
  std::string_view final_norm = "output_norm";
  float embedding_scale = 1;
  float residual_scale = 1;  // of what a half adds to the residual
  float logit_scale = 1;
  float logit_softcap = 0;  // 0: none
  RopeSpec rope;            // tables "rope"
  RopeSpec window_rope;     // tables "rope_window", of layers whose rotation is another one
  Temperature temperature;  // tables "temperature", of layers whose queries grow with the position
  LayerInputs inputs;
  std::vector<DecoderLayer> layers;
};

// Keys and tensors of every decoder: sizes, embedding, head, final norm, attn_norm.
KeyTable decoder_keys();
TensorTable decoder_tensors();
TensorTable embedding_tensors();            // of these the embedding and the head alone
TensorTable output_norm_tensors();          // of these output_norm alone
TensorTable mix_norm_tensors();             // of these attn_norm alone
TensorTable head_bias_tensors();            // output.bias
TensorTable feed_norm_tensors();            // ffn_norm
TensorTable post_attention_norm_tensors();  // post_attention_norm
TensorTable post_feed_norm_tensors();       // post_ffw_norm
TensorTable rope_divisor_tensors();         // rope_freqs.weight

// The sizes all decoders share; layers are left to the family. Blocks of next-token prediction are not layers.
Result<Decoder> read_decoder(const Hyper& hyper, const gguf::Checkpoint& checkpoint);
uint32_t layer_count(const Hyper& hyper);
// Gives a layer its window, and with one the rotation of windowed layers. Requires both rotations to be set.
void set_window(const Decoder& decoder, const graph::Window& window, Attention& attention);

Layout layout_of(const Decoder& decoder);
Result<Weights> place_decoder(const gguf::Checkpoint& checkpoint, Decoder decoder, uint32_t context);
graph::StepGraph write_decoder(const Decoder& decoder, const Weights& weights, std::string name, graph::Form form,
                               uint32_t context);

}  // namespace tw::model
