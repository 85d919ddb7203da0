// tenon/manifest.hpp - what becomes of registrations: the lines of the manifest, and what the host gets.
#ifndef TENON_MANIFEST_HPP
#define TENON_MANIFEST_HPP

#include "register.hpp"

namespace tenon TENON_OWN {
namespace detail {

// Bytes of the manifest: no pointers, no padding, for the linker joins them.
template <size_t N> struct Record {
    char bytes[N];
};

// Writes lines into a record, or counts only.
class Writer {
public:
    constexpr explicit Writer(char *bytes) : bytes_(bytes) {}
    constexpr size_t size() const { return size_; }

    constexpr void line(const Op &op, Site site)
    {
        begin("op");
        field("name", op.name);
        list("inputs", op.takes);
        list("outputs", op.gives);
        list("attrs", op.has);
        if (op.valid.count > 0) {
            list("cases", op.valid);
        }
        end(site);
    }
    template <size_t N> constexpr void line(const Kernels<N> &kernels, Site site)
    {
        for (const KernelEntry &entry : kernels.entries) {
            line(entry, site);
        }
    }
    constexpr void line(const KernelEntry &entry, Site site)
    {
        begin("kernel");
        field("op", entry.op);
        field("device", entry.device);
        field("label", entry.label);
        number("priority", entry.priority);
        raw(entry.on_request ? ",\"on_request\":true,\"types\":{" : ",\"on_request\":false,\"types\":{");
        for (const Limit &limit : entry.limits) {
            raw(&limit == entry.limits.begin() ? "" : ",");
            text(limit.attr);
            raw(":[");
            for (const TenonDType &type : limit.types) {
                raw(&type == limit.types.begin() ? "" : ",");
                text(name_of(type));
            }
            raw("]");
        }
        raw("}");
        list("features", entry.features);
        end(site);
    }
    constexpr void line(const Device &device, Site site)
    {
        begin("device");
        field("name", device.name);
        number("priority", device.rank);
        end(site);
    }
    constexpr void line(const Knob &knob, Site site)
    {
        begin("knob");
        field("name", knob.name);
        field("default", knob.value);
        end(site);
    }

private:
    constexpr void byte(char byte)
    {
        if (bytes_ != nullptr) {
            bytes_[size_] = byte;
        }
        size_++;
    }
    constexpr void raw(std::string_view text)
    {
        for (const char c : text) {
            byte(c);
        }
    }
    constexpr void text(std::string_view text)
    {
        byte('"');
        for (const char c : text) {
            if (c == '"' || c == '\\') {
                byte('\\');
            }
            // The host takes a control character for a space, too.
            byte(c >= '\0' && c < ' ' ? ' ' : c);
        }
        byte('"');
    }
    constexpr void key(std::string_view key)
    {
        byte(',');
        text(key);
        byte(':');
    }
    constexpr void field(std::string_view name, std::string_view value)
    {
        key(name);
        text(value);
    }
    constexpr void list(std::string_view name, const Texts &texts)
    {
        key(name);
        byte('[');
        for (const std::string_view &item : texts) {
            raw(&item == texts.begin() ? "" : ",");
            text(item);
        }
        byte(']');
    }
    constexpr void number(std::string_view name, int64_t value)
    {
        key(name);
        if (value < 0) {
            byte('-');
        }
        char digits[20]{};
        int count = 0;
        for (value = value < 0 ? -value : value; value > 0 || count == 0; value /= 10) {
            digits[count++] = static_cast<char>('0' + value % 10);
        }
        while (count > 0) {
            byte(digits[--count]);
        }
    }
    constexpr void begin(std::string_view kind)
    {
        raw("{\"kind\":");
        text(kind);
    }
    constexpr void end(Site site)
    {
        field("crate", TENON_PLUGIN_NAME);
        field("file", site.file);
        number("line", site.line);
        raw("}\n");
    }

    char *bytes_;
    size_t size_ = 0;
};

template <class... R> constexpr size_t record_size(const std::tuple<R...> &registrations, Site site)
{
    Writer counter(nullptr);
    std::apply([&](const auto &...one) { (counter.line(one, site), ...); }, registrations);
    return counter.size();
}

template <size_t N, class... R> constexpr Record<N> record(const std::tuple<R...> &registrations, Site site)
{
    Record<N> record{};
    Writer writer(record.bytes);
    std::apply([&](const auto &...one) { (writer.line(one, site), ...); }, registrations);
    return record;
}

inline TenonSource source_of(Site site)
{
    return TenonSource{ str_of(TENON_PLUGIN_NAME), str_of(site.file), site.line };
}

// The texts of a list for the host, which copies them.
class Lent {
public:
    explicit Lent(const Texts &texts) : count_(texts.count)
    {
        std::transform(texts.begin(), texts.end(), items_, str_of);
    }
    operator TenonStrs() const { return TenonStrs{ items_, count_ }; }

private:
    TenonStr items_[16];
    size_t count_;
};

// Gives registrations to the host.
struct Giver {
    TenonRegistrar *registrar;
    const TenonRegistrarTable *table;
    Site site;

