// Functions of one element, and casts.
//
// Entry points:
//   unary(const T* x, U* y, u64 count, f32 parameter)
//     y[i] = OP(x[i]). y may be x where both have one type. `parameter` is the attribute of an op that has one, of
//     others anything.
//
// Macros: T, U (boolean for tests, u8 for PopulationCount, any for Cast), OP (see op_unary.cuh), INDEX, LANES
// (see elementwise.cuh).
#include "elementwise.cuh"
#include "op_unary.cuh"

template <typename Op, typename X, typename Y> DEVICE Y apply(X x, f32 parameter) {
    if constexpr (is_same<Op, op::Cast> || is_same<Op, op::CastTruncate>) {
        return narrow<Y>(Op::template to<X, Y>(widen(x)));
    } else {
        return narrow<Y>(Op::template of<X>(widen(x), parameter));
    }
}

KERNEL unary(const T* x, U* y, u64 count, f32 parameter) {
    await_previous();
    constexpr int N = LANES;
    for_packs<N>(
        (INDEX)count, [&](INDEX i) { return load_pack<N>(x, i); },
        [&](INDEX i, Pack<T, N> from) {
            Pack<U, N> to;
#pragma unroll
            for (int k = 0; k < N; ++k) to.at[k] = apply<op::OP, T, U>(from.at[k], parameter);
            store_pack(y, i, to);
        },
        [&](INDEX i) { y[i] = apply<op::OP, T, U>(x[i], parameter); });
}
