// Strided access to tensors of up to 8 dimensions, by values that are passed as kernel parameters.
//
// The host merges dimensions over which all operands step alike, and fills `Strided`. Dimension 0
// is the innermost. A stride counts elements; 0 repeats an operand along a dimension.
//
// Division by an extent is a multiplication (T. Granlund and P. L. Montgomery, "Division by Invariant Integers using
// Multiplication", 1994, figure 4.1; H. S. Warren, Hacker's Delight, chapter 10). For a divisor d in 1 ..= 2^31 and
// s = ceil(log2 d), the host computes magic = floor(2^32 (2^s - d) / d) + 1; then for n < 2^31
// n / d = (mulhi(n, magic) + n) >> s, of which the sum does not overflow. With 64 bits, 2^64 and 2^63 take the places
// of 2^32 and 2^31.
#pragma once
#include "types.cuh"

inline constexpr int MAX_DIMS = 8;

DEVICE u32 multiply_high(u32 x, u32 y) {
#ifdef TENON_EMULATED
    return (u32)((u64)x * y >> 32);
#else
    return __umulhi(x, y);
#endif
}

DEVICE u64 multiply_high(u64 x, u64 y) {
#ifdef TENON_EMULATED
    return (u64)((unsigned __int128)x * y >> 64);
#else
    return __umul64hi(x, y);
#endif
}

template <typename I> struct DivMod {
    I quotient, remainder;
};

// A divisor, with the constants to divide by it. 12 bytes for u32; 24 bytes for u64, of which the
// last 4 are not used.
template <typename I> struct Divisor {
    I divisor;
    I magic;
    u32 shift;
    DEVICE I divide(I n) const { return (multiply_high(n, magic) + n) >> shift; }
    DEVICE DivMod<I> divide_with_rest(I n) const {
        const I quotient = divide(n);
        return {quotient, n - quotient * divisor};
    }
};

static_assert(sizeof(Divisor<u32>) == 12 && sizeof(Divisor<u64>) == 24, "the host's layout");

// The positions in OPERANDS tensors of the elements of an output of `rank` (1 to 8) dimensions. The
// host's layout is the fields in order, with the padding of C. Unused dimensions are not read.
template <typename I, int OPERANDS> struct Strided {
    u32 rank;
    Divisor<I> extents[MAX_DIMS];
    i64 strides[OPERANDS][MAX_DIMS];
};

// The offsets of one element in each operand. They are signed, since a stride may be negative.
template <typename I, int OPERANDS> struct Offsets {
    choose<sizeof(I) == 8, i64, i32> at[OPERANDS];
};

// The offsets of element `index` of the output, counted in its order.
template <typename I, int OPERANDS> DEVICE Offsets<I, OPERANDS> offsets_of(const Strided<I, OPERANDS>& dims, I index) {
    typedef choose<sizeof(I) == 8, i64, i32> Offset;
    Offsets<I, OPERANDS> offsets = {};
#pragma unroll
    for (int d = 0; d < MAX_DIMS; ++d) {
        if (d >= dims.rank) break;
        const DivMod<I> both = dims.extents[d].divide_with_rest(index);
#pragma unroll
        for (int k = 0; k < OPERANDS; ++k) offsets.at[k] += (Offset)both.remainder * (Offset)dims.strides[k][d];
        index = both.quotient;
    }
    return offsets;
}
