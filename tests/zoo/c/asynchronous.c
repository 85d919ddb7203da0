/* Completion from a foreign thread, and waiting that cancellation ends. */
#define _POSIX_C_SOURCE 200809L
#include "zoo.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

typedef struct Async {
    int fails;
} Async;

static TenonCode create_async(const TenonCreate *create, TenonKernelState **state)
{
    TenonStr mode;
    TenonCode code = tenon_attr_string(create, "mode", &mode);
    if (code == TENON_OK) {
        code = tenon_zero_state(create, sizeof(Async), state);
    }
    if (code == TENON_OK) {
        ((Async *)*state)->fails = mode.len == 5 && memcmp(mode.ptr, "error", 5) == 0;
    }
    return code;
}

static TenonCode double_input(const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    TenonCode code = tenon_prepare_like(call, 0, 0);
    if (code == TENON_OK) {
        const float *from = x->data;
        float *to = call->outputs[0].data;
        for (uint64_t at = 0; at < x->elements; at++) {
            to[at] = from[at] + from[at];
        }
    }
    return code;
}

static void pause_a_millisecond(void)
{
    const struct timespec pause = { 0, 1000000 };
    nanosleep(&pause, NULL);
}

/* The call lives until it completes: its address is all that the thread needs. */
static void *finish_double(void *data)
{
    const TenonCall *call = data;
    pause_a_millisecond();
    call->services->complete(call->record, double_input(call));
    return NULL;
}

static void *finish_error(void *data)
{
    const TenonCall *call = data;
    pause_a_millisecond();
    call->services->complete(call->record,
                             tenon_fail(call, TENON_ABORTED, "zoo error on a thread"));
    return NULL;
}

static TenonCode start(TenonKernelState *state, const TenonCall *call)
{
    void *(*body)(void *) = ((const Async *)state)->fails ? finish_error : finish_double;
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, (void *)call) != 0) {
        return tenon_fail(call, TENON_RESOURCE_EXHAUSTED, "the system refuses another thread");
    }
    pthread_detach(thread);
    return TENON_PENDING;
}

TENON_OP("ZooCAsync", inputs("x: float"), outputs("y: float"), attrs("mode: {'value', 'error'} = 'value'"),
         shape(tenon_shape_of_first), stateful);
static const TenonKernelTable async_table = {
    .struct_size = sizeof(TenonKernelTable),
    .flags = TENON_KERNEL_FLAG_ASYNC,
    .create = create_async,
    .compute = start,
    .destroy = tenon_free_state,
};
KERNEL(async, "ZooCAsync");

typedef struct Blocking {
    int64_t limit_ms;
} Blocking;

static TenonCode create_blocking(const TenonCreate *create, TenonKernelState **state)
{
    int64_t limit_ms;
    TenonCode code = tenon_attr_int(create, "limit_ms", &limit_ms);
    if (code != TENON_OK) {
        return code;
    }
    if (limit_ms < 0) {
        return tenon_refuse(create, TENON_INVALID_ARGUMENT, "limit_ms: expected at least 0");
    }
    code = tenon_zero_state(create, sizeof(Blocking), state);
    if (code == TENON_OK) {
        ((Blocking *)*state)->limit_ms = limit_ms;
    }
    return code;
}

typedef struct Gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int open;
} Gate;

static void open_gate(void *data)
{
    Gate *gate = data;
    pthread_mutex_lock(&gate->lock);
    gate->open = 1;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

/* Waits for the gate to open, for so many milliseconds; whether it did. */
static int wait_at_gate(Gate *gate, int64_t limit_ms)
{
    struct timespec end;
    int waited = 0;
    int opened;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += limit_ms / 1000;
    end.tv_nsec += limit_ms % 1000 * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec += 1;
        end.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&gate->lock);
    while (!gate->open && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&gate->changed, &gate->lock, &end);
    }
    opened = gate->open;
    pthread_mutex_unlock(&gate->lock);
    return opened;
}

static TenonCode block(TenonKernelState *state, const TenonCall *call)
{
    Gate gate = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };
    uint64_t token = call->services->on_cancel(call->record, open_gate, &gate);
    int opened = wait_at_gate(&gate, ((const Blocking *)state)->limit_ms);
    /* When this returns the callback is not running any more: the gate may go. */
    call->services->off_cancel(call->record, token);
    pthread_cond_destroy(&gate.changed);
    pthread_mutex_destroy(&gate.lock);
    return opened ? tenon_fail(call, TENON_CANCELLED, "woken by cancellation")
                  : tenon_fail(call, TENON_DEADLINE_EXCEEDED, "nobody cancelled the step");
}

TENON_OP("ZooCBlocking", outputs("y: float"), attrs("limit_ms: int = 30000"), shape(zoo_shape_scalar), stateful);
static const TenonKernelTable blocking_table = {
    .struct_size = sizeof(TenonKernelTable),
    .flags = TENON_KERNEL_FLAG_BLOCKING,
    .create = create_blocking,
    .compute = block,
    .destroy = tenon_free_state,
};
KERNEL(blocking, "ZooCBlocking");
