// The element types of tensors, the types in which kernels compute, and the conversions between
// them.
//
// NVRTC compiles this without any header of the CUDA toolkit, so the 16-bit floats are defined
// here. For the tests, a C++ compiler compiles the same text with TENON_EMULATED defined: every use
// of PTX has a plain branch for that.
//
// - The names of dtypes are the macros' arguments: f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 boolean.
// - `Compute<X>` is the type in which X computes: f32 for the 16-bit floats, bool for boolean, else
//   X itself. `widen(x)` and `narrow<X>(w)` convert between the two; narrowing a float rounds to
//   nearest, ties to even.
// - Arithmetic on integers that may wrap goes through `Bits<X>`, an unsigned type of at least 32 bits, since signed
//   overflow is undefined in C++, and two u16 multiply as int.
#pragma once

#ifdef TENON_EMULATED
#define DEVICE inline
#else
#define DEVICE __device__ __forceinline__
#endif

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
typedef float f32;
typedef double f64;

static_assert(sizeof(u8) == 1 && sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8, "sizes of integers");
static_assert(sizeof(f32) == 4 && sizeof(f64) == 8 && sizeof(void*) == 8, "sizes of floats and pointers");

#ifdef TENON_EMULATED
template <typename To, typename From>
DEVICE To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}
DEVICE u32 to_bits(f32 x) { return bits_as<u32>(x); }
DEVICE u64 to_bits(f64 x) { return bits_as<u64>(x); }
DEVICE f32 from_bits(u32 bits) { return bits_as<f32>(bits); }
DEVICE f64 from_bits(u64 bits) { return bits_as<f64>(bits); }
#else
DEVICE u32 to_bits(f32 x) { return __float_as_uint(x); }
DEVICE u64 to_bits(f64 x) { return (u64)__double_as_longlong(x); }
DEVICE f32 from_bits(u32 bits) { return __uint_as_float(bits); }
DEVICE f64 from_bits(u64 bits) { return __longlong_as_double((i64)bits); }
#endif

// The bits of a half, rounded to nearest, ties to even.
DEVICE u16 half_bits(f32 x) {
#ifndef TENON_EMULATED
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    const u32 all = to_bits(x), magnitude = all & 0x7fffffffu, sign = all >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u) return (u16)0x7fffu;
    // From halfway between the largest half and the next power of two on.
    if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        // A denormal: its unit is 2^-24, to which adding 1/2 in the unit 2^-24 (ulp of f32 there) rounds.
        const f32 rounded = from_bits(magnitude) + 0.5f;
        return (u16)(sign | (to_bits(rounded) - to_bits(0.5f)));
    }
    const u32 even = magnitude >> 13 & 1u;
    return (u16)(sign | ((magnitude - (112u << 23) + 0xfffu + even) >> 13));
#endif
}

// The value of a half, exactly.
DEVICE f32 half_value(u16 bits) {
#ifndef TENON_EMULATED
    f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
#else
    const u32 sign = (u32)(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) return from_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x400u) return (sign ? -1.0f : 1.0f) * ((f32)magnitude * from_bits(103u << 23));
    return from_bits(sign | ((magnitude << 13) + (112u << 23)));
#endif
}

