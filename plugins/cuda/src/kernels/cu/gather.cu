// Gathers slices by indices in device memory.
//
//   gather_B(W* y, const W* x, const void* indices, u32 size, Index count, GEOMETRY<Index>)   B: bytes of a word W
//
// Indices are signed integers of `size` bytes, and unchecked: an index outside its dimension gives
// zeros, and nothing outside x is read.
//
// Defines: Index, u32 for fewer than 2^31 words on both sides, else u64; GEOMETRY, `Slices` along an axis or `Vectors`
// of indices.
#include "dims.cuh"
#include "words.cuh"

// The output is, for each of `outer` steps in each batch, `picked` runs of `inner` words; each batch has indices of
// its own. The input has `size` runs where the output has `picked`.
template <typename I> struct Slices {
    Divisor<I> inner, picked, outer;
    I size;
};

// Number `run` of the runs of the output is the slice that a vector of `depth` indices names. Bounds and strides
// are those of the dimensions that they index, outermost first; strides count slices.
template <typename I> struct Vectors {
    Divisor<I> inner;
    u32 depth;
    i64 bounds[MAX_DIMS], strides[MAX_DIMS];
};

template <typename W, typename I>
DEVICE W picked(const W* __restrict__ x, const void* indices, u32 size, const Slices<I>& slices, I index) {
    const DivMod<I> word = slices.inner.divide_with_rest(index);
    const DivMod<I> run = slices.picked.divide_with_rest(word.quotient);
    const u64 batch = slices.outer.divide(run.quotient);
    const i64 slice = load_integer(indices, size, batch * slices.picked.divisor + run.remainder);
    if ((u64)slice >= slices.size) return W{};
    return load_constant(x + ((u64)run.quotient * slices.size + slice) * slices.inner.divisor + word.remainder);
}

template <typename W, typename I>
DEVICE W picked(const W* __restrict__ x, const void* indices, u32 size, const Vectors<I>& vectors, I index) {
    const DivMod<I> word = vectors.inner.divide_with_rest(index);
    const u64 first = (u64)word.quotient * vectors.depth;
    u64 slice = 0;
    bool inside = true;
#pragma unroll
    for (int d = 0; d < MAX_DIMS; ++d) {
        if (d >= vectors.depth) break;
        const i64 at = load_integer(indices, size, first + d);
        inside = inside && (u64)at < (u64)vectors.bounds[d];
        slice += (u64)at * vectors.strides[d];
    }
    return inside ? load_constant(x + slice * vectors.inner.divisor + word.remainder) : W{};
}

#define GATHER(NAME, W)                                                                                \
    extern "C" __global__ void __launch_bounds__(256, 2)                                               \
        NAME(W* __restrict__ y, const W* __restrict__ x, const void* indices, u32 size, Index count,   \
             const __grid_constant__ GEOMETRY<Index> geometry) {                                       \
        const auto read = [&](Index i) { return picked(x, indices, size, geometry, i); };              \
        for_words(count, read, [&](Index i, W word) { store(y + i, word); });                          \
    }

FOR_WORDS(GATHER, gather)
