// The words by which elements are moved. A kernel that only moves elements uses the widest word
// that divides its runs, its strides and its addresses, whatever the elements are; the host chooses
// (`array/words.rs`).
#pragma once
#include "vector.cuh"

// A word of 16 bytes: one element of that size, or several elements.
struct alignas(16) u128 {
    u64 low, high;
};

template <typename W> inline constexpr bool is_two_words = sizeof(W) == 16;

// Makes an entry for each size of word: NAME_1 to NAME_16 by ENTRY(NAME_1, u8) and so on.
#define FOR_SMALL_WORDS(ENTRY, NAME) \
    ENTRY(NAME##_1, u8)              \
    ENTRY(NAME##_2, u16)             \
    ENTRY(NAME##_4, u32)             \
    ENTRY(NAME##_8, u64)
#define FOR_WORDS(ENTRY, NAME)   \
    FOR_SMALL_WORDS(ENTRY, NAME) \
    ENTRY(NAME##_16, u128)

// One element of SIZE bytes, repeated over a word. `value` 0 is a zero.
template <typename W> DEVICE W repeated(const void* value, u32 size) {
    W word = {};
    if (!value) return word;
    u64 low = 0, high = 0;
    switch (size) {
        case 1: low = *(const u8*)value * 0x0101010101010101ull, high = low; break;
        case 2: low = *(const u16*)value * 0x0001000100010001ull, high = low; break;
        case 4: low = *(const u32*)value * 0x0000000100000001ull, high = low; break;
        case 8: low = *(const u64*)value, high = low; break;
        default: low = ((const u64*)value)[0], high = ((const u64*)value)[1];
    }
    if constexpr (is_two_words<W>) {
        word.low = low;
        word.high = high;
    } else {
        word = (W)low;
    }
    return word;
}

// Calls move(i) for i below `count` over the grid: write(i, word) stores the result of read(i). A
// thread loads four words at once.
template <typename I, typename Read, typename Write> DEVICE void for_words(I count, Read read, Write write) {
    const I step = threads_of_grid<I>();
    I i = thread_of_grid<I>();
    for (; i < count && (count - i - 1) / 3 >= step; i += 4 * step) {
        const auto one = read(i);
        const auto two = read(i + step);
        const auto three = read(i + 2 * step);
        const auto four = read(i + 3 * step);
        write(i, one);
        write(i + step, two);
        write(i + 2 * step, three);
        write(i + 3 * step, four);
    }
    for (; i < count; i += step) write(i, read(i));
}
