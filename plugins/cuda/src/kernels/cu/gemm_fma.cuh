// The tile of a block, computed by multiply-add in registers.
//
// Each thread has TM x TN sums. Tiles of A and B are in shared memory as [DEPTH][BM] and
// [DEPTH][BN], in the type of computation. There are two of each: while one is used, the next is
// loaded through registers.
//
// Sums are taken in the order of the terms. Needs: TM, TN and DEPTH, the terms of a tile.
#pragma once
#include "gemm.cuh"

// Elements of a pack in global memory, and in shared memory.
inline constexpr int V = 16 / sizeof(T), G = 16 / sizeof(W);
static_assert(THREADS == BM / TM * (BN / TN), "a thread for each TM x TN sums");
// A warp covers 4 x 8 threads of the tile.
inline constexpr int WARPS_ACROSS = BN / TN / 8;
// Lines of shared memory are padded, so that transposed stores use other banks.
inline constexpr int PAD = 4;

static_assert(BM % (TM * 4) == 0 && BN % (TN * 8) == 0 && TM % G == 0 && TN % G == 0, "whole warps and packs");
static_assert(DEPTH % V == 0 && BM % V == 0 && BN % V == 0, "whole packs");

// One side of the product: SIZE lines (rows of A, columns of B) of DEPTH terms. Where terms are
// neighbours in memory, a pack is transposed on its way to shared memory.
template <int SIZE, bool TERMS_ARE_NEIGHBOURS> struct Side {
    static constexpr int LENGTH = TERMS_ARE_NEIGHBOURS ? DEPTH : SIZE;
    static constexpr int PACKS = SIZE * DEPTH / V, EACH = (PACKS + THREADS - 1) / THREADS;
    typedef W Shared[DEPTH][SIZE + PAD];

    Pack<T, V> packs[EACH];

    // Loads the packs of this thread, for the tile with this first line and term.
    DEVICE void fetch(const T* matrix, u32 line, u32 lines, u32 term, u32 terms, u32 end, bool whole) {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const u32 at = threadIdx.x + i * THREADS, outer = at * V / LENGTH, inner = at * V % LENGTH;
            if (PACKS % THREADS != 0 && at >= PACKS) break;
            packs[i] = TERMS_ARE_NEIGHBOURS
                ? neighbours<V>(matrix, line + outer, lines, term + inner, end, terms, whole)
                : neighbours<V>(matrix, term + outer, end, line + inner, lines, lines, whole);
        }
    }

    DEVICE void keep(Shared& shared) const {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const u32 at = threadIdx.x + i * THREADS, outer = at * V / LENGTH, inner = at * V % LENGTH;
            if (PACKS % THREADS != 0 && at >= PACKS) break;
#pragma unroll
            for (int j = 0; j < V; ++j) {
                W& to = TERMS_ARE_NEIGHBOURS ? shared[inner + j][outer] : shared[outer][inner + j];
                to = widen(packs[i].at[j]);
            }
        }
    }
};

// The line of a tile of SIZE that is number `i` of COUNT of thread `thread`: packs of G side by side.
template <int SIZE, int COUNT> DEVICE constexpr int line_of(int thread, int i) {
    return i / G * (SIZE * G / COUNT) + thread * G + i % G;
}

template <int SIZE, int COUNT>
DEVICE void values_of(const W (&line)[SIZE + PAD], int thread, W (&values)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i += G) {
        const Pack<W, G> pack = load(reinterpret_cast<const Pack<W, G>*>(&line[line_of<SIZE, COUNT>(thread, i)]));
#pragma unroll
        for (int j = 0; j < G; ++j) values[i + j] = pack.at[j];
    }
}

DEVICE W multiply_add(W x, W y, W sum) {
    if constexpr (is_integer<W>) return add(sum, mul(x, y));
    // Contracted to a fused product and sum.
    return x * y + sum;
}

typedef Side<BM, !A_TRANSPOSED> Left;
typedef Side<BN, B_TRANSPOSED> Right;

DEVICE void compute_tile(const Gemm& p) {
    __shared__ alignas(16) Left::Shared a[2];
    __shared__ alignas(16) Right::Shared b[2];
    const Tile t = tile_of(p);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int down = warp / WARPS_ACROSS * 4 + lane / 8, across = warp % WARPS_ACROSS * 8 + lane % 8;
    Left left;
    Right right;
    W sums[TM][TN];
#pragma unroll
    for (int i = 0; i < TM * TN; ++i) sums[i / TN][i % TN] = (W)0;

    const auto fetch = [&](u32 term) {
        left.fetch(t.a, t.row, p.m, term, p.k, t.end_term, p.whole & 1);
        right.fetch(t.b, t.column, p.n, term, p.k, t.end_term, p.whole & 2);
    };
    if (t.first_term < t.end_term) fetch(t.first_term);
    int stage = 0;
#pragma unroll 1
    for (u32 term = t.first_term; term < t.end_term; term += DEPTH, stage ^= 1) {
        left.keep(a[stage]);
        right.keep(b[stage]);
        // Other threads may still read the other stage: it is written after the next barrier.
        __syncthreads();
        if (t.end_term - term > DEPTH) fetch(term + DEPTH);
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            W x[TM], y[TN];
            values_of<BM>(a[stage][k], down, x);
            values_of<BN>(b[stage][k], across, y);
#pragma unroll
            for (int i = 0; i < TM * TN; ++i) {
                sums[i / TN][i % TN] = multiply_add(x[i / TN], y[i % TN], sums[i / TN][i % TN]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; j += G) {
            W row[G];
#pragma unroll
            for (int l = 0; l < G; ++l) row[l] = sums[i][j + l];
            write(p, t, t.row + line_of<BM, TM>(down, i), t.column + line_of<BN, TN>(across, j), row);
        }
    }
}
