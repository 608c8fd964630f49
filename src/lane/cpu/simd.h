#pragma once

// The vector wrapper of the CPU lane: 16 floats on every instruction set, so that a kernel is written once as a
// template over an instruction-set struct (Scalar, Avx2, Avx512) and gives the same bits on each.
//
// Every struct has the same members. Types:
//   V  16 floats      I  16 int32      M  16 truths      B  64 bytes (also read as 32 int16)
// Floats: zero() set(x) load(p) load(p, n) store(p, v) store(p, v, n) add sub mul div sqrt neg abs
//   fma(a, b, c) = a * b + c rounded once; max(a, b) = a > b ? a : b; min(a, b) = a < b ? a : b
//   greater less (false on NaN), select(m, a, b), leading(n, a, b) (the first n lanes, 0 to 16, of a, the rest of b),
//   first(v) (lane 0), tree(v) (the last four halvings of a lane tree), most(v) (the largest lane; which NaN or zero
//   wins is not said), most_bits(v) (the lane whose bits are the largest int32)
//   Pointers need no alignment. load(p, n) reads the first n < 16 values only and fills with +0; store(p, v, n) writes
//   only the first n. transpose(from, to): to[16 i + j] = from[16 j + i], 16 x 16, apart.
// 16-bit storage: load_f16 store_f16 load_bf16 store_bf16, each also with n; narrowing rounds to nearest even.
// Integers (wrapping): izero iset iload istore iadd isub imul iand ior ixor imax ishl<n> ishr<n> isar<n>
//   igreater iselect; isum(i) (of all lanes); to_float(i), to_int(v) (nearest even; NaN and out of range give
//   INT32_MIN), bits, from_bits load_i8 load_u8 load_i16 (16 values widened); store_i8 store_i16 (low bits kept)
// Bytes: bload(p) (64 bytes) bset4(x) (the 4 bytes of x in every lane) bset1(byte) band bor bxor bshr16<n> bshl16<n>
// (as
//   int16) badd bsub (as bytes, wrapping) blookup(table, i) (table: 16 bytes; the low 4 bits of i, whose top bit is 0)
//   bfrom(lo, hi): two I to 32 int16 in order, low bits kept
//   i_of(b), b_of(i): the same bits
// Dots, into 16 int32 sums; lane l takes bytes 4l .. 4l + 3 (or int16 2l, 2l + 1). All exact:
//   dot4(acc, u, s)        u unsigned, s signed, any values
//   dot4_small(acc, u, s)  the same, requires u <= 128 and s >= -127: fewer instructions without VNNI
//   dot4_signed(acc, a, b) both signed, requires b >= -127
//   dot2(acc, a, b)        int16 pairs
// In two steps, to sum in int16 first: bpairs(u, s) 32 int16 sums of two products (u unsigned, s signed; saturating),
//   badd16, bmul16 (low halves of the products), idot_pairs(acc, p) sums of neighbours into 16 int32. kPairSums: this
//   is faster than dot4_small.
// bwiden01(u) bwiden23(u): unsigned bytes 4l, 4l + 1 (4l + 2, 4l + 3) as int16 2l, 2l + 1.
// pin(i): the compiler has the value in registers here, and moves no part of its computation past this place.
// kSignedByOffset: dot4 of a + 128 costs less than dot4_signed of a.
// kBlockRows: rows of a register tile over weights that are unpacked once for many rows; 1: there is none.
// kProductRows: activation rows of a register tile of a product, 1 or 4. kTileVectors: sums V that a register tile may
// hold beside its operands.
//
// The structs for AVX2 and AVX-512 may be used only in translation units compiled for them (*_avx2.cc, *_avx512.cc).
// Such a unit must not instantiate inline functions or templates of the standard library: the linker might keep that
// copy for the whole program. Everything here is forced inline; kernels live in templates over the struct.

#include <cstddef>
#include <cstdint>

// Forced inline, for functions that translation units of several instruction sets share.
#define TW_INLINE [[gnu::always_inline]]
#define TW_SIMD TW_INLINE static inline

namespace tw::lane::cpu {

// Items [begin, end) of a kernel.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

}  // namespace tw::lane::cpu
