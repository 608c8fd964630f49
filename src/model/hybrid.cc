#include "model/hybrid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

namespace tw::model {

namespace {

constexpr KeySpec kSectionKeys[] = {
    {.key = "rope.dimension_sections", .type = KeyType::Counts, .need = Need::Required, .high = 65536},
};

Result<RopeSpec> read_hybrid_rope(const Hyper& hyper, uint32_t head, bool sectioned) {
  TW_TRY(RopeSpec rope, read_rope(hyper, head));
  if (!sectioned) return rope;
  const std::vector<int64_t>& sections = hyper.list("rope.dimension_sections");
  const int64_t sum = std::accumulate(sections.begin(), sections.end(), int64_t{0});
  if (sections.size() != 4 || sum == 0)
    return refuse(RefusalKind::Malformed, hyper.subject("rope.dimension_sections"),
                  fmt::format("is [{}]; expected four numbers that are not all 0", fmt::join(sections, ", ")));
  rope.still = still_pairs(sections, rope.pairs());
  return rope;
}

Result<MixtureFeedForward> read_hybrid_mixture(const Hyper& hyper) {
  TW_TRY(const uint32_t hidden, read_expert_hidden(hyper));
  TW_TRY(MixtureFeedForward mixture, read_mixture(hyper, hidden));
  const uint32_t shared = hyper.count("expert_shared_feed_forward_length");
  mixture.shared_hidden = shared != 0 ? shared : hyper.count("feed_forward_length", 0);
  if (mixture.shared_hidden == 0)
    return refuse(RefusalKind::Missing, hyper.subject("expert_shared_feed_forward_length"),
                  "the file has neither this key nor feed_forward_length, so the shared expert has no width");
  return mixture;
}

}  // namespace

KeyTable section_keys() { return kSectionKeys; }

Result<Decoder> read_hybrid(const Hyper& hyper, const gguf::Checkpoint& checkpoint, const HybridKind& kind) {
  TW_TRY(Decoder out, read_decoder(hyper, checkpoint));
  out.feed_norm = "post_attention_norm";
  TW_TRY(DeltaNet delta, read_delta(hyper));
  delta.key_head_of = kind.key_head_of;
  delta.joint_gates = kind.joint_gates;
  MixtureFeedForward mixture;
  if (kind.mixture) {
    TW_TRY(mixture, read_hybrid_mixture(hyper));
  }
  TW_TRY(const std::vector<bool> recurrent, read_delta_layers(hyper, layer_count(hyper)));
  for (uint32_t layer = 0; layer < layer_count(hyper); ++layer) {
    TW_TRY(Attention attention, read_attention(hyper, layer));
    TW_TRY(out.rope, read_hybrid_rope(hyper, attention.key_width, kind.sectioned_rope));
    if (attention.key_width != attention.value_width)
      return refuse(RefusalKind::Unsupported, hyper.subject("attention.value_length"),
                    fmt::format("is {}, and keys are {} wide; a gated attention needs them equal",
                                attention.value_width, attention.key_width));
    attention.rotated = out.rope.width;
    attention.head_norms = true;
    attention.gated = true;
    DecoderLayer own;
    if (recurrent[layer])
      own.mix = delta;
    else
      own.mix = attention;
    if (kind.mixture)
      own.feed = mixture;
    else
      own.feed = DenseFeedForward{hyper.count("feed_forward_length", layer)};
    out.layers.push_back(std::move(own));
  }
  return out;
}

}  // namespace tw::model
