// The header in C++: linkage of the exported function, tables in static memory, the helpers.
#include "tenon.h"

#include "sizes.h"

TENON_MANIFEST("{\"only\": 1}");

namespace {

TenonCode register_all(const TenonHost *, TenonRegistrar *, const TenonRegistrarTable *, TenonSink *)
{
    return TENON_OK;
}

TENON_CASES(cases, TENON_STR("one; x: [1]"));

const TenonPluginV1 plugin = { sizeof(TenonPluginV1), TENON_ABI_MAJOR, TENON_ABI_MINOR, 0,
                               TENON_STR("example"), TENON_STR("1.0"), nullptr, register_all,
                               nullptr };

} // namespace

TENON_EXPORT const TenonPluginV1 *tenon_plugin_v1(uint32_t host_major, uint32_t host_minor)
{
    return TENON_ABI_ACCEPTS(host_major, host_minor) ? &plugin : nullptr;
}

int main()
{
    print_sizes();
    TenonCPluginFn entry = tenon_plugin_v1;
    const TenonPluginV1 *table = entry(TENON_ABI_MAJOR, TENON_ABI_MINOR);
    if (table != &plugin || table->name.len != 7) {
        return 1;
    }
    if (tenon_str("abc").len != 3 || tenon_str(nullptr).len != 0) {
        return 2;
    }
    if (cases.header.size != sizeof cases || cases.cases.len != 1) {
        return 4;
    }
    return table->register_all(nullptr, nullptr, nullptr, nullptr) == TENON_OK ? 0 : 3;
}
