// Convolutions over two or three dimensions as implicit products of matrices (S. Chetlur et al., "cuDNN: Efficient Primitives
// for Deep Learning", 2014, section 3): tiles of patches and of the filter come to shared memory while those before
// are multiplied.
//
//   conv_small, conv_large, conv_small_packed, conv_large_packed(y, x, filter, c, inputs)
//
// A block computes 64 pixels of 64 outputs with 128 threads (small), or 128 of 128 with 256
// (large). The packed kernels copy 16 bytes at once: from the filter, where the group's outputs and
// all outputs must be multiples of the elements in 16 bytes, and with channels last from the image,
// with the same condition on its channels; both must be aligned. Grid: tiles of pixels times groups
// times tiles of outputs, the last varying fastest.
//
// Defines: T (f16 bf16 f32 f64); CHANNELS_FIRST (0 or 1); LARGE_TILES (0 or 1), whether there are large ones;
// perhaps VOLUME (1), see conv.cuh, and STEPS, see conv_steps.cuh.
//
// Sums are of the type in which T computes. Products of f16 and bf16 go through tensor cores, but those of bf16 not
// before compute capability 8.0.
#include "conv.cuh"
#include "conv_steps.cuh"

#if defined(TENON_EMULATED) || __CUDA_ARCH__ >= 800
inline constexpr bool BY_TENSOR_CORES = is_same<T, f16> || is_same<T, bf16>;
inline constexpr int STAGES_OF_SMALL = 3;
// Warps that a multiprocessor is to hold: as many as shared memory leaves room for, with registers enough.
inline constexpr int WARPS = is_same<T, f64> ? 12 : 16;
#else
inline constexpr bool BY_TENSOR_CORES = is_same<T, f16>;
inline constexpr int STAGES_OF_SMALL = 2;
inline constexpr int WARPS = 8;
#endif

// Rows of a tile begin 16 bytes after a multiple of 64 bytes, so that neighbouring rows are in
// different banks.
template <typename X, bool LARGE> struct Shape {
    static constexpr int ROWS = LARGE ? 128 : 64, COLUMNS = ROWS, DEPTH = 64 / sizeof(X);
    static constexpr int THREADS = LARGE ? 256 : 128, STAGES = LARGE ? 2 : STAGES_OF_SMALL;
    static constexpr int PATCH_PITCH = DEPTH + 16 / sizeof(X), FILTER_PITCH = COLUMNS + 16 / sizeof(X);
};

