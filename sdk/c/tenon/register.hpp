// tenon/register.hpp - registrations in C++, each said once: what the host gets and the line of the manifest that it is
// compared with are made of the same object when the plugin is compiled.
//
//     TENON_REGISTER(
//         tenon::op("Cube").inputs("x: T").outputs("y: T").attrs("T: {float, bfloat16}").shape<tenon::same_shape>(),
//         tenon::kernels<Cube, float, tenon::bfloat16>("Cube", "T").numerics(tenon::ulps(1)),
//         tenon::kernel<CubeAvx2>("Cube").types<float>("T").label("avx2").priority(1).features("avx2", "fma"));
//
// Write TENON_REGISTER at namespace scope, in any file of the plugin, any number of times, and TENON_PLUGIN() in one of
// them. Texts are literals or constants, of any characters.
#ifndef TENON_REGISTER_HPP
#define TENON_REGISTER_HPP

#include "device.hpp"
#include "gradient.hpp"
#include "kernel.hpp"
#include "shape.hpp"

namespace tenon TENON_OWN {
namespace detail {

// A list that is known when the plugin is compiled.
template <class T, size_t N> struct List {
    T items[N]{};
    size_t count = 0;

    constexpr void add(T item) { items[count++] = item; }
    constexpr const T *begin() const { return items; }
    constexpr const T *end() const { return items + count; }
};
using Texts = List<std::string_view, 16>;

template <class... S> constexpr Texts texts(S... items)
{
    static_assert(sizeof...(S) <= 16, "a list of a registration has at most 16 texts");
    Texts list;
    (list.add(std::string_view(items)), ...);
    return list;
}

// File and line of a registration.
struct Site {
    const char *file;
    uint32_t line;
};

struct Limit {
    std::string_view attr;
    List<TenonDType, 24> types;
};

} // namespace detail

// Numerics contracts: what the results of a kernel are worth.
struct Numerics {
    TenonNumerics raw{};

