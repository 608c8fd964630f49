#include "cli/spatial.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "cli/common.h"
#include "spatial/target_file.h"

namespace tw::cli {

namespace {

// The folder of the project one stands in, or that of the build.
std::string targets_folder() {
  std::error_code error;
  return std::filesystem::is_directory("targets", error) ? "targets" : TW_TARGETS;
}

// A checkpoint begins with these bytes; anything else is read as text.
Result<bool> is_checkpoint(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return refuse(RefusalKind::Io, path.string(), "is a folder, not a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(RefusalKind::Io, path.string(), "cannot be opened for reading");
  char magic[4] = {};
  file.read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "GGUF";
}

}  // namespace

void SpatialFlags::add_to(const Verb& verb) {
  verb.option("MODEL|GRAPH", source, "A GGUF checkpoint, or a step graph as text");
  verb.option("-T,--target", target,
              fmt::format("A spatial target: {}, or the path of a target's file",
                          fmt::join(spatial::target_names(targets_folder()), ", ")));
  verb.option("-c,--ctx-size", context, "Positions a sequence can hold (0: the model's own, at most 4096)");
}

Result<spatial::Target> target_of(const SpatialFlags& flags) {
  if (!flags.target.empty()) return spatial::find_target(flags.target, targets_folder());
  return refuse(RefusalKind::Usage, "--target", "is missing",
                fmt::format("It takes the path of a target's file or one of: {}.",
                            fmt::join(spatial::target_names(targets_folder()), ", ")));
}

Result<StepSource> StepSource::open(const SpatialFlags& flags) {
  StepSource source;
  TW_TRY(const std::filesystem::path path, model_path(flags.source));
  source.path_ = path.string();
  TW_TRY(const bool checkpoint, is_checkpoint(path));
  if (checkpoint) {
    TW_TRY(source.checkpoint_, gguf::Checkpoint::open(path));
    TW_TRY(source.model_, model::Model::load(*source.checkpoint_, {flags.context.value_or(0)}));
    return source;
  }
  if (flags.context)
    return refuse(RefusalKind::Usage, "--ctx-size", "is for models; a graph says itself how long its caches are");
  TW_TRY(const std::string text, read_text(source.path_));
  TW_TRY(source.graph_, graph::parse(text, source.path_));
  return source;
}

Result<graph::StepGraph> StepSource::step(const std::optional<std::string>& form) const {
  if (model_) {
    TW_TRY(const graph::Form wanted, form_of(form.value_or("decode")));
    return model_->step(wanted);
  }
  if (form) return refuse(RefusalKind::Usage, "--form", fmt::format("is for models; {} is one step", path_));
  return graph_->graph;
}

Result<graph::StepGraph> StepSource::step_of_rows(uint32_t rows) const {
  using Kind = graph::Form::Kind;
  if (model_) return model_->step(rows == 1 ? graph::Form{} : graph::Form{Kind::Chunk, rows});
  const graph::Form& form = graph_->graph.form;
  if (form.kind != Kind::Batch && form.rows == rows) return graph_->graph;
  return refuse(RefusalKind::Usage, path_,
                fmt::format("is a step of form {}, and one of {} row{} of a sequence is needed", to_text(form), rows,
                            rows == 1 ? "" : "s"),
                form.kind == Kind::Batch ? "" : fmt::format("Give tokens in multiples of {}.", form.rows));
}

const graph::Constants& StepSource::constants() const { return model_ ? model_->constants() : graph_->constants; }

void ExamineFlags::add_to(const Verb& verb) {
  spatial.add_to(verb);
  verb.option("--form", form, "Of a model: decode (the default), chunk:M, chunk:M:all or batch:B");
  verb.option("--op", op, "Only the op that makes the tensor of this name");
}

Result<spatial::step::Examined> examine(const ExamineFlags& flags) {
  TW_TRY(const spatial::Target target, target_of(flags.spatial));
  TW_TRY(const StepSource source, StepSource::open(flags.spatial));
  TW_TRY(graph::StepGraph graph, source.step(flags.form));
  return spatial::step::examine(std::move(graph), target, {.only = flags.op});
}

}  // namespace tw::cli