    TenonCode give(const Op &op) const
    {
        const Lent takes(op.takes), gives(op.gives), has(op.has), valid(op.valid), measured(op.measured);
        const TenonExtFacts facts = { TENON_EXT_FACTS_HEADER(op.link), op.known };
        const TenonExtHeader *const known = op.has_facts ? &facts.header : op.link;
        const TenonExtGradient gradient = { TENON_EXT_GRADIENT_HEADER(known), op.differentiate };
        const TenonExtHeader *const before = op.differentiate != nullptr ? &gradient.header : known;
        const TenonExtCases cases = { TENON_EXT_CASES_HEADER(before), valid };
        const bool has_cases = op.valid.count > 0;
        const TenonExtBench bench = { TENON_EXT_BENCH_HEADER(has_cases ? &cases.header : before), measured,
                                      str_of(op.operations), str_of(op.moved) };
        const bool has_bench = op.measured.count > 0 || !op.operations.empty() || !op.moved.empty();
        TenonOpDef def{};
        def.struct_size = sizeof def;
        def.flags = op.bits;
        def.name = str_of(op.name);
        def.inputs = takes;
        def.outputs = gives;
        def.attrs = has;
        def.summary = str_of(op.about);
        def.description = str_of(op.contract);
        def.shape = op.function;
        def.source = source_of(site);
        def.ext = has_bench ? &bench.header : bench.header.next;
        return table->op(registrar, &def);
    }
    template <size_t N> TenonCode give(const Kernels<N> &kernels) const
    {
        for (const KernelEntry &entry : kernels.entries) {
            const TenonCode code = give(entry);
            if (code != TENON_OK) {
                return code;
            }
        }
        return TENON_OK;
    }
    TenonCode give(const KernelEntry &entry) const
    {
        const Lent host_memory(entry.host_memory), features(entry.features);
        const TenonExtCost cost = { TENON_EXT_COST_HEADER(entry.link), entry.fixed_ns, entry.per_element_ns };
        TenonTypeConstraint limits[6];
        std::transform(entry.limits.begin(), entry.limits.end(), limits, [](const Limit &limit) {
            return TenonTypeConstraint{ str_of(limit.attr), limit.types.items, limit.types.count };
        });
        TenonKernelDef def{};
        def.struct_size = sizeof def;
        def.flags = (entry.on_request ? TENON_KERNEL_DEF_FLAG_ON_REQUEST : 0) |
                    (entry.keeps_denormals ? TENON_KERNEL_DEF_FLAG_KEEPS_DENORMALS : 0) |
                    (entry.checks_shapes ? TENON_KERNEL_DEF_FLAG_CHECKS_SHAPES : 0);
        def.op = str_of(entry.op);
        def.device_type = str_of(entry.device);
        def.label = str_of(entry.label);
        def.priority = entry.priority;
        def.constraints = limits;
        def.constraint_count = entry.limits.count;
        def.host_memory = host_memory;
        def.in_place = entry.in_place.items;
        def.in_place_count = entry.in_place.count;
        def.features = features;
        def.numerics = entry.numerics;
        def.table = entry.table;
        def.source = source_of(site);
        def.ext = entry.has_cost ? &cost.header : entry.link;
        return table->kernel(registrar, &def);
    }
    TenonCode give(const Device &device) const
    {
        TenonDeviceTypeDef def{};
        def.struct_size = sizeof def;
        def.priority = device.rank;
        def.name = str_of(device.name);
        def.probe = device.probe;
        def.create = device.open;
        def.table = device.table;
        def.source = source_of(site);
        def.ext = device.link;
        return table->device_type(registrar, &def);
    }
    TenonCode give(const Knob &knob) const
    {
        TenonKnobDef def{};
        def.struct_size = sizeof def;
        def.kind = knob.kind;
        def.name = str_of(knob.name);
        def.default_value = str_of(knob.value);
        def.help = str_of(knob.help);
        def.source = source_of(site);
        return table->knob(registrar, &def);
    }
};

template <class... R>
TenonCode give_all(const std::tuple<R...> &registrations, Site site, TenonRegistrar *registrar,
                   const TenonRegistrarTable *table)
{
    const Giver giver{ registrar, table, site };
    TenonCode code = TENON_OK;
    std::apply([&](const auto &...one) { ((code == TENON_OK ? void(code = giver.give(one)) : void()), ...); },
               registrations);
    return code;
}

} // namespace detail
} // namespace tenon

// Registers ops, kernels, devices and knobs: see tenon/register.hpp.
#define TENON_REGISTER(...) TENON_REGISTER_AT(__COUNTER__, __VA_ARGS__)
#define TENON_REGISTER_AT(at, ...) TENON_REGISTER_AS(at, __VA_ARGS__)
#define TENON_REGISTER_AS(at, ...) \
    static constexpr ::tenon::detail::Site tenon_site_##at = { __FILE__, __LINE__ }; \
    static constexpr auto tenon_registered_##at = std::make_tuple(__VA_ARGS__); \
    static constexpr auto tenon_manifest_##at TENON_IN_MANIFEST \
        = ::tenon::detail::record<::tenon::detail::record_size(tenon_registered_##at, tenon_site_##at)>( \
            tenon_registered_##at, tenon_site_##at); \
    static TenonCode tenon_give_##at(TenonRegistrar *registrar, const TenonRegistrarTable *table) \
    { \
        return ::tenon::detail::give_all(tenon_registered_##at, tenon_site_##at, registrar, table); \
    } \
    TENON_LIST(at, tenon_give_##at)

#endif // TENON_MANIFEST_HPP
