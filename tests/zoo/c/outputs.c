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

OP(planned, "ZooCPlanned", TENON_1("x: float"), TENON_2("y: float", "planned: bool"), TENON_0(), 0,
   zoo_shape_same_and_scalar);
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

OP(allocate, "ZooCAllocate", TENON_1("x: float"), TENON_1("index: int64"), TENON_0(), 0, zoo_shape_vector);
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

OP(forward, "ZooCForward", TENON_1("x: float"), TENON_2("y: float", "in_place: bool"), TENON_0(), 0,
   zoo_shape_same_and_scalar);
STATELESS(forward, forward);
KERNEL_LINE("ZooCForward", "CPU", "", 0, false, "{}", "[]");
static const TenonInPlace forward_pairs[] = { { 0, 0 } };
static const TenonKernelDef forward_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("ZooCForward"),
    .device_type = TENON_STR("CPU"),
    .in_place = forward_pairs,
    .in_place_count = ZOO_COUNT(forward_pairs),
    .table = &forward_table,
    .source = TENON_HERE,
};

static TenonCode share(TenonKernelState *state, const TenonCall *call)
{
    int64_t elements = (int64_t)call->inputs[0]->elements;
    (void)state;
    return call->services->share(call->record, 0, 0, &elements, 1);
}

OP(share, "ZooCShare", TENON_1("x: float"), TENON_1("y: float"), TENON_0(), 0, zoo_shape_vector);
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

OP(unused, "ZooCUnused", TENON_1("x: float"), TENON_2("sum: float", "unused: bool"), TENON_0(), 0,
   zoo_shape_two_scalars);
STATELESS(unused, unused);
KERNEL(unused, "ZooCUnused");

static const TenonOpDef *const ops[] = {
    &planned_op, &allocate_op, &forward_op, &share_op, &unused_op,
};
static const TenonKernelDef *const kernels[] = {
    &planned_kernel, &allocate_kernel, &forward_kernel, &share_kernel, &unused_kernel,
};
ZOO_LIST(zoo_outputs);
