// Rows of a matrix that threads hold in registers, each row by a warp or a block.
//
// A group of GROUP threads (a warp, or the whole block) takes a row: thread t has packs t, t + GROUP, ... of V
// elements, ELEMENTS in all, so that the group holds rows of up to GROUP * ELEMENTS elements, of a whole number of
// packs. Where V > 1, rows are aligned to packs.
#pragma once
#include "reduce.cuh"
#include "vector.cuh"

// The reduction over the group, which each thread gets.
template <int GROUP, typename W, typename Op> DEVICE W group_reduce(W x, Op op, W neutral) {
    if constexpr (GROUP == WARP) return warp_reduce(x, op);
    else return block_reduce(x, op, neutral);
}

template <typename X, int V, int ELEMENTS, int GROUP> struct Row {
    static constexpr int STEPS = ELEMENTS / V;
    static_assert(ELEMENTS % V == 0, "whole packs");
    Compute<X> at[STEPS][V];

    // Where pack `step` of this thread begins in the row.
    static DEVICE u32 begin(int step) { return (step * GROUP + threadIdx.x % GROUP) * V; }

    // What lies behind the row is `pad`; load(i) gives the pack that begins at i.
    template <typename F> DEVICE void load_with(u32 cols, Compute<X> pad, F load) {
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            const u32 i = begin(k);
            if (i >= cols) {
#pragma unroll
                for (int v = 0; v < V; ++v) at[k][v] = pad;
                continue;
            }
            const Pack<X, V> pack = load(i);
#pragma unroll
            for (int v = 0; v < V; ++v) at[k][v] = widen(pack.at[v]);
        }
    }

    DEVICE void load_from(const X* row, u32 cols, Compute<X> pad) {
        load_with(cols, pad, [=](u32 i) { return load_pack<V>(row + i, 0); });
    }

    // finish(x, i): what becomes of element i.
    template <typename F> DEVICE void store_to(X* row, u32 cols, F finish) const {
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            const u32 i = begin(k);
            if (i >= cols) break;
            Pack<X, V> pack;
#pragma unroll
            for (int v = 0; v < V; ++v) pack.at[v] = narrow<X>(finish(at[k][v], i + v));
            store_pack<V>(row + i, 0, pack);
        }
    }

    // Over all elements, what lies behind the row too.
    template <typename F> DEVICE void each(F f) {
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
#pragma unroll
            for (int v = 0; v < V; ++v) f(at[k][v], begin(k) + v);
        }
    }
};

// Calls f(row) for the rows that this thread's group takes.
template <int GROUP, typename F> DEVICE void for_rows(u64 rows, F f) {
    const u64 step = threads_of_grid<u64>() / GROUP;
    for (u64 row = thread_of_grid<u64>() / GROUP; row < rows; row += step) f(row);
}

// Calls f(pack, i) for the packs of a row that is too long for registers; pack i begins at i.
template <int V, int GROUP, typename X, typename F> DEVICE void for_row_packs(const X* row, u64 cols, F f) {
#pragma unroll 2
    for (u64 i = (u64)threadIdx.x * V; i < cols; i += (u64)GROUP * V) f(load_pack<V>(row + i, 0), i);
}
