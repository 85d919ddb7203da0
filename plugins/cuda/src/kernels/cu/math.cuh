// Functions of f32 and f64, under one name for both, accurate to a few units in the last place.
//
// Most are those of CUDA's math library, without its fast variants; sine, cosine and tangent are in trigonometry.cuh.
#pragma once
#include "types.cuh"
#include "trigonometry.cuh"

// A function of the math library under its name for f64, and for f32 with an f.
#define OF_BOTH(NAME, FUNCTION) \
    DEVICE f32 NAME(f32 x) { return FUNCTION##f(x); } \
    DEVICE f64 NAME(f64 x) { return FUNCTION(x); }

namespace math {

OF_BOTH(absolute, fabs)
OF_BOTH(square_root, sqrt)
OF_BOTH(exponential, exp)
OF_BOTH(exponential_minus_1, expm1)
OF_BOTH(logarithm, log)
OF_BOTH(logarithm_of_1_plus, log1p)
OF_BOTH(arc_sine, asin)
OF_BOTH(arc_cosine, acos)
OF_BOTH(arc_tangent, atan)
OF_BOTH(hyperbolic_sine, sinh)
OF_BOTH(hyperbolic_cosine, cosh)
OF_BOTH(hyperbolic_tangent, tanh)
OF_BOTH(inverse_hyperbolic_sine, asinh)
OF_BOTH(inverse_hyperbolic_cosine, acosh)
OF_BOTH(inverse_hyperbolic_tangent, atanh)
OF_BOTH(error_function, erf)
OF_BOTH(complementary_error_function, erfc)
OF_BOTH(log_gamma, lgamma)
OF_BOTH(floor_of, floor)
OF_BOTH(ceil_of, ceil)
OF_BOTH(truncated, trunc)
OF_BOTH(nearest_even, rint)

#undef OF_BOTH

DEVICE f32 multiply_add(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }
DEVICE f64 multiply_add(f64 x, f64 y, f64 z) { return fma(x, y, z); }
DEVICE f32 power(f32 x, f32 y) { return powf(x, y); }
DEVICE f64 power(f64 x, f64 y) { return pow(x, y); }
DEVICE f32 angle(f32 y, f32 x) { return atan2f(y, x); }
DEVICE f64 angle(f64 y, f64 x) { return atan2(y, x); }
DEVICE f32 remainder_of(f32 x, f32 y) { return fmodf(x, y); }
DEVICE f64 remainder_of(f64 x, f64 y) { return fmod(x, y); }

#ifdef TENON_EMULATED
DEVICE f32 reciprocal_root(f32 x) { return (f32)(1.0 / sqrt((f64)x)); }
DEVICE f64 reciprocal_root(f64 x) { return 1.0 / sqrt(x); }
#else
DEVICE f32 reciprocal_root(f32 x) { return rsqrtf(x); }
DEVICE f64 reciprocal_root(f64 x) { return rsqrt(x); }
#endif

// 1 / (1 + e^-x), without overflow: of its two forms, the one with the exponential below 1.
template <typename W> DEVICE W logistic(W x) {
    const W e = exponential(-absolute(x));
    return (x < (W)0 ? e : (W)1) / ((W)1 + e);
}

// ln(1 + e^x).
template <typename W> DEVICE W soft_plus(W x) {
    return (x > (W)0 ? x : (W)0) + logarithm_of_1_plus(exponential(-absolute(x)));
}

// The derivative of ln Gamma above 0: recurrence up to 10, then the asymptotic series (M. Abramowitz and I. Stegun,
// Handbook of Mathematical Functions, 6.3.5 and 6.3.18).
DEVICE f64 positive_digamma(f64 x) {
    f64 below = 0.0;
#pragma unroll 1
    while (x < 10.0) {
        below += 1.0 / x;
        x += 1.0;
    }
    const f64 z = 1.0 / (x * x);
    f64 sum = fma(z, 1.0 / 12.0, -691.0 / 32760.0);
    sum = fma(z, sum, 1.0 / 132.0);
    sum = fma(z, sum, -1.0 / 240.0);
    sum = fma(z, sum, 1.0 / 252.0);
    sum = fma(z, sum, -1.0 / 120.0);
    sum = fma(z, sum, 1.0 / 12.0);
    return log(x) - 0.5 / x - sum * z - below;
}

// pi / tan(pi x).
DEVICE f64 pi_cotangent(f64 x) {
#ifdef TENON_EMULATED
    return 3.141592653589793 / tan(3.141592653589793 * x);
#else
    return 3.141592653589793 * cospi(x) / sinpi(x);
#endif
}

// The derivative of ln Gamma; below 0 by reflection (6.3.7), NaN at 0 and the negative whole
// numbers.
DEVICE f64 digamma(f64 x) {
    // From the fraction alone: pi x would round.
    const f64 fraction = x - rint(x);
    if (x <= 0.0 && !(fraction != 0.0)) return Limits<f64>::nan();
    const f64 value = positive_digamma(x > 0.0 ? x : 1.0 - x);
    return x > 0.0 ? value : value - pi_cotangent(fraction);
}

// The number next to `x` in the direction of `y`; `y` where they are equal. Floats have the order
// of their bits, read as sign and magnitude.
template <typename W> DEVICE W next_after(W x, W y) {
    typedef choose<sizeof(W) == 8, i64, i32> Order;
    if (is_nan(x) || is_nan(y)) return x + y;
    if (x == y) return y;
    const Bits<W> sign = (Bits<W>)1 << (8 * sizeof(W) - 1);
    const Bits<W> bits = to_bits(x);
    if ((bits & ~sign) == 0) return from_bits((Bits<W>)((y < (W)0 ? sign : (Bits<W>)0) | 1u));
    const bool is_away = (x < y) == ((Order)bits > 0);
    return from_bits((Bits<W>)(is_away ? bits + 1u : bits - 1u));
}

}  // namespace math
