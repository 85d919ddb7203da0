// Fills memory with one element.
//
//   fill(T* y, const T* value, u64 count)    value: one element in the device's memory
//   fill_constant(T* y, T value, u64 count)
//
// Defines: T, the element as an unsigned integer (u8 u16 u32 u64). y is aligned to 16 bytes.
#include "vector.cuh"

DEVICE void fill_all(T* __restrict__ y, T value, u64 count) {
    constexpr int N = lanes_of<T>;
    const u64 packs = count / N, step = threads_of_grid<u64>();
    for (u64 i = thread_of_grid<u64>(); i < packs; i += step) store_pack<N>(y, i, splat<N>(value));
    for (u64 i = packs * N + thread_of_grid<u64>(); i < count; i += step) y[i] = value;
}

extern "C" __global__ void __launch_bounds__(256) fill(T* __restrict__ y, const T* __restrict__ value, u64 count) {
    fill_all(y, *value, count);
}

extern "C" __global__ void __launch_bounds__(256) fill_constant(T* __restrict__ y, T value, u64 count) {
    fill_all(y, value, count);
}
