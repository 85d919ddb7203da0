// Products of matrices of 8 bits, with zero points, to sums of 32 bits and from there to values.
//
//   quantized_columns(Columns p)   writes what belongs to columns, in parts, to device memory
//   column_sums(Product p)         takes -(left zero point) times the sums of columns of B to them
//   row_sums(Product p)            sums of rows of A
//   quantized_gemm(Product p)      blocks: tiles of C, down columns
//
// sum[i][j] = sum over k of a[i][k] b[k][j] + base[j] + slope[j] (sum of row i): plugins/int8/docs/quantization.md,
// "Sums". All is modulo 2^32.
//
// A tile of TILE x TILE sums belongs to four warps of 32 x 32. Tiles of A and B are in shared
// memory as lines (rows of A, columns of B) of DEPTH terms, in either layout of the matrices: a
// matrix stored the other way is transposed, four bytes by four, as it is copied. Chunks of 16
// bytes are permuted as in gemm_mma.cuh.
//
// Defines: A_TYPE, B_TYPE (u8 or i8).
#include "mma.cuh"
#include "quantized_output.cuh"
#include "vector.cuh"

typedef A_TYPE A;
typedef B_TYPE B;

inline constexpr int TILE = 64, DEPTH = 64, THREADS = 128, STAGES = 3, CHUNK = 16, PIECE = 32;

struct Product {
    const u8* a;
    const u8* b;
    void* c;
    Column* columns;
    // Sums of rows of A; null where all slopes are 0.
    i32* rows;
    u32 m, n, k;
    // Bits: A is stored as [k, m]; B as [n, k]; lines of A, of B begin at multiples of 16 bytes (4 where they are turned);
    // pairs of C are aligned.
    u32 flags;
    i32 left_zero;
    // Of an element of C.
    u32 bytes;
    Stage stage;
};

enum Flag : u32 { A_TURNED = 1, B_TURNED = 2, A_WHOLE = 4, B_WHOLE = 8, C_WHOLE = 16 };

inline constexpr u32 MOST_COLUMNS = 240;

// Columns from `first` on; or, where `repeats`, one for all.
struct Columns {
    Column* to;
    u32 first, count, repeats, unused;
    u64 unused_too;
    Column values[MOST_COLUMNS];
};

extern "C" __global__ void __launch_bounds__(256) quantized_columns(const __grid_constant__ Columns p) {
    for (u32 i = thread_of_grid<u32>(); i < p.count; i += threads_of_grid<u32>()) {
        p.to[p.first + i] = p.values[p.repeats ? 0 : i];
    }
}

// The sum of a line: of neighbours by a warp, else by a thread for each line. The caller adds those of lanes.
template <typename X> DEVICE i32 sum_of(const u8* matrix, u32 line, u32 lines, u32 terms, bool neighbours, u32 first, u32 step) {
    const X* x = reinterpret_cast<const X*>(matrix);
    i32 sum = 0;
#pragma unroll 4
    for (u32 k = first; k < terms; k += step) {
        sum += x[neighbours ? (u64)line * terms + k : (u64)k * lines + line];
    }
    return sum;
}

template <typename X, typename Write>
DEVICE void sum_lines(const u8* matrix, u32 lines, u32 terms, bool neighbours, Write write) {
    if (neighbours) {
        // All lanes of a warp come to the sum.
        for (u32 line = thread_of_grid<u32>() / WARP; line < lines; line += threads_of_grid<u32>() / WARP) {
            const u32 lane = threadIdx.x % WARP;
            const i32 sum = warp_reduce(sum_of<X>(matrix, line, lines, terms, true, lane, WARP), SumOp<i32>());
            if (lane == 0) write(line, sum);
        }
        return;
    }
    for (u32 line = thread_of_grid<u32>(); line < lines; line += threads_of_grid<u32>()) {
        write(line, sum_of<X>(matrix, line, lines, terms, false, 0, 1));
    }
}

