/* Gradients of ops: of a product, and of a copy whose gradient refuses nodes. */
#include "zoo.h"

static TenonCode product(TenonKernelState *state, const TenonCall *call)
{
    TenonCode code = tenon_prepare_like(call, 0, 0);
    (void)state;
    if (call->inputs[1]->elements != call->inputs[0]->elements) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "expected equal shapes");
    }
    for (uint64_t at = 0; code == TENON_OK && at < call->inputs[0]->elements; at++) {
        ((float *)call->outputs[0].data)[at] =
            ((const float *)call->inputs[0]->data)[at] * ((const float *)call->inputs[1]->data)[at];
    }
    return code;
}

/* The gradient of a is g * x, that of x is g * a. */
static TenonCode product_gradient(const TenonHost *host, TenonGradientCall *call, const TenonGradientTable *table)
{
    TenonGraphValue g = TENON_GRAPH_VALUE_NONE;
    TenonCode code = table->dense_gradient(call, 0, &g);
    (void)host;
    for (uint32_t input = 0; code == TENON_OK && input < 2; input++) {
        TenonGraphValue made = TENON_GRAPH_VALUE_NONE;
        const TenonGraphValue factors[] = { g, table->input(call, 1 - input) };
        code = table->is_wanted(call, input) ? tenon_gradient_op(call, table, "Mul", factors, 2, &made) : TENON_OK;
        if (code == TENON_OK && made != TENON_GRAPH_VALUE_NONE) {
            code = tenon_gradient_set(call, table, input, made);
        }
    }
    return code;
}

TENON_OP("ZooCGradientProduct", inputs("a: float", "x: float"), outputs("y: float"), shape(tenon_shape_of_first),
         gradient(product_gradient), facts(.refusal = TENON_REFUSES_UNEQUAL_SHAPES));
STATELESS(product, product);
KERNEL(product, "ZooCGradientProduct");

static TenonCode copy(TenonKernelState *state, const TenonCall *call)
{
    TenonCode code = tenon_prepare_like(call, 0, 0);
    (void)state;
    if (code == TENON_OK && call->inputs[0]->elements > 0) {
        memcpy(call->outputs[0].data, call->inputs[0]->data, call->inputs[0]->elements * sizeof(float));
    }
    return code;
}

static TenonCode refused(const TenonHost *host, TenonGradientCall *call, const TenonGradientTable *table)
{
    (void)host;
    return table->fail(call, TENON_FAILED_PRECONDITION, tenon_str("the zoo refuses"));
}

TENON_OP("ZooCGradientRefused", inputs("x: float"), outputs("y: float"), shape(tenon_shape_of_first),
         gradient(refused));
STATELESS(refused, copy);
KERNEL(refused, "ZooCGradientRefused");
