// Reads a strided box in order: word i of y is the word of x at the offset of i.
//
//   words_B(W* y, const W* x, Index count, Strided<Index, 1> box, i64 step)     B: bytes of a word W, 1 to 16
//   packs_B(W* y, const W* x, Index count, Strided<Index, 1> box, i64 step)     B: 1 to 8
//
// `words` steps through the box word by word and ignores `step`. `packs` writes 16 bytes at a time:
// `count` is the number of packs, the innermost extent of the box counts packs, and the words of a
// pack are `step` apart in x; y is aligned to 16 bytes. Offsets are relative to x, which may point
// into a tensor.
//
// Defines: Index, u32 for fewer than 2^31 words on both sides, else u64.
#include "dims.cuh"
#include "words.cuh"

template <typename W, typename I>
DEVICE void copy_words(W* __restrict__ y, const W* __restrict__ x, I count, const Strided<I, 1>& box) {
    const auto read = [&](I i) { return load_constant(x + offsets_of(box, i).at[0]); };
    for_words(count, read, [&](I i, W word) { store(y + i, word); });
}

template <typename W, typename I>
DEVICE void copy_packs(W* __restrict__ y, const W* __restrict__ x, I count, const Strided<I, 1>& box, i64 step) {
    constexpr int N = lanes_of<W>;
    const I threads = threads_of_grid<I>();
    for (I i = thread_of_grid<I>(); i < count; i += threads) {
        const W* from = x + offsets_of(box, i).at[0];
        Pack<W, N> pack;
#pragma unroll
        for (int k = 0; k < N; ++k) pack.at[k] = load_constant(from + k * step);
        store_pack<N>(y, i, pack);
    }
}

#define WORDS(NAME, W)                                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                            \
        NAME(W* y, const W* x, Index count, const __grid_constant__ Strided<Index, 1> box, i64) { \
        copy_words<W, Index>(y, x, count, box);                                                  \
    }
#define PACKS(NAME, W)                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                 \
        NAME(W* y, const W* x, Index count, const __grid_constant__ Strided<Index, 1> box, i64 step) { \
        copy_packs<W, Index>(y, x, count, box, step);                                                 \
    }

FOR_WORDS(WORDS, words)
FOR_SMALL_WORDS(PACKS, packs)
