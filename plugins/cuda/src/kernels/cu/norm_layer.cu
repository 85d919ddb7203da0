// Layer normalisation over the last dimension: (x - mean) / sqrt(variance + epsilon) * scale + offset, where the
// variance is the mean of the squared deviations.
//
//   norm_warps, norm_blocks   rows that a warp or a block holds in registers: of up to 1024 and 8192 elements
//   norm_long                 a block for a row of any length, which is read three times
//
// The same with `_packed`: rows of whole packs, every address aligned to 16 bytes. The mean comes first, the squares
// after it: a difference of sums would cancel.
//
// Defines: DTYPE, a float.
#include "rows.cuh"

typedef Compute<DTYPE> W;
// Threads of a block whose registers hold a row, and of one for a longer row: f64 takes twice the registers (rows.rs).
inline constexpr int HOLDS = sizeof(DTYPE) == 8 ? 512 : 256;
inline constexpr int LONG = sizeof(DTYPE) == 8 ? 512 : 1024;
#define KERNEL(THREADS) extern "C" __global__ void __launch_bounds__(THREADS, 1)

struct Norm {
    const DTYPE* scale;
    const DTYPE* offset;
    u64 rows, cols;
    f32 epsilon;
};
static_assert(sizeof(Norm) == 40, "the host's layout");

DEVICE W factor_of(W squares, const Norm& norm) {
    return (W)1 / sqrt(squares / (W)norm.cols + (W)norm.epsilon);
}

DEVICE W square(W x) { return mul(x, x); }

// Deviations from the mean, times factor and scale, plus offset.
template <int V, typename F> DEVICE Pack<DTYPE, V> affine(F deviation, u64 i, const Norm& norm, W factor) {
    const auto scale = load_constant_pack<V>(norm.scale + i, 0), offset = load_constant_pack<V>(norm.offset + i, 0);
    Pack<DTYPE, V> pack;
#pragma unroll
    for (int v = 0; v < V; ++v) {
        const W normal = mul(deviation(v), factor);
        pack.at[v] = narrow<DTYPE>(add(mul(normal, widen(scale.at[v])), widen(offset.at[v])));
    }
    return pack;
}

template <int V, int ELEMENTS, int GROUP> DEVICE void norm_rows(DTYPE* y, const DTYPE* x, const Norm& norm) {
    for_rows<GROUP>(norm.rows, [&](u64 at) {
        const u32 cols = (u32)norm.cols;
        Row<DTYPE, V, ELEMENTS, GROUP> row;
        row.load_from(x + at * norm.cols, cols, 0);
        W sum = 0, squares = 0;
        row.each([&](W& x, u32) { sum = add(sum, x); });
        const W mean = group_reduce<GROUP>(sum, SumOp<W>(), (W)0) / (W)cols;
        row.each([&](W& x, u32 i) {
            x = i < cols ? sub(x, mean) : (W)0;
            squares = add(squares, square(x));
        });
        const W factor = factor_of(group_reduce<GROUP>(squares, SumOp<W>(), (W)0), norm);
#pragma unroll
        for (int k = 0; k < ELEMENTS / V; ++k) {
            const u32 i = row.begin(k);
            if (i >= cols) break;
            const auto pack = affine<V>([&](int v) { return row.at[k][v]; }, i, norm, factor);
            store_pack<V>(y + at * norm.cols + i, 0, pack);
        }
    });
}

template <int V> DEVICE void norm_long_rows(DTYPE* y, const DTYPE* x, const Norm& norm) {
    for_rows<LONG>(norm.rows, [&](u64 at) {
        const DTYPE* from = x + at * norm.cols;
        W sum = 0, squares = 0;
        for_row_packs<V, LONG>(from, norm.cols, [&](Pack<DTYPE, V> pack, u64) {
#pragma unroll
            for (int v = 0; v < V; ++v) sum = add(sum, widen(pack.at[v]));
        });
        const W mean = block_reduce(sum, SumOp<W>(), (W)0) / (W)norm.cols;
        for_row_packs<V, LONG>(from, norm.cols, [&](Pack<DTYPE, V> pack, u64) {
#pragma unroll
            for (int v = 0; v < V; ++v) squares = add(squares, square(sub(widen(pack.at[v]), mean)));
        });
        const W factor = factor_of(block_reduce(squares, SumOp<W>(), (W)0), norm);
        for_row_packs<V, LONG>(from, norm.cols, [&](Pack<DTYPE, V> pack, u64 i) {
            pack = affine<V>([&](int v) { return sub(widen(pack.at[v]), mean); }, i, norm, factor);
            store_pack<V>(y + at * norm.cols + i, 0, pack);
        });
    });
}

#define NORM(NAME, THREADS, ...) \
    KERNEL(THREADS) NAME(DTYPE* y, const DTYPE* x, Norm norm) { __VA_ARGS__(y, x, norm); }
NORM(norm_warps, 256, norm_rows<1, 32, WARP>)
NORM(norm_warps_packed, 256, norm_rows<lanes_of<DTYPE>, 32, WARP>)
NORM(norm_blocks, HOLDS, norm_rows<1, 8192 / HOLDS, HOLDS>)
NORM(norm_blocks_packed, HOLDS, norm_rows<lanes_of<DTYPE>, 8192 / HOLDS, HOLDS>)
NORM(norm_long, LONG, norm_long_rows<1>)
NORM(norm_long_packed, LONG, norm_long_rows<lanes_of<DTYPE>>)
