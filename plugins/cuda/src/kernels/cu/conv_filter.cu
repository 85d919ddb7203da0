// A filter as cuDNN has it: outputs outermost.
//
//   transpose_filter(y, x, depth, outputs, channels, taps)
//
// x is [taps, channels, outputs], y [outputs, channels, taps], or with `taps` given as 1 and `channels` as depth, the
// number of both, [outputs, taps, channels]. A block of 256 threads moves 32 outputs of 32 places; grid: tiles of places
// times tiles of outputs, the latter varying fastest.
//
// Defines: T, the element as an unsigned integer (u16 u32).
#include "vector.cuh"

extern "C" __global__ void __launch_bounds__(256) transpose_filter(T* __restrict__ y, const T* __restrict__ x, u32 depth,
    u32 outputs, u32 channels, u32 taps) {
    // A column more, so that columns lie in different banks.
    __shared__ T tile[32][33];
    const u32 tiles = (outputs + 31) / 32, lane = threadIdx.x % 32, first = threadIdx.x / 32;
    const u32 place = blockIdx.x / tiles * 32, output = blockIdx.x % tiles * 32;
    for (u32 i = first; i < 32; i += 8) {
        const u32 at = place + i;
        if (at < depth && output + lane < outputs)
            tile[i][lane] = x[((u64)(at % taps) * channels + at / taps) * outputs + output + lane];
    }
    __syncthreads();
    for (u32 i = first; i < 32; i += 8) {
        if (output + i < outputs && place + lane < depth) y[(u64)(output + i) * depth + place + lane] = tile[lane][i];
    }
}
