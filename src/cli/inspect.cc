// tilewright inspect: what a checkpoint holds. Reads the file's tables only.

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/verb.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace tw::cli {

namespace {

constexpr size_t kShownItems = 6;   // of a metadata array
constexpr size_t kShownText = 100;  // bytes of a metadata string

struct InspectFlags {
  std::string model;
  bool json = false;
};

nlohmann::ordered_json scalar_json(const gguf::Scalar& scalar) {
  return std::visit(
      []<class T>(const T& value) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<T, std::string>) {
          return value.size() <= kShownText ? value : value.substr(0, kShownText) + "...";
        } else {
          return value;
        }
      },
      scalar);
}

nlohmann::ordered_json value_json(const gguf::Value& value) {
  if (const auto* scalar = std::get_if<gguf::Scalar>(&value.data)) return scalar_json(*scalar);
  const auto& array = std::get<gguf::Array>(value.data);
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  std::visit(
      [&](const auto& list) {
        for (size_t i = 0; i < list.size() && i < kShownItems; ++i) {
          using Item = typename std::decay_t<decltype(list)>::value_type;
          items.push_back(scalar_json(gguf::Scalar(Item(list[i]))));
        }
      },
      array.items);
  return {{"array_of", gguf::name(array.element)}, {"size", array.size()}, {"first", items}};
}

// Whether this build can run the checkpoint: by loading everything but weights.
struct Verdict {
  std::string model_refusal, tokenizer_refusal;
  std::optional<model::Facts> facts;
  [[nodiscard]] bool runs() const { return model_refusal.empty() && tokenizer_refusal.empty(); }
};

Verdict judge(const gguf::Checkpoint& checkpoint) {
  Verdict verdict;
  if (const auto model = model::Model::load(checkpoint)) {
    verdict.facts = model->facts();
    if (const auto step = model->step({}); !step) verdict.model_refusal = to_text(step.refusal());
  } else {
    verdict.model_refusal = to_text(model.refusal());
  }
  if (const auto tokenizer = text::Tokenizer::load(checkpoint); !tokenizer) {
    verdict.tokenizer_refusal = to_text(tokenizer.refusal());
  }
  return verdict;
}

struct FormatShare {
  uint64_t tensors = 0, values = 0, bytes = 0;
};

std::map<std::string, FormatShare> shares_of(const gguf::Checkpoint& checkpoint) {
  std::map<std::string, FormatShare> shares;
  for (const gguf::TensorInfo& tensor : checkpoint.tensors()) {
    FormatShare& share = shares[std::string(gguf::name(tensor.format))];
    ++share.tensors;
    share.values += tensor.values();
    share.bytes += tensor.bytes;
  }
  return shares;
}

double bits_per_weight(uint64_t bytes, uint64_t values) {
  return values == 0 ? 0 : 8 * static_cast<double>(bytes) / static_cast<double>(values);
}

nlohmann::ordered_json verdict_json(const Verdict& verdict) {
  nlohmann::ordered_json json{{"runs", verdict.runs()}};
  if (!verdict.model_refusal.empty()) json["model_refusal"] = verdict.model_refusal;
  if (!verdict.tokenizer_refusal.empty()) json["tokenizer_refusal"] = verdict.tokenizer_refusal;
  if (verdict.facts) {
    const model::Facts& facts = *verdict.facts;
    json["facts"] = {{"architecture", facts.architecture},
                     {"name", facts.name},
                     {"layers", facts.layers},
                     {"width", facts.width},
                     {"vocabulary", facts.vocabulary},
                     {"trained_context", facts.trained_context},
                     {"parameters", facts.parameters}};
  }
  return json;
}

void print_inspection_json(const gguf::Checkpoint& checkpoint, const Verdict& verdict) {
  nlohmann::ordered_json json{{"file", checkpoint.label()},
                              {"version", checkpoint.version()},
                              {"alignment", checkpoint.alignment()},
                              {"bytes", checkpoint.file_bytes()}};
  for (const gguf::Entry& entry : checkpoint.entries()) json["metadata"][entry.key] = value_json(entry.value);
  auto& tensors = json["tensors"] = nlohmann::ordered_json::array();
  for (const gguf::TensorInfo& tensor : checkpoint.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"format", gguf::name(tensor.format)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes},
                       {"bits_per_weight", bits_per_weight(tensor.bytes, tensor.values())}});
  }
  json["verdict"] = verdict_json(verdict);
  print_json(json);
}

std::string shown(const nlohmann::ordered_json& value) {
  if (value.is_object()) {
    std::string items;
    for (const auto& item : value["first"]) items += fmt::format("{}{}", items.empty() ? "" : ", ", shown(item));
    const bool more = value["size"].get<uint64_t>() > value["first"].size();
    return fmt::format("{} {}: {}{}", value["size"].get<uint64_t>(), value["array_of"].get<std::string>(), items,
                       more ? ", ..." : "");
  }
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void print_inspection(const gguf::Checkpoint& checkpoint, const Verdict& verdict) {
  fmt::print("{}: GGUF version {}, {}, {} keys, {} tensors\n\n", checkpoint.label(), checkpoint.version(),
             human_bytes(checkpoint.file_bytes()), checkpoint.entries().size(), checkpoint.tensors().size());
  for (const gguf::Entry& entry : checkpoint.entries()) {
    fmt::print("  {:<44} {}\n", entry.key, shown(value_json(entry.value)));
  }
  fmt::print("\n  {:<40} {:<8} {:>20} {:>12} {:>6}\n", "tensor", "format", "shape", "bytes", "bits");
  for (const gguf::TensorInfo& tensor : checkpoint.tensors()) {
    fmt::print("  {:<40} {:<8} {:>20} {:>12} {:>6.2f}\n", tensor.name, gguf::name(tensor.format),
               fmt::format("{}", fmt::join(tensor.shape, " x ")), tensor.bytes,
               bits_per_weight(tensor.bytes, tensor.values()));
  }
  fmt::print("\n");
  for (const auto& [format, share] : shares_of(checkpoint)) {
    fmt::print("  {:<8} {:>5} tensors {:>10} weights {:>12}  {:.2f} bits a weight\n", format, share.tensors,
               human_count(share.values), human_bytes(share.bytes), bits_per_weight(share.bytes, share.values));
  }
  if (verdict.runs()) {
    fmt::print("\nThis build can run it: {}, {} layers of width {}, {} weights, vocabulary {}, context {}.\n",
               verdict.facts->architecture, verdict.facts->layers, verdict.facts->width,
               human_count(verdict.facts->parameters), verdict.facts->vocabulary, verdict.facts->trained_context);
    return;
  }
  fmt::print("\nThis build cannot run it.\n");
  for (const std::string& refusal : {verdict.model_refusal, verdict.tokenizer_refusal}) {
    if (!refusal.empty()) fmt::print("  {}\n", refusal);
  }
}

Result<int> inspect(const InspectFlags& flags) {
  TW_TRY(const gguf::Checkpoint checkpoint, open_model(flags.model));
  const Verdict verdict = judge(checkpoint);
  (flags.json ? print_inspection_json : print_inspection)(checkpoint, verdict);
  return kFine;
}

}  // namespace

Action add_inspect(const Verb& verb) {
  auto flags = std::make_shared<InspectFlags>();
  verb.option("MODEL", flags->model, "A GGUF checkpoint");
  verb.option("-m,--model", flags->model, "The same as MODEL");
  verb.flag("--json", flags->json, "Print as JSON");
  return [flags] { return inspect(*flags); };
}

}  // namespace tw::cli
