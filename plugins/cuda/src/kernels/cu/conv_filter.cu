// A filter as cuDNN has it, outputs outermost, and back.
//
//   transpose_filter(y, x, depth, outputs, channels, taps)    from ours to cuDNN's
//   restore_filter(y, x, depth, outputs, channels, taps)      from cuDNN's to ours
//
// Ours is [taps, channels, outputs], cuDNN's [outputs, channels, taps], or with `taps` given as 1 and `channels` as depth,
// the number of both, [outputs, taps, channels]. A block of 256 threads moves 32 outputs of 32 places; grid: tiles of
// places times tiles of outputs, the latter varying fastest.
//
// Defines: T, the element as an unsigned integer (u16 u32 u64).
#include "vector.cuh"

template <bool BACK> DEVICE void move(T* __restrict__ y, const T* __restrict__ x, u32 depth, u32 outputs, u32 channels,
    u32 taps) {
    // One more column, so that columns are in different banks.
    __shared__ T tile[32][33];
    const u32 tiles = (outputs + 31) / 32, lane = threadIdx.x % 32, first = threadIdx.x / 32;
    const u32 place = blockIdx.x / tiles * 32, output = blockIdx.x % tiles * 32;
    for (u32 i = first; i < 32; i += 8) {
        const u32 row = BACK ? output + i : place + i, column = BACK ? place + lane : output + lane;
        if (row >= (BACK ? outputs : depth) || column >= (BACK ? depth : outputs)) continue;
        tile[i][lane] = BACK ? x[(u64)row * depth + column]
                             : x[((u64)(row % taps) * channels + row / taps) * outputs + column];
    }
    __syncthreads();
    for (u32 i = first; i < 32; i += 8) {
        const u32 row = BACK ? place + i : output + i, column = BACK ? output + lane : place + lane;
        if (row >= (BACK ? depth : outputs) || column >= (BACK ? outputs : depth)) continue;
        if (BACK) y[((u64)(row % taps) * channels + row / taps) * outputs + column] = tile[lane][i];
        else y[(u64)row * depth + column] = tile[lane][i];
    }
}

extern "C" __global__ void __launch_bounds__(256) transpose_filter(T* __restrict__ y, const T* __restrict__ x, u32 depth,
    u32 outputs, u32 channels, u32 taps) {
    move<false>(y, x, depth, outputs, channels, taps);
}

extern "C" __global__ void __launch_bounds__(256) restore_filter(T* __restrict__ y, const T* __restrict__ x, u32 depth,
    u32 outputs, u32 channels, u32 taps) {
    move<true>(y, x, depth, outputs, channels, taps);
}
