#include "cli/planning.h"

#include "runtime/knobs.h"

namespace tw::cli {

void PlanFlags::add_to(const Verb& verb) {
  verb.option("MODEL", model, "A GGUF checkpoint");
  verb.option("-m,--model", model, "The same as MODEL");
  verb.option("--form", form, "decode, chunk:M, chunk:M:all or batch:B").shows_default();
  verb.flag("--json", json, "Print as JSON");
  engine.add_to(verb);
}

Result<model::Model> load_model(const PlanFlags& flags) {
  TW_TRY(const gguf::Checkpoint checkpoint, open_model(flags.model));
  return model::Model::load(checkpoint, {flags.engine.context});
}

Result<plan::Knobs> knobs_of(const EngineFlags& flags) {
  TW_TRY(const runtime::EngineOptions options, flags.options());
  return runtime::knobs_of(options);
}

}  // namespace tw::cli
