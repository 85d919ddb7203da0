// Rows of a matrix that threads hold in registers, a group of threads for each row.
//
// Thread t of a group of `size` threads has packs t, t + size, ... of V elements, ELEMENTS in all,
// so that the group holds rows of up to size * ELEMENTS elements, in whole packs. Where V > 1, rows
// are aligned to packs. Threads beyond the end of a row do nothing: a group may be larger than a
// row needs.
#pragma once
#include "reduce.cuh"
#include "vector.cuh"

// The number of elements of a row in the registers of a thread: of a few lanes, of a block for rows
// of up to 8192 elements, of the threads of such a block, and of a block for a longer row. f64
// takes twice the registers.
inline constexpr int FEW = 8;
template <typename X> inline constexpr int MANY = sizeof(X) == 8 ? 16 : 32;
template <typename X> inline constexpr int HOLDS = 8192 / MANY<X>;
template <typename X> inline constexpr int LONG = sizeof(X) == 8 ? 512 : 1024;
// Blocks of packed rows at once: one waits for memory while the other computes.
template <typename X> inline constexpr int AT_ONCE = sizeof(X) == 8 ? 1 : 2;

// Lanes of a warp side by side, a power of two, as few as hold a row of `cols` elements with FEW each, or all: a warp takes
// several short rows at once.
struct Lanes {
    u32 bits;

    DEVICE explicit Lanes(u64 cols) : bits(0) {
        while (bits < 5 && ((u64)FEW << bits) < cols) ++bits;
    }
    DEVICE u32 size() const { return 1u << bits; }
    DEVICE u32 thread() const { return threadIdx.x & (size() - 1); }

    // Calls f(row, inside) for the rows of this group. Without `inside` the row does not exist, but
    // the lanes of a warp stay together.
    template <typename F> DEVICE void each_row(u64 rows, F f) const {
        const u64 step = threads_of_grid<u64>() >> bits;
        const u32 in_warp = threadIdx.x % WARP >> bits;
        for (u64 first = thread_of_grid<u64>() / WARP << (5 - bits); first < rows; first += step) {
            f(first + in_warp, first + in_warp < rows);
        }
    }

    // The reduction over the group, which each thread gets.
    template <typename W, typename Op> DEVICE W reduce(W x, Op op, W) const {
        for (u32 mask = size() / 2; mask > 0; mask /= 2) x = op(x, shuffle_xor(x, (int)mask));
        return x;
    }
};

// A block of whole warps.
struct Block {
    DEVICE u32 size() const { return blockDim.x; }
    DEVICE u32 thread() const { return threadIdx.x; }
    template <typename F> DEVICE void each_row(u64 rows, F f) const {
        for (u64 row = blockIdx.x; row < rows; row += gridDim.x) f(row, true);
    }
    template <typename W, typename Op> DEVICE W reduce(W x, Op op, W neutral) const {
        return blockDim.x == WARP ? warp_reduce(x, op) : block_reduce(x, op, neutral);
    }
};

template <typename X, int V, int ELEMENTS> struct Row {
    static constexpr int STEPS = ELEMENTS / V;
    static_assert(ELEMENTS % V == 0, "whole packs");
    // The offset in the row of this thread's first pack, the number of elements from it on, and the
    // distance to the next pack.
    u32 first, left, step;
    Compute<X> at[STEPS][V];

    template <typename Group> DEVICE Row(const Group& group, u32 cols) {
        first = group.thread() * V;
        left = first < cols ? cols - first : 0;
        step = group.size() * V;
    }

    // Calls f(k, i) for this thread's packs: number k begins i elements after its first.
    template <typename F> DEVICE void each_pack(F f) const {
        u32 i = 0;
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            if (i >= left) break;
            f(k, i);
            i += step;
        }
    }

    // load(i): the pack that begins at element `first + i`. All are under way before the first is widened, which would
    // wait for it.
    template <typename F> DEVICE void load_with(F load) {
        Pack<X, V> packs[STEPS];
        each_pack([&](int k, u32 i) { packs[k] = load(i); });
        each_pack([&](int k, u32) {
#pragma unroll
            for (int v = 0; v < V; ++v) at[k][v] = widen(packs[k].at[v]);
        });
    }

    DEVICE void load_from(const X* row) {
        const X* from = row + first;
        load_with([=](u32 i) { return load_pack<V>(from + i, 0); });
    }

    // pack_of(k, i) returns the result for pack k.
    template <typename F> DEVICE void store_to(X* row, F pack_of) const {
        X* to = row + first;
        each_pack([&](int k, u32 i) { store_global_pack<V>(to + i, 0, pack_of(k, i)); });
    }

    // Over this thread's elements.
    template <typename F> DEVICE void each(F f) {
        each_pack([&](int k, u32) {
#pragma unroll
            for (int v = 0; v < V; ++v) f(at[k][v]);
        });
    }
};

// The greatest number of a row, or any number if one is NaN: differences from it, and their sum,
// are NaN in either case.
template <typename W> struct GreatestOp {
    static DEVICE W neutral() { return Limits<W>::minus_infinity(); }
    DEVICE W operator()(W x, W y) const {
        if constexpr (is_same<W, f32>) return fmaxf(x, y);
        else return fmax(x, y);
    }
};

// Calls f(pack, i) for the packs of a row that is too long for registers, by a block of THREADS; pack i begins at i.
template <int V, int THREADS, typename X, typename F> DEVICE void for_row_packs(const X* row, u64 cols, F f) {
    constexpr u64 STEP = (u64)THREADS * V;
    u64 i = (u64)threadIdx.x * V;
    // Four packs under way at once.
#pragma unroll 1
    for (; i + 3 * STEP < cols; i += 4 * STEP) {
        Pack<X, V> packs[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) packs[k] = load_pack<V>(row + i + k * STEP, 0);
#pragma unroll
        for (int k = 0; k < 4; ++k) f(packs[k], i + k * STEP);
    }
#pragma unroll 1
    for (; i < cols; i += STEP) f(load_pack<V>(row + i, 0), i);
}
