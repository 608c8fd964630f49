#include "model/gemma.h"

#include <cmath>

namespace tw::model {

Result<Decoder> read_gemma(const Hyper& hyper, const gguf::Checkpoint& checkpoint, const GemmaKind& kind) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  out.post_mix_norm = "post_attention_norm";
  out.post_feed_norm = "post_ffw_norm";
  out.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(out.width)));
  out.logit_softcap = static_cast<float>(hyper.real("final_logit_softcapping"));
  const uint32_t layers = layer_count(hyper);
  const std::vector<graph::Window> windows = read_windows(hyper, layers, kind.windows);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_rope(hyper, attention.key_width));
    out.window_rope = kind.window_base == 0 ? out.rope : RopeSpec{.width = out.rope.width, .base = kind.window_base};
    out.window_rope.base = window_base(hyper, out.window_rope.base);
    attention.rotated = out.rope.width;
    attention.head_norms = kind.head_norms;
    attention.softcap = static_cast<float>(hyper.real("attn_logit_softcapping"));
    if (layers == kind.large_layers && hyper.real("attention.scale") == 0) {
      const uint64_t head_width = out.width / attention.heads;
      attention.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_width)));
    }
    set_window(out, windows[layer], attention);
    out.layers.push_back(
        {attention, DenseFeedForward{hyper.count("feed_forward_length", layer), graph::ActivationKind::GeluTanh}});
  }
  return out;
}

std::vector<TensorTable> gemma_tensors() {
  return {decoder_tensors(),   attention_tensors(),      attention_bias_tensors(), post_attention_norm_tensors(),
          feed_norm_tensors(), post_feed_norm_tensors(), dense_tensors()};
}

}  // namespace tw::model
