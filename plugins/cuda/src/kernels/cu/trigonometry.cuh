// Sine, cosine and tangent of f32 and f64, to a few units in the last place for every angle.
//
// The functions of CUDA's math library keep words of a reduced large angle in local memory, which
// gives every launch a stack; these functions keep them in registers.
#pragma once
#include "types.cuh"

namespace math {

// An angle less a multiple of pi / 2, and that multiple modulo 4.
template <typename W> struct Reduced {
    W angle;
    u32 quadrant;
};

// The bits of 2 / pi after the point, behind a word of zeros.
DEVICE u32 two_over_pi(u32 word) {
    static const u32 WORDS[] = {0, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
        0xfe5163abu};
    return WORDS[word];
}

// Reduction of a large finite angle (M. Payne and R. Hanek, "Radian reduction for trigonometric functions", 1983). With
// |x| = m 2^e, the bits of 2 / pi whose product with m 2^e is a multiple of 4 are left out, and of the rest 96 suffice.
DEVICE Reduced<f32> reduce_large(f32 x) {
    const u32 bits = to_bits(x), m = (bits & 0x7fffffu) | 0x800000u;
    // e - 2, and 32 for the word of zeros; x is above 2^15, so this is at least 22.
    const u32 skipped = (bits >> 23 & 0xffu) - 150u + 30u, word = skipped / 32, shift = skipped % 32;
    const u64 a = (u64)two_over_pi(word) << 32 | two_over_pi(word + 1);
    const u64 b = (u64)two_over_pi(word + 1) << 32 | two_over_pi(word + 2);
    const u64 c = (u64)two_over_pi(word + 2) << 32 | two_over_pi(word + 3);
    const u64 low = (u64)m * (u32)(c << shift >> 32);
    const u64 middle = (u64)m * (u32)(b << shift >> 32) + (low >> 32);
    const u64 quarters = ((u64)m * (u32)(a << shift >> 32) + (middle >> 32)) << 32 | (u32)middle;
    // The top two bits count quarters of a turn; the rest, as a signed fraction, is at most half of one.
    const f64 fraction = (f64)(i64)(quarters << 2);
    const f32 angle = (f32)(fraction * (1.5707963267948966 / 18446744073709551616.0));
    const u32 quadrant = (u32)((quarters + ((u64)1 << 61)) >> 62);
    return (bits >> 31) != 0 ? Reduced<f32>{-angle, 0u - quadrant} : Reduced<f32>{angle, quadrant};
}

// Below 2^16, pi / 2 as the sum of three floats (W. Cody and W. Waite, 1980): the first product and difference are
// exact, since the difference is a multiple of 2^-23 below 1.
DEVICE Reduced<f32> reduce(f32 x) {
    if (fabsf(x) >= 65536.0f) return fabsf(x) < Limits<f32>::infinity() ? reduce_large(x) : Reduced<f32>{x - x, 0u};
    const f32 turns = rintf(x * 0.636619772f);
    f32 angle = fmaf(turns, -1.57079637f, x);
    angle = fmaf(turns, 4.37113883e-8f, angle);
    angle = fmaf(turns, 1.71512449e-15f, angle);
    return {angle, (u32)(i32)turns};
}

DEVICE u64 product_high(u64 x, u64 y) {
#ifdef TENON_EMULATED
    return (u64)((unsigned __int128)x * y >> 64);
#else
    return __umul64hi(x, y);
#endif
}

DEVICE u32 leading_zeros(u64 x) {
#ifdef TENON_EMULATED
    return x == 0 ? 64u : (u32)__builtin_clzll(x);
#else
    return (u32)__clzll((i64)x);
#endif
}

// The bits of 2 / pi after the point from bit `skipped` - 64 on.
DEVICE u64 two_over_pi_at(u32 skipped) {
    static const u64 WORDS[] = {
        0, 0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull,
        0xfe5163abdebbc561ull, 0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull,
        0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull,
        0x1ff897ffde05980full, 0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull,
        0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull};
    const u32 word = skipped / 64, shift = skipped % 64;
    return shift == 0 ? WORDS[word] : WORDS[word] << shift | WORDS[word + 1] >> (64 - shift);
}

// As for f32, with 192 bits of 2 / pi, of whose product with m the upper 128 are kept.
DEVICE Reduced<f64> reduce(f64 x) {
    const u64 bits = to_bits(x), m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
    const u32 exponent = (u32)(bits >> 52) & 0x7ffu;
    // Below 1/2 there is nothing to reduce.
    if (exponent < 1022u) return {x, 0u};
    if (exponent == 0x7ffu) return {x - x, 0u};
    // e - 2, and 64 for the word of zeros.
    const u32 skipped = exponent - 1075u + 62u;
    const u64 b = two_over_pi_at(skipped + 64), lowest = product_high(m, two_over_pi_at(skipped + 128));
    u64 low = m * b + lowest;
    const u64 quarters = m * two_over_pi_at(skipped) + product_high(m, b) + (low < lowest ? 1u : 0u);
    const u32 quadrant = (u32)((quarters + ((u64)1 << 61)) >> 62);
    u64 high = quarters << 2 | low >> 62;
    low <<= 2;
    const bool is_below = high >> 63 != 0;
    if (is_below) {
        high = ~high;
        low = ~low;
    }
    // The leading bits of the fraction times pi / 2, which is the constant over 2^63.
    const u32 zeros = leading_zeros(high) & 63u;
    if (zeros != 0) high = high << zeros | low >> (64 - zeros);
    const f64 scale = from_bits((u64)(1023u - 63u - zeros) << 52);
    const f64 angle = (f64)product_high(high, 0xc90fdaa22168c234ull) * scale;
    const bool is_negative = is_below != (bits >> 63 != 0);
    return {is_negative ? -angle : angle, bits >> 63 != 0 ? 0u - quadrant : quadrant};
}

// The sine of an angle of at most pi / 4, by the Taylor series; the terms left out are below 2^-28.
DEVICE f32 small_sine(f32 x) {
    const f32 z = x * x;
    f32 sum = fmaf(z, 2.75573192e-6f, -1.98412698e-4f);
    sum = fmaf(z, sum, 8.33333333e-3f);
    sum = fmaf(z, sum, -1.66666667e-1f);
    return fmaf(x * z, sum, x);
}

DEVICE f32 small_cosine(f32 x) {
    const f32 z = x * x;
    f32 sum = fmaf(z, -2.75573192e-7f, 2.48015873e-5f);
    sum = fmaf(z, sum, -1.38888889e-3f);
    sum = fmaf(z, sum, 4.16666667e-2f);
    sum = fmaf(z, sum, -0.5f);
    return fmaf(z, sum, 1.0f);
}

// The terms left out are below 2^-60.
DEVICE f64 small_sine(f64 x) {
    const f64 z = x * x;
    f64 sum = fma(z, 2.8114572543455206e-15, -7.647163731819816e-13);
    sum = fma(z, sum, 1.6059043836821613e-10);
    sum = fma(z, sum, -2.505210838544172e-08);
    sum = fma(z, sum, 2.7557319223985893e-06);
    sum = fma(z, sum, -0.0001984126984126984);
    sum = fma(z, sum, 0.008333333333333333);
    sum = fma(z, sum, -0.16666666666666666);
    return fma(x * z, sum, x);
}

DEVICE f64 small_cosine(f64 x) {
    const f64 z = x * x;
    f64 sum = fma(z, 4.779477332387385e-14, -1.1470745597729725e-11);
    sum = fma(z, sum, 2.08767569878681e-09);
    sum = fma(z, sum, -2.755731922398589e-07);
    sum = fma(z, sum, 2.48015873015873e-05);
    sum = fma(z, sum, -0.001388888888888889);
    sum = fma(z, sum, 0.041666666666666664);
    sum = fma(z, sum, -0.5);
    return fma(z, sum, 1.0);
}

// The sine of the angle and `quarters` of a turn.
template <typename W> DEVICE W turned_sine(W x, u32 quarters) {
    const Reduced<W> reduced = reduce(x);
    const u32 quadrant = reduced.quadrant + quarters;
    const W value = quadrant & 1u ? small_cosine(reduced.angle) : small_sine(reduced.angle);
    return quadrant & 2u ? -value : value;
}

// Both zeros keep their sign.
template <typename W> DEVICE W sine(W x) { return x == (W)0 ? x : turned_sine(x, 0u); }
template <typename W> DEVICE W cosine(W x) { return turned_sine(x, 1u); }
template <typename W> DEVICE W tangent(W x) {
    const Reduced<W> reduced = reduce(x);
    const W s = small_sine(reduced.angle), c = small_cosine(reduced.angle);
    return x == (W)0 ? x : reduced.quadrant & 1u ? -c / s : s / c;
}

}  // namespace math
