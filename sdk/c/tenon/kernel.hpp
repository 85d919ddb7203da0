// tenon/kernel.hpp - how a class or a function becomes a kernel's table.
//
// A class is a kernel if it has
//
//     void compute(tenon::Call &);            computes one call. Calls of one object may run at the same time
//
// and, where it needs them,
//
//     K(const tenon::Create &);               reads the attributes, once for each node; else K has no arguments
//     static TenonSupport supports(const tenon::Create &);   whether it takes these attributes and shapes
//     static constexpr uint32_t flags = ...;  bits of TENON_KERNEL_FLAG_*; with TENON_KERNEL_FLAG_ASYNC `compute`
//                                             gives a TenonCode: TENON_PENDING is ended by tenon::Call::complete
//     std::unique_ptr<P> prepack(uint32_t input, const TenonSlot &, uint64_t &bytes) const;
//     void attach_packed(uint32_t input, const P &);         a packed form of a constant input, shared by objects
//
// What any of them throws becomes the call's error: a tenon::Error with its code, another exception with INTERNAL.
#ifndef TENON_KERNEL_HPP
#define TENON_KERNEL_HPP

#include "call.hpp"

namespace tenon TENON_OWN {
namespace detail {

template <class K, class = void> struct HasSupports : std::false_type {};
template <class K>
struct HasSupports<K, std::void_t<decltype(K::supports(std::declval<const Create &>()))>> : std::true_type {};
template <class K, class = void> struct HasPrepack : std::false_type {};
template <class K> struct HasPrepack<K, std::void_t<decltype(&K::prepack)>> : std::true_type {};
template <class K, class = void> struct FlagsOf : std::integral_constant<uint32_t, 0> {};
template <class K>
struct FlagsOf<K, std::void_t<decltype(K::flags)>> : std::integral_constant<uint32_t, K::flags> {};

// What `prepack` of a class gives.
template <class F> struct PackedOf;
template <class K, class P, class... A> struct PackedOf<std::unique_ptr<P> (K::*)(A...) const> { using Type = P; };
template <class K, class P, class... A> struct PackedOf<std::unique_ptr<P> (K::*)(A...)> { using Type = P; };

template <class K> K &kernel_of(TenonKernelState *state) { return *reinterpret_cast<K *>(state); }

// How the host hears of an error while a call runs.
inline auto failing(const TenonCall *raw)
{
    return [raw](TenonCode code, const char *text) { return tenon_fail(raw, code, "%s", text); };
}

template <class K> TenonCode create(const TenonCreate *raw, TenonKernelState **state)
{
    return guarded_by(raw->sink, [&] {
        if constexpr (std::is_constructible_v<K, const Create &>) {
            *state = reinterpret_cast<TenonKernelState *>(new K(Create(raw)));
        } else {
            *state = reinterpret_cast<TenonKernelState *>(new K());
        }
    });
}

template <class K> TenonCode compute(TenonKernelState *state, const TenonCall *raw)
{
    return guarded(
        [&] {
            Call call(raw);
            return kernel_of<K>(state).compute(call);
        },
        failing(raw));
}

template <auto function> TenonCode compute_by(TenonKernelState *, const TenonCall *raw)
{
    return guarded(
        [&] {
            Call call(raw);
            return function(call);
        },
        failing(raw));
}

template <class K> void destroy(TenonKernelState *state)
{
    delete reinterpret_cast<K *>(state);
}

template <class K> TenonSupport supports(const TenonCreate *raw)
{
    TenonSupport answer = TENON_SUPPORT_NO;
    guarded_by(raw->sink, [&] { answer = K::supports(Create(raw)); });
    return answer;
}

template <class K, class P>
TenonCode prepack(TenonKernelState *state, uint32_t input, const TenonSlot *view, TenonPacked **packed,
                  uint64_t *bytes, TenonSink *sink)
{
    return guarded_by(sink, [&] {
        std::unique_ptr<P> form = kernel_of<K>(state).prepack(input, *view, *bytes);
        *packed = reinterpret_cast<TenonPacked *>(form.release());
    });
}

template <class K, class P> void attach_packed(TenonKernelState *state, uint32_t input, TenonPacked *packed)
{
    kernel_of<K>(state).attach_packed(input, *reinterpret_cast<const P *>(packed));
}

template <class P> void release_packed(TenonPacked *packed)
{
    delete reinterpret_cast<P *>(packed);
}

template <class K> constexpr TenonKernelTable make_table()
{
    TenonKernelTable table{};
    table.struct_size = sizeof(TenonKernelTable);
    table.flags = FlagsOf<K>::value;
    table.create = create<K>;
    table.compute = compute<K>;
    table.destroy = destroy<K>;
    if constexpr (HasSupports<K>::value) {
        table.supports = supports<K>;
    }
    if constexpr (HasPrepack<K>::value) {
        using P = typename PackedOf<decltype(&K::prepack)>::Type;
        table.prepack = prepack<K, P>;
        table.attach_packed = attach_packed<K, P>;
        table.release_packed = release_packed<P>;
    }
    return table;
}

template <auto function> constexpr TenonKernelTable make_function_table()
{
    TenonKernelTable table{};
    table.struct_size = sizeof(TenonKernelTable);
    table.compute = compute_by<function>;
    return table;
}

} // namespace detail

// The entries of a class, and of a function `void(tenon::Call &)`.
template <class K> TENON_OWN inline constexpr TenonKernelTable table = detail::make_table<K>();
template <auto function>
TENON_OWN inline constexpr TenonKernelTable function_table = detail::make_function_table<function>();

} // namespace tenon

#endif // TENON_KERNEL_HPP
