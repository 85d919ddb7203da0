// Folds: the operations of a reduction on elements, which are the only part in which reductions
// differ.
//
// A fold of elements X has
//   Result                              the type of an element of the output
//   State                               what is known of the elements so far: up to 16 bytes
//   start()                             of no elements
//   take(state, x, index)               with one more element, which stands at `index` along what is reduced
//   merge(one, other)                   of the elements of both: associative up to rounding, commutative
//   finish(state, count)                the result for `count` elements
#pragma once
#include "reduce.cuh"

// Folds that merge an element into a state in the same way as another state.
template <typename X, typename Op> struct Merged {
    typedef X Result;
    typedef Acc<X> State;
    static DEVICE State start() { return Op::neutral(); }
    static DEVICE State take(State state, Compute<X> x, u32) { return Op()(state, x); }
    static DEVICE State merge(State one, State other) { return Op()(one, other); }
    static DEVICE Result finish(State state, u64) { return narrow<X>(state); }
};

template <typename X> struct Sum : Merged<X, SumOp<Acc<X>>> {};
template <typename X> struct Prod : Merged<X, ProdOp<Acc<X>>> {};
template <typename X> struct Max : Merged<X, MaxOp<Acc<X>>> {};
template <typename X> struct Min : Merged<X, MinOp<Acc<X>>> {};

template <typename X> struct All : Merged<X, AllOp> {};
template <typename X> struct Any : Merged<X, AnyOp> {};

// The sum divided by the count. Integers are summed in 64 bits and the quotient is rounded towards
// 0; for no elements it is 0, or NaN for floats.
template <typename X> struct Mean {
    typedef X Result;
    typedef Compute<X> W;
    typedef choose<is_float<W>, W, choose<is_signed<W>, i64, u64>> State;
    static DEVICE State start() { return (State)0; }
    static DEVICE State take(State state, W x, u32) { return add(state, (State)x); }
    static DEVICE State merge(State one, State other) { return add(one, other); }
    static DEVICE Result finish(State state, u64 count) {
        if constexpr (is_float<W>) return narrow<X>(state / (State)count);
        else return count == 0 ? (X)0 : (X)(state / (State)count);
    }
};

// ln(e^x + e^y) of floats, without overflow; NaN for two positive infinities, because of their
// difference.
template <typename W> struct LogSumExpOp {
    static DEVICE W neutral() { return Limits<W>::minus_infinity(); }
    DEVICE W operator()(W x, W y) const {
        const bool ascend = x < y;
        const W low = ascend ? x : y, high = ascend ? y : x;
        if (low == neutral()) return high;
        return add(high, log1p(exp(sub(low, high))));
    }
};

template <typename X> struct LogSumExp : Merged<X, LogSumExpOp<Acc<X>>> {};

// The square root; of an integer, rounded down. For a sum of squares that wrapped below 0 it is the
// conversion of NaN of TensorFlow's CPU: the least number of 32 and 64 bits, else 0.
template <typename W> DEVICE W root_of(W x) {
    if constexpr (is_float<W>) return sqrt(x);
    else if constexpr (is_signed<W> && sizeof(W) >= 4) return x < 0 ? Limits<W>::lowest() : (W)sqrt((f64)x);
    else return x <= 0 ? (W)0 : (W)sqrt((f64)x);
}

// The sum of squares; Derived makes the result from it.
template <typename X> struct Squares {
    typedef X Result;
    typedef Acc<X> State;
    static DEVICE State start() { return (State)0; }
    static DEVICE State take(State state, State x, u32) { return add(state, mul(x, x)); }
    static DEVICE State merge(State one, State other) { return add(one, other); }
};

// The square root of the sum of squares. Integers wrap before the root is taken.
template <typename X> struct EuclideanNorm : Squares<X> {
    static DEVICE X finish(Acc<X> state, u64) { return narrow<X>(root_of(state)); }
};

// Half the sum of squares.
template <typename X> struct L2Loss : Squares<X> {
    static DEVICE X finish(Acc<X> state, u64) { return narrow<X>(state * (Acc<X>)0.5); }
};

// The index of the first of the greatest (GREATEST) or least elements. NaN is never chosen; where
// no element is beyond the lowest finite value (the highest), the index is 0. An index that does
// not fit in Y loses its high bits.
template <typename X, typename Y, bool GREATEST> struct Arg {
    typedef Y Result;
    typedef Compute<X> W;
    struct State {
        W value;
        u32 index;
    };
    static DEVICE bool beyond(W x, W y) { return GREATEST ? x > y : x < y; }
    static DEVICE State start() {
        typedef Limits<choose<is_same<X, boolean>, bool, X>> Of;
        return {GREATEST ? Of::lowest() : Of::highest(), 0};
    }
    static DEVICE State take(State state, W x, u32 index) {
        const bool better = beyond(x, state.value);
        return {better ? x : state.value, better ? index : state.index};
    }
    static DEVICE State merge(State one, State other) {
        const bool earlier = other.value == one.value && other.index < one.index;
        return beyond(other.value, one.value) || earlier ? other : one;
    }
    static DEVICE Result finish(State state, u64) { return (Y)state.index; }
};

template <typename X, typename Y> using ArgMax = Arg<X, Y, true>;
template <typename X, typename Y> using ArgMin = Arg<X, Y, false>;

struct alignas(8) MeanVariance {
    f32 mean, variance;
};

// Mean and variance (that of the population) of 16- and 32-bit floats: sums of squared deviations
// from the mean so far (B. P. Welford, "Note on a method for calculating corrected sums of squares
// and products", 1962), merged as in T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and
// a pairwise algorithm for computing sample variances", 1979. The resulting mean is taken from the
// plain sum, which is infinite where an element is.
template <typename X> struct Moments {
    typedef MeanVariance Result;
    struct State {
        f32 sum, mean, squares, count;
    };
    static DEVICE State start() { return {0, 0, 0, 0}; }
    static DEVICE State take(State state, f32 x, u32) {
        const f32 count = state.count + 1, away = x - state.mean, mean = state.mean + away / count;
        return {state.sum + x, mean, state.squares + away * (x - mean), count};
    }
    static DEVICE State merge(State one, State other) {
        if (other.count == 0) return one;
        const f32 count = one.count + other.count, away = other.mean - one.mean, share = other.count / count;
        const f32 squares = one.squares + other.squares + away * away * one.count * share;
        return {one.sum + other.sum, one.mean + away * share, squares, count};
    }
    static DEVICE Result finish(State state, u64 count) { return {state.sum / (f32)count, state.squares / (f32)count}; }
};
