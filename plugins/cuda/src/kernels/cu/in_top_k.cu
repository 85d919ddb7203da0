// Whether the target of each row is among its k greatest predictions: whether fewer than k are greater. Never where
// the target is no class, or a prediction is not finite.
//
//   in_top_k_lanes, in_top_k_blocks   a few lanes of a warp, or a block, for each row
//
// `size` is that of a target in bytes.
#include "rows.cuh"

template <typename Group>
DEVICE void in_top_k(
    boolean* precision, const f32* predictions, const void* targets, u32 size, u64 rows, u64 classes, i64 k, const Group& group) {
    group.each_row(rows, [=](u64 row, bool inside) {
        const f32* x = predictions + row * classes;
        const i64 target = inside ? load_integer(targets, size, row) : -1;
        const bool is_class = (u64)target < classes;
        const f32 limit = is_class ? load_constant(x + target) : 0.0f;
        u64 above = 0;
        bool finite = true;
#pragma unroll 4
        for (u64 i = group.thread(); inside && i < classes; i += group.size()) {
            const f32 value = load_constant(x + i);
            above += value > limit;
            finite = finite && value >= Limits<f32>::lowest() && value <= Limits<f32>::highest();
        }
        // Beyond any count, for each of at most 256 threads.
        above += finite ? 0 : (u64)1 << 48;
        above = group.reduce(above, SumOp<u64>(), (u64)0);
        const bool is_among = is_class && above < ((u64)1 << 48) && (i64)above < k;
        if (inside && group.thread() == 0) precision[row] = boolean(is_among);
    });
}

#define IN_TOP_K(NAME, GROUP)                                                                                      \
    extern "C" __global__ void __launch_bounds__(256) NAME(boolean* __restrict__ precision,                        \
        const f32* __restrict__ predictions, const void* __restrict__ targets, u32 size, u64 rows, u64 classes, i64 k) { \
        in_top_k(precision, predictions, targets, size, rows, classes, k, GROUP);                                  \
    }
IN_TOP_K(in_top_k_lanes, Lanes(classes))
IN_TOP_K(in_top_k_blocks, Block())
