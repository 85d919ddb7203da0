// Sums of several tensors.
//
// Entry point:
//   add_n(Inputs inputs, T* y, u64 count)
//     y[i] = inputs[0][i] + inputs[1][i] + ..., from left to right, every addition rounded to T; integers wrap. With
//     ONTO=1 that sum is added to y[i] instead. `Inputs` is an array of INPUTS pointers. y may be one of the inputs.
//
// So `AddN` of n inputs is a launch of the first n % 8 of them (8 and 9 for 0 and 1), and launches of eight with ONTO=1:
// the order in which TensorFlow rounds.
//
// Macros: T, INPUTS (1 to 9), ONTO (0 or 1; 0 if it is not set), INDEX, LANES (see elementwise.cuh).
#include "elementwise.cuh"

#ifndef ONTO
#define ONTO 0
#endif

struct Inputs {
    const T* at[INPUTS];
};

typedef Pack<T, LANES> Values;

// The elements that one thread has loaded of each input and, with ONTO, of the output.
struct Loaded {
    Values at[INPUTS + ONTO];
};

DEVICE T plus(T x, T y) { return narrow<T>(add(widen(x), widen(y))); }

DEVICE Values sum(const Loaded& loaded) {
    Values total = loaded.at[0];
#pragma unroll
    for (int k = 0; k < LANES; ++k) {
#pragma unroll
        for (int j = 1; j < INPUTS; ++j) total.at[k] = plus(total.at[k], loaded.at[j].at[k]);
        if constexpr (ONTO == 1) total.at[k] = plus(loaded.at[INPUTS].at[k], total.at[k]);
    }
    return total;
}

KERNEL add_n(const Inputs inputs, T* y, u64 count) {
    await_previous();
    const INDEX packs = (INDEX)(count / LANES), step = threads_of_grid<INDEX>();
    for (INDEX i = thread_of_grid<INDEX>(); i < packs; i += step) {
        Loaded loaded;
#pragma unroll
        for (int j = 0; j < INPUTS; ++j) loaded.at[j] = load_pack<LANES>(inputs.at[j], i);
        if constexpr (ONTO == 1) loaded.at[INPUTS] = load_pack<LANES>(y, i);
        store_pack(y, i, sum(loaded));
    }
    for (INDEX i = packs * LANES + thread_of_grid<INDEX>(); i < (INDEX)count; i += step) {
        T total = inputs.at[0][i];
#pragma unroll
        for (int j = 1; j < INPUTS; ++j) total = plus(total, inputs.at[j][i]);
        y[i] = ONTO == 1 ? plus(y[i], total) : total;
    }
}
