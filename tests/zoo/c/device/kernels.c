/* Kernels for devices of type ZOOC: what they enqueue runs after they have returned. */
#include "zoo_device.h"

#include <stdlib.h>

/* Reads floats, changes them and writes them. */
typedef struct Work {
    const float *from;
    float *to;
    uint64_t count;
    float factor;
    int reverse;
} Work;

static TenonCode run_work(void *data, TenonCode failure)
{
    Work *work = data;
    (void)failure;
    for (uint64_t at = 0; at < work->count; at++) {
        uint64_t source = work->reverse ? work->count - 1 - at : at;
        work->to[at] = work->from[source] * work->factor;
    }
    free(work);
    return TENON_OK;
}

/* Enqueues work, or does it at once where the host gave no stream. */
static TenonCode enqueue(const TenonCall *call, Work wanted)
{
    Work *work = malloc(sizeof *work);
    TenonCode code;
    if (work == NULL) {
        return tenon_fail(call, TENON_RESOURCE_EXHAUSTED, "no memory for a command");
    }
    *work = wanted;
    if (call->stream == NULL) {
        return run_work(work, TENON_OK);
    }
    code = zoo_device_enqueue(call->device_state, call->stream, run_work, work, 0);
    if (code != TENON_OK) {
        free(work);
    }
    return code;
}

/* Work from input 0 to an output. */
static Work work_on(const TenonCall *call, uint32_t output)
{
    const TenonSlot *x = call->inputs[0];
    const TenonSlot *y = &call->outputs[output];
    return (Work){
        .from = zoo_address(x->data, x->memory),
        .to = zoo_address(y->data, y->memory),
        .count = x->elements,
        .factor = 1,
    };
}

static TenonCode scale(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *n = call->inputs[1];
    TenonCode code;
    Work work;
    (void)state;
    if (n->elements == 0) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "n: expected one element, found none");
    }
    code = tenon_prepare_like(call, 0, 0);
    if (code != TENON_OK) {
        return code;
    }
    work = work_on(call, 0);
    work.factor = (float)*(const int32_t *)n->data;
    return enqueue(call, work);
}

static TenonCode facts(TenonKernelState *state, const TenonCall *call)
{
    const int64_t length = 5;
    int64_t *to;
    TenonCode code = call->services->allocate(call->record, 0, &length, 1, TENON_HOST_MEMORY);
    (void)state;
    if (code != TENON_OK) {
        return code;
    }
    to = call->outputs[0].data;
    to[0] = call->inputs[0]->memory;
    to[1] = call->inputs[1]->memory;
    to[2] = call->outputs[0].memory;
    to[3] = call->device_state != NULL;
    to[4] = call->stream != NULL;
    return TENON_OK;
}

static TenonCode scratch(TenonKernelState *state, const TenonCall *call)
{
    void *lent;
    Work first;
    Work second;
    TenonCode code = call->services->scratch(call->record, call->inputs[0]->bytes, 64,
                                             TENON_DEVICE_MEMORY, &lent);
    (void)state;
    if (code == TENON_OK) {
        code = tenon_prepare_like(call, 0, 0);
    }
    if (code != TENON_OK) {
        return code;
    }
    first = work_on(call, 0);
    second = first;
    first.to = zoo_address(lent, TENON_DEVICE_MEMORY);
    first.reverse = 1;
    second.from = first.to;
    code = enqueue(call, first);
    return code != TENON_OK ? code : enqueue(call, second);
}

static TenonCode kinds(TenonKernelState *state, const TenonCall *call)
{
    static const TenonMemoryKind wanted[] = { TENON_PINNED_MEMORY, TENON_SHARED_MEMORY };
    const TenonSlot *x = call->inputs[0];
    (void)state;
    for (uint32_t output = 0; output < 2; output++) {
        TenonCode code = call->services->allocate(call->record, output, x->dims, x->rank,
                                                  wanted[output]);
        if (code == TENON_OK) {
            code = enqueue(call, work_on(call, output));
        }
        if (code != TENON_OK) {
            return code;
        }
    }
    return TENON_OK;
}

