// Conversions between all element types: `convert<X, Y>(x)`, between the types in which X and Y
// compute.
//
// - an integer to an integer keeps its low bits;
// - a float to an integer loses its fraction and saturates; NaN gives 0;
// - an integer or an f64 becomes an f32 before it becomes a 16-bit float;
// - to boolean: whether the value is not 0, which includes NaN; from boolean: 0 or 1.
#pragma once
#include "types.cuh"

// A float converted to an integer.
template <typename W, typename V> DEVICE V saturated(W x) {
    // The largest integer plus 1 is a power of two, and exact in either type.
    const W above = (W)(Limits<V>::highest() / 2 + 1) * (W)2;
    if (x != x) return (V)0;
    if (x >= above) return Limits<V>::highest();
    if (x <= (W)Limits<V>::lowest()) return Limits<V>::lowest();
    return (V)x;
}

template <typename X, typename Y> DEVICE Compute<Y> convert(Compute<X> x) {
    typedef Compute<X> W;
    typedef Compute<Y> V;
    if constexpr (is_same<V, bool>) return x != (W)0;
    else if constexpr (is_float<W> && is_integer<V>) return saturated<W, V>(x);
    else return (V)x;
}

// Drops the low bits of the mantissa that a narrower one cannot hold, so that nothing is rounded:
// f64 to f32 and f16, and f32 to f16 and bf16, as in TensorFlow. Other pairs are unchanged. NaN
// stays NaN.
template <typename X, typename Y> DEVICE Compute<X> without_low_bits(Compute<X> x) {
    constexpr bool is_double = is_same<X, f64>, is_single = is_same<X, f32>;
    constexpr u32 dropped = is_double && is_same<Y, f32> ? 29
        : is_double && is_same<Y, f16> ? 42
        : is_single && is_same<Y, f16> ? 13
        : is_single && is_same<Y, bf16> ? 16
        : 0;
    if constexpr (dropped == 0) return x;
    else {
        // Compared as bits without the sign, shifted left by one: some compilers merge a comparison
        // of x with the following code and drop nothing.
        const Bits<X> bits = to_bits(x);
        const bool is_nan = (Bits<X>)(bits << 1) > (Bits<X>)(to_bits(Limits<X>::infinity()) << 1);
        return is_nan ? x : from_bits(bits >> dropped << dropped);
    }
}