// Sums of products in registers: a thread has rows at a fixed distance, and 4 neighbouring columns
// of each 64.
template <typename X, typename S> struct PlainTile {
    typedef Compute<X> W;
    static constexpr int N = 4, WARPS_DOWN = S::THREADS / 64, ROW_STEP = 4 * WARPS_DOWN;
    static constexpr int ROWS = S::ROWS / ROW_STEP, PACKS = S::COLUMNS / 64;
    // Columns of patches that are loaded at once.
    static constexpr int K = sizeof(X) == 2 ? 4 : 2;
    W sums[ROWS][PACKS][N];

    static DEVICE int row(int i) {
        return (int)threadIdx.x / 64 * 4 + (int)threadIdx.x % 32 / 8 + i * ROW_STEP;
    }
    static DEVICE int column(int i) {
        return (int)threadIdx.x / 32 % 2 * 32 + (int)threadIdx.x % 8 * N + i * 64;
    }

    DEVICE void clear() {
#pragma unroll
        for (int i = 0; i < ROWS * PACKS * N; ++i) sums[i / (PACKS * N)][i / N % PACKS][i % N] = (W)0;
    }

    DEVICE void multiply(const X* patches, const X* filter) {
#pragma unroll
        for (int k = 0; k < S::DEPTH; k += K) {
            Pack<X, K> left[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                left[i] = load(reinterpret_cast<const Pack<X, K>*>(patches + row(i) * S::PATCH_PITCH + k));
#pragma unroll
            for (int of = 0; of < K; ++of) {
                Pack<X, N> right[PACKS];
#pragma unroll
                for (int j = 0; j < PACKS; ++j)
                    right[j] = load(reinterpret_cast<const Pack<X, N>*>(filter + (k + of) * S::FILTER_PITCH + column(j)));
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
#pragma unroll
                    for (int j = 0; j < PACKS; ++j)
#pragma unroll
                        for (int n = 0; n < N; ++n)
                            sums[i][j][n] += widen(left[i].at[of]) * widen(right[j].at[n]);
            }
        }
    }

    // Calls each(row, column, sums) for N sums at a time.
    template <typename Each> DEVICE void for_each(Each each) const {
#pragma unroll
        for (int j = 0; j < PACKS; ++j)
#pragma unroll
            for (int i = 0; i < ROWS; ++i) each(row(i), column(j), sums[i][j]);
    }
};

// Sums of products through tensor cores, in fragments of 16 rows and 8 columns: lane l of a warp has of each the
// columns 2 (l % 4) and the next one of rows l / 4 and l / 4 + 8 (PTX ISA, "Matrix Fragments for mma.m16n8k16").
template <typename X, typename S> struct TensorTile {
    static constexpr int N = 2, WARPS_ACROSS = S::COLUMNS / 32, ROWS = S::ROWS / 2;
    static constexpr int DOWN = ROWS / 16, ACROSS = 4;
    f32 sums[DOWN][ACROSS][4];

    static DEVICE int lane() { return (int)threadIdx.x % 32; }
    static DEVICE int first_row() { return (int)threadIdx.x / 32 / WARPS_ACROSS * ROWS; }
    static DEVICE int first_column() { return (int)threadIdx.x / 32 % WARPS_ACROSS * 32; }

    DEVICE void clear() {
#pragma unroll
        for (int i = 0; i < DOWN * ACROSS * 4; ++i) sums[i / (ACROSS * 4)][i / 4 % ACROSS][i % 4] = 0.0f;
    }

#ifdef TENON_EMULATED
    // The same sums by the lanes that have them.
    DEVICE void multiply(const X* patches, const X* filter) {
        const X* const first = patches + (first_row() + lane() / 4) * S::PATCH_PITCH;
        for (int k = 0; k < S::DEPTH; ++k) {
            const X* const columns = filter + k * S::FILTER_PITCH + first_column() + lane() % 4 * 2;
            f32 right[ACROSS][2];
            for (int j = 0; j < ACROSS * 2; ++j) right[j / 2][j % 2] = widen(columns[j / 2 * 8 + j % 2]);
            for (int i = 0; i < DOWN * 2; ++i) {
                const f32 left = widen(first[i * 8 * S::PATCH_PITCH + k]);
                for (int j = 0; j < ACROSS * 2; ++j) sums[i / 2][j / 2][i % 2 * 2 + j % 2] += left * right[j / 2][j % 2];
            }
        }
    }
#else
    // Four matrices of 8 by 8, of which lane l names a row: those of 16 rows (l % 16) and 16 columns. Of the filter
    // they are transposed, since fragments have its columns.
    template <bool TRANSPOSED> static DEVICE void load_matrices(u32 (&to)[4], const X* from, int pitch) {
        const u32 at = (u32)__cvta_generic_to_shared(from + lane() % 16 * pitch + lane() / 16 * 8);
        if constexpr (TRANSPOSED)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
        else
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
    }

#define MMA(SHAPE, TYPE, A, B, ...) \
    asm("mma.sync.aligned." SHAPE ".row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, {" A "}, {" B "}, {%0, %1, %2, %3};" \
        : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3]) : __VA_ARGS__)
    static DEVICE void multiply_add(f32 (&to)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
        if constexpr (is_same<X, f16>)
            MMA("m16n8k16", "f16", "%4, %5, %6, %7", "%8, %9",
                "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
        else
            MMA("m16n8k16", "bf16", "%4, %5, %6, %7", "%8, %9",
                "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
        MMA("m16n8k8", "f16", "%4, %5", "%6", "r"(a[0]), "r"(a[1]), "r"(b0));
        MMA("m16n8k8", "f16", "%4, %5", "%6", "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
    }
#undef MMA

    DEVICE void multiply(const X* patches, const X* filter) {
#pragma unroll
        for (int k = 0; k < S::DEPTH; k += 16) {
            u32 right[ACROSS / 2][4];
#pragma unroll
            for (int j = 0; j < ACROSS / 2; ++j)
                load_matrices<true>(right[j], filter + k * S::FILTER_PITCH + first_column() + j * 16, S::FILTER_PITCH);
#pragma unroll
            for (int i = 0; i < DOWN; ++i) {
                u32 left[4];
                load_matrices<false>(left, patches + (first_row() + i * 16) * S::PATCH_PITCH + k, S::PATCH_PITCH);
#pragma unroll
                for (int j = 0; j < ACROSS; ++j)
                    multiply_add(sums[i][j], left, right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
            }
        }
    }
#endif

    template <typename Each> DEVICE void for_each(Each each) const {
#pragma unroll
        for (int j = 0; j < ACROSS; ++j)
#pragma unroll
            for (int i = 0; i < DOWN; ++i) {
                const int row = first_row() + i * 16 + lane() / 4, column = first_column() + j * 8 + lane() % 4 * 2;
                const f32 upper[2] = {sums[i][j][0], sums[i][j][1]}, lower[2] = {sums[i][j][2], sums[i][j][3]};
                each(row, column, upper);
                each(row + 8, column, lower);
            }
    }
};

template <typename X, typename S> struct alignas(16) Shared {
    X patches[S::STAGES][S::ROWS * S::PATCH_PITCH];
    X filter[S::STAGES][S::DEPTH * S::FILTER_PITCH];
    Row rows[S::ROWS];
};

// Writes N neighbouring outputs of a pixel.
template <int N>
DEVICE void write(T* y, const Convolution& c, const EpilogueInputs& inputs, i64 pixel, u32 group, u32 output,
    const Compute<T> (&sums)[N]) {
    const i64 channel = (i64)group * c.outputs + output, first = pixel + channel * c.y_channel;
    if (c.packed_output) {
        Pack<T, N> pack;
#pragma unroll
        for (int n = 0; n < N; ++n) pack.at[n] = with_epilogue<T>(sums[n], inputs, channel + n, first + n);
        store_at_once(reinterpret_cast<Pack<T, N>*>(y + first), pack);
        return;
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const i64 element = first + n * c.y_channel;
        if (output + n < c.outputs) y[element] = with_epilogue<T>(sums[n], inputs, channel + n, element);
    }
}

template <bool LARGE, bool PACKED>
DEVICE void convolve(T* __restrict__ y, const T* __restrict__ x, const T* __restrict__ filter, const Convolution& c,
    const EpilogueInputs& inputs) {
    typedef Shape<T, LARGE> S;
    constexpr int N = PACKED ? 16 / sizeof(T) : 1, STAGES = S::STAGES;
    __shared__ Shared<T, S> shared;
    // Computed anew where they are needed: the loop has no registers to spare.
    const auto group = [&] { return blockIdx.x / c.tiles % c.groups; };
    const auto output = [&] { return blockIdx.x % c.tiles * S::COLUMNS; };
    const i64 pixel = (i64)(blockIdx.x / c.tiles / c.groups) * S::ROWS;
    for (int row = threadIdx.x; row < S::ROWS; row += S::THREADS) shared.rows[row] = row_of(c, pixel + row, group());
    __syncthreads();

    const auto copy = [&](u32 tile) {
        const u32 stage = tile % STAGES, first = tile * S::DEPTH;
        if (first < c.depth) {
            copy_patches<S, N, CHANNELS_FIRST>(shared.patches[stage], c, x, shared.rows, first);
            copy_filter<S, N>(shared.filter[stage], c, filter, first, group(), output());
        }
        end_copies();
    };
    typedef choose<BY_TENSOR_CORES, TensorTile<T, S>, PlainTile<T, S>> Tile;
    Tile sums;
    sums.clear();
#pragma unroll
    for (u32 tile = 0; tile < STAGES - 1; ++tile) copy(tile);
    for (u32 tile = 0; tile * S::DEPTH < c.depth; ++tile) {
        wait_for_copies<STAGES - 2>();
        // All copies of this tile have arrived, and no thread reads the previous tile any more.
        __syncthreads();
        copy(tile + STAGES - 1);
        sums.multiply(shared.patches[tile % STAGES], shared.filter[tile % STAGES]);
    }
    sums.for_each([&](int row, int column, const Compute<T> (&values)[Tile::N]) {
        const i64 at = shared.rows[row].y;
        const u32 first = output() + column;
        if (at >= 0 && first < c.outputs) write(y, c, inputs, at, group(), first, values);
    });
}

#define ENTRY(NAME, LARGE, PACKED, THREADS) \
    extern "C" __global__ void __launch_bounds__(THREADS, WARPS * 32 / THREADS) NAME(T* __restrict__ y, const T* __restrict__ x, \
        const T* __restrict__ filter, const Convolution c, const EpilogueInputs inputs) { \
        convolve<LARGE, PACKED>(y, x, filter, c, inputs); \
    }

ENTRY(conv_small, false, false, 128)
ENTRY(conv_small_packed, false, true, 128)
#if LARGE_TILES
ENTRY(conv_large, true, false, 256)
ENTRY(conv_large_packed, true, true, 256)
#endif