/* The call lives until it completes: its address is all that the stream needs. */
static TenonCode complete(void *data, TenonCode failure)
{
    const TenonCall *call = data;
    call->services->complete(call->record, failure);
    return TENON_OK;
}

static TenonCode start(TenonKernelState *state, const TenonCall *call)
{
    Work work;
    TenonCode code = tenon_prepare_like(call, 0, 0);
    (void)state;
    if (code != TENON_OK) {
        return code;
    }
    work = work_on(call, 0);
    work.factor = 2;
    code = enqueue(call, work);
    if (code != TENON_OK || call->stream == NULL) {
        return code;
    }
    code = zoo_device_enqueue(call->device_state, call->stream, complete, (void *)call, 1);
    return code != TENON_OK ? code : TENON_PENDING;
}

static TenonCode run_failure(void *data, TenonCode failure)
{
    (void)data;
    (void)failure;
    return TENON_DATA_LOSS;
}

static TenonCode failure(TenonKernelState *state, const TenonCall *call)
{
    TenonCode code = tenon_prepare_like(call, 0, 0);
    (void)state;
    if (code != TENON_OK) {
        return code;
    }
    return call->stream == NULL
        ? tenon_fail(call, TENON_DATA_LOSS, "zoo error on a stream")
        : zoo_device_enqueue(call->device_state, call->stream, run_failure, NULL, 0);
}

static TenonCode lose(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    zoo_device_lose(call->device_state, tenon_str("zoo device lost"));
    return tenon_fail(call, TENON_UNAVAILABLE, "zoo device lost");
}

static TenonCode both_shapes(const TenonHost *host, TenonShapeCall *call)
{
    TenonCode code = tenon_shape_of_first(host, call);
    return code != TENON_OK ? code
                            : host->shapes->set_output(call, 1, host->shapes->input(call, 0));
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * An op and its kernel on ZOOC, with their manifest lines. The arrays `id`_takes, `id`_gives and `id`_host
 * hold its arguments and those of them that lie in host memory; the JSON says the same as the first two.
 */
#define DEVICE_OP(id, op_name, takes_json, gives_json, op_flags, shape_fn, table_flags, compute_fn) \
    TENON_MANIFEST("{\"kind\":\"op\",\"name\":\"" op_name "\",\"inputs\":" takes_json \
                   ",\"outputs\":" gives_json "}\n" \
                   "{\"kind\":\"kernel\",\"op\":\"" op_name "\",\"device\":\"ZOOC\"}"); \
    static const TenonKernelTable id##_table = { \
        .struct_size = sizeof(TenonKernelTable), \
        .flags = (table_flags), \
        .compute = (compute_fn), \
    }; \
    static const TenonOpDef id##_op = { \
        .struct_size = sizeof(TenonOpDef), \
        .flags = (op_flags), \
        .name = TENON_STR(op_name), \
        .inputs = { id##_takes, COUNT(id##_takes) }, \
        .outputs = { id##_gives, COUNT(id##_gives) }, \
        .shape = (shape_fn), \
        .source = TENON_HERE, \
    }; \
    static const TenonKernelDef id##_kernel = { \
        .struct_size = sizeof(TenonKernelDef), \
        .op = TENON_STR(op_name), \
        .device_type = TENON_STR("ZOOC"), \
        .host_memory = { id##_host, COUNT(id##_host) }, \
        .table = &id##_table, \
        .source = TENON_HERE, \
    }

/* As DEVICE_OP, from x to y in the memory of the device. */
#define DEVICE_MAP(id, op_name, op_flags, table_flags, compute_fn) \
    TENON_MANIFEST("{\"kind\":\"op\",\"name\":\"" op_name "\",\"inputs\":[\"x: float\"]," \
                   "\"outputs\":[\"y: float\"]}\n" \
                   "{\"kind\":\"kernel\",\"op\":\"" op_name "\",\"device\":\"ZOOC\"}"); \
    static const TenonKernelTable id##_table = { \
        .struct_size = sizeof(TenonKernelTable), \
        .flags = (table_flags), \
        .compute = (compute_fn), \
    }; \
    static const TenonOpDef id##_op = { \
        .struct_size = sizeof(TenonOpDef), \
        .flags = (op_flags), \
        .name = TENON_STR(op_name), \
        .inputs = { x_float, 1 }, \
        .outputs = { y_float, 1 }, \
        .shape = tenon_shape_of_first, \
        .source = TENON_HERE, \
    }; \
    static const TenonKernelDef id##_kernel = { \
        .struct_size = sizeof(TenonKernelDef), \
        .op = TENON_STR(op_name), \
        .device_type = TENON_STR("ZOOC"), \
        .table = &id##_table, \
        .source = TENON_HERE, \
    }

