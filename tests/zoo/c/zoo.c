/* The C zoo's door. What its ops are for stands in tests/zoo/README.md. */
#include "zoo.h"

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

#define KNOB(id, type, value) TENON_KNOB(id, #id, type, value, "Read by the op ZooCKnobs.")
KNOB(enabled, BOOL, "true");
KNOB(answer, INT, "42");
KNOB(ratio, FLOAT, "0.5");
KNOB(greeting, STRING, "hello");

static TenonCode zoo_register(const TenonHost *host, TenonRegistrar *registrar,
                              const TenonRegistrarTable *table, TenonSink *sink)
{
    static const ZooList *const lists[] = {
        &zoo_attributes, &zoo_create,    &zoo_compute,   &zoo_outputs, &zoo_asynchronous,
        &zoo_elements,   &zoo_variants,  &zoo_resources, &zoo_variables, &zoo_kept,
        &zoo_shapes,     &zoo_services,  &zoo_selection, &zoo_bools,
    };
    static const TenonKnobDef *const knobs[] = {
        &enabled_knob, &answer_knob, &ratio_knob, &greeting_knob,
    };
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

TENON_DOOR(zoo_register)
