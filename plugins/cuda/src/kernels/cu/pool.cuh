// The folds of the elements of a window, of type T, one after the other from start() on; finish()
// is given their number.
#pragma once
#include "types.cuh"

// Starts from the lowest finite value, so that NaN and negative infinities are skipped, as in
// TensorFlow.
struct Greatest {
    typedef Compute<T> W;
    static DEVICE W start() { return Limits<W>::lowest(); }
    static DEVICE W take(W state, W x) { return x > state ? x : state; }
    template <typename N> static DEVICE T finish(W state, N) {
        // The lowest finite float would be rounded to an infinite one of 16 bits.
        return narrow<T>(state == start() ? (W)Limits<T>::lowest() : state);
    }
};

struct Mean {
    typedef Compute<T> W;
    static DEVICE W start() { return (W)0; }
    static DEVICE W take(W state, W x) { return state + x; }
    template <typename N> static DEVICE T finish(W state, N count) { return narrow<T>(state / (W)count); }
};
