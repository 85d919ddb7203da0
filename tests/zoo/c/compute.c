/* What a call brings: arguments, slots, the step, cancellation, deadline, scratch, trace, errors. */
#include "zoo.h"

static TenonCode variadic(TenonKernelState *state, const TenonCall *call)
{
    const TenonRange xs = call->input_args[0];
    const TenonRange ys = call->input_args[1];
    const TenonRange sums = call->output_args[0];
    float total = 0;
    (void)state;
    for (uint32_t input = ys.start; input < ys.start + ys.len; input++) {
        const float *y = call->inputs[input]->data;
        for (uint64_t at = 0; at < call->inputs[input]->elements; at++) {
            total += y[at];
        }
    }
    for (uint32_t at = 0; at < xs.len; at++) {
        const TenonSlot *x = call->inputs[xs.start + at];
        TenonCode code = tenon_prepare(call, sums.start + at, x->dims, x->rank);
        const float *from = x->data;
        float *to = call->outputs[sums.start + at].data;
        if (code != TENON_OK) {
            return code;
        }
        for (uint64_t element = 0; element < x->elements; element++) {
            to[element] = from[element] + total;
        }
    }
    return zoo_give_float(call, call->output_args[1].start, total);
}

static TenonCode variadic_shape(const TenonHost *host, TenonShapeCall *call)
{
    const TenonShapeTable *shapes = host->shapes;
    uint32_t last = shapes->output_count(call) - 1;
    for (uint32_t output = 0; output < last; output++) {
        TenonCode code = shapes->set_output(call, output, shapes->input(call, output));
        if (code != TENON_OK) {
            return code;
        }
    }
    return shapes->set_output(call, last, shapes->make_shape(call, NULL, 0));
}

TENON_OP("ZooCVariadic", inputs("xs: N * float", "ys: M * float"), outputs("sums: N * float", "total: float"),
         attrs("N: int >= 1", "M: int >= 0"), shape(variadic_shape));
STATELESS(variadic, variadic);
KERNEL(variadic, "ZooCVariadic");

static TenonCode type_list(TenonKernelState *state, const TenonCall *call)
{
    int64_t count = call->input_count;
    TenonCode code = tenon_prepare(call, 0, &count, 1);
    (void)state;
    for (uint32_t input = 0; code == TENON_OK && input < call->input_count; input++) {
        ((int64_t *)call->outputs[0].data)[input] = (int64_t)call->inputs[input]->bytes;
    }
    return code;
}

TENON_OP("ZooCTypeList", inputs("xs: T"), outputs("bytes: int64"), attrs("T: list(type) >= 1"));
STATELESS(type_list, type_list);
KERNEL(type_list, "ZooCTypeList");

/* Writes integers as a vector. */
static TenonCode give_ints(const TenonCall *call, const int64_t *facts, size_t count)
{
    int64_t length = (int64_t)count;
    TenonCode code = tenon_prepare(call, 0, &length, 1);
    if (code == TENON_OK) {
        memcpy(call->outputs[0].data, facts, count * sizeof *facts);
    }
    return code;
}

static TenonCode vector_of(const TenonHost *host, TenonShapeCall *call, int64_t length)
{
    TenonDimId dim = host->shapes->make_dim(call, length);
    return host->shapes->set_output(call, 0, host->shapes->make_shape(call, &dim, 1));
}

static TenonCode slot_facts(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *a = call->inputs[0];
    const TenonSlot *b = call->inputs[1];
    const int64_t facts[] = {
        a->dtype,
        a->rank,
        a->memory,
        (int64_t)a->elements,
        (int64_t)a->bytes,
        (a->flags & TENON_SLOT_FLAG_CONSTANT) != 0,
        a->alias,
        b->alias,
    };
    (void)state;
    return give_ints(call, facts, ZOO_COUNT(facts));
}

static TenonCode slot_shape(const TenonHost *host, TenonShapeCall *call)
{
    return vector_of(host, call, 8);
}

TENON_OP("ZooCSlotFacts", inputs("a: T", "b: T"), outputs("facts: int64"), attrs("T: type"), shape(slot_shape));
STATELESS(slot_facts, slot_facts);
KERNEL(slot_facts, "ZooCSlotFacts");

static TenonCode step_facts(TenonKernelState *state, const TenonCall *call)
{
    const int64_t facts[] = {
        (int64_t)call->step->step_id,
        (int64_t)call->frame,
        (int64_t)call->iteration,
    };
    (void)state;
    return give_ints(call, facts, ZOO_COUNT(facts));
}

