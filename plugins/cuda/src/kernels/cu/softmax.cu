// Softmax and LogSoftmax over the last dimension: e^(x - most) / sum, and x - most - ln(sum), where sum is that of all
// e^(x - most).
//
//   softmax_lanes    a few lanes of a warp for each row of up to 256 elements
//   softmax_blocks   a block of 1 to 8 warps (of f64 16) for each row of up to 8192 elements, held in registers
//   softmax_long     a block for a row of any length, which is read twice
//
// The same with `_packed`: rows of whole packs, x and y aligned to 16 bytes. y may be x: an element is read and
// written by one thread. A row of nothing but -inf is NaN, as is one with a NaN or inf.
//
// Defines: DTYPE, a float; LOG, 1 or 0.
#include "online.cuh"
#include "rows.cuh"

typedef Compute<DTYPE> W;
#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)

// What an element becomes: `tail` is the reciprocal of the sum, or its logarithm.
DEVICE W tail_of(W sum) { return LOG ? log(sum) : (W)1 / sum; }

template <int V, int ELEMENTS, typename Group>
DEVICE void softmax_rows(DTYPE* y, const DTYPE* x, u64 rows, u64 cols, const Group& group) {
    group.each_row(rows, [=](u64 at, bool inside) {
        Row<DTYPE, V, ELEMENTS> row(group, inside ? (u32)cols : 0);
        row.load_from(x + at * cols);
        W most = GreatestOp<W>::neutral(), sum = 0;
        row.each([&](W& x) { most = GreatestOp<W>()(most, x); });
        most = group.reduce(most, GreatestOp<W>(), GreatestOp<W>::neutral());
        row.each([&](W& x) {
            x = sub(x, most);
            const W power = exp(x);
            sum = add(sum, power);
            if (!LOG) x = power;
        });
        const W tail = tail_of(group.reduce(sum, SumOp<W>(), (W)0));
        row.store_to(y + at * cols, [&](int k, u32) {
            Pack<DTYPE, V> pack;
#pragma unroll
            for (int v = 0; v < V; ++v) pack.at[v] = narrow<DTYPE>(LOG ? sub(row.at[k][v], tail) : mul(row.at[k][v], tail));
            return pack;
        });
    });
}

template <int V> DEVICE void softmax_long_rows(DTYPE* y, const DTYPE* x, u64 rows, u64 cols) {
    Block().each_row(rows, [=](u64 at, bool) {
        Online<W> all = Online<W>::nothing();
        for_row_packs<V, LONG<DTYPE>>(x + at * cols, cols, [&](Pack<DTYPE, V> pack, u64) { all.take(pack); });
        all = block_reduce(all, OnlineOp<W>(), Online<W>::nothing());
        const W most = all.most, tail = tail_of(all.sum);
        for_row_packs<V, LONG<DTYPE>>(x + at * cols, cols, [=](Pack<DTYPE, V> pack, u64 i) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const W x = sub(widen(pack.at[v]), most);
                pack.at[v] = narrow<DTYPE>(LOG ? sub(x, tail) : mul(exp(x), tail));
            }
            store_pack<V>(y + at * cols + i, 0, pack);
        });
    });
}

#define SOFTMAX(NAME, THREADS, BLOCKS, BODY) \
    KERNEL(THREADS, BLOCKS) NAME(DTYPE* y, const DTYPE* x, u64 rows, u64 cols) { BODY; }
#define SOFTMAX_ROWS(V, EACH, GROUP) softmax_rows<V, EACH>(y, x, rows, cols, GROUP)
SOFTMAX(softmax_lanes, 256, 1, SOFTMAX_ROWS(1, FEW, Lanes(cols)))
SOFTMAX(softmax_lanes_packed, 256, 1, SOFTMAX_ROWS(lanes_of<DTYPE>, FEW, Lanes(cols)))
SOFTMAX(softmax_blocks, HOLDS<DTYPE>, 1, SOFTMAX_ROWS(1, MANY<DTYPE>, Block()))
SOFTMAX(softmax_blocks_packed, HOLDS<DTYPE>, AT_ONCE<DTYPE>, SOFTMAX_ROWS(lanes_of<DTYPE>, MANY<DTYPE>, Block()))
SOFTMAX(softmax_long, LONG<DTYPE>, 1, softmax_long_rows<1>(y, x, rows, cols))
SOFTMAX(softmax_long_packed, LONG<DTYPE>, 1, softmax_long_rows<lanes_of<DTYPE>>(y, x, rows, cols))
