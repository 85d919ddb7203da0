// Products of matrices: code shared by the kernels of gemm.cu and gemm_mma.cu.
//
// C[m, n] = A[m, k] B[k, n] for each matrix of a batch. Matrices are dense. A_TRANSPOSED means that
// A is stored as [k, m], B_TRANSPOSED that B is stored as [n, k]. A block computes a tile of BM x
// BN, over a part of the terms. If there are several parts, each writes its sums to memory of its
// own, and `gemm_finish` adds them in order.
//
//   gemm(Gemm p)           blocks: tiles of C x parts x matrices
//   gemm_finish(Gemm p)    blocks: any; where parts > 1
//
// Defines: T, A_TRANSPOSED, B_TRANSPOSED (0 or 1), BM, BN, THREADS, and EPILOGUE: steps of epilogue.cuh, or nothing.
#pragma once
#include "vector.cuh"
#include "epilogue.cuh"

typedef Acc<T> W;

inline constexpr int MAX_BATCH_DIMS = 8;

// The matrices of A and B that make matrix `i` of C. Dimension 0 is the innermost; a stride counts
// matrices, 0 repeats.
struct Batches {
    u32 rank;
    u32 extents[MAX_BATCH_DIMS];
    u32 a[MAX_BATCH_DIMS];
    u32 b[MAX_BATCH_DIMS];
};

// The host's layout. m, n and k are below 2^31.
struct Gemm {
    const T* a;
    const T* b;
    T* c;
    // [matrices][parts][m][n], where parts > 1.
    W* partial;
    u32 m, n, k;
    u32 parts;
    // The number of terms of a part: a multiple of the terms of a tile.
    u32 part_terms;
    // Whether lines of A, of B and of C begin at multiples of a pack: bits 1, 2, 4.
    u32 whole;
    u32 matrices;
    Batches batches;
    Arguments<T> arguments;
};

// The tile that a block computes.
struct Tile {
    u32 row, column;
    u32 matrix, part;
    u32 first_term, end_term;
    const T* a;
    const T* b;
};

// Tiles are numbered down the columns of a band of BAND rows of tiles, so that tiles computed at
// the same time share their inputs.
inline constexpr u32 BAND = 8;

DEVICE Tile tile_of(const Gemm& p) {
    const u32 down = (p.m + BM - 1) / BM, across = (p.n + BN - 1) / BN, tiles = down * across;
    const u32 at = blockIdx.x % tiles, rest = blockIdx.x / tiles;
    Tile t;
    t.part = rest % p.parts;
    t.matrix = rest / p.parts;
    const u32 band = at / (BAND * across), inside = at % (BAND * across);
    const u32 rows = down - band * BAND < BAND ? down - band * BAND : BAND;
    t.row = (band * BAND + inside % rows) * BM;
    t.column = inside / rows * BN;
    t.first_term = t.part * p.part_terms;
    const u32 left = p.k - t.first_term;
    t.end_term = t.first_term + (left < p.part_terms ? left : p.part_terms);
    u64 a = 0, b = 0;
    u32 matrix = t.matrix;
#pragma unroll 1
    for (u32 d = 0; d < p.batches.rank; ++d) {
        const u32 index = matrix % p.batches.extents[d];
        matrix /= p.batches.extents[d];
        a += (u64)index * p.batches.a[d];
        b += (u64)index * p.batches.b[d];
    }
    t.a = p.a + a * p.m * p.k;
    t.b = p.b + b * p.k * p.n;
    return t;
}

// N neighbours of a line of a matrix, 0 beyond its ends. A line has `length` elements, of which
// those before `end` are used; `whole` packs are inside or outside.
template <int N>
DEVICE Pack<T, N> neighbours(const T* matrix, u32 line, u32 lines, u32 at, u32 end, u32 length, bool whole) {
    Pack<T, N> pack = splat<N>(narrow<T>((W)0));
    if (line >= lines || at >= end) return pack;
    const T* from = matrix + (u64)line * length + at;
    if (whole) return load_constant(reinterpret_cast<const Pack<T, N>*>(from));
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (at + i < end) pack.at[i] = load_constant(from + i);
    }
    return pack;
}

// Writes N neighbours of a row of C. The steps after the product are applied here, or in
// gemm_finish.
template <int N>
DEVICE void write(const Gemm& p, const Tile& t, u32 row, u32 column, const W (&sums)[N]) {
    if (row >= p.m || column >= p.n) return;
    const u64 size = (u64)p.m * p.n, at = (u64)row * p.n + column;
    const bool whole = p.whole & 4;
    if (p.parts > 1) {
        W* to = p.partial + ((u64)t.matrix * p.parts + t.part) * size + at;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (whole || column + i < p.n) to[i] = sums[i];
        }
        return;
    }
    T* to = p.c + t.matrix * size + at;
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (whole || column + i < p.n) pack.at[i] = narrow<T>(finish(p.arguments, sums[i], column + i, at + i));
    }
    if (whole) return store(reinterpret_cast<Pack<T, N>*>(to), pack);
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (column + i < p.n) to[i] = pack.at[i];
    }
}

// Adds the parts in order, so that a sum does not depend on which block was first.
extern "C" __global__ void __launch_bounds__(256) gemm_finish(Gemm p) {
    const u64 size = (u64)p.m * p.n, step = threads_of_grid<u64>();
    for (u64 at = thread_of_grid<u64>(); at < size * p.matrices; at += step) {
        const u64 matrix = at / size, inside = at - matrix * size;
        const W* from = p.partial + matrix * p.parts * size + inside;
        W sum = from[0];
#pragma unroll 4
        for (u32 part = 1; part < p.parts; ++part) sum = add(sum, from[part * size]);
        p.c[at] = narrow<T>(finish(p.arguments, sum, (u32)(inside % p.n), inside));
    }
}
