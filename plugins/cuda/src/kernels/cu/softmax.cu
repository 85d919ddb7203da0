// Softmax and LogSoftmax over the last dimension: e^(x - most) / sum, and x - most - ln(sum), where sum is that of all
// e^(x - most).
//
//   softmax_warps, softmax_blocks   rows that a warp or a block holds in registers: of up to 256 and 8192 elements
//   softmax_long                    a block for a row of any length, which is read twice
//
// The same with `_packed`: rows of whole packs, x and y aligned to 16 bytes. y may be x: an element is read and
// written by one thread. A row of nothing but -inf is NaN, as is one with a NaN or inf.
//
// Defines: DTYPE, a float; LOG, 1 or 0.
#include "online.cuh"
#include "rows.cuh"

typedef Compute<DTYPE> W;
// Threads of a block whose registers hold a row, and of one for a longer row: f64 takes twice the registers (rows.rs).
inline constexpr int HOLDS = sizeof(DTYPE) == 8 ? 512 : 256;
inline constexpr int LONG = sizeof(DTYPE) == 8 ? 512 : 1024;
#define KERNEL(THREADS) extern "C" __global__ void __launch_bounds__(THREADS, 1)

// What an element becomes: `tail` is the reciprocal of the sum, or its logarithm.
DEVICE W tail_of(W sum) { return LOG ? log(sum) : (W)1 / sum; }

template <int V, int ELEMENTS, int GROUP> DEVICE void softmax_rows(DTYPE* y, const DTYPE* x, u64 rows, u64 cols) {
    for_rows<GROUP>(rows, [=](u64 at) {
        Row<DTYPE, V, ELEMENTS, GROUP> row;
        row.load_from(x + at * cols, (u32)cols, Limits<W>::minus_infinity());
        W most = Limits<W>::minus_infinity(), sum = 0;
        row.each([&](W& x, u32) { most = MaxOp<W>()(most, x); });
        most = group_reduce<GROUP>(most, MaxOp<W>(), Limits<W>::minus_infinity());
        row.each([&](W& x, u32) {
            x = sub(x, most);
            const W power = exp(x);
            sum = add(sum, power);
            if (!LOG) x = power;
        });
        const W tail = tail_of(group_reduce<GROUP>(sum, SumOp<W>(), (W)0));
        row.store_to(y + at * cols, (u32)cols, [=](W x, u32) { return LOG ? sub(x, tail) : mul(x, tail); });
    });
}

template <int V> DEVICE void softmax_long_rows(DTYPE* y, const DTYPE* x, u64 rows, u64 cols) {
    for_rows<LONG>(rows, [=](u64 at) {
        Online<W> all = Online<W>::nothing();
        for_row_packs<V, LONG>(x + at * cols, cols, [&](Pack<DTYPE, V> pack, u64) { all.take(pack); });
        all = block_reduce(all, OnlineOp<W>(), Online<W>::nothing());
        const W most = all.most, tail = tail_of(all.sum);
        for_row_packs<V, LONG>(x + at * cols, cols, [=](Pack<DTYPE, V> pack, u64 i) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const W x = sub(widen(pack.at[v]), most);
                pack.at[v] = narrow<DTYPE>(LOG ? sub(x, tail) : mul(exp(x), tail));
            }
            store_pack<V>(y + at * cols + i, 0, pack);
        });
    });
}

#define SOFTMAX(NAME, THREADS, ...) \
    KERNEL(THREADS) NAME(DTYPE* y, const DTYPE* x, u64 rows, u64 cols) { __VA_ARGS__(y, x, rows, cols); }
SOFTMAX(softmax_warps, 256, softmax_rows<1, 8, WARP>)
SOFTMAX(softmax_warps_packed, 256, softmax_rows<lanes_of<DTYPE>, 8, WARP>)
SOFTMAX(softmax_blocks, HOLDS, softmax_rows<1, 8192 / HOLDS, HOLDS>)
SOFTMAX(softmax_blocks_packed, HOLDS, softmax_rows<lanes_of<DTYPE>, 8192 / HOLDS, HOLDS>)
SOFTMAX(softmax_long, LONG, softmax_long_rows<1>)
SOFTMAX(softmax_long_packed, LONG, softmax_long_rows<lanes_of<DTYPE>>)
