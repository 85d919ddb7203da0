// How often each number below `size` occurs; with weights, which are integers, the sums of these. Numbers outside are
// left out.
//
//   clear           bins of 0
//   bincount        counts; `in_shared` where the bins of a block fit in its shared memory
//   bincount_write  results from counts of 64 bits, where these are floats
//
// Defines: DTYPE, the element of the result.
#include "count.cuh"

typedef choose<is_same<DTYPE, i32>, u32, u64> Bin;
#define KERNEL extern "C" __global__ void __launch_bounds__(256)

KERNEL clear(Bin* bins, u64 size) { clear_bins(bins, size); }

KERNEL bincount(Bin* __restrict__ bins, const i32* __restrict__ numbers, const DTYPE* __restrict__ weights, u64 items,
    u64 size, u32 in_shared) {
    const auto place = [=](u64 i) { return (i64)load_constant(numbers + i); };
    const auto weight = [=](u64 i) {
        if constexpr (is_integer<DTYPE>) return weights ? (Bin)load_constant(weights + i) : (Bin)1;
        else return (Bin)1;
    };
    count_bins(bins, size, in_shared, items, place, weight);
}

KERNEL bincount_write(DTYPE* __restrict__ y, const u64* __restrict__ counts, u64 size) {
    for (u64 bin = thread_of_grid<u64>(); bin < size; bin += threads_of_grid<u64>()) y[bin] = (DTYPE)counts[bin];
}