static const TenonStr x_float[] = { TENON_STR("x: float") };
static const TenonStr y_float[] = { TENON_STR("y: float") };

static const TenonStr scale_takes[] = { TENON_STR("x: float"), TENON_STR("n: int32") };
static const TenonStr scale_gives[] = { TENON_STR("y: float") };
static const TenonStr scale_host[] = { TENON_STR("n") };
DEVICE_OP(scale, "ZooCDeviceScale", "[\"x: float\",\"n: int32\"]", "[\"y: float\"]", 0, tenon_shape_of_first,
          0, scale);

static const TenonStr facts_takes[] = { TENON_STR("x: float"), TENON_STR("n: int32") };
static const TenonStr facts_gives[] = { TENON_STR("facts: int64") };
static const TenonStr facts_host[] = { TENON_STR("n"), TENON_STR("facts") };
DEVICE_OP(facts, "ZooCDeviceFacts", "[\"x: float\",\"n: int32\"]", "[\"facts: int64\"]", 0, NULL, 0,
          facts);

DEVICE_MAP(scratch, "ZooCDeviceScratch", 0, 0, scratch);
DEVICE_MAP(async, "ZooCDeviceAsync", TENON_OP_FLAG_STATEFUL, TENON_KERNEL_FLAG_ASYNC, start);
DEVICE_MAP(failure, "ZooCDeviceFailure", TENON_OP_FLAG_STATEFUL, 0, failure);
DEVICE_MAP(lose, "ZooCDeviceLose", TENON_OP_FLAG_STATEFUL, 0, lose);

static const TenonKernelTable kinds_table = {
    .struct_size = sizeof(TenonKernelTable),
    .compute = kinds,
};
static const TenonStr kinds_gives[] = { TENON_STR("pinned: float"), TENON_STR("shared: float") };
TENON_MANIFEST("{\"kind\":\"op\",\"name\":\"ZooCDeviceKinds\",\"inputs\":[\"x: float\"],"
               "\"outputs\":[\"pinned: float\",\"shared: float\"]}");
static const TenonOpDef kinds_op = {
    .struct_size = sizeof(TenonOpDef),
    .name = TENON_STR("ZooCDeviceKinds"),
    .inputs = { x_float, 1 },
    .outputs = { kinds_gives, 2 },
    .shape = both_shapes,
    .source = TENON_HERE,
};
TENON_MANIFEST("{\"kind\":\"kernel\",\"op\":\"ZooCDeviceKinds\",\"device\":\"ZOOC\"}");
static const TenonKernelDef kinds_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("ZooCDeviceKinds"),
    .device_type = TENON_STR("ZOOC"),
    .table = &kinds_table,
    .source = TENON_HERE,
};

TenonCode zoo_register_kernels(TenonRegistrar *registrar, const TenonRegistrarTable *table)
{
    static const struct {
        const TenonOpDef *op;
        const TenonKernelDef *kernel;
    } all[] = {
        { &scale_op, &scale_kernel },     { &facts_op, &facts_kernel },
        { &scratch_op, &scratch_kernel }, { &kinds_op, &kinds_kernel },
        { &async_op, &async_kernel },     { &failure_op, &failure_kernel },
        { &lose_op, &lose_kernel },
    };
    for (size_t at = 0; at < COUNT(all); at++) {
        TenonCode code = table->op(registrar, all[at].op);
        if (code == TENON_OK) {
            code = table->kernel(registrar, all[at].kernel);
        }
        if (code != TENON_OK) {
            return code;
        }
    }
    return TENON_OK;
}
