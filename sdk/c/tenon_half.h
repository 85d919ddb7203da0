/*
 * tenon_half.h - the two floats of 16 bits, which C has no types for: `half` (IEEE 754, 10 bits behind the point)
 * and `bfloat16` (7 bits). Results are rounded to the nearest, ties to even. The work is done on bits, so that it
 * does not depend on whether the processor flushes denormals. Included by tenon_plugin.h; C++ has tenon::half and
 * tenon::bfloat16.
 */
#ifndef TENON_HALF_H
#define TENON_HALF_H

#include <stdint.h>
#include <string.h>

/* The nearest number of 16 bits with so many bits of exponent and mantissa. */
static inline uint16_t tenon_narrow(double value, uint32_t exponent_bits, uint32_t mantissa_bits)
{
    const int64_t top = (INT64_C(1) << exponent_bits) - 1;
    uint64_t bits;
    uint64_t result;
    uint64_t full;
    uint64_t sign;
    int64_t exponent;
    uint32_t shift = 52 - mantissa_bits;
    memcpy(&bits, &value, sizeof bits);
    sign = bits >> 63 << 15;
    exponent = (int64_t)(bits >> 52 & 0x7ff);
    full = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff) {
        /* A NaN stays one, and becomes quiet. */
        result = full != 0 ? UINT64_C(1) << (mantissa_bits - 1) | full >> shift : 0;
        return (uint16_t)(sign | (uint64_t)top << mantissa_bits | result);
    }
    if (exponent == 0) {
        return (uint16_t)sign;
    }
    full |= UINT64_C(1) << 52;
    exponent += (top >> 1) - 1023;
    if (exponent <= 0) {
        if (exponent < -(int64_t)mantissa_bits) {
            return (uint16_t)sign;
        }
        shift += (uint32_t)(1 - exponent);
        exponent = 1;
    }
    result = full >> shift;
    full &= (UINT64_C(1) << shift) - 1;
    if (full > UINT64_C(1) << (shift - 1) || (full == UINT64_C(1) << (shift - 1) && (result & 1) != 0)) {
        result++;
    }
    /* The leading one of `result` adds 1 to the exponent, where there is one. */
    result += (uint64_t)(exponent - 1) << mantissa_bits;
    if (result > (uint64_t)top << mantissa_bits) {
        result = (uint64_t)top << mantissa_bits;
    }
    return (uint16_t)(sign | result);
}

/* The nearest half, as its bits. */
static inline uint16_t tenon_half_of(double value)
{
    return tenon_narrow(value, 5, 10);
}

/* The value of a half. */
static inline float tenon_float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    uint32_t bits;
    float value;
    if (exponent == 0x1f) {
        bits = sign | 0x7f800000u | mantissa << 13;
    } else if (exponent == 0 && mantissa == 0) {
        bits = sign;
    } else {
        if (exponent == 0) {
            exponent = 1;
            while ((mantissa & 0x400u) == 0) {
                mantissa <<= 1;
                exponent--;
            }
            mantissa &= 0x3ffu;
        }
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The nearest bfloat16, as its bits; of a float it is the quicker one. */
static inline uint16_t tenon_bfloat16_of(double value)
{
    return tenon_narrow(value, 8, 7);
}

static inline uint16_t tenon_bfloat16_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* The value of a bfloat16. */
static inline float tenon_float_of_bfloat16(uint16_t bfloat16)
{
    const uint32_t bits = (uint32_t)bfloat16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif /* TENON_HALF_H */