extern "C" __global__ void __launch_bounds__(256) row_sums(Product p) {
    sum_lines<A>(p.a, p.m, p.k, !(p.flags & A_TURNED), [&](u32 row, i32 sum) { p.rows[row] = sum; });
}

extern "C" __global__ void __launch_bounds__(256) column_sums(Product p) {
    sum_lines<B>(p.b, p.n, p.k, p.flags & B_TURNED, [&](u32 column, i32 sum) {
        p.columns[column].base = sub(p.columns[column].base, mul(p.left_zero, sum));
    });
}

// The position of a chunk of a line.
DEVICE u32 place(u32 line, u32 chunk) { return line * DEPTH + (chunk ^ (line >> 1 & 3)) * CHUNK; }

// BYTES neighbours of a stored line, 0 beyond its end.
template <int BYTES> DEVICE Pack<u8, BYTES> bytes_of(const u8* from, u32 at, u32 end, bool whole) {
    Pack<u8, BYTES> pack = splat<BYTES>((u8)0);
    if (at >= end) return pack;
    if (whole) return load_constant(reinterpret_cast<const Pack<u8, BYTES>*>(from + at));
#pragma unroll
    for (int i = 0; i < BYTES; ++i) {
        if (at + i < end) pack.at[i] = load_constant(from + at + i);
    }
    return pack;
}

// Lines whose terms are neighbours in memory.
DEVICE void copy_straight(u8* shared, const u8* matrix, u32 line, u32 lines, u32 term, u32 terms, bool whole) {
#pragma unroll
    for (int i = 0; i < TILE * DEPTH / CHUNK / THREADS; ++i) {
        const u32 at = threadIdx.x + i * THREADS, y = line + at / (DEPTH / CHUNK), x = term + at % (DEPTH / CHUNK) * CHUNK;
        u8* to = shared + place(at / (DEPTH / CHUNK), at % (DEPTH / CHUNK));
        const u8* from = matrix + (u64)y * terms;
        if (whole) {
            const bool is_there = y < lines && x < terms;
            copy_later(to, is_there ? from + x : matrix, is_there);
        } else {
            store_pack<CHUNK>(to, 0, bytes_of<CHUNK>(from, x, y < lines ? terms : 0, false));
        }
    }
}

// Bytes `i` of four words, as one word.
DEVICE u32 bytes_across(const u32 (&words)[4], u32 i) {
    const u32 both = i | (i + 4) << 4;
    return __byte_perm(__byte_perm(words[0], words[1], both), __byte_perm(words[2], words[3], both), 0x5410);
}

// Lines that are neighbours in memory, term after term: four terms of four lines at a time.
DEVICE void copy_turned(u8* shared, const u8* matrix, u32 line, u32 lines, u32 term, u32 terms, bool whole) {
#pragma unroll
    for (int i = 0; i < TILE * DEPTH / 16 / THREADS; ++i) {
        const u32 at = threadIdx.x + i * THREADS, x = at % (TILE / 4) * 4, y = at / (TILE / 4) * 4;
        u32 words[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const u32 k = term + y + j;
            Words<Pack<u8, 4>> four;
            four.value = bytes_of<4>(matrix + (u64)k * lines, line + x, k < terms ? lines : 0, whole);
            words[j] = four.words[0];
        }
#pragma unroll
        for (u32 j = 0; j < 4; ++j) {
            u8* to = shared + place(x + j, y / CHUNK) + y % CHUNK;
            *reinterpret_cast<u32*>(to) = bytes_across(words, j);
        }
    }
}

DEVICE void copy_tile(u8* shared, const u8* matrix, u32 line, u32 lines, u32 term, u32 terms, bool turned, bool whole) {
    if (turned) copy_turned(shared, matrix, line, lines, term, terms, whole);
    else copy_straight(shared, matrix, line, lines, term, terms, whole);
}