    constexpr Numerics determinism(TenonDeterminism determinism) const
    {
        Numerics changed = *this;
        changed.raw.determinism = determinism;
        return changed;
    }
    // The type in which sums are kept.
    template <class T> constexpr Numerics accumulation() const
    {
        Numerics changed = *this;
        changed.raw.accumulation = ElementOf<T>::value;
        return changed;
    }
};
inline constexpr Numerics exact{ { TENON_TOLERANCE_EXACT, TENON_DETERMINISM_BITWISE, 0, 0, 0, TENON_INVALID, 0 } };
constexpr Numerics ulps(double count)
{
    return { { TENON_TOLERANCE_ULPS, TENON_DETERMINISM_RUN_TO_RUN, count, 0, 0, TENON_INVALID, 0 } };
}
// Within absolute + relative * |expected|; for sums, relative to the sum of the absolute terms.
constexpr Numerics within(double absolute, double relative)
{
    return { { TENON_TOLERANCE_ABSOLUTE_RELATIVE, TENON_DETERMINISM_RUN_TO_RUN, 0, absolute, relative, TENON_INVALID,
               0 } };
}

// An op: its signature as REGISTER_OP writes it, and what is said of it.
struct Op {
    std::string_view name{};
    detail::Texts takes{}, gives{}, has{}, valid{}, measured{};
    std::string_view about{}, contract{}, operations{}, moved{};
    uint32_t bits = 0;
    TenonShapeFn function = nullptr;
    TenonFacts known{};
    bool has_facts = false;
    TenonGradientFn differentiate = nullptr;
    const TenonExtHeader *link = nullptr;

#define TENON_SETTER(...) \
    { \
        Op changed = *this; \
        __VA_ARGS__; \
        return changed; \
    }
    template <class... S> constexpr Op inputs(S... texts) const TENON_SETTER(changed.takes = detail::texts(texts...))
    template <class... S> constexpr Op outputs(S... texts) const TENON_SETTER(changed.gives = detail::texts(texts...))
    template <class... S> constexpr Op attrs(S... texts) const TENON_SETTER(changed.has = detail::texts(texts...))
    // Cases that are valid, where the signature does not say which values are: core/abi/docs/cases.md.
    template <class... S> constexpr Op cases(S... texts) const TENON_SETTER(changed.valid = detail::texts(texts...))
    // Calls that say how fast a kernel is, and the operations and bytes of a call: core/abi/docs/bench.md.
    template <class... S> constexpr Op bench(S... texts) const TENON_SETTER(changed.measured = detail::texts(texts...))
    constexpr Op flops(std::string_view formula) const TENON_SETTER(changed.operations = formula)
    constexpr Op bytes(std::string_view formula) const TENON_SETTER(changed.moved = formula)
    constexpr Op summary(std::string_view text) const TENON_SETTER(changed.about = text)
    constexpr Op description(std::string_view text) const TENON_SETTER(changed.contract = text)
    template <auto shape_function> constexpr Op shape() const
        TENON_SETTER(changed.function = detail::run_shape<shape_function>)
    // The op's gradient: tenon/gradient.hpp.
    template <auto function> constexpr Op gradient() const
        TENON_SETTER(changed.differentiate = detail::run_gradient<function>)
    constexpr Op stateful() const TENON_SETTER(changed.bits |= TENON_OP_FLAG_STATEFUL)
    constexpr Op commutative() const TENON_SETTER(changed.bits |= TENON_OP_FLAG_COMMUTATIVE)
    constexpr Op aggregate() const TENON_SETTER(changed.bits |= TENON_OP_FLAG_AGGREGATE)
    constexpr Op flags(uint32_t more) const TENON_SETTER(changed.bits |= more)
    // What passes, placement and execution must know of the op: the fields of TenonFacts, all at once or one by one.
    constexpr Op facts(const TenonFacts &all) const TENON_SETTER(changed.known = all; changed.has_facts = true)
    constexpr Op fact(uint32_t flag) const TENON_SETTER(changed.known.flags |= flag; changed.has_facts = true)
    constexpr Op elementwise() const { return fact(TENON_FACT_ELEMENTWISE); }
    constexpr Op checks() const { return fact(TENON_FACT_CHECKS); }
    constexpr Op passes_input(uint32_t input, uint32_t output) const
        TENON_SETTER(changed = fact(TENON_FACT_PASSES_INPUT); changed.known.passed_input = input;
                     changed.known.passed_output = output)
    constexpr Op reshapes_input(uint32_t input, uint32_t output) const
        TENON_SETTER(changed = fact(TENON_FACT_RESHAPES_INPUT); changed.known.passed_input = input;
                     changed.known.passed_output = output)
    constexpr Op refuses(TenonRefusal refusal) const
        TENON_SETTER(changed.known.refusal = refusal; changed.has_facts = true)
    constexpr Op symmetry(TenonSymmetry symmetry) const
        TENON_SETTER(changed.known.symmetry = symmetry; changed.has_facts = true)
    constexpr Op value(TenonValueRule rule) const TENON_SETTER(changed.known.value = rule; changed.has_facts = true)
    // The head of a link's header.
    constexpr Op ext(const TenonExtHeader *next) const TENON_SETTER(changed.link = next)
#undef TENON_SETTER
};

constexpr Op op(std::string_view name)
{
    Op made;
    made.name = name;
    return made;
}

// What is said of one kernel.
struct KernelEntry {
    std::string_view op{}, device = "CPU", label{};
    int32_t priority = 0;
    bool on_request = false;
    bool keeps_denormals = false;
    bool checks_shapes = false;
    detail::List<detail::Limit, 6> limits{};
    detail::Texts host_memory{}, features{};
    detail::List<TenonInPlace, 8> in_place{};
    TenonNumerics numerics{};
    bool has_cost = false;
    double fixed_ns = 0, per_element_ns = 0;
    const TenonExtHeader *link = nullptr;
    const TenonKernelTable *table = nullptr;
};

// Kernels of one op, of which the same is said but for the element type.
template <size_t N> struct Kernels {
    KernelEntry entries[N]{};

#define TENON_SETTER(...) \
    { \
        Kernels changed = *this; \
        for (KernelEntry &entry : changed.entries) { \
            __VA_ARGS__; \
        } \
        return changed; \
    }
    // The device type; without it the host, CPU.
    constexpr Kernels on(std::string_view device) const TENON_SETTER(entry.device = device)
    constexpr Kernels label(std::string_view text) const TENON_SETTER(entry.label = text)
    // Higher wins.
    constexpr Kernels priority(int32_t priority) const TENON_SETTER(entry.priority = priority)
    // Never chosen by policy, only when its label is asked for.
    constexpr Kernels on_request() const TENON_SETTER(entry.on_request = true)
    // Arithmetic in its calls keeps denormal numbers, which it takes for zeros otherwise (see TenonCall).
    constexpr Kernels keeps_denormals() const TENON_SETTER(entry.keeps_denormals = true)
    // It refuses by itself the shapes that the op's shape function refuses; else the host runs the shape function.
    constexpr Kernels checks_shapes() const TENON_SETTER(entry.checks_shapes = true)
    // The element types that it takes for a type attribute; all that the op allows without it.
    template <class... T> constexpr Kernels types(std::string_view attr) const
        TENON_SETTER(entry.limits.add(limit<T...>(attr)))
    // Features of the processor without which it is never a candidate.
    template <class... S> constexpr Kernels features(S... texts) const
        TENON_SETTER(entry.features = detail::texts(texts...))
    // Arguments that lie in host memory, whatever the device.
    template <class... S> constexpr Kernels host_memory(S... texts) const
        TENON_SETTER(entry.host_memory = detail::texts(texts...))
    // An output argument that may take over the buffer of an input argument; may be said several times.
    constexpr Kernels in_place(uint32_t input, uint32_t output) const
        TENON_SETTER(entry.in_place.add(TenonInPlace{ input, output }))
    constexpr Kernels numerics(Numerics numerics) const TENON_SETTER(entry.numerics = numerics.raw)
    // What a call is expected to cost: nanoseconds fixed, and per element of the first output.
    constexpr Kernels cost(double fixed_ns, double per_element_ns) const
        TENON_SETTER(entry.has_cost = true; entry.fixed_ns = fixed_ns; entry.per_element_ns = per_element_ns)
    // The head of a link's header.
    constexpr Kernels ext(const TenonExtHeader *next) const TENON_SETTER(entry.link = next)
#undef TENON_SETTER

    template <class... T> static constexpr detail::Limit limit(std::string_view attr)
    {
        static_assert(sizeof...(T) > 0, "a kernel takes at least one type: types<float>(\"T\")");
        detail::Limit made{ attr, {} };
        (made.types.add(ElementOf<T>::value), ...);
        return made;
    }
};

// A kernel of a class (tenon/kernel.hpp), or of a function `void(tenon::Call &)`.
template <class K> constexpr Kernels<1> kernel(std::string_view op)
{
    Kernels<1> made;
    made.entries[0].op = op;
    made.entries[0].table = &table<K>;
    return made;
}
template <auto function> constexpr Kernels<1> kernel(std::string_view op)
{
    Kernels<1> made;
    made.entries[0].op = op;
    made.entries[0].table = &function_table<function>;
    return made;
}

// A kernel of K<T> for each of the types, which the type attribute `attr` has.
template <template <class> class K, class... T> constexpr Kernels<sizeof...(T)> kernels(std::string_view op,
                                                                                        std::string_view attr)
{
    Kernels<sizeof...(T)> made;
    size_t at = 0;
    ((made.entries[at].table = &table<K<T>>, made.entries[at++].limits.add(Kernels<1>::limit<T>(attr))), ...);
    for (KernelEntry &entry : made.entries) {
        entry.op = op;
    }
    return made;
}

// A device type, of a class (tenon/device.hpp). Below priority 0 it runs what names it and attracts nothing else.
struct Device {
    std::string_view name{};
    int32_t rank = 0;
    decltype(TenonDeviceTypeDef::probe) probe = nullptr;
    decltype(TenonDeviceTypeDef::create) open = nullptr;
    const TenonDeviceTable *table = nullptr;
    const TenonExtHeader *link = nullptr;

    constexpr Device priority(int32_t priority) const
    {
        Device changed = *this;
        changed.rank = priority;
        return changed;
    }
    constexpr Device ext(const TenonExtHeader *next) const
    {
        Device changed = *this;
        changed.link = next;
        return changed;
    }
};
template <class D> constexpr Device device(std::string_view name)
{
    using Table = DeviceTable<D>;
    return Device{ name, 0, Table::probe, Table::open, &Table::entries, nullptr };
}

// A setting that the plugin declares: TENON_KNOB_BOOL, _INT, _FLOAT or _STRING, its default as text, one sentence.
struct Knob {
    std::string_view name;
    TenonKnobKind kind;
    std::string_view value, help;
};
constexpr Knob knob(std::string_view name, TenonKnobKind kind, std::string_view value, std::string_view help)
{
    return Knob{ name, kind, value, help };
}

} // namespace tenon

#include "manifest.hpp"

#endif // TENON_REGISTER_HPP
