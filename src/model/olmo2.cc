// OLMo 2 and OLMo 3: no norms before the halves of a layer but after them, a norm of q and of k over all heads
// together. With a sliding window (OLMo 3), every fourth layer attends everything and alone scales its rotation.

#include "model/registry.h"
#include "model/window.h"

namespace tw::model {

namespace {

Result<Decoder> configure_olmo2(const Hyper& hyper, const gguf::Checkpoint& checkpoint) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  out.mix_norm = {};
  out.post_mix_norm = "post_attention_norm";
  out.feed_norm = {};
  out.post_feed_norm = "post_ffw_norm";
  const std::vector<graph::Window> windows = read_windows(hyper, layer_count(hyper), {.period = 4});
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    out.window_rope = {.width = out.rope.width, .base = window_base(hyper, out.rope.base)};
    attention.rotated = out.rope.width;
    attention.row_norms = true;
    set_window(out, windows[layer], attention);
    out.layers.push_back({attention, DenseFeedForward{hyper.count("feed_forward_length", layer)}});
  }
  return out;
}

}  // namespace

const FamilyInfo& olmo2_family() {
  static const FamilyInfo info{
      .architecture = "olmo2",
      .summary = "OLMo 2 and 3",
      .pre_tokenizer = "dbrx",
      .keys = {decoder_keys(), attention_keys(), rope_keys(), dense_keys(), window_keys()},
      .tensors = {embedding_tensors(), output_norm_tensors(), attention_tensors(), attention_bias_tensors(),
                  row_norm_tensors(), post_attention_norm_tensors(), post_feed_norm_tensors(), dense_tensors()},
      .configure = configure_olmo2,
      .toy = {{"layers", 4},
              {"width", 64},
              {"heads", 4},
              {"kv_heads", 2},
              {"head", 16},
              {"hidden", 128},
              {"window", 16},
              {"period", 4},
              {"rope_base", 500000},
              {"vocabulary", 384},
              {"context", 2048},
              {"tied", 0}},
  };
  return info;
}

}  // namespace tw::model
