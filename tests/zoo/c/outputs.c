/* The ways in which an output comes to be. */
#include "zoo.h"

static TenonCode planned(TenonKernelState *state, const TenonCall *call)
{
    int was_planned = (call->outputs[0].flags & TENON_SLOT_FLAG_PLANNED) != 0;
    TenonCode code = tenon_prepare_like(call, 0, 0);
    (void)state;
    if (code == TENON_OK) {
        memcpy(call->outputs[0].data, call->inputs[0]->data, call->inputs[0]->bytes);
        code = zoo_give_bool(call, 1, was_planned);
    }
    return code;
}

TENON_OP("ZooCPlanned", inputs("x: float"), outputs("y: float", "planned: bool"), shape(zoo_shape_same_and_scalar));
STATELESS(planned, planned);
KERNEL(planned, "ZooCPlanned");

static TenonCode allocate(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    const float *from = x->data;
    int64_t count = 0;
    TenonCode code;
    (void)state;
    for (uint64_t at = 0; at < x->elements; at++) {
        count += from[at] != 0;
    }
    code = tenon_prepare(call, 0, &count, 1);
    if (code == TENON_OK) {
        int64_t *index = call->outputs[0].data;
        for (uint64_t at = 0; at < x->elements; at++) {
            if (from[at] != 0) {
                *index++ = (int64_t)at;
            }
        }
    }
    return code;
}

TENON_OP("ZooCAllocate", inputs("x: float"), outputs("index: int64"), shape(zoo_shape_vector));
STATELESS(allocate, allocate);
KERNEL(allocate, "ZooCAllocate");

static TenonCode forward(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    const float *from = x->data;
    const uint64_t elements = x->elements;
    float *to;
    TenonCode code = TENON_OK;
    (void)state;
    /* A planned output is what it is: the executor has decided already. */
    if ((call->outputs[0].flags & TENON_SLOT_FLAG_PLANNED)
        || !call->services->forward(call->record, 0, 0, x->dims, x->rank)) {
        code = tenon_prepare_like(call, 0, 0);
    }
    if (code != TENON_OK) {
        return code;
    }
    to = call->outputs[0].data;
    for (uint64_t at = 0; at < elements; at++) {
        to[at] = from[at] + 1;
    }
    return zoo_give_bool(call, 1, to == from);
}

TENON_OP("ZooCForward", inputs("x: float"), outputs("y: float", "in_place: bool"), shape(zoo_shape_same_and_scalar));
STATELESS(forward, forward);
TENON_KERNEL("ZooCForward", "CPU", forward_table, in_place((0, 0)));

static TenonCode share(TenonKernelState *state, const TenonCall *call)
{
    int64_t elements = (int64_t)call->inputs[0]->elements;
    (void)state;
    return call->services->share(call->record, 0, 0, &elements, 1);
}

TENON_OP("ZooCShare", inputs("x: float"), outputs("y: float"), shape(zoo_shape_vector));
STATELESS(share, share);
KERNEL(share, "ZooCShare");

static TenonCode unused(TenonKernelState *state, const TenonCall *call)
{
    int nobody_reads = (call->outputs[0].flags & TENON_SLOT_FLAG_UNUSED) != 0;
    TenonCode code = TENON_OK;
    (void)state;
    if (!nobody_reads) {
        const float *x = call->inputs[0]->data;
        float sum = 0;
        for (uint64_t at = 0; at < call->inputs[0]->elements; at++) {
            sum += x[at];
        }
        code = zoo_give_float(call, 0, sum);
    }
    return code != TENON_OK ? code : zoo_give_bool(call, 1, nobody_reads);
}

TENON_OP("ZooCUnused", inputs("x: float"), outputs("sum: float", "unused: bool"), shape(zoo_shape_two_scalars));
STATELESS(unused, unused);
KERNEL(unused, "ZooCUnused");
