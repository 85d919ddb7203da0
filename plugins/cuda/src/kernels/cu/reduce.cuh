// Reductions over the lanes of a warp and the threads of a block. The order of operations depends on the number of
// threads alone, so results are the same from run to run.
//
// An op is an object with `X operator()(X, X) const`, which must be associative up to rounding and commutative. X is
// any trivially copyable type of up to 16 bytes: a number, a struct such as `Indexed`.
//
// Blocks are one-dimensional, of whole warps; every thread takes part.
#pragma once
#include "types.cuh"

inline constexpr int WARP = 32;
inline constexpr u32 ALL_LANES = 0xffffffffu;

// A value as 32-bit words, which shuffles move.
template <typename X> union Shuffled {
    static_assert(sizeof(X) <= 16 && __is_trivially_copyable(X), "a small plain value");
    static constexpr int COUNT = (sizeof(X) + 3) / 4;
    X value;
    u32 words[COUNT];
    DEVICE Shuffled() {}
};

// The value of the lane whose number differs in the bits of `mask`.
template <typename X> DEVICE X shuffle_xor(X x, int mask) {
    Shuffled<X> all;
    all.words[Shuffled<X>::COUNT - 1] = 0;
    all.value = x;
#pragma unroll
    for (int i = 0; i < Shuffled<X>::COUNT; ++i) all.words[i] = __shfl_xor_sync(ALL_LANES, all.words[i], mask);
    return all.value;
}

// The value of lane `lane`.
template <typename X> DEVICE X shuffle_from(X x, int lane) {
    Shuffled<X> all;
    all.words[Shuffled<X>::COUNT - 1] = 0;
    all.value = x;
#pragma unroll
    for (int i = 0; i < Shuffled<X>::COUNT; ++i) all.words[i] = __shfl_sync(ALL_LANES, all.words[i], lane);
    return all.value;
}

// The value of the lane `distance` below; a lane without one keeps its own.
template <typename X> DEVICE X shuffle_up(X x, int distance) {
    Shuffled<X> all;
    all.words[Shuffled<X>::COUNT - 1] = 0;
    all.value = x;
#pragma unroll
    for (int i = 0; i < Shuffled<X>::COUNT; ++i) all.words[i] = __shfl_up_sync(ALL_LANES, all.words[i], distance);
    return all.value;
}

// The reduction over each group of WIDTH lanes side by side, a power of two; each lane gets it.
template <int WIDTH = WARP, typename X, typename Op> DEVICE X warp_reduce(X x, Op op) {
    static_assert(WIDTH >= 1 && WIDTH <= WARP && (WIDTH & (WIDTH - 1)) == 0, "lanes of a group");
#pragma unroll
    for (int mask = WIDTH / 2; mask > 0; mask /= 2) x = op(x, shuffle_xor(x, mask));
    return x;
}

// The reduction over the block, which each thread gets. `neutral` is the neutral element. Each call
// in the source text has shared memory of its own: a call in a loop, or a second call, needs no
// barrier of the caller.
template <typename X, typename Op> DEVICE X block_reduce(X x, Op op, X neutral) {
    __shared__ alignas(16) unsigned char memory[WARP * sizeof(X)];
    X* partial = reinterpret_cast<X*>(memory);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    x = warp_reduce(x, op);
    // The readers of the previous call are done.
    __syncthreads();
    if (lane == 0) partial[warp] = x;
    __syncthreads();
    return warp_reduce(lane < warps ? partial[lane] : neutral, op);
}

// A value and its position.
template <typename W> struct Indexed {
    W value;
    i64 index;
};

// Sums. Integers wrap.
template <typename W> struct SumOp {
    static DEVICE W neutral() { return (W)0; }
    DEVICE W operator()(W x, W y) const { return add(x, y); }
};

// Products. Integers wrap.
template <typename W> struct ProdOp {
    static DEVICE W neutral() { return (W)1; }
    DEVICE W operator()(W x, W y) const { return mul(x, y); }
};

// The greatest value; NaN where there is one.
template <typename W> struct MaxOp {
    static DEVICE W neutral() { return Limits<W>::minus_infinity(); }
    DEVICE W operator()(W x, W y) const { return y > x || is_nan(y) ? y : x; }
};

// The least value; NaN where there is one.
template <typename W> struct MinOp {
    static DEVICE W neutral() { return Limits<W>::infinity(); }
    DEVICE W operator()(W x, W y) const { return y < x || is_nan(y) ? y : x; }
};

struct AllOp {
    static DEVICE bool neutral() { return true; }
    DEVICE bool operator()(bool x, bool y) const { return x && y; }
};

struct AnyOp {
    static DEVICE bool neutral() { return false; }
    DEVICE bool operator()(bool x, bool y) const { return x || y; }
};

// The first of the greatest (GREATEST) or least values.
template <typename W, bool GREATEST> struct ArgOp {
    DEVICE Indexed<W> operator()(Indexed<W> x, Indexed<W> y) const {
        const bool better = GREATEST ? y.value > x.value : y.value < x.value;
        const bool earlier = y.value == x.value && y.index < x.index;
        return better || earlier ? y : x;
    }
};
