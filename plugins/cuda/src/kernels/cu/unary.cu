// Functions of one element, and casts.
//
// Entry points:
//   unary(const DTYPE* x, DTYPE_OUT* y, INDEX count, f32 parameter)
//     y[i] = OP(x[i]). y may be x where both have one type. `parameter` is the attribute of an op that has one, of
//     others anything.
//
// Macros: DTYPE, DTYPE_OUT (boolean for tests, u8 for PopulationCount, any for Cast), OP (see op_unary.cuh), INDEX, LANES
// (see elementwise.cuh).
#include "elementwise.cuh"
#include "op_unary.cuh"

template <typename Op, typename X, typename U> DEVICE U apply(X x, f32 parameter) {
    if constexpr (is_same<Op, op::Cast> || is_same<Op, op::CastTruncate>) {
        return narrow<U>(Op::template to<X, U>(widen(x)));
    } else {
        return narrow<U>(Op::template of<X>(widen(x), parameter));
    }
}

KERNEL unary(const DTYPE* x, DTYPE_OUT* y, INDEX count, f32 parameter) {
    constexpr int N = LANES;
    for_packs<N>(
        count, [&](INDEX i) { return load_pack<N>(x, i); },
        [&](INDEX i, Pack<DTYPE, N> from) {
            Pack<DTYPE_OUT, N> to;
#pragma unroll
            for (int k = 0; k < N; ++k) to.at[k] = apply<op::OP, DTYPE, DTYPE_OUT>(from.at[k], parameter);
            store_pack(y, i, to);
        },
        [&](INDEX i) { y[i] = apply<op::OP, DTYPE, DTYPE_OUT>(x[i], parameter); });
}
