// The greatest of many numbers and the sum of e^(x - greatest), in one pass (M. Milakov, N. Gimelshein, "Online
// normalizer calculation for softmax", 2018).
#pragma once
#include "reduce.cuh"
#include "vector.cuh"

// The state of the numbers so far.
template <typename W> struct Online;

template <typename W> struct OnlineOp {
    DEVICE Online<W> operator()(Online<W> one, Online<W> other) const {
        const W most = MaxOp<W>()(one.most, other.most);
        // All numbers so far are -inf, whose differences are NaN.
        if (most == Limits<W>::minus_infinity()) return {most, 0};
        return {most, one.sum * exp(sub(one.most, most)) + other.sum * exp(sub(other.most, most))};
    }
};

template <typename W> struct Online {
    W most, sum;
    static DEVICE Online nothing() { return {Limits<W>::minus_infinity(), 0}; }
    template <typename X, int V> DEVICE void take(Pack<X, V> pack) {
        Online some = nothing();
#pragma unroll
        for (int v = 0; v < V; ++v) some.most = MaxOp<W>()(some.most, widen(pack.at[v]));
        if (some.most == Limits<W>::minus_infinity()) return;
#pragma unroll
        for (int v = 0; v < V; ++v) some.sum = add(some.sum, exp(sub(widen(pack.at[v]), some.most)));
        *this = OnlineOp<W>()(*this, some);
    }
};
