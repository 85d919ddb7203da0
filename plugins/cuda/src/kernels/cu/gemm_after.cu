// The steps of epilogue.cuh on a product that a library has written, in place.
//
//   gemm_after(T* c, u64 count, u32 columns, u32 whole, Arguments<T> arguments)
//
// count is that of elements, columns that of a row; whole says that c is aligned to 16 bytes. Defines: T, EPILOGUE.
#include "vector.cuh"
#include "epilogue.cuh"

template <int N> DEVICE void follow(T* c, u64 count, u32 columns, const Arguments<T>& arguments) {
    const auto one = [&](u64 at, T x) { return narrow<T>(finish(arguments, widen(x), (u32)(at % columns), at)); };
    const auto prepare = [&](u64 pack) { return load_pack<N>(c, pack); };
    const auto write = [&](u64 pack, Pack<T, N> values) {
#pragma unroll
        for (int i = 0; i < N; ++i) values.at[i] = one(pack * N + i, values.at[i]);
        store_pack<N>(c, pack, values);
    };
    for_packs<N>(count, prepare, write, [&](u64 at) { c[at] = one(at, c[at]); });
}

extern "C" __global__ void __launch_bounds__(256)
    gemm_after(T* c, u64 count, u32 columns, u32 whole, Arguments<T> arguments) {
    if (whole) return follow<lanes_of<T>>(c, count, columns, arguments);
    follow<1>(c, count, columns, arguments);
}
