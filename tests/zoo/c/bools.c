/* Bools as C has them: whatever is not 0 is true. */
#include "zoo.h"

#include <pthread.h>

/* Each byte of the input as a bool: 40 is true, and so is 255. */
static TenonCode mask_input(const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    TenonCode code = tenon_prepare_like(call, 0, 0);
    if (code == TENON_OK) {
        memcpy(call->outputs[0].data, x->data, x->bytes);
    }
    return code;
}

static TenonCode mask(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return mask_input(call);
}

TENON_OP("ZooCMask", inputs("x: uint8"), outputs("y: bool"), shape(tenon_shape_of_first));
STATELESS(mask, mask);
KERNEL(mask, "ZooCMask");

static void *finish_mask(void *data)
{
    const TenonCall *call = data;
    call->services->complete(call->record, mask_input(call));
    return NULL;
}

static TenonCode mask_later(TenonKernelState *state, const TenonCall *call)
{
    pthread_t thread;
    (void)state;
    if (pthread_create(&thread, NULL, finish_mask, (void *)call) != 0) {
        return tenon_fail(call, TENON_RESOURCE_EXHAUSTED, "the system refuses another thread");
    }
    pthread_detach(thread);
    return TENON_PENDING;
}

TENON_OP("ZooCMaskLater", inputs("x: uint8"), outputs("y: bool"), shape(tenon_shape_of_first));
static const TenonKernelTable mask_later_table = {
    .struct_size = sizeof(TenonKernelTable),
    .flags = TENON_KERNEL_FLAG_ASYNC,
    .compute = mask_later,
};
KERNEL(mask_later, "ZooCMaskLater");

/* The input itself as bools, without a copy: the host refuses that. */
static TenonCode mask_shared(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    (void)state;
    return call->services->share(call->record, 0, 0, x->dims, x->rank);
}

TENON_OP("ZooCMaskShared", inputs("x: uint8"), outputs("y: bool"), shape(tenon_shape_of_first));
STATELESS(mask_shared, mask_shared);
KERNEL(mask_shared, "ZooCMaskShared");
