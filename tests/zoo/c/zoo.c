/* The C zoo's door. What its ops are for stands in tests/zoo/README.md. */
#include "zoo.h"

TENON_MANIFEST("{\"kind\":\"plugin\",\"name\":\"zoo-c\",\"version\":\"0.1.0\",\"abi\":[0,1]}");

const TenonHost *zoo_host;
const TenonPlugin *zoo_plugin;

static TenonCode zoo_open(const TenonHost *host, const TenonPlugin *plugin, TenonSink *sink)
{
    (void)sink;
    zoo_host = host;
    zoo_plugin = plugin;
    return TENON_OK;
}

static TenonCode register_list(TenonRegistrar *registrar, const TenonRegistrarTable *table,
                               const ZooList *list)
{
    for (size_t at = 0; at < list->op_count; at++) {
        TenonCode code = table->op(registrar, list->ops[at]);
        if (code != TENON_OK) {
            return code;
        }
    }
    for (size_t at = 0; at < list->kernel_count; at++) {
        TenonCode code = table->kernel(registrar, list->kernels[at]);
        if (code != TENON_OK) {
            return code;
        }
    }
    return TENON_OK;
}

#define KNOB(id, knob_name, knob_kind, value) \
    TENON_MANIFEST("{\"kind\":\"knob\",\"name\":\"" knob_name "\",\"default\":\"" value "\"}"); \
    static const TenonKnobDef id = { \
        .struct_size = sizeof(TenonKnobDef), \
        .kind = (knob_kind), \
        .name = TENON_STR(knob_name), \
        .default_value = TENON_STR(value), \
        .help = TENON_STR("Read by the op ZooCKnobs."), \
        .source = ZOO_HERE, \
    }

KNOB(enabled, "enabled", TENON_KNOB_BOOL, "true");
KNOB(answer, "answer", TENON_KNOB_INT, "42");
KNOB(ratio, "ratio", TENON_KNOB_FLOAT, "0.5");
KNOB(greeting, "greeting", TENON_KNOB_STRING, "hello");

static TenonCode zoo_register(const TenonHost *host, TenonRegistrar *registrar,
                              const TenonRegistrarTable *table, TenonSink *sink)
{
    static const ZooList *const lists[] = {
        &zoo_attributes, &zoo_create,    &zoo_compute,   &zoo_outputs, &zoo_asynchronous,
        &zoo_elements,   &zoo_variants,  &zoo_resources, &zoo_variables, &zoo_kept,
        &zoo_shapes,     &zoo_services,  &zoo_selection,
    };
    static const TenonKnobDef *const knobs[] = { &enabled, &answer, &ratio, &greeting };
    (void)host;
    (void)sink;
    for (size_t at = 0; at < ZOO_COUNT(lists); at++) {
        TenonCode code = register_list(registrar, table, lists[at]);
        if (code != TENON_OK) {
            return code;
        }
    }
    for (size_t at = 0; at < ZOO_COUNT(knobs); at++) {
        TenonCode code = table->knob(registrar, knobs[at]);
        if (code != TENON_OK) {
            return code;
        }
    }
    return TENON_OK;
}

static const TenonPluginV1 plugin = {
    .struct_size = sizeof(TenonPluginV1),
    .abi_major = TENON_ABI_MAJOR,
    .abi_minor = TENON_ABI_MINOR,
    .name = TENON_STR("zoo-c"),
    .version = TENON_STR("0.1.0"),
    .open = zoo_open,
    .register_all = zoo_register,
};

TENON_EXPORT const TenonPluginV1 *tenon_plugin_v1(uint32_t host_major, uint32_t host_minor)
{
    return TENON_ABI_ACCEPTS(host_major, host_minor) ? &plugin : NULL;
}
