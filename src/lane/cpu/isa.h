#pragma once

// The instruction sets the lane has kernels for, and which of them this machine can run.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::lane::cpu {

enum class Isa : uint8_t {
  Scalar,  // baseline x86-64
  Avx2,    // AVX2, FMA, F16C
  Avx512,  // AVX-512 F, BW, DQ, VL, VNNI
};
inline constexpr std::array kIsas{Isa::Scalar, Isa::Avx2, Isa::Avx512};

std::string_view name(Isa isa);                         // "scalar", "avx2", "avx512"
std::optional<Isa> isa_by_name(std::string_view name);  // none: no such name
bool supported(Isa isa);                                // by the processor and the operating system
Isa best_isa();                                         // the widest supported

}  // namespace tw::lane::cpu
