// Between space and batch.
//
//   to_batch_B(W* y, const W* x, Index count, Blocks<Index> blocks)     B: bytes of a word W, 1 to 16
//   to_space_B(W* y, const W* x, Index count, Blocks<Index> blocks)
//
// Dimension d of space is cut into blocks: place t of it, counted with its paddings, is place t % block of block t /
// block, and each place in a block has images of its own in the batch. `to_batch` counts the words of space with its
// paddings, which are zeros; `to_space` those of space without its crops. In both, place t is `count's place + shift`.
//
// Defines: Index, u32 for fewer than 2^31 words on both sides, else u64.
#include "dims.cuh"
#include "words.cuh"

template <typename I> struct Blocks {
    u32 rank;
    // Words of a run; then dimensions of space, innermost first, and their blocks.
    Divisor<I> run;
    Divisor<I> extents[MAX_DIMS], blocks[MAX_DIMS];
    // Of a place without paddings: paddings before it, and sizes.
    I before[MAX_DIMS], sizes[MAX_DIMS], shift[MAX_DIMS];
    // Words from block to block, and from place to place in a block, in the batch; from place to place in space.
    i64 across[MAX_DIMS], within[MAX_DIMS], space[MAX_DIMS];
    // Words of an image in the batch, and in space.
    i64 batch_image, space_image;
};

struct Ends {
    i64 batch, space;
    bool inside;
};

template <typename I> DEVICE Ends ends_of(const Blocks<I>& all, I index) {
    const DivMod<I> word = all.run.divide_with_rest(index);
    Ends ends = {(i64)word.remainder, (i64)word.remainder, true};
    I rest = word.quotient;
#pragma unroll
    for (int d = 0; d < MAX_DIMS; ++d) {
        if (d >= all.rank) break;
        const DivMod<I> both = all.extents[d].divide_with_rest(rest);
        const DivMod<I> block = all.blocks[d].divide_with_rest(both.remainder + all.shift[d]);
        ends.batch += (i64)block.quotient * all.across[d] + (i64)block.remainder * all.within[d];
        // Before the box the difference wraps, and is large.
        const I place = both.remainder - all.before[d];
        ends.inside = ends.inside && place < all.sizes[d];
        ends.space += (i64)place * all.space[d];
        rest = both.quotient;
    }
    ends.batch += (i64)rest * all.batch_image;
    ends.space += (i64)rest * all.space_image;
    return ends;
}

template <typename W> struct Moved {
    i64 to;
    W word;
};

#define TO_BATCH(NAME, W)                                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                                         \
        NAME(W* __restrict__ y, const W* __restrict__ x, Index count,                                         \
             const __grid_constant__ Blocks<Index> blocks) {                                                  \
        const auto read = [&](Index i) {                                                                      \
            const Ends ends = ends_of(blocks, i);                                                             \
            return Moved<W>{ends.batch, ends.inside ? load_constant(x + ends.space) : W{}};                   \
        };                                                                                                    \
        for_words(count, read, [&](Index, Moved<W> moved) { store(y + moved.to, moved.word); });              \
    }
#define TO_SPACE(NAME, W)                                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                                         \
        NAME(W* __restrict__ y, const W* __restrict__ x, Index count,                                         \
             const __grid_constant__ Blocks<Index> blocks) {                                                  \
        const auto read = [&](Index i) { return load_constant(x + ends_of(blocks, i).batch); };               \
        for_words(count, read, [&](Index i, W word) { store(y + i, word); });                                 \
    }

#ifdef TO_THE_BATCH
FOR_WORDS(TO_BATCH, to_batch)
#else
FOR_WORDS(TO_SPACE, to_space)
#endif
