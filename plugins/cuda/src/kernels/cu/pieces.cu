// Joins tensors, and cuts one into several.
//
//   join_B(W* whole, u64 row, Pieces<u32, 8> pieces)              B: bytes of a word W, 1 to 16
//   cut_B(const W* whole, u64 row, Pieces<u32, 8> pieces)
//   join_many_B, cut_many_B: with Pieces<u64, 64>
//
// The whole is rows of `row` words; a part's piece of each begins at `start`. A part is its pieces side by side: word i
// of it is word i % piece of row i / piece. The grid has two dimensions, of which the second is the number of the part.
//
// Defines: CUTS for the `cut` entries.
#include "dims.cuh"
#include "words.cuh"

template <typename I> struct Part {
    u64 address;
    u64 start;
    I count;
    Divisor<I> piece;
};

template <typename I, int PARTS> struct Pieces {
    Part<I> parts[PARTS];
};

template <typename I> DEVICE u64 place_of(const Part<I>& part, u64 row, I i) {
    const DivMod<I> both = part.piece.divide_with_rest(i);
    return both.quotient * row + part.start + both.remainder;
}

template <typename W, typename I> DEVICE void join(W* __restrict__ whole, u64 row, const Part<I>& part) {
    const W* __restrict__ from = (const W*)part.address;
    const auto write = [&](I i, W word) { store(whole + place_of(part, row, i), word); };
    for_words(part.count, [&](I i) { return load_constant(from + i); }, write);
}

template <typename W, typename I> DEVICE void cut(const W* __restrict__ whole, u64 row, const Part<I>& part) {
    W* __restrict__ to = (W*)part.address;
    const auto read = [&](I i) { return load_constant(whole + place_of(part, row, i)); };
    for_words(part.count, read, [&](I i, W word) { store(to + i, word); });
}

#define JOIN(NAME, W)                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                     \
        NAME(W* whole, u64 row, const __grid_constant__ Pieces<u32, 8> pieces) {          \
        join(whole, row, pieces.parts[blockIdx.y]);                                       \
    }
#define JOIN_MANY(NAME, W)                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                     \
        NAME(W* whole, u64 row, const __grid_constant__ Pieces<u64, 64> pieces) {         \
        join(whole, row, pieces.parts[blockIdx.y]);                                       \
    }
#define CUT(NAME, W)                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                     \
        NAME(const W* whole, u64 row, const __grid_constant__ Pieces<u32, 8> pieces) {    \
        cut(whole, row, pieces.parts[blockIdx.y]);                                        \
    }
#define CUT_MANY(NAME, W)                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                     \
        NAME(const W* whole, u64 row, const __grid_constant__ Pieces<u64, 64> pieces) {   \
        cut(whole, row, pieces.parts[blockIdx.y]);                                        \
    }

#ifdef CUTS
FOR_WORDS(CUT, cut)
FOR_WORDS(CUT_MANY, cut_many)
#else
FOR_WORDS(JOIN, join)
FOR_WORDS(JOIN_MANY, join_many)
#endif
