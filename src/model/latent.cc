#include "model/latent.h"

#include <fmt/format.h>

#include <cmath>

#include "model/pair_order.h"

namespace tw::model {

using graph::TensorId;

namespace {

constexpr KeySpec kLatentKeys[] = {
    {.key = "attention.kv_lora_rank", .need = Need::Required, .low = 1, .high = 65536},
    {.key = "attention.q_lora_rank", .high = 65536},
    {.key = "attention.key_length_mla", .low = 2, .high = 65536},
    {.key = "attention.value_length_mla", .low = 1, .high = 65536},
    {.key = "rope.dimension_count", .need = Need::Required, .low = 2, .high = 65536},
};

constexpr TensorSpec kLatentTensors[] = {
    {.pattern = "blk.*.attn_q.weight", .shape = "width q", .part = Part::LatentQuery},
    {.pattern = "blk.*.attn_q_a.weight", .shape = "width query_rank", .part = Part::LatentLowQuery},
    {.pattern = "blk.*.attn_q_a_norm.weight",
     .shape = "query_rank",
     .part = Part::LatentLowQuery,
     .content = Content::Norm},
    {.pattern = "blk.*.attn_q_b.weight", .shape = "query_rank q", .part = Part::LatentLowQuery},
    {.pattern = "blk.*.attn_kv_a_mqa.weight", .shape = "width latent_row", .part = Part::Latent},
    {.pattern = "blk.*.attn_kv_a_norm.weight", .shape = "latent", .part = Part::Latent, .content = Content::Norm},
    {.pattern = "blk.*.attn_k_b.weight", .shape = "still latent heads", .part = Part::LatentSplitKeys},
    {.pattern = "blk.*.attn_v_b.weight", .shape = "latent value_head heads", .part = Part::LatentSplitKeys},
    {.pattern = "blk.*.attn_kv_b.weight", .shape = "latent keys_values", .part = Part::LatentJointKeys},
    {.pattern = "blk.*.attn_output.weight", .shape = "o width", .part = Part::Latent},
};

}  // namespace

KeyTable latent_keys() { return kLatentKeys; }
TensorTable latent_tensors() { return kLatentTensors; }

Result<LatentAttention> read_latent(const Hyper& hyper, const gguf::Checkpoint& checkpoint, uint32_t layer) {
  const auto either = [&](std::string_view key, std::string_view otherwise) {
    return hyper.has(key) ? key : otherwise;
  };
  const std::string_view key_key = either("attention.key_length_mla", "attention.key_length");
  const std::string_view value_key = either("attention.value_length_mla", "attention.value_length");
  for (const std::string_view key : {key_key, value_key})
    if (!hyper.has(key))
      return refuse(RefusalKind::Missing, hyper.subject(key),
                    "the file has neither this key nor the one with _mla, so a head has no width");
  LatentAttention out;
  out.heads = hyper.count("attention.head_count", layer);
  // One latent row a position serves all heads, so files say 1 here, or as many as query heads.
  const uint32_t kv_heads =
      hyper.has("attention.head_count_kv") ? hyper.count("attention.head_count_kv", layer) : out.heads;
  if (kv_heads == 0 || out.heads % kv_heads != 0)
    return refuse(RefusalKind::Malformed, hyper.subject("attention.head_count_kv"),
                  fmt::format("is {}, which does not divide the {} query heads", kv_heads, out.heads));
  out.latent = hyper.count("attention.kv_lora_rank");
  out.query_rank = hyper.count("attention.q_lora_rank");
  out.shared_key = hyper.count("rope.dimension_count");
  out.value_width = hyper.count(value_key);
  const uint32_t key_width = hyper.count(key_key);
  if (out.shared_key >= key_width)
    return refuse(RefusalKind::Malformed, hyper.subject("rope.dimension_count"),
                  fmt::format("is {}; expected less than the {} values of a head's key", out.shared_key, key_width));
  out.still = key_width - out.shared_key;
  const double scale = hyper.real("attention.scale");
  out.scale = static_cast<float>(scale == 0 ? 1 / std::sqrt(static_cast<double>(key_width)) : scale);
  out.eps = static_cast<float>(hyper.real("attention.layer_norm_rms_epsilon"));
  out.joint_keys = checkpoint.find_tensor(fmt::format("blk.{}.attn_kv_b.weight", layer)) != nullptr;
  return out;
}

std::vector<Part> LatentAttention::parts() const {
  return {Part::Latent, query_rank == 0 ? Part::LatentQuery : Part::LatentLowQuery,
          joint_keys ? Part::LatentJointKeys : Part::LatentSplitKeys};
}

void LatentAttention::add_dims(Dims& dims) const {
  dims["heads"] = heads;
  dims["q"] = uint64_t{heads} * key_width();
  dims["o"] = uint64_t{heads} * value_width;
  dims["query_rank"] = query_rank;
  dims["latent"] = latent;
  dims["latent_row"] = row_width();
  dims["still"] = still;
  dims["value_head"] = value_width;
  dims["keys_values"] = uint64_t{heads} * (still + value_width);
}

void LatentAttention::place(Placer& placer, const std::string& block) const {
  const uint32_t pairs = rotates ? shared_key : 0;
  const auto named = [&](std::string_view tensor) { return fmt::format("{}{}.weight", block, tensor); };
  const std::string queries = named(query_rank == 0 ? "attn_q" : "attn_q_b");
  placer.matrix(queries, queries, split_half_order({0, heads, key_width(), still, pairs}));
  if (query_rank > 0) {
    placer.matrix(named("attn_q_a"), named("attn_q_a"));
    placer.vector(named("attn_q_a_norm"), named("attn_q_a_norm"));
  }
  placer.matrix(named("attn_kv_a_mqa"), named("attn_kv_a_mqa"), split_half_order({0, 1, row_width(), latent, pairs}));
  placer.vector(named("attn_kv_a_norm"), named("attn_kv_a_norm"));
  if (joint_keys) {
    place_joint_keys(placer, block);
  } else {
    placer.table(named("attn_k_b"), named("attn_k_b"));
    placer.table(named("attn_v_b"), named("attn_v_b"));
  }
  placer.matrix(named("attn_output"), named("attn_output"));
}

// attn_kv_b holds, head by head, the rows of its keys and then those of its values. The values' rows are used where
// they lie. The keys' are needed the other way round (a row a value of the latent), so they become f32 values.
void LatentAttention::place_joint_keys(Placer& placer, const std::string& block) const {
  const std::string joint = block + "attn_kv_b.weight";
  const uint32_t rows = still + value_width;
  std::vector<uint32_t> order;
  for (uint32_t head = 0; head < heads; ++head)
    for (uint32_t row = 0; row < value_width; ++row) order.push_back(head * rows + still + row);
  placer.table(block + "attn_v_b.weight", joint, std::move(order));
  const std::vector<float> all = placer.widened(joint);
  std::vector<float> keys;
  keys.reserve(size_t{heads} * latent * still);
  for (size_t head = 0; head < heads; ++head)
    for (size_t value = 0; value < latent; ++value)
      for (size_t row = 0; row < still; ++row) keys.push_back(all[(head * rows + row) * latent + value]);
  placer.values(block + "attn_k_b.weight", {heads * latent, still}, std::move(keys));
}

TensorId LatentAttention::write_queries(StepWriter& step, const std::string& block, TensorId x) const {
  if (query_rank == 0) return step.product(block + "q", x, block + "attn_q");
  const TensorId low = step.product(block + "q_low", x, block + "attn_q_a");
  const TensorId normed = step.rms_norm(block + "q_low_norm", low, block + "attn_q_a_norm.weight", eps);
  return step.product(block + "q", normed, block + "attn_q_b");
}

TensorId LatentAttention::write(StepWriter& step, const std::string& block, TensorId x) const {
  const TensorId q = write_queries(step, block, x);
  const TensorId row = step.product(block + "latent_row", x, block + "attn_kv_a_mqa");
  const TensorId q_still = step.add(block + "q_still", graph::HeadSlice{key_width(), 0, still}, {q});
  const TensorId q_shared = step.add(block + "q_shared", graph::HeadSlice{key_width(), still, shared_key}, {q});
  const TensorId plain = step.add(block + "latent", graph::HeadSlice{row_width(), 0, latent}, {row});
  const TensorId normed = step.rms_norm(block + "latent_norm", plain, block + "attn_kv_a_norm.weight", eps);
  const TensorId k_shared = step.add(block + "k_shared", graph::HeadSlice{row_width(), latent, shared_key}, {row});
  const TensorId absorbed = step.add(block + "q_absorbed", graph::HeadMatmul{.heads = heads},
                                     {q_still, step.constant(block + "attn_k_b.weight")});

  const auto turned = [&](SequenceWriter& own, std::string_view which, TensorId all) {
    const TensorId rows = own.rows(fmt::format("{}{}_row", block, which), all);
    if (!rotates) return rows;
    return own.add(fmt::format("{}{}_rope", block, which), graph::Rope{.width = shared_key, .half = shared_key / 2},
                   {rows, step.constant(rope + ".cos"), step.constant(rope + ".sin"), own.position()});
  };
  const TensorId mixed = step.each_sequence(block + "attn", heads * latent, [&](SequenceWriter& own) {
    const TensorId query = own.add(block + "query", graph::Join{heads},
                                   {own.rows(block + "q_absorbed_row", absorbed), turned(own, "q_shared", q_shared)});
    const TensorId key = own.add(block + "key", graph::Join{1},
                                 {own.rows(block + "latent_norm_row", normed), turned(own, "k_shared", k_shared)});
    const TensorId cache = own.state(block + "latent_cache", step.context(), row_width());
    own.set_cache(cache, key);
    const TensorId values = own.add(block + "latents", graph::HeadSlice{row_width(), 0, latent}, {cache});
    return own.add(block + "attn", graph::Attention{.heads = heads, .kv_heads = 1, .scale = scale},
                   {query, cache, values, own.position()});
  });
  const TensorId out = step.add(block + "attn_heads", graph::HeadMatmul{.heads = heads},
                                {mixed, step.constant(block + "attn_v_b.weight")});
  return step.product(block + "attn_out", out, block + "attn_output");
}

}  // namespace tw::model