// The bits of a bfloat16, rounded to nearest, ties to even.
DEVICE u16 bfloat16_bits(f32 x) {
#if !defined(TENON_EMULATED) && __CUDA_ARCH__ >= 800
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    const u32 all = to_bits(x);
    const u32 rounded = (all + 0x7fffu + (all >> 16 & 1u)) >> 16;
    return (u16)((all & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
#endif
}

// IEEE binary16.
struct alignas(2) f16 {
    u16 bits;
    f16() = default;
    DEVICE explicit f16(f32 x) : bits(half_bits(x)) {}
    DEVICE explicit operator f32() const { return half_value(bits); }
};

// The upper half of an f32.
struct alignas(2) bf16 {
    u16 bits;
    bf16() = default;
    DEVICE explicit bf16(f32 x) : bits(bfloat16_bits(x)) {}
    DEVICE explicit operator f32() const { return from_bits((u32)bits << 16); }
};

// A truth value: a byte that is 0 or 1.
struct boolean {
    u8 byte;
    boolean() = default;
    DEVICE explicit boolean(bool x) : byte(x ? 1 : 0) {}
    DEVICE explicit operator bool() const { return byte != 0; }
};

static_assert(sizeof(f16) == 2 && sizeof(bf16) == 2 && sizeof(boolean) == 1, "sizes of elements");
static_assert(__is_trivially_copyable(f16) && __is_trivially_copyable(bf16) && __is_trivially_copyable(boolean),
    "elements are copied as bytes");

template <typename X, typename Y> inline constexpr bool is_same = false;
template <typename X> inline constexpr bool is_same<X, X> = true;

template <bool CONDITION, typename X, typename Y> struct Choose { typedef X type; };
template <typename X, typename Y> struct Choose<false, X, Y> { typedef Y type; };
template <bool CONDITION, typename X, typename Y> using choose = typename Choose<CONDITION, X, Y>::type;

template <typename X>
using Compute = choose<is_same<X, f16> || is_same<X, bf16>, f32, choose<is_same<X, boolean>, bool, X>>;

// The type in which sums of X are accumulated: the type in which X computes.
template <typename X> using Acc = Compute<X>;

// Of types that compute.
template <typename W> inline constexpr bool is_float = is_same<W, f32> || is_same<W, f64>;
template <typename W> inline constexpr bool is_integer = !is_float<W> && !is_same<W, bool>;
template <typename W> inline constexpr bool is_signed = is_integer<W> && (W)-1 < (W)0;
template <typename W> using Bits = choose<sizeof(W) == 8, u64, u32>;

DEVICE f32 widen(f16 x) { return (f32)x; }
DEVICE f32 widen(bf16 x) { return (f32)x; }
DEVICE bool widen(boolean x) { return (bool)x; }
template <typename X> DEVICE X widen(X x) { return x; }

template <typename X> DEVICE X narrow(Compute<X> x) { return (X)x; }

// Rounds a value of the type of computation to X, and widens it again.
template <typename X> DEVICE Compute<X> rounded(Compute<X> x) { return widen(narrow<X>(x)); }

// The extremes of a type of computation. For integers, infinity() is the highest and
// minus_infinity() the lowest value.
template <typename W> struct Limits {
    static_assert(is_integer<W>, "a type that computes");
    static constexpr u32 BITS = 8 * sizeof(W);
    static DEVICE W lowest() { return is_signed<W> ? (W)((u64)1 << (BITS - 1)) : (W)0; }
    static DEVICE W highest() { return (W)(is_signed<W> ? ~((u64)1 << (BITS - 1)) : ~(u64)0); }
    static DEVICE W infinity() { return highest(); }
    static DEVICE W minus_infinity() { return lowest(); }
};

template <> struct Limits<f32> {
    static DEVICE f32 lowest() { return from_bits(0xff7fffffu); }
    static DEVICE f32 highest() { return from_bits(0x7f7fffffu); }
    static DEVICE f32 infinity() { return from_bits(0x7f800000u); }
    static DEVICE f32 minus_infinity() { return from_bits(0xff800000u); }
    static DEVICE f32 nan() { return from_bits(0x7fc00000u); }
};

template <> struct Limits<f64> {
    static DEVICE f64 lowest() { return from_bits((u64)0xffefffffffffffffull); }
    static DEVICE f64 highest() { return from_bits((u64)0x7fefffffffffffffull); }
    static DEVICE f64 infinity() { return from_bits((u64)0x7ff0000000000000ull); }
    static DEVICE f64 minus_infinity() { return from_bits((u64)0xfff0000000000000ull); }
    static DEVICE f64 nan() { return from_bits((u64)0x7ff8000000000000ull); }
};

template <> struct Limits<bool> {
    static DEVICE bool lowest() { return false; }
    static DEVICE bool highest() { return true; }
    static DEVICE bool infinity() { return true; }
    static DEVICE bool minus_infinity() { return false; }
};

// Extremes of the 16-bit floats, as f32.
template <> struct Limits<f16> {
    static DEVICE f32 lowest() { return -65504.0f; }
    static DEVICE f32 highest() { return 65504.0f; }
};
template <> struct Limits<bf16> {
    static DEVICE f32 lowest() { return from_bits(0xff7f0000u); }
    static DEVICE f32 highest() { return from_bits(0x7f7f0000u); }
};

// Whether a value of a type of computation is NaN.
template <typename W> DEVICE bool is_nan(W x) {
    if constexpr (is_float<W>) return x != x;
    return false;
}

// Sums, differences and products: integers wrap, floats round once each (never contracted to a fused product and
// sum, so that a chain of ops gives what the ops give one by one).
template <typename W> DEVICE W add(W x, W y) {
    if constexpr (is_integer<W>) return (W)((Bits<W>)x + (Bits<W>)y);
#ifndef TENON_EMULATED
    else if constexpr (is_same<W, f32>) return __fadd_rn(x, y);
    else if constexpr (is_same<W, f64>) return __dadd_rn(x, y);
#endif
    else return x + y;
}

template <typename W> DEVICE W sub(W x, W y) {
    if constexpr (is_integer<W>) return (W)((Bits<W>)x - (Bits<W>)y);
#ifndef TENON_EMULATED
    else if constexpr (is_same<W, f32>) return __fsub_rn(x, y);
    else if constexpr (is_same<W, f64>) return __dsub_rn(x, y);
#endif
    else return x - y;
}

template <typename W> DEVICE W mul(W x, W y) {
    if constexpr (is_integer<W>) return (W)((Bits<W>)x * (Bits<W>)y);
#ifndef TENON_EMULATED
    else if constexpr (is_same<W, f32>) return __fmul_rn(x, y);
    else if constexpr (is_same<W, f64>) return __dmul_rn(x, y);
#endif
    else return x * y;
}
