// Windows that slide over images, and threads that iterate over the windows' outputs.
#pragma once
#include "dims.cuh"
#include "vector.cuh"

// One dimension of images: its sizes, and the inputs that output `o` reads: `o * stride - before +
// tap * dilation`. The host ensures that all positions, padding included, are below 2^30.
struct Axis {
    i32 input, output, kernel, stride, dilation, before;
    // The input of tap 0.
    DEVICE i32 start(i32 o) const { return o * stride - before; }
    DEVICE bool has(i32 position) const { return (u32)position < (u32)input; }
    // The inputs of a window without dilation, as far as they exist: from first to end.
    DEVICE i32 first(i32 o) const { return start(o) > 0 ? start(o) : 0; }
    DEVICE i32 end(i32 o) const { return start(o) + kernel < input ? start(o) + kernel : input; }
};

// Steps in memory, in elements.
struct ImageStrides {
    i64 image, row, column, channel;
};

// Items, which threads process one after the other. They are counted over four dimensions, and
// `parts` are the extents of the innermost three: with channels last these are channels (in packs),
// columns (in groups) and rows; with channels first columns, rows and channels. Images are the
// outermost dimension.
struct Items {
    Divisor<u32> parts[3];
    u32 count;
};

// Items over planes, rows and columns with channels last: items of channels (in packs), columns,
// rows and planes.
struct VolumeItems {
    Divisor<u32> parts[4];
    u32 count;
};

static_assert(sizeof(Axis) == 24 && sizeof(ImageStrides) == 32 && sizeof(Items) == 40 && sizeof(VolumeItems) == 52,
    "the host's layouts");

// The position of an item's first output.
struct Output {
    i64 image;
    i32 row, column;
    i64 channel;
};

// The output for items of LANES channels by COLUMNS columns.
template <bool CHANNELS_ARE_FIRST, int LANES, int COLUMNS> DEVICE Output output_of(const Items& items, u32 item) {
    const DivMod<u32> first = items.parts[0].divide_with_rest(item);
    const DivMod<u32> second = items.parts[1].divide_with_rest(first.quotient);
    const DivMod<u32> third = items.parts[2].divide_with_rest(second.quotient);
    const i32 a = (i32)first.remainder, b = (i32)second.remainder, c = (i32)third.remainder;
    if (CHANNELS_ARE_FIRST) return {(i64)third.quotient, b, a * COLUMNS, (i64)c * LANES};
    return {(i64)third.quotient, c, b * COLUMNS, (i64)a * LANES};
}

DEVICE i64 place(const ImageStrides& s, i64 image, i64 row, i64 column, i64 channel) {
    return image * s.image + row * s.row + column * s.column + channel * s.channel;
}

// Stores a pack in global memory by one instruction for each 16 bytes. For `store` the compiler
// makes one for each element where the elements are computed separately.
template <typename P> DEVICE void store_at_once(P* p, P value) {
#ifdef TENON_EMULATED
    store(p, value);
#else
    Words<P> all;
    all.value = value;
#pragma unroll
    for (int i = 0; i < words_of<P>; ++i) {
        Word<P>* const to = reinterpret_cast<Word<P>*>(p) + i;
        const u64 at = __cvta_generic_to_global(to);
        const Word<P> word = all.words[i];
        if constexpr (sizeof(word) == 16)
            asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                         : : "l"(at), "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w) : "memory");
        else if constexpr (sizeof(word) == 8)
            asm volatile("st.global.v2.u32 [%0], {%1, %2};" : : "l"(at), "r"(word.x), "r"(word.y) : "memory");
        else
            *to = word;
    }
#endif
}
