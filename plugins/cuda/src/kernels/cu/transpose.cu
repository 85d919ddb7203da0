// Transposition through shared memory, for permutations that move the innermost dimension.
//
//   tiles_B(W* y, const W* x, Tiles tiles)     B: bytes of an element, 1 to 16; W: that word
//   blocks_B(u32* y, const u32* x, Tiles)      B: 1 or 2; a word is a run of 4 / B elements
//   packs_B(Pack* y, const Pack* x, Tiles)     B: 2, 4 or 8; a word is a pack of 16 / B elements, 16 bytes
//
// The output's innermost dimension, `columns`, and the input's, `rows`, span planes, one for each place in the other
// dimensions. A block of threads moves one tile of 32 x 32 words of a plane: it reads along the input's rows, and
// writes along the output's. The odd width of the tile keeps both free of bank conflicts.
//
// Small elements go in squares of K x K, K = 4 / B, whose rows are words: a thread transposes its square in registers
// (K words in, K words out), and row c of all squares of a tile is a plane of shared memory of its own.
//
// Packs are moved in the same way in squares of 16 / B packs, of which a tile has 16 x 16, one for
// each thread. They are in shared memory in the order of the output, where pack p of a line is at p
// ^ (line / K), so that eight neighbouring threads use different banks in either direction.
//
// One block of 256 threads for each tile. Extents and strides count words; with `blocks` and `packs`, `columns` and
// `rows` count squares.
#include "dims.cuh"
#include "words.cuh"

constexpr int SIDE = 32;
constexpr int STEP = 256 / SIDE;

struct Tiles {
    // Tiles along the columns and along the rows of a plane.
    Divisor<u32> across, down;
    u32 columns, rows;
    // Of the other dimensions, innermost first, with strides of x and of y.
    u32 rank;
    Divisor<u32> extents[MAX_DIMS];
    i64 from[MAX_DIMS], to[MAX_DIMS];
    // From column to column in x, from row to row in y.
    i64 column_step, row_step;
};

template <int K> struct Square {
    u32 words[K];
};

template <int K> DEVICE Square<K> transposed(Square<K> in) {
    constexpr int BITS = 32 / K;
    constexpr u32 MASK = K == 1 ? ~0u : (1u << BITS % 32) - 1;
    Square<K> out;
#pragma unroll
    for (int c = 0; c < K; ++c) {
        out.words[c] = 0;
#pragma unroll
        for (int r = 0; r < K; ++r) out.words[c] |= (in.words[r] >> c * BITS & MASK) << r * BITS;
    }
    return out;
}

// Where a block's tile is.
struct Place {
    u32 column, row;
    i64 from, to;
};

template <int SIDE> DEVICE Place place_of(const Tiles& tiles, u32 tile) {
    const DivMod<u32> across = tiles.across.divide_with_rest(tile);
    const DivMod<u32> down = tiles.down.divide_with_rest(across.quotient);
    Place place = {across.remainder * SIDE, down.remainder * SIDE, 0, 0};
    u32 rest = down.quotient;
#pragma unroll
    for (int d = 0; d < MAX_DIMS; ++d) {
        if (d >= tiles.rank) break;
        const DivMod<u32> both = tiles.extents[d].divide_with_rest(rest);
        place.from += both.remainder * tiles.from[d];
        place.to += both.remainder * tiles.to[d];
        rest = both.quotient;
    }
    return place;
}

template <typename W> DEVICE void move_tile(W* __restrict__ y, const W* __restrict__ x, const Tiles& tiles) {
    __shared__ W tile[SIDE][SIDE + 1];
    const Place place = place_of<SIDE>(tiles, blockIdx.x);
    const u32 lane = threadIdx.x % SIDE, first = threadIdx.x / SIDE;
    x += place.from + place.row + lane;
    if (place.row + lane < tiles.rows) {
#pragma unroll
        for (int r = 0; r < SIDE; r += STEP) {
            const u32 column = place.column + first + r;
            if (column < tiles.columns) tile[first + r][lane] = load_constant(x + column * tiles.column_step);
        }
    }
    __syncthreads();
    y += place.to + place.column + lane;
    if (place.column + lane < tiles.columns) {
#pragma unroll
        for (int r = 0; r < SIDE; r += STEP) {
            const u32 row = place.row + first + r;
            if (row < tiles.rows) store(y + row * tiles.row_step, tile[lane][first + r]);
        }
    }
}

