// Puts a box into a larger one, and a value around it.
//
//   pad_B(W* y, const W* x, const void* value, u32 size, Index count, Frame<Index> frame)   B: bytes of a word W, 1 to 16
//   mirror_B(W* y, const W* x, Index count, Frame<Index> frame)
//
// `value` is one element of `size` bytes, or null for zeros; a word holds it several times. Places of dimension d of y
// are 0 to extents[d] - 1, of which those from before[d] on are the sizes[d] places of x. A place outside has the
// value, or with `mirror` the element of x that it mirrors: REFLECT (offset 1) leaves the edge out, SYMMETRIC (offset
// 0) repeats it.
//
// Defines: Index, u32 for fewer than 2^31 words on both sides, else u64; MIRRORS for the `mirror` entries.
#include "dims.cuh"
#include "words.cuh"

template <typename I> struct Frame {
    u32 rank;
    u32 offset;
    Divisor<I> extents[MAX_DIMS];
    I before[MAX_DIMS], sizes[MAX_DIMS];
    i64 strides[MAX_DIMS];
};

template <typename W, typename I> DEVICE W padded(const W* __restrict__ x, W value, const Frame<I>& frame, I index) {
    i64 at = 0;
    bool inside = true;
#pragma unroll
    for (int d = 0; d < MAX_DIMS; ++d) {
        if (d >= frame.rank) break;
        const DivMod<I> both = frame.extents[d].divide_with_rest(index);
        // Before the box the difference wraps, and is large.
        const I place = both.remainder - frame.before[d];
        inside = inside && place < frame.sizes[d];
        at += (i64)place * frame.strides[d];
        index = both.quotient;
    }
    return inside ? load_constant(x + at) : value;
}

// As MirrorPad numbers places: one step over the edge from place p on either side.
template <typename I> DEVICE i64 mirrored(i64 place, I size, u32 offset) {
    if (place < 0) return (i64)offset - 1 - place;
    return place < (i64)size ? place : 2 * (i64)size - 1 - (i64)offset - place;
}

template <typename W, typename I> DEVICE W reflected(const W* __restrict__ x, const Frame<I>& frame, I index) {
    i64 at = 0;
#pragma unroll
    for (int d = 0; d < MAX_DIMS; ++d) {
        if (d >= frame.rank) break;
        const DivMod<I> both = frame.extents[d].divide_with_rest(index);
        const i64 place = (i64)both.remainder - (i64)frame.before[d];
        at += mirrored(place, frame.sizes[d], frame.offset) * frame.strides[d];
        index = both.quotient;
    }
    return load_constant(x + at);
}

#define PAD(NAME, W)                                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                                \
        NAME(W* __restrict__ y, const W* __restrict__ x, const void* value, u32 size, Index count,   \
             const __grid_constant__ Frame<Index> frame) {                                           \
        const W around = repeated<W>(value, size);                                                   \
        const auto read = [&](Index i) { return padded(x, around, frame, i); };                      \
        for_words(count, read, [&](Index i, W word) { store(y + i, word); });                        \
    }
#define MIRROR(NAME, W)                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                                \
        NAME(W* __restrict__ y, const W* __restrict__ x, Index count,                                \
             const __grid_constant__ Frame<Index> frame) {                                           \
        const auto read = [&](Index i) { return reflected(x, frame, i); };                           \
        for_words(count, read, [&](Index i, W word) { store(y + i, word); });                        \
    }

#ifdef MIRRORS
FOR_WORDS(MIRROR, mirror)
#else
FOR_WORDS(PAD, pad)
#endif
