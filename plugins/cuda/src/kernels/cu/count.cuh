// Counts by integer atomics, whose sum is the same in any order. Bins that fit are counted in the shared memory of
// each block first.
#pragma once
#include "vector.cuh"

extern __shared__ uint4 shared_bins[];

// For i below `items`, over the grid: adds weight(i) to the bin place(i), where it is one of `size`.
template <typename Bin, typename Place, typename Weight>
DEVICE void count_bins(Bin* bins, u64 size, bool in_shared, u64 items, Place place, Weight weight) {
    const auto count = [=](Bin* to) {
#pragma unroll 4
        for (u64 i = thread_of_grid<u64>(); i < items; i += threads_of_grid<u64>()) {
            const i64 bin = place(i);
            if ((u64)bin < size) atomicAdd(to + bin, weight(i));
        }
    };
    if (!in_shared) return count(bins);
    Bin* own = reinterpret_cast<Bin*>(shared_bins);
    for (u64 bin = threadIdx.x; bin < size; bin += blockDim.x) own[bin] = 0;
    __syncthreads();
    count(own);
    __syncthreads();
    for (u64 bin = threadIdx.x; bin < size; bin += blockDim.x) {
        if (own[bin] != 0) atomicAdd(bins + bin, own[bin]);
    }
}

template <typename Bin> DEVICE void clear_bins(Bin* bins, u64 size) {
    for (u64 bin = thread_of_grid<u64>(); bin < size; bin += threads_of_grid<u64>()) bins[bin] = 0;
}
