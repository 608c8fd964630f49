#pragma once

// What a lane answers about launches; the rules ask nothing else of it.

#include <optional>
#include <string>

#include "lane/launch.h"
#include "lane/types.h"

namespace tw::fuse {

class Shim {
 public:
  virtual ~Shim() = default;
  // Why the lane does not run this fused launch under these numerics, as a sentence without its end; nothing when it
  // does.
  [[nodiscard]] virtual std::optional<std::string> refuses(const lane::Launch& launch,
                                                           lane::Numerics numerics) const = 0;
  // Which of its kernels a launch takes and why, for a reader; empty when there is only one.
  [[nodiscard]] virtual std::string path(const lane::Launch& launch, lane::Numerics numerics) const = 0;
};

// Takes every launch: for plans that are looked at and not run.
class AnyLaunch final : public Shim {
 public:
  [[nodiscard]] std::optional<std::string> refuses(const lane::Launch&, lane::Numerics) const override { return {}; }
  [[nodiscard]] std::string path(const lane::Launch&, lane::Numerics) const override { return {}; }
};

}  // namespace tw::fuse