// Four matrices of 8 lines of 16 terms: words 0 and 1 are of the same terms where LINES_FIRST, else of the same lines.
template <bool LINES_FIRST> DEVICE void fragments(u32 (&words)[4], const u8* shared, u32 line, u32 term) {
    const u32 lane = threadIdx.x % WARP, matrix = lane / 8, row = lane % 8;
    const u32 more_lines = LINES_FIRST ? matrix & 1 : matrix >> 1, more_terms = LINES_FIRST ? matrix >> 1 : matrix & 1;
    load_matrices(words, shared + place(line + more_lines * 8 + row, term / CHUNK + more_terms));
}

template <typename X> DEVICE void write_pair(void* c, u64 at, bool both, bool whole, i32 first, i32 second) {
    X* to = reinterpret_cast<X*>(c) + at;
    if (both && whole) return store_pack<2>(to, 0, Pack<X, 2>{(X)first, (X)second});
    to[0] = (X)first;
    if (both) to[1] = (X)second;
}

DEVICE void write_values(const Product& p, u32 row, u32 column, i32 first, i32 second) {
    if (row >= p.m || column >= p.n) return;
    const bool both = column + 1 < p.n, whole = p.flags & C_WHOLE;
    const Column left = load(p.columns + column), right = load(p.columns + (both ? column + 1 : column));
    const i32 sum = p.rows ? p.rows[row] : 0;
    const i32 x = value_of(p.stage, left, add(first, add(left.base, mul(left.slope, sum))));
    const i32 y = value_of(p.stage, right, add(second, add(right.base, mul(right.slope, sum))));
    const u64 at = (u64)row * p.n + column;
    if (p.bytes == 1) return write_pair<u8>(p.c, at, both, whole, x, y);
    if (p.bytes == 2) return write_pair<u16>(p.c, at, both, whole, x, y);
    write_pair<i32>(p.c, at, both, whole, x, y);
}

extern "C" __global__ void __launch_bounds__(THREADS) quantized_gemm(Product p) {
    __shared__ alignas(128) u8 a[STAGES][TILE * DEPTH];
    __shared__ alignas(128) u8 b[STAGES][TILE * DEPTH];
    const u32 down = (p.m + TILE - 1) / TILE, row = blockIdx.x % down * TILE, column = blockIdx.x / down * TILE;
    const u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, y = warp / 2 * PIECE, x = warp % 2 * PIECE;
    i32 sums[PIECE / 16][PIECE / 8][4] = {};
    const u32 tiles = (p.k + DEPTH - 1) / DEPTH;
    const auto copy = [&](u32 tile, u32 stage) {
        if (tile < tiles) {
            copy_tile(a[stage], p.a, row, p.m, tile * DEPTH, p.k, p.flags & A_TURNED, p.flags & A_WHOLE);
            copy_tile(b[stage], p.b, column, p.n, tile * DEPTH, p.k, !(p.flags & B_TURNED), p.flags & B_WHOLE);
        }
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
        for (int k = 0; k < DEPTH; k += 32) {
            u32 left[PIECE / 16][4], right[PIECE / 16][4];
#pragma unroll
            for (int i = 0; i < PIECE / 16; ++i) fragments<true>(left[i], a[stage], y + i * 16, k);
#pragma unroll
            for (int j = 0; j < PIECE / 16; ++j) fragments<false>(right[j], b[stage], x + j * 16, k);
#pragma unroll
            for (int i = 0; i < PIECE / 16; ++i) {
#pragma unroll
                for (int j = 0; j < PIECE / 8; ++j) {
                    const u32 factor[2] = {right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]};
                    multiply_add(sums[i][j], left[i], factor, A{}, B{});
                }
            }
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
#pragma unroll
    for (int i = 0; i < PIECE / 16; ++i) {
#pragma unroll
        for (int j = 0; j < PIECE / 8; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                write_values(p, row + y + i * 16 + half * 8 + lane / 4, column + x + j * 8 + lane % 4 * 2,
                             sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
            }
        }
    }
}