static TenonCode step_shape(const TenonHost *host, TenonShapeCall *call)
{
    return vector_of(host, call, 3);
}

TENON_OP("ZooCStepFacts", outputs("facts: int64"), shape(step_shape), stateful);
STATELESS(step_facts, step_facts);
KERNEL(step_facts, "ZooCStepFacts");

static TenonCode cancel_flag(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    if (tenon_cancelled(call)) {
        return tenon_fail(call, TENON_CANCELLED, "the step is cancelled");
    }
    return zoo_give_bool(call, 0, 0);
}

TENON_OP("ZooCCancelFlag", outputs("cancelled: bool"), shape(zoo_shape_scalar), stateful);
STATELESS(cancel_flag, cancel_flag);
KERNEL(cancel_flag, "ZooCCancelFlag");

static TenonCode deadline(TenonKernelState *state, const TenonCall *call)
{
    uint64_t end = call->step->deadline_ns;
    uint64_t now = call->services->now_ns();
    (void)state;
    if (end == TENON_NO_DEADLINE) {
        return zoo_give_int(call, 0, -1);
    }
    return zoo_give_int(call, 0, end > now ? (int64_t)(end - now) : 0);
}

TENON_OP("ZooCDeadline", outputs("remaining_ns: int64"), shape(zoo_shape_scalar), stateful);
STATELESS(deadline, deadline);
KERNEL(deadline, "ZooCDeadline");

static TenonCode scratch(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    void *lent;
    TenonCode code;
    (void)state;
    code = call->services->scratch(call->record, x->bytes, 64, TENON_HOST_MEMORY, &lent);
    if (code != TENON_OK) {
        return code;
    }
    if ((uintptr_t)lent % 64 != 0) {
        return tenon_fail(call, TENON_INTERNAL, "scratch memory is not aligned to 64 bytes");
    }
    memcpy(lent, x->data, x->bytes);
    code = tenon_prepare_like(call, 0, 0);
    if (code == TENON_OK) {
        const float *from = lent;
        float *to = call->outputs[0].data;
        for (uint64_t at = 0; at < x->elements; at++) {
            to[at] = from[x->elements - 1 - at];
        }
    }
    return code;
}

TENON_OP("ZooCScratch", inputs("x: float"), outputs("y: float"), shape(tenon_shape_of_first));
STATELESS(scratch, scratch);
KERNEL(scratch, "ZooCScratch");

static TenonCode traced(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    uint64_t begin = call->tracing ? call->services->now_ns() : 0;
    TenonCode code = tenon_prepare_like(call, 0, 0);
    (void)state;
    if (code == TENON_OK) {
        const float *from = x->data;
        float *to = call->outputs[0].data;
        for (uint64_t at = 0; at < x->elements; at++) {
            to[at] = from[at] + from[at];
        }
    }
    if (call->tracing) {
        call->services->trace(call->record, tenon_str("zoo.double"), begin,
                              call->services->now_ns());
    }
    return code;
}

TENON_OP("ZooCTrace", inputs("x: float"), outputs("y: float"), shape(tenon_shape_of_first));
STATELESS(traced, traced);
KERNEL(traced, "ZooCTrace");

typedef struct Failure {
    TenonCode code;
    ZooText message;
} Failure;

static TenonCode create_failure(const TenonCreate *create, TenonKernelState **state)
{
    int64_t number;
    TenonStr message;
    TenonCode code = tenon_attr_int(create, "code", &number);
    if (code == TENON_OK) {
        code = tenon_attr_string(create, "message", &message);
    }
    if (code != TENON_OK) {
        return code;
    }
    if (number < 1 || number > 16) {
        return tenon_refuse(create, TENON_INVALID_ARGUMENT, "code: expected 1 to 16");
    }
    code = tenon_zero_state(create, sizeof(Failure), state);
    if (code == TENON_OK) {
        Failure *failure = (Failure *)*state;
        failure->code = (TenonCode)number;
        zoo_add_bytes(&failure->message, message);
    }
    return code;
}

static TenonCode fail(TenonKernelState *state, const TenonCall *call)
{
    const Failure *failure = (const Failure *)state;
    return call->services->fail(call->record, failure->code, zoo_str(&failure->message));
}

TENON_OP("ZooCFailure", outputs("y: float"), attrs("code: int", "message: string"), stateful);
STATEFUL(failure, create_failure, fail, tenon_free_state);
KERNEL(failure, "ZooCFailure");
