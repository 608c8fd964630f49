// The loops of this machine's instruction set give the bits of the portable ones.

#include "spatial/evaluate/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tw::spatial::evaluate {
namespace {

constexpr size_t kLengths[] = {1, 3, 7, 8, 31, 33, 257};

std::vector<float> singles(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(n);
  for (float& value : values) {
    value = std::bit_cast<float>(static_cast<uint32_t>(random()));  // of every size, NaN and infinity among them
    if (random() % 2 == 0) value = static_cast<float>(static_cast<int64_t>(random() % 4096) - 2048) / 64;
  }
  return values;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::isnan(a[i]) && std::isnan(b[i])) && (a[i] != b[i] || std::signbit(a[i]) != std::signbit(b[i])))
      return false;
  return true;
}

TEST(Kernels, GiveTheBitsOfThePortableOnes) {
  const Kernels &fast = kernels(), &plain = portable_kernels();
  for (const size_t n : kLengths)
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<float> a = singles(n, seed), b = singles(n, seed + 1000);
      std::vector<float> x(n), y(n);
      for (size_t op = 0; op < 6; ++op) {
        fast.singles[op](a.data(), b.data(), x.data(), n);
        plain.singles[op](a.data(), b.data(), y.data(), n);
        EXPECT_TRUE(same(x, y)) << "binary " << op << " of " << n;
      }
      for (size_t op = 0; op < 4; ++op) {
        fast.functions[op](a.data(), x.data(), n);
        plain.functions[op](a.data(), y.data(), n);
        EXPECT_TRUE(same(x, y)) << "function " << op << " of " << n;
      }
      fast.rsqrt(a.data(), 7, 1e-6F, x.data(), n);
      plain.rsqrt(a.data(), 7, 1e-6F, y.data(), n);
      EXPECT_TRUE(same(x, y)) << "rsqrt of " << n;
      std::vector<uint16_t> p(n), q(n);
      fast.to_bf16(a.data(), p.data(), n);
      plain.to_bf16(a.data(), q.data(), n);
      EXPECT_EQ(p, q);
      std::vector<double> u(a.begin(), a.end()), v = u;
      fast.round_fixed(u.data(), 65536, 0x1p31, n);
      plain.round_fixed(v.data(), 65536, 0x1p31, n);
      EXPECT_TRUE(same(u, v)) << "fixed of " << n;
    }
}

TEST(Kernels, ContractInTheOrderOfTheTerms) {
  for (const size_t n : kLengths)
    for (const size_t inner : {size_t{1}, size_t{4}, size_t{7}}) {
      const std::vector<float> a = singles(2 * inner, n), b = singles(inner * (n + 3), n + 1);
      std::vector<float> x(n, 0.5F), want = x;
      for (size_t j = 0; j < n; ++j)
        for (size_t k = 0; k < inner; ++k) {
          const float term = a[2 * k] * b[k * (n + 3) + j];
          want[j] = want[j] + term;
        }
      kernels().contract(a.data(), 2, b.data(), static_cast<int64_t>(n + 3), x.data(), inner, n);
      EXPECT_TRUE(same(x, want)) << inner << " terms, " << n << " sums";
    }
}

TEST(Kernels, SeeIntegersLeave64Bits) {
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max(), kLow = std::numeric_limits<int64_t>::min();
  struct Case {
    size_t op;
    int64_t a, b;
    bool leaves;
  };
  constexpr Case kCases[] = {{0, kHigh, 1, true},
                             {0, kHigh, 0, false},
                             {0, kLow, -1, true},
                             {1, kLow, 1, true},
                             {1, kLow, -1, false},
                             {1, -1, kLow, false},
                             {1, 0, kLow, true},
                             {2, kLow, -1, true},
                             {2, int64_t{1} << 31, 1 << 30, false},
                             {2, int64_t{1} << 32, int64_t{1} << 31, true},
                             {2, kLow, 1, false}};
  for (const Case& c : kCases)
    for (const size_t n : kLengths) {
      std::vector<int64_t> a(n, 1), b(n, 1), out(n);
      a.back() = c.a;
      b.back() = c.b;
      for (const Kernels* set : {&kernels(), &portable_kernels()})
        EXPECT_EQ(set->integers[c.op](a.data(), b.data(), out.data(), n), c.leaves)
            << c.op << ": " << c.a << ", " << c.b;
    }
}

}  // namespace
}  // namespace tw::spatial::evaluate