template <int K> DEVICE void move_squares(u32* __restrict__ y, const u32* __restrict__ x, const Tiles& tiles) {
    __shared__ u32 tile[K][SIDE][SIDE + 1];
    const Place place = place_of<SIDE>(tiles, blockIdx.x);
    const u32 lane = threadIdx.x % SIDE, first = threadIdx.x / SIDE;
    x += place.from + place.row + lane;
    if (place.row + lane < tiles.rows) {
#pragma unroll
        for (int r = 0; r < SIDE; r += STEP) {
            const u32 column = place.column + first + r;
            if (column >= tiles.columns) break;
            Square<K> square;
#pragma unroll
            for (int k = 0; k < K; ++k) square.words[k] = load_constant(x + (column * (i64)K + k) * tiles.column_step);
            square = transposed(square);
#pragma unroll
            for (int k = 0; k < K; ++k) tile[k][first + r][lane] = square.words[k];
        }
    }
    __syncthreads();
    y += place.to + place.column + lane;
    if (place.column + lane < tiles.columns) {
#pragma unroll
        for (int r = 0; r < SIDE; r += STEP) {
            const u32 row = place.row + first + r;
            if (row >= tiles.rows) break;
#pragma unroll
            for (int k = 0; k < K; ++k) store(y + (row * (i64)K + k) * tiles.row_step, tile[k][lane][first + r]);
        }
    }
}

template <typename E> using Line = Pack<E, 16 / sizeof(E)>;

template <typename E> DEVICE void move_packs(Line<E>* __restrict__ y, const Line<E>* __restrict__ x, const Tiles& tiles) {
    constexpr int K = 16 / sizeof(E), SQUARES = 16;
    __shared__ Line<E> tile[SQUARES * K][SQUARES];
    const Place place = place_of<SQUARES>(tiles, blockIdx.x);
    const u32 lane = threadIdx.x % SQUARES, other = threadIdx.x / SQUARES;
    if (place.row + lane < tiles.rows && place.column + other < tiles.columns) {
        x += place.from + place.row + lane + (place.column + other) * (i64)K * tiles.column_step;
        Line<E> in[K];
#pragma unroll
        for (int k = 0; k < K; ++k) in[k] = load_constant(x + k * tiles.column_step);
#pragma unroll
        for (int r = 0; r < K; ++r) {
            Line<E> out;
#pragma unroll
            for (int k = 0; k < K; ++k) out.at[k] = in[k].at[r];
            store(&tile[lane * K + r][other ^ lane], out);
        }
    }
    __syncthreads();
    if (place.column + lane < tiles.columns && place.row + other < tiles.rows) {
        y += place.to + place.column + lane + (place.row + other) * (i64)K * tiles.row_step;
#pragma unroll
        for (int r = 0; r < K; ++r) {
            store_global_pack<K>(reinterpret_cast<E*>(y + r * tiles.row_step), 0, load(&tile[other * K + r][lane ^ other]));
        }
    }
}

#define TILES(NAME, W)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256) NAME(W* y, const W* x, const __grid_constant__ Tiles tiles) { \
        move_tile(y, x, tiles);                                                                                    \
    }
FOR_WORDS(TILES, tiles)

extern "C" __global__ void __launch_bounds__(256) blocks_1(u32* y, const u32* x, const __grid_constant__ Tiles tiles) {
    move_squares<4>(y, x, tiles);
}

extern "C" __global__ void __launch_bounds__(256) blocks_2(u32* y, const u32* x, const __grid_constant__ Tiles tiles) {
    move_squares<2>(y, x, tiles);
}

#define PACKS(NAME, E)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) NAME(                                                            \
        Line<E>* y, const Line<E>* x, const __grid_constant__ Tiles tiles) {                                            \
        move_packs<E>(y, x, tiles);                                                                                    \
    }
PACKS(packs_2, u16)
PACKS(packs_4, u32)
PACKS(packs_8, u64)
