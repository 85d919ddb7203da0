/* A resource of the plugin's own: a counter, reached by name or by handle. */
#include "zoo.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Counters that are alive, so that a test sees that each is destroyed. */
static atomic_llong live_counters;

typedef struct Counter {
    atomic_llong count;
} Counter;

static TenonCode new_counter(void *data, void **value, TenonSink *sink)
{
    Counter *counter = malloc(sizeof *counter);
    (void)data;
    if (counter == NULL) {
        tenon_host->report(sink, tenon_str("no memory for a counter"));
        return TENON_RESOURCE_EXHAUSTED;
    }
    atomic_init(&counter->count, 0);
    atomic_fetch_add(&live_counters, 1);
    *value = counter;
    return TENON_OK;
}

static void destroy_counter(void *value)
{
    free(value);
    atomic_fetch_sub(&live_counters, 1);
}

static const TenonResourceType counter_type = {
    .struct_size = sizeof(TenonResourceType),
    .name = TENON_STR("zoo_c.Counter"),
    .destroy = destroy_counter,
};

/* Finds or makes the counter that the state names; a counted reference. */
static TenonCode find_counter(const TenonKernelState *state, const TenonCall *call,
                              TenonResource **result)
{
    const ZooNamed *named = (const ZooNamed *)state;
    return tenon_host->state->resource(call->record, zoo_str(&named->container),
                                     zoo_str(&named->name), &counter_type, new_counter, NULL,
                                     result);
}

static TenonCode next(TenonKernelState *state, const TenonCall *call)
{
    TenonResource *resource;
    Counter *counter;
    int64_t count;
    TenonCode code = find_counter(state, call, &resource);
    if (code != TENON_OK) {
        return code;
    }
    counter = tenon_host->state->resource_value(resource, &counter_type);
    count = atomic_fetch_add(&counter->count, 1) + 1;
    tenon_host->state->release_resource(resource);
    code = zoo_give_int(call, 0, count);
    return code != TENON_OK ? code : zoo_give_int(call, 1, atomic_load(&live_counters));
}

TENON_OP("ZooCCounterNext", outputs("count: int64", "live: int64"),
         attrs("container: string = ''", "shared_name: string = ''"), shape(zoo_shape_two_scalars), stateful);
STATEFUL(next, zoo_create_named, next, tenon_free_state);
KERNEL(next, "ZooCCounterNext");

static TenonCode handle(TenonKernelState *state, const TenonCall *call)
{
    TenonResource *resource;
    TenonCode code = tenon_prepare(call, 0, NULL, 0);
    if (code == TENON_OK) {
        code = find_counter(state, call, &resource);
    }
    if (code == TENON_OK) {
        /* The counted reference moves into the element. */
        ((TenonResourceElement *)call->outputs[0].data)->resource = resource;
    }
    return code;
}

TENON_OP("ZooCCounterHandle", outputs("handle: resource"),
         attrs("container: string = ''", "shared_name: string = ''"), shape(zoo_shape_scalar), stateful);
STATEFUL(handle, zoo_create_named, handle, tenon_free_state);
KERNEL(handle, "ZooCCounterHandle");

static TenonCode read_counter(TenonKernelState *state, const TenonCall *call)
{
    Counter *counter = tenon_host->state->resource_value(tenon_resource_at(call->inputs[0], 0),
                                                       &counter_type);
    (void)state;
    if (counter == NULL) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT,
                        "handle: expected a resource of type zoo_c.Counter");
    }
    return zoo_give_int(call, 0, atomic_load(&counter->count));
}

TENON_OP("ZooCCounterRead", inputs("handle: resource"), outputs("count: int64"), shape(zoo_shape_scalar), stateful);
STATELESS(read, read_counter);
KERNEL(read, "ZooCCounterRead");

static TenonCode remove_counter(TenonKernelState *state, const TenonCall *call)
{
    const ZooNamed *named = (const ZooNamed *)state;
    TenonCode code = tenon_host->state->remove_resource(call->record, zoo_str(&named->container),
                                                      zoo_str(&named->name), counter_type.name);
    if (code != TENON_OK && code != TENON_NOT_FOUND) {
        return code;
    }
    return zoo_give_bool(call, 0, code == TENON_OK);
}

TENON_OP("ZooCCounterRemove", outputs("removed: bool"), attrs("container: string = ''", "shared_name: string = ''"),
         shape(zoo_shape_scalar), stateful);
STATEFUL(remove, zoo_create_named, remove_counter, tenon_free_state);
KERNEL(remove, "ZooCCounterRemove");
