// Layer normalisation over the last dimension: (x - mean) / sqrt(variance + epsilon) * scale + offset, where the
// variance is the mean of the squared deviations.
//
//   norm_lanes    a few lanes of a warp for each row of up to 256 elements
//   norm_blocks   a block of 1 to 8 warps (of f64 16) for each row of up to 8192 elements, held in registers
//   norm_long     a block for a row of any length, which is read three times
//
// The same with `_packed`: rows of whole packs, every address aligned to 16 bytes. The mean comes first, the squares
// after it: a difference of sums would cancel.
//
// Defines: DTYPE, a float.
#include "rows.cuh"

typedef Compute<DTYPE> W;
#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)

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

template <int V, int ELEMENTS, typename Group>
DEVICE void norm_rows(DTYPE* y, const DTYPE* x, const Norm& norm, const Group& group) {
    group.each_row(norm.rows, [&](u64 at, bool inside) {
        const u32 cols = (u32)norm.cols;
        Row<DTYPE, V, ELEMENTS> row(group, inside ? cols : 0);
        row.load_from(x + at * norm.cols);
        W sum = 0, squares = 0;
        row.each([&](W& x) { sum = add(sum, x); });
        const W mean = group.reduce(sum, SumOp<W>(), (W)0) / (W)cols;
        row.each([&](W& x) {
            x = sub(x, mean);
            squares = add(squares, square(x));
        });
        const W factor = factor_of(group.reduce(squares, SumOp<W>(), (W)0), norm);
        row.store_to(y + at * norm.cols, [&](int k, u32 i) {
            return affine<V>([&](int v) { return row.at[k][v]; }, row.first + i, norm, factor);
        });
    });
}

template <int V> DEVICE void norm_long_rows(DTYPE* y, const DTYPE* x, const Norm& norm) {
    Block().each_row(norm.rows, [&](u64 at, bool) {
        const DTYPE* from = x + at * norm.cols;
        W sum = 0, squares = 0;
        for_row_packs<V, LONG<DTYPE>>(from, norm.cols, [&](Pack<DTYPE, V> pack, u64) {
#pragma unroll
            for (int v = 0; v < V; ++v) sum = add(sum, widen(pack.at[v]));
        });
        const W mean = block_reduce(sum, SumOp<W>(), (W)0) / (W)norm.cols;
        for_row_packs<V, LONG<DTYPE>>(from, norm.cols, [&](Pack<DTYPE, V> pack, u64) {
#pragma unroll
            for (int v = 0; v < V; ++v) squares = add(squares, square(sub(widen(pack.at[v]), mean)));
        });
        const W factor = factor_of(block_reduce(squares, SumOp<W>(), (W)0), norm);
        for_row_packs<V, LONG<DTYPE>>(from, norm.cols, [&](Pack<DTYPE, V> pack, u64 i) {
            pack = affine<V>([&](int v) { return sub(widen(pack.at[v]), mean); }, i, norm, factor);
            store_pack<V>(y + at * norm.cols + i, 0, pack);
        });
    });
}

#define NORM(NAME, THREADS, BLOCKS, BODY) \
    KERNEL(THREADS, BLOCKS) NAME(DTYPE* y, const DTYPE* x, Norm norm) { BODY; }
#define NORM_ROWS(V, EACH, GROUP) norm_rows<V, EACH>(y, x, norm, GROUP)
NORM(norm_lanes, 256, 1, NORM_ROWS(1, FEW, Lanes(norm.cols)))
NORM(norm_lanes_packed, 256, 1, NORM_ROWS(lanes_of<DTYPE>, FEW, Lanes(norm.cols)))
NORM(norm_blocks, HOLDS<DTYPE>, 1, NORM_ROWS(1, MANY<DTYPE>, Block()))
NORM(norm_blocks_packed, HOLDS<DTYPE>, AT_ONCE<DTYPE>, NORM_ROWS(lanes_of<DTYPE>, MANY<DTYPE>, Block()))
NORM(norm_long, LONG<DTYPE>, 1, norm_long_rows<1>(y, x, norm))
NORM(norm_long_packed, LONG<DTYPE>, 1, norm_long_rows<lanes_of<DTYPE>>(y, x, norm))
