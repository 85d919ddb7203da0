// One-hot vectors.
//
//   one_hot_B(W* y, const void* indices, u32 kind, const W* on, const W* off, Index count, Hot<Index> hot)   B: 1 to 16
//
// Element (outer, place, inner) of y is `on` where index (outer, inner) is `place`, else `off`;
// both are one element on the device. `kind` is the type of the indices: 1, 4 or 8 for signed
// integers of that many bytes, 0 for u8. An index outside sets no element. y is aligned to 16
// bytes.
//
// Defines: Index, u32 for fewer than 2^31 elements, else u64.
#include "dims.cuh"
#include "words.cuh"

template <typename I> struct Hot {
    Divisor<I> inner, depth;
};

DEVICE i64 load_index(const void* indices, u32 kind, u64 at) {
    switch (kind) {
        case 0: return load_constant((const u8*)indices + at);
        case 1: return load_constant((const i8*)indices + at);
        case 4: return load_constant((const i32*)indices + at);
        default: return load_constant((const i64*)indices + at);
    }
}

template <typename I> DEVICE bool is_hot(const void* indices, u32 kind, const Hot<I>& hot, I element) {
    const DivMod<I> inner = hot.inner.divide_with_rest(element);
    const DivMod<I> place = hot.depth.divide_with_rest(inner.quotient);
    const u64 at = (u64)place.quotient * hot.inner.divisor + inner.remainder;
    return load_index(indices, kind, at) == (i64)place.remainder;
}

#define ONE_HOT(NAME, W)                                                                                            \
    extern "C" __global__ void __launch_bounds__(256)                                                               \
        NAME(W* __restrict__ y, const void* indices, u32 kind, const W* on, const W* off, Index count,              \
             const __grid_constant__ Hot<Index> hot) {                                                              \
        constexpr int N = lanes_of<W>;                                                                              \
        const W yes = load_constant(on), no = load_constant(off);                                                   \
        const Index packs = count / N, step = threads_of_grid<Index>();                                             \
        for (Index i = thread_of_grid<Index>(); i < packs; i += step) {                                             \
            Pack<W, N> pack;                                                                                        \
            _Pragma("unroll") for (int k = 0; k < N; ++k) pack.at[k] = is_hot(indices, kind, hot, i * N + k) ? yes : no; \
            store_pack<N>(y, i, pack);                                                                              \
        }                                                                                                           \
        for (Index i = packs * N + thread_of_grid<Index>(); i < count; i += step)                                   \
            store(y + i, is_hot(indices, kind, hot, i) ? yes : no);                                                 \
    }

FOR_WORDS(ONE_HOT, one_hot)
