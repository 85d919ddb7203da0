// Functions of two elements, with broadcasting.
//
// Entry points, of which LAYOUT chooses one:
//   binary_same(const T* x, const T* y, U* z, u64 count, f32 parameter)              SAME
//   binary_scalar_left(x, y, z, count, parameter): x is one element                                    SCALAR_LEFT
//   binary_scalar_right(x, y, z, count, parameter): y is one element                                   SCALAR_RIGHT
//   binary_broadcast(x, y, z, u64 packs, f32 parameter, Strided<INDEX, 2> dims)                      BROADCAST
//     z[i] = OP(x[i], y[i]). z may be x or y where they have one type and z's number of elements. `parameter` is the
//     attribute of an op that has one, of others anything.
//     Broadcast, z has `packs` packs; dims describes them (dims.cuh), with dimension 0 counted in packs of LANES
//     elements: its extent is the innermost one divided by LANES, and a stride there is LANES or 0. Every other stride
//     of an operand whose innermost one is not 0 must be a multiple of LANES. With LANES=1, any strides.
//     A row, a column, a bias per channel are broadcast.
//
// Macros: T, U (boolean for comparisons), OP (see op_binary.cuh), INDEX, LANES, LAYOUT (see
// elementwise.cuh).
#include "elementwise.cuh"
#include "op_binary.cuh"

DEVICE U apply(T x, T y, f32 parameter) {
    return narrow<U>(op::OP::of<T>(widen(x), widen(y), parameter));
}

typedef Pack<T, LANES> In;
typedef Pack<U, LANES> Out;

DEVICE Out apply_packs(In x, In y, f32 parameter) {
    Out z;
#pragma unroll
    for (int k = 0; k < LANES; ++k) z.at[k] = apply(x.at[k], y.at[k], parameter);
    return z;
}

struct Both {
    In x, y;
};

#if COMPILES(SAME)
KERNEL binary_same(const T* x, const T* y, U* z, u64 count, f32 parameter) {
    await_previous();
    for_packs<LANES>(
        (INDEX)count, [&](INDEX i) { return Both{load_pack<LANES>(x, i), load_pack<LANES>(y, i)}; },
        [&](INDEX i, Both both) { store_pack(z, i, apply_packs(both.x, both.y, parameter)); },
        [&](INDEX i) { z[i] = apply(x[i], y[i], parameter); });
}
#endif

#if COMPILES(SCALAR_LEFT)
KERNEL binary_scalar_left(const T* x, const T* y, U* z, u64 count, f32 parameter) {
    await_previous();
    const T one = load_constant(x);
    const In left = splat<LANES>(one);
    for_packs<LANES>(
        (INDEX)count, [&](INDEX i) { return load_pack<LANES>(y, i); },
        [&](INDEX i, In right) { store_pack(z, i, apply_packs(left, right, parameter)); },
        [&](INDEX i) { z[i] = apply(one, y[i], parameter); });
}
#endif

#if COMPILES(SCALAR_RIGHT)
KERNEL binary_scalar_right(const T* x, const T* y, U* z, u64 count, f32 parameter) {
    await_previous();
    const T one = load_constant(y);
    const In right = splat<LANES>(one);
    for_packs<LANES>(
        (INDEX)count, [&](INDEX i) { return load_pack<LANES>(x, i); },
        [&](INDEX i, In left) { store_pack(z, i, apply_packs(left, right, parameter)); },
        [&](INDEX i) { z[i] = apply(x[i], one, parameter); });
}
#endif

#if COMPILES(BROADCAST)
KERNEL binary_broadcast(const T* x, const T* y, U* z, u64 packs, f32 parameter,
    const Strided<INDEX, 2> dims) {
    await_previous();
    for (INDEX i = thread_of_grid<INDEX>(); i < (INDEX)packs; i += threads_of_grid<INDEX>()) {
        const auto offsets = offsets_of(dims, i);
        const In left = load_broadcast<LANES>(x, offsets.at[0], dims.strides[0][0]);
        const In right = load_broadcast<LANES>(y, offsets.at[1], dims.strides[1][0]);
        store_pack(z, i, apply_packs(left, right, parameter));
    }
}
#endif
