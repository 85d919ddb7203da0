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

/* An op and its kernel on ZOOC, from x to y in the memory of the device. */
#define DEVICE_MAP(id, op_name, ...) \
    TENON_OP(op_name, inputs("x: float"), outputs("y: float"), shape(tenon_shape_of_first), stateful); \
    TENON_TABLE(id##_table, __VA_ARGS__); \
    TENON_KERNEL(op_name, "ZOOC", id##_table)

TENON_OP("ZooCDeviceScale", inputs("x: float", "n: int32"), outputs("y: float"), shape(tenon_shape_of_first));
TENON_TABLE(scale_table, .compute = scale);
TENON_KERNEL("ZooCDeviceScale", "ZOOC", scale_table, host_memory("n"));

TENON_OP("ZooCDeviceFacts", inputs("x: float", "n: int32"), outputs("facts: int64"));
TENON_TABLE(facts_table, .compute = facts);
TENON_KERNEL("ZooCDeviceFacts", "ZOOC", facts_table, host_memory("n", "facts"));

TENON_OP("ZooCDeviceScratch", inputs("x: float"), outputs("y: float"), shape(tenon_shape_of_first));
TENON_TABLE(scratch_table, .compute = scratch);
TENON_KERNEL("ZooCDeviceScratch", "ZOOC", scratch_table);

DEVICE_MAP(async, "ZooCDeviceAsync", .flags = TENON_KERNEL_FLAG_ASYNC, .compute = start);
DEVICE_MAP(failure, "ZooCDeviceFailure", .compute = failure);
DEVICE_MAP(lose, "ZooCDeviceLose", .compute = lose);

TENON_OP("ZooCDeviceKinds", inputs("x: float"), outputs("pinned: float", "shared: float"), shape(both_shapes));
TENON_TABLE(kinds_table, .compute = kinds);
TENON_KERNEL("ZooCDeviceKinds", "ZOOC", kinds_table);
