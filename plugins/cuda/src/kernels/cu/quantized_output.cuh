// Output stages of quantised kernels: sums of 32 bits to values, to the bit as tenon_geometry::fixed_point defines them
// (plugins/int8/docs/quantization.md says where the definitions come from).
#pragma once
#include "types.cuh"

// The conversions of a sum, with the host's numbers.
enum Form : u32 { SUMS = 0, REAL = 1, FLOAT = 2, FIXED_POINT = 3 };

// The parameters of one column. A sum begins as `base`, plus `slope` times the row's sum of left
// factors. A sum is multiplied by `multiplier`, which is the bits of a float, or a mantissa of 31
// bits for the exponent `exponent`.
struct alignas(16) Column {
    i32 base, slope, multiplier, exponent;
};

// The parameters of all columns. REAL has the bits of floats as bounds; FLOAT and FIXED_POINT bound
// the term that is added to the zero point.
struct Stage {
    u32 form;
    i32 low, high;
    i32 zero_point;
};

// x 2^exponent, saturated: gemmlowp's SaturatingRoundingMultiplyByPOT, for exponents from 0 to 31.
DEVICE i32 saturating_shift_left(i32 x, u32 exponent) {
    const i32 low = (i32)0x80000000u >> exponent, high = 0x7fffffff >> exponent;
    return x < low ? (i32)0x80000000u : x > high ? 0x7fffffff : (i32)((u32)x << exponent);
}

// floor((x mantissa + 2^30) / 2^31): gemmlowp's SaturatingRoundingDoublingHighMul, whose one product that saturates has
// two factors of -2^31; a mantissa is above 0.
DEVICE i32 rounding_doubling_high_multiply(i32 x, i32 mantissa) {
    return (i32)(((i64)x * mantissa + (1ll << 30)) >> 31);
}

// x / 2^exponent to nearest, ties away from zero: gemmlowp's RoundingDivideByPOT, for exponents from 0 to 31.
DEVICE i32 rounding_divide(i32 x, u32 exponent) {
    const i32 mask = (i32)((1u << exponent) - 1u);
    const i32 threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    return (x >> exponent) + ((x & mask) > threshold ? 1 : 0);
}

DEVICE i32 clamped(i32 x, i32 low, i32 high) { return x < low ? low : x > high ? high : x; }

// f32(x) scale, rounded once to nearest, ties to even, and clamped to bounds far below 2^21.
DEVICE i32 multiply_by_float(i32 x, f32 scale, i32 low, i32 high) {
    // Neighbouring floats here differ by 1; the added term is in the low bits, as long as it is
    // below 2^22.
    const f32 rounder = 12582912.0f, value = (f32)x, about = mul(value, scale);
    if (about >= 2097152.0f) return high;
    if (about <= -2097152.0f) return low;
    return clamped((i32)(to_bits(fmaf(value, scale, rounder)) - to_bits(rounder)), low, high);
}

DEVICE i32 multiply_in_fixed_point(i32 x, i32 mantissa, i32 exponent) {
    const i32 shifted = saturating_shift_left(x, exponent > 0 ? (u32)exponent : 0u);
    return rounding_divide(rounding_doubling_high_multiply(shifted, mantissa), exponent < 0 ? (u32)-exponent : 0u);
}

// The value of a sum, as an integer or as the bits of a float.
DEVICE i32 value_of(const Stage& stage, const Column& column, i32 sum) {
    switch (stage.form) {
        case SUMS: return clamped(sum, stage.low, stage.high);
        case REAL: {
            const f32 low = from_bits((u32)stage.low), high = from_bits((u32)stage.high);
            const f32 x = mul((f32)sum, from_bits((u32)column.multiplier));
            return (i32)to_bits(x < low ? low : x > high ? high : x);
        }
        case FLOAT:
            return stage.zero_point + multiply_by_float(sum, from_bits((u32)column.multiplier), stage.low, stage.high);
        default: {
            const i32 x = multiply_in_fixed_point(sum, column.multiplier, column.exponent);
            return stage.zero_point + clamped(x, stage.low, stage.high);
        }
    }
}
