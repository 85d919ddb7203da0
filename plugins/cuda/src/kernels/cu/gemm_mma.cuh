// The tile of a block, computed by tensor cores: 16-bit floats, with sums in f32.
//
// A warp has WM x WN sums of the block's tile. Tiles of A and B are copied to shared memory STAGES
// - 1 tiles ahead of their use, in their layout in memory: lines of terms, or of rows (columns)
// where terms are not neighbours. The matrices for the tensor cores are transposed as they are
// loaded. Chunks of 16 bytes are permuted within lines, so that the eight rows of a matrix are in
// different banks.
//
// Needs: T, which is f16 or bf16; WM, WN and STAGES.
#pragma once
#include "gemm.cuh"
#include "mma.cuh"

inline constexpr int WARPS_ACROSS = BN / WN;
// The number of elements in 16 bytes, and of terms of one step of the tensor cores.
inline constexpr int CHUNK = 8, STEP = 16;
// The number of terms of a tile.
inline constexpr int TERMS = 32;

static_assert(THREADS == BM / WM * (BN / WN) * WARP, "a warp for each WM x WN sums");
static_assert(BM % 64 == 0 && BN % 64 == 0 && WM % 16 == 0 && WN % 16 == 0, "whole lines of banks, matrices");

// Elements of one side of a tile: SIZE lines (rows of A, columns of B) of TERMS terms.
template <int SIZE, bool TERMS_ARE_NEIGHBOURS> struct Side {
    static constexpr int CHUNKS = (TERMS_ARE_NEIGHBOURS ? TERMS : SIZE) / CHUNK, ALL = SIZE * TERMS / CHUNK;
    static constexpr int EACH = ALL / THREADS;
    static_assert(ALL % THREADS == 0, "as many chunks for each thread");

    // The position of a chunk of a stored line. Lines of 64 bytes share banks in pairs.
    static DEVICE u32 place(u32 line, u32 chunk) {
        const u32 turn = TERMS_ARE_NEIGHBOURS ? line >> 1 & 3 : line & 7;
        return (line * CHUNKS + (chunk ^ turn)) * CHUNK;
    }

    static DEVICE void copy(T* shared, const T* matrix, u32 line, u32 lines, u32 term, u32 terms, u32 end, bool whole) {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const u32 at = threadIdx.x + i * THREADS, outer = at / CHUNKS, inner = at % CHUNKS;
            T* to = shared + place(outer, inner);
            const u32 y = (TERMS_ARE_NEIGHBOURS ? line : term) + outer, y_end = TERMS_ARE_NEIGHBOURS ? lines : end;
            const u32 x = (TERMS_ARE_NEIGHBOURS ? term : line) + inner * CHUNK;
            const u32 x_end = TERMS_ARE_NEIGHBOURS ? end : lines, length = TERMS_ARE_NEIGHBOURS ? terms : lines;
            if (whole) {
                const bool is_there = y < y_end && x < x_end;
                copy_later(to, is_there ? matrix + (u64)y * length + x : matrix, is_there);
            } else {
                store_pack<CHUNK>(to, 0, neighbours<CHUNK>(matrix, y, y_end, x, x_end, length, false));
            }
        }
    }

    // Four matrices of 8 x 8: of lines from `line` on and 8 more, of terms from `term` on and 8 more. Words 0 and 1 are
    // of the same terms where LINES_FIRST (as in A), else of the same lines (as in B).
    template <bool LINES_FIRST> static DEVICE void fragments(u32 (&words)[4], const T* shared, u32 line, u32 term) {
        const u32 lane = threadIdx.x % WARP, matrix = lane / 8, row = lane % 8;
        const u32 more_lines = LINES_FIRST ? matrix & 1 : matrix >> 1, more_terms = LINES_FIRST ? matrix >> 1 : matrix & 1;
        if constexpr (TERMS_ARE_NEIGHBOURS) {
            load_matrices(words, shared + place(line + more_lines * 8 + row, term / CHUNK + more_terms));
        } else {
            load_transposed(words, shared + place(term + more_terms * 8 + row, line / CHUNK + more_lines));
        }
    }
};

typedef Side<BM, !A_TRANSPOSED> Left;
typedef Side<BN, B_TRANSPOSED> Right;

DEVICE void compute_tile(const Gemm& p) {
    __shared__ alignas(128) T a[STAGES][BM * TERMS];
    __shared__ alignas(128) T b[STAGES][BN * TERMS];
    const Tile t = tile_of(p);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const u32 down = warp / WARPS_ACROSS * WM, across = warp % WARPS_ACROSS * WN;
    f32 sums[WM / 16][WN / 8][4];
#pragma unroll
    for (int i = 0; i < WM / 16 * (WN / 8) * 4; ++i) sums[i / 4 / (WN / 8)][i / 4 % (WN / 8)][i % 4] = 0.0f;

    const u32 tiles = t.first_term < t.end_term ? (t.end_term - t.first_term + TERMS - 1) / TERMS : 0;
    const auto copy = [&](u32 tile, u32 stage) {
        if (tile < tiles) {
            const u32 term = t.first_term + tile * TERMS;
            Left::copy(a[stage], t.a, t.row, p.m, term, p.k, t.end_term, p.whole & 1);
            Right::copy(b[stage], t.b, t.column, p.n, term, p.k, t.end_term, p.whole & 2);
        }
        // There is a group for each tile, even where nothing is copied, so that the number of
        // pending groups is constant.
        end_copies();
    };
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) copy(i, i);
    u32 stage = 0, next = STAGES - 1;
#pragma unroll 1
    for (u32 tile = 0; tile < tiles; ++tile) {
        wait_for_copies<STAGES - 2>();
        // The copies of all threads have arrived, and the data used before the last tile's copies
        // are no longer needed.
        __syncthreads();
        copy(tile + STAGES - 1, next);
#pragma unroll
        for (int k = 0; k < TERMS; k += STEP) {
            u32 x[WM / 16][4], y[WN / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i) Left::fragments<true>(x[i], a[stage], down + i * 16, k);
#pragma unroll
            for (int j = 0; j < WN / 16; ++j) Right::fragments<false>(y[j], b[stage], across + j * 16, k);
#pragma unroll
            for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
                for (int j = 0; j < WN / 8; ++j) {
                    const u32 factor[2] = {y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]};
                    multiply_add(sums[i][j], x[i], factor, T{});
                }
            }
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
#pragma unroll
    for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < WN / 8; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const u32 row = t.row + down + i * 16 + half * 8 + lane / 4;
                const u32 column = t.column + across + j * 8 + lane % 4 * 2;
                const f32 pair[2] = {sums[i][j][half * 2], sums[i][j][half * 2 + 1]};
                write(p, t, row, column, pair);
            }
        }
    }
}
