#include "lane/cpu/isa.h"

#include <cpuid.h>

namespace tw::lane::cpu {
namespace {

constexpr std::string_view kNames[] = {"scalar", "avx2", "avx512"};

// F16C, for which not every compiler has a probe; its registers are those of AVX. Asked once: a virtual machine takes
// microseconds to answer.
bool converts_halves() {
  static const bool converts = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return converts;
}

}  // namespace

std::string_view name(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

std::optional<Isa> isa_by_name(std::string_view wanted) {
  for (const Isa isa : kIsas)
    if (name(isa) == wanted) return isa;
  return std::nullopt;
}

// The compiler's probe also asks the operating system (XCR0) whether it saves the wide registers.
bool supported(Isa isa) {
  __builtin_cpu_init();
  switch (isa) {
    case Isa::Scalar: return true;
    case Isa::Avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && converts_halves();
    case Isa::Avx512:
      return supported(Isa::Avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vnni");
  }
  return false;
}

Isa best_isa() {
  Isa best = Isa::Scalar;
  for (const Isa isa : kIsas)
    if (supported(isa)) best = isa;
  return best;
}

}  // namespace tw::lane::cpu
