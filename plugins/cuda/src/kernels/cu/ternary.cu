// Selection by a condition, and limits.
//
// Entry points, of which LAYOUT chooses one:
//   ternary_same(const First* x, const T* y, const T* z, T* result, u64 count)            SAME
//   ternary_scalars(x, y, z, result, count): y and z are one element each                               SCALARS
//   ternary_broadcast(x, y, z, result, u64 packs, Strided<INDEX, 3> dims)                             BROADCAST
//     result[i] = OP(x[i], y[i], z[i]). The result may be an operand of its type and its number of elements. How packs
//     are broadcast, see binary.cu.
//
// OP is
//   Select, SelectV2   x ? y : z; First is boolean. Elements are moved: T is the unsigned integer of their size.
//   ClipByValue        max(y, min(z, x)): the lower limit wins; First is T, of the numbers. NaN in x stays, and a
//                      limit that is NaN is none.
//
// Macros: T, OP, INDEX, LANES, LAYOUT (see elementwise.cuh).
#include "elementwise.cuh"

typedef Pack<T, LANES> Values;

namespace op {

struct Select {
    typedef boolean First;
    template <typename X> static DEVICE X of(boolean c, X x, X y) { return (bool)c ? x : y; }
};
typedef Select SelectV2;

struct ClipByValue {
    typedef T First;
    template <typename X> static DEVICE X of(X x, X low, X high) {
        const X below = widen(high) < widen(x) ? high : x;
        return widen(below) < widen(low) ? low : below;
    }
};

}  // namespace op

typedef op::OP Op;
typedef Op::First First;
typedef Pack<First, LANES> Firsts;

DEVICE Values apply_packs(Firsts x, Values y, Values z) {
    Values result;
#pragma unroll
    for (int k = 0; k < LANES; ++k) result.at[k] = Op::of<T>(x.at[k], y.at[k], z.at[k]);
    return result;
}

struct Three {
    Firsts x;
    Values y, z;
};

#if COMPILES(SAME)
KERNEL ternary_same(const First* x, const T* y, const T* z, T* result, u64 count) {
    await_previous();
    for_packs<LANES>(
        (INDEX)count, [&](INDEX i) { return Three{load_pack<LANES>(x, i), load_pack<LANES>(y, i), load_pack<LANES>(z, i)}; },
        [&](INDEX i, Three all) { store_pack(result, i, apply_packs(all.x, all.y, all.z)); },
        [&](INDEX i) { result[i] = Op::of<T>(x[i], y[i], z[i]); });
}
#endif

#if COMPILES(SCALARS)
KERNEL ternary_scalars(const First* x, const T* y, const T* z, T* result, u64 count) {
    await_previous();
    const T second = load_constant(y), third = load_constant(z);
    for_packs<LANES>(
        (INDEX)count, [&](INDEX i) { return load_pack<LANES>(x, i); },
        [&](INDEX i, Firsts all) { store_pack(result, i, apply_packs(all, splat<LANES>(second), splat<LANES>(third))); },
        [&](INDEX i) { result[i] = Op::of<T>(x[i], second, third); });
}
#endif

#if COMPILES(BROADCAST)
KERNEL ternary_broadcast(const First* x, const T* y, const T* z, T* result, u64 packs,
    const Strided<INDEX, 3> dims) {
    await_previous();
    for (INDEX i = thread_of_grid<INDEX>(); i < (INDEX)packs; i += threads_of_grid<INDEX>()) {
        const auto offsets = offsets_of(dims, i);
        const Firsts first = load_broadcast<LANES>(x, offsets.at[0], dims.strides[0][0]);
        const Values second = load_broadcast<LANES>(y, offsets.at[1], dims.strides[1][0]);
        const Values third = load_broadcast<LANES>(z, offsets.at[2], dims.strides[2][0]);
        store_pack(result, i, apply_packs(first, second, third));
    }
}
#endif
