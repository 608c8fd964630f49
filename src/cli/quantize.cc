// tilewright quantize: a checkpoint with its matrices in another format.

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/verb.h"
#include "model/requantize.h"

namespace tw::cli {

namespace {

struct QuantizeFlags {
  std::string in, out, format;
  bool json = false;
};

Result<int> quantize(const QuantizeFlags& flags) {
  TW_TRY(const gguf::Checkpoint checkpoint, gguf::Checkpoint::open(flags.in));
  const auto progress = [](uint64_t done, uint64_t total) {
    fmt::print(stderr, "\r{} of {} tensors{}", done, total, done == total ? "\n" : "");
  };
  const bool show = isatty(STDERR_FILENO) != 0;
  TW_TRY(const model::Requantized done,
         model::requantize(checkpoint, flags.format, flags.out,
                           show ? std::function<void(uint64_t, uint64_t)>(progress) : nullptr, &interrupted()));
  if (flags.json) {
    print_json({{"file", flags.out},
                {"format", flags.format},
                {"matrices", done.matrices},
                {"kept", done.kept},
                {"bytes_before", done.bytes_before},
                {"bytes_after", done.bytes_after}});
  } else {
    fmt::print("{}: {} matrices in {}, {} tensors kept, {} -> {}\n", flags.out, done.matrices, flags.format, done.kept,
               human_bytes(done.bytes_before), human_bytes(done.bytes_after));
  }
  return kFine;
}

}  // namespace

Action add_quantize(const Verb& verb) {
  auto flags = std::make_shared<QuantizeFlags>();
  verb.option("IN", flags->in, "The checkpoint to read").required();
  verb.option("OUT", flags->out, "The file to write").required();
  verb.option("FORMAT", flags->format, "Q8_0, Q4_0, Q4_K, Q6_K, MXFP4, F16, ... or a mixture: Q4_K_M").required();
  verb.flag("--json", flags->json, "Print as JSON");
  return [flags] { return quantize(*flags); };
}

}  // namespace tw::cli
