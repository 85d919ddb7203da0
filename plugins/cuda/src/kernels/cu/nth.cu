// The element of each row that k - 1 others come before.
//
// Defines: DTYPE, the element.
#include "rank.cuh"

extern "C" __global__ void __launch_bounds__(512)
    nth(DTYPE* __restrict__ y, const DTYPE* __restrict__ x, u32 len, u32 k) {
    __shared__ u32 place;
    const Row<DTYPE> row = {x + (u64)blockIdx.x * len, nullptr, 0, len};
    const auto selected = select_greatest(row, k, true);
    if (threadIdx.x == 0) place = len;
    __syncthreads();
    // The first of equal ones: those may be both zeros, or NaN of different bits.
    for (u64 i = threadIdx.x; i < len; i += blockDim.x) {
        if ((row.key((u32)i) & selected.known) == selected.key) atomicMin(&place, (u32)i);
    }
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = row.x[place];
}
