/* What registrations state of ops: facts that passes go by. */
#include "zoo.h"

static TenonCode copy(TenonKernelState *state, const TenonCall *call)
{
    TenonCode code = tenon_prepare_like(call, 0, 0);
    (void)state;
    if (code == TENON_OK && call->inputs[0]->elements > 0) {
        memcpy(call->outputs[0].data, call->inputs[0]->data, call->inputs[0]->elements * sizeof(float));
    }
    return code;
}

TENON_OP("ZooCFactsPass", inputs("x: float"), outputs("y: float"), shape(tenon_shape_of_first),
         facts(.flags = TENON_FACT_PASSES_INPUT, .refusal = TENON_REFUSES_NOTHING));
STATELESS(pass, copy);
KERNEL(pass, "ZooCFactsPass");

static TenonCode merged(const TenonHost *host, TenonShapeCall *call)
{
    const TenonShapeTable *shapes = host->shapes;
    TenonShapeId shape;
    TenonCode code = shapes->merge(call, shapes->input(call, 0), shapes->input(call, 1), &shape);
    return code != TENON_OK ? code : shapes->set_output(call, 0, shape);
}

static TenonCode sum(TenonKernelState *state, const TenonCall *call)
{
    TenonCode code = tenon_prepare_like(call, 0, 0);
    (void)state;
    if (call->inputs[0]->elements != call->inputs[1]->elements) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "expected equal shapes");
    }
    for (uint64_t at = 0; code == TENON_OK && at < call->inputs[0]->elements; at++) {
        ((float *)call->outputs[0].data)[at] =
            ((const float *)call->inputs[0]->data)[at] + ((const float *)call->inputs[1]->data)[at];
    }
    return code;
}

TENON_OP("ZooCFactsSum", inputs("a: float", "b: float"), outputs("y: float"), shape(merged),
         facts(.refusal = TENON_REFUSES_UNEQUAL_SHAPES, .symmetry = TENON_SYMMETRY_BITS));
STATELESS(sum, sum);
KERNEL(sum, "ZooCFactsSum");

static TenonCode vector(const TenonHost *host, TenonShapeCall *call)
{
    const TenonShapeTable *shapes = host->shapes;
    TenonDimId length = shapes->make_dim(call, shapes->rank(call, shapes->input(call, 0)));
    return shapes->set_output(call, 0, shapes->make_shape(call, &length, 1));
}

static TenonCode dims(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    int64_t rank = (int64_t)x->rank;
    TenonCode code = tenon_prepare(call, 0, &rank, 1);
    (void)state;
    if (code == TENON_OK && rank > 0) {
        memcpy(call->outputs[0].data, x->dims, (size_t)rank * sizeof *x->dims);
    }
    return code;
}

TENON_OP("ZooCFactsShape", inputs("x: float"), outputs("y: int64"), shape(vector),
         facts(.value = TENON_VALUE_SHAPE, .refusal = TENON_REFUSES_NOTHING,
               .gradient = TENON_GRADIENT_NONE));
STATELESS(dims, dims);
KERNEL(dims, "ZooCFactsShape");

static TenonCode check(TenonKernelState *state, const TenonCall *call)
{
    for (uint64_t at = 0; at < call->inputs[0]->elements; at++) {
        if (((const float *)call->inputs[0]->data)[at] < 0) {
            return tenon_fail(call, TENON_INVALID_ARGUMENT, "x is below zero at %" PRIu64, at);
        }
    }
    return copy(state, call);
}

TENON_OP("ZooCFactsCheck", inputs("x: float"), outputs("y: float"), shape(tenon_shape_of_first),
         facts(.flags = TENON_FACT_CHECKS | TENON_FACT_PASSES_INPUT));
STATELESS(check, check);
KERNEL(check, "ZooCFactsCheck");
