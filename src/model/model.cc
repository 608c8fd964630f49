#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/registry.h"

namespace tw::model {

namespace {

constexpr uint32_t kDefaultContext = 4096;
constexpr uint32_t kLargestContext = 1U << 20;
constexpr uint32_t kLargestChunk = 512;
constexpr uint32_t kLargestBatch = 64;

Result<uint32_t> choose_context(const gguf::Checkpoint& checkpoint, const Options& options, uint32_t trained) {
  const uint32_t context = options.context == 0 ? std::min(trained, kDefaultContext) : options.context;
  if (context <= kLargestContext) return context;
  return refuse(
      RefusalKind::TooLarge, checkpoint.label(),
      fmt::format("a context of {} positions was asked for; at most {} are supported", context, kLargestContext));
}

Result<void> check_form(const graph::Form& form) {
  using Kind = graph::Form::Kind;
  const auto [low, high] = form.kind == Kind::Decode  ? std::array{1U, 1U}
                           : form.kind == Kind::Chunk ? std::array{1U, kLargestChunk}
                                                      : std::array{2U, kLargestBatch};
  if (form.rows >= low && form.rows <= high) return {};
  return refuse(RefusalKind::Usage, fmt::format("form {}", graph::to_text(form)),
                fmt::format("it has {} rows; expected {} to {}", form.rows, low, high));
}

}  // namespace

// A loaded model.
class Family {
 public:
  Facts facts;
  Decoder decoder;
  Weights weights;
};

Model::Model(std::unique_ptr<Family> family) : family_(std::move(family)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<Model> Model::load(const gguf::Checkpoint& checkpoint, const Options& options) {
  TW_TRY(const std::string architecture, checkpoint.get_string("general.architecture"));
  const FamilyInfo* family = find_family(architecture);
  if (family == nullptr) return refuse_architecture(checkpoint.label(), architecture);
  TW_TRY(const Hyper hyper, Hyper::read(checkpoint, architecture, family->keys));
  auto model = std::make_unique<Family>();
  TW_TRY(model->decoder, family->configure(hyper, checkpoint));
  Facts& facts = model->facts;
  TW_TRY(facts.parameters, check_tensors(checkpoint, architecture, layout_of(model->decoder), family->tensors));
  TW_TRY(facts.context, choose_context(checkpoint, options, model->decoder.trained_context));
  TW_TRY(const auto name, checkpoint.find_string("general.name"));
  facts.architecture = architecture;
  facts.name = name.value_or("");
  facts.layers = static_cast<uint32_t>(model->decoder.layers.size());
  facts.width = model->decoder.width;
  facts.vocabulary = model->decoder.vocabulary;
  facts.trained_context = model->decoder.trained_context;
  TW_TRY(model->weights, place_decoder(checkpoint, model->decoder, facts.context));
  return Model(std::move(model));
}

const Facts& Model::facts() const { return family_->facts; }

Result<graph::StepGraph> Model::step(const graph::Form& form) const {
  TW_TRY_VOID(check_form(form));
  return write_decoder(family_->decoder, family_->weights, family_->facts.architecture, form, family_->facts.context);
}

const graph::Constants& Model::constants() const { return family_->weights.constants; }

}  // namespace tw::model
