// Accesses of up to 16 bytes at once, and the threads of a grid.
//
// - `Pack<X, N>` is N elements side by side, aligned to its size or to 16 bytes. A pack of more than 16 bytes is
//   several accesses.
// - `load` and `store` are coherent: an element may be read and then written by one thread (an
//   output that reuses its input's buffer). `load_constant` uses the read-only path: for data that
//   no thread of the launch writes.
// - The index types are u32, for fewer than 2^31 elements, and u64. A launch has fewer than 2^31 threads.
#pragma once
#include "types.cuh"

template <typename X, int N>
struct alignas(N * sizeof(X) < 16 ? N * sizeof(X) : 16) Pack {
    static_assert((N & (N - 1)) == 0, "a power of two");
    X at[N];
};

// The largest of sizes.
DEVICE constexpr int largest(int a, int b = 1, int c = 1, int d = 1) {
    const int e = a > b ? a : b, f = c > d ? c : d;
    return e > f ? e : f;
}

// The number of elements of each type in a pack, so that those of the widest type fill 16 bytes.
template <typename X, typename... Ys>
inline constexpr int lanes_of = 16 / largest(sizeof(X), sizeof(Ys)...);

// A word that one instruction moves.
template <int BYTES> struct WordOf { typedef uint4 type; };
template <> struct WordOf<1> { typedef u8 type; };
template <> struct WordOf<2> { typedef u16 type; };
template <> struct WordOf<4> { typedef u32 type; };
template <> struct WordOf<8> { typedef uint2 type; };

template <typename P> using Word = typename WordOf<sizeof(P)>::type;
template <typename P> inline constexpr int words_of = sizeof(P) / sizeof(Word<P>);

// A value as words.
template <typename P> union Words {
    static_assert(sizeof(P) % sizeof(Word<P>) == 0, "whole words");
    P value;
    Word<P> words[words_of<P>];
    DEVICE Words() {}
};

template <typename P> DEVICE P load(const P* p) {
    Words<P> all;
#pragma unroll
    for (int i = 0; i < words_of<P>; ++i) all.words[i] = reinterpret_cast<const Word<P>*>(p)[i];
    return all.value;
}

template <typename P> DEVICE P load_constant(const P* p) {
#ifdef TENON_EMULATED
    return load(p);
#else
    Words<P> all;
#pragma unroll
    for (int i = 0; i < words_of<P>; ++i) all.words[i] = __ldg(reinterpret_cast<const Word<P>*>(p) + i);
    return all.value;
#endif
}

template <typename P> DEVICE void store(P* p, P value) {
    Words<P> all;
    all.value = value;
#pragma unroll
    for (int i = 0; i < words_of<P>; ++i) reinterpret_cast<Word<P>*>(p)[i] = all.words[i];
}

// Pack `index` of an array of elements, which must be aligned to packs.
template <int N, typename X, typename I> DEVICE Pack<X, N> load_pack(const X* x, I index) {
    return load(reinterpret_cast<const Pack<X, N>*>(x) + index);
}

template <int N, typename X, typename I> DEVICE Pack<X, N> load_constant_pack(const X* x, I index) {
    return load_constant(reinterpret_cast<const Pack<X, N>*>(x) + index);
}

template <int N, typename X, typename I> DEVICE void store_pack(X* x, I index, Pack<X, N> pack) {
    store(reinterpret_cast<Pack<X, N>*>(x) + index, pack);
}

// Stores the pack to global memory, in words of 16 bytes where the pack has them: the compiler may
// split `store_pack`.
template <int N, typename X, typename I> DEVICE void store_global_pack(X* x, I index, Pack<X, N> pack) {
#ifndef TENON_EMULATED
    if constexpr (sizeof(Word<Pack<X, N>>) == 16) {
        Words<Pack<X, N>> all;
        all.value = pack;
        uint4* to = reinterpret_cast<uint4*>(reinterpret_cast<Pack<X, N>*>(x) + index);
#pragma unroll
        for (int i = 0; i < words_of<Pack<X, N>>; ++i) {
            const uint4 word = all.words[i];
            asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                :: "l"(to + i), "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w) : "memory");
        }
        return;
    }
#endif
    store_pack<N>(x, index, pack);
}

// Element `at` of signed integers of `size` bytes: 2, 4 or 8.
DEVICE i64 load_integer(const void* integers, u32 size, u64 at) {
    switch (size) {
        case 2: return load_constant((const i16*)integers + at);
        case 4: return load_constant((const i32*)integers + at);
        default: return load_constant((const i64*)integers + at);
    }
}

// One element N times.
template <int N, typename X> DEVICE Pack<X, N> splat(X x) {
    Pack<X, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) pack.at[i] = x;
    return pack;
}

// The index of this thread among those of a one-dimensional grid, and their number: the start and
// the step of a grid-stride loop.
template <typename I> DEVICE I thread_of_grid() { return (I)blockIdx.x * blockDim.x + threadIdx.x; }
template <typename I> DEVICE I threads_of_grid() { return (I)gridDim.x * blockDim.x; }

// Goes over `count` elements in packs of N, over the grid: prepare(i) loads pack i, finish(i, loaded) computes and
// stores it, and rest(i) does element i after the whole packs. A thread has two packs under way at once where one is no
// more than 16 bytes: with 2048 threads that is 64 KiB for a multiprocessor, more than a memory's latency times its rate.
template <int N, typename I, typename Prepare, typename Finish, typename Rest>
DEVICE void for_packs(I count, Prepare prepare, Finish finish, Rest rest) {
    const I packs = count / N, step = threads_of_grid<I>(), first = thread_of_grid<I>();
#pragma unroll 1
    for (I i = first; i < packs; i += step) {
        auto loaded = prepare(i);
        constexpr bool is_small = sizeof(loaded) <= 16;
        bool has_more = is_small && step < packs - i;
        auto next = loaded;
        // Loaded in any case, since a choice would wait for the first.
        if constexpr (is_small) next = prepare(has_more ? i + step : i);
        // A loop, so that the code of `finish` is there only once.
#pragma unroll 1
        while (true) {
            finish(i, loaded);
            if (!has_more) break;
            has_more = false;
            i += step;
            loaded = next;
        }
    }
#pragma unroll 1
    for (I at = packs * N + first; at < count; at += step) rest(at);
}
