#pragma once

// A fingerprint of everything a program is: names, sizes, addresses, bodies, items. Two that differ are of different
// programs. It guards against a certificate of another program, not against someone who looks for a collision.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "spatial/program.h"

namespace tw::spatial {

class Fingerprint {
 public:
  void add(uint64_t word);
  void add(std::string_view text);
  void add(const Tensor& tensor);
  void add(const AccessPattern& pattern);
  void add(const Generic& generic);
  void add(const Stage& stage);

  [[nodiscard]] uint64_t low() const { return lanes_[0]; }
  [[nodiscard]] std::string hex() const;  // 32 digits

 private:
  std::array<uint64_t, 2> lanes_{0x243f6a8885a308d3, 0x13198a2e03707344};
};

std::string fingerprint(const Program& program);

}  // namespace tw::spatial
