/* What a kernel learns when it is created. */
#include "zoo.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Facts {
    ZooText texts[10];
} Facts;

static void describe(Facts *facts, const TenonCreate *create)
{
    zoo_add_bytes(&facts->texts[0], create->op);
    zoo_add_bytes(&facts->texts[1], create->node);
    zoo_add_bytes(&facts->texts[2], create->device);
    for (uint32_t input = 0; input < create->input_count; input++) {
        zoo_add(&facts->texts[3], "%u;", create->input_types[input]);
        zoo_add_shape(&facts->texts[5], &create->input_shapes[input]);
        zoo_add(&facts->texts[5], ";");
    }
    for (uint32_t output = 0; output < create->output_count; output++) {
        zoo_add(&facts->texts[4], "%u;", create->output_types[output]);
    }
    zoo_add_range(&facts->texts[6], &create->input_ranges[0]);
    zoo_add_range(&facts->texts[7], &create->input_ranges[1]);
    zoo_add_range(&facts->texts[8], &create->output_ranges[0]);
    for (size_t arg = 0; arg < create->input_args.len; arg++) {
        zoo_add_bytes(&facts->texts[9], create->input_args.ptr[arg]);
        zoo_add(&facts->texts[9], ";");
    }
    zoo_add_bytes(&facts->texts[9], create->output_args.ptr[0]);
}

static TenonCode create_facts(const TenonCreate *create, TenonKernelState **state)
{
    TenonCode code = tenon_zero_state(create, sizeof(Facts), state);
    if (code == TENON_OK) {
        describe((Facts *)*state, create);
    }
    return code;
}

static TenonCode give_facts(TenonKernelState *state, const TenonCall *call)
{
    const Facts *facts = (const Facts *)state;
    return zoo_give_texts(call, 0, facts->texts, ZOO_COUNT(facts->texts));
}

TENON_OP("ZooCCreateFacts", inputs("xs: N * float", "i: int32"), outputs("facts: string"), attrs("N: int >= 1"));
STATEFUL(facts, create_facts, give_facts, tenon_free_state);
KERNEL(facts, "ZooCCreateFacts");

typedef struct Constant {
    float c;
} Constant;

static TenonCode create_constant(const TenonCreate *create, TenonKernelState **state)
{
    const TenonSlot *c = &create->constants[1];
    TenonCode code;
    if (c->data == NULL) {
        return tenon_refuse(create, TENON_INVALID_ARGUMENT,
                          "input c: expected a constant, found a computed value");
    }
    if (c->dtype != TENON_FLOAT || c->elements != 1) {
        return tenon_refuse(create, TENON_INVALID_ARGUMENT, "expected a constant of one float");
    }
    code = tenon_zero_state(create, sizeof(Constant), state);
    if (code == TENON_OK) {
        ((Constant *)*state)->c = *(const float *)c->data;
    }
    return code;
}

static TenonCode add_constant(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    TenonCode code = tenon_prepare_like(call, 0, 0);
    if (code == TENON_OK) {
        const float *from = x->data;
        float *to = call->outputs[0].data;
        for (uint64_t at = 0; at < x->elements; at++) {
            to[at] = from[at] + ((const Constant *)state)->c;
        }
    }
    return code;
}

TENON_OP("ZooCConstantView", inputs("x: float", "c: float"), outputs("y: float"), shape(tenon_shape_of_first));
STATEFUL(constant, create_constant, add_constant, tenon_free_state);
KERNEL(constant, "ZooCConstantView");

/* Weights in reverse order, with a number of their own, so that a test sees which plans share a form. */
typedef struct Reversed {
    int64_t number;
    uint64_t count;
    float weights[];
} Reversed;

typedef struct Prepacked {
    const Reversed *form;
} Prepacked;

static TenonCode create_prepack(const TenonCreate *create, TenonKernelState **state)
{
    return tenon_zero_state(create, sizeof(Prepacked), state);
}

static TenonCode prepack(TenonKernelState *state, uint32_t input, const TenonSlot *view,
                         TenonPacked **packed, uint64_t *packed_bytes, TenonSink *sink)
{
    static atomic_llong next = 1;
    const float *weights = view->data;
    Reversed *form;
    (void)state;
    if (input != 1 || view->dtype != TENON_FLOAT) {
        return TENON_OK;
    }
    *packed_bytes = sizeof(Reversed) + view->bytes;
    form = malloc(*packed_bytes);
    if (form == NULL) {
        tenon_host->report(sink, tenon_str("no memory for the packed form"));
        return TENON_RESOURCE_EXHAUSTED;
    }
    form->number = atomic_fetch_add(&next, 1);
    form->count = view->elements;
    for (uint64_t at = 0; at < form->count; at++) {
        form->weights[at] = weights[form->count - 1 - at];
    }
    *packed = (TenonPacked *)form;
    return TENON_OK;
}

static void attach_packed(TenonKernelState *state, uint32_t input, TenonPacked *packed)
{
    (void)input;
    ((Prepacked *)state)->form = (const Reversed *)packed;
}

static void release_packed(TenonPacked *packed)
{
    free(packed);
}

static TenonCode multiply(TenonKernelState *state, const TenonCall *call)
{
    const Reversed *form = ((const Prepacked *)state)->form;
    const TenonSlot *x = call->inputs[0];
    uint64_t count = form != NULL ? form->count : call->inputs[1]->elements;
    TenonCode code;
    if (count != x->elements) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "w: expected as many elements as x has");
    }
    code = tenon_prepare_like(call, 0, 0);
    if (code == TENON_OK) {
        const float *from = x->data;
        float *to = call->outputs[0].data;
        for (uint64_t at = 0; at < count; at++) {
            /* Without a packed form the constant is still there. */
            const float *w = form != NULL ? &form->weights[at]
                                          : &((const float *)call->inputs[1]->data)[count - 1 - at];
            to[at] = from[at] * *w;
        }
        code = zoo_give_int(call, 1, form != NULL ? form->number : 0);
    }
    return code;
}

TENON_OP("ZooCPrepack", inputs("x: float", "w: float"), outputs("y: float", "form: int64"),
         shape(zoo_shape_same_and_scalar));
static const TenonKernelTable prepack_table = {
    .struct_size = sizeof(TenonKernelTable),
    .create = create_prepack,
    .compute = multiply,
    .destroy = tenon_free_state,
    .prepack = prepack,
    .attach_packed = attach_packed,
    .release_packed = release_packed,
};
KERNEL(prepack, "ZooCPrepack");

/* The number of a kernel's object. */
typedef struct Numbered {
    int64_t object;
} Numbered;

static TenonCode create_numbered(const TenonCreate *create, TenonKernelState **state)
{
    static atomic_llong next = 1;
    TenonCode code = tenon_zero_state(create, sizeof(Numbered), state);
    if (code == TENON_OK) {
        ((Numbered *)*state)->object = atomic_fetch_add(&next, 1);
    }
    return code;
}

static TenonSupport at_most(const TenonCreate *create, int64_t limit)
{
    const TenonShapeView *shape = &create->input_shapes[0];
    char reason[120];
    int64_t elements = 1;
    if (shape->unknown_rank) {
        return TENON_SUPPORT_DEPENDS_ON_SHAPES;
    }
    for (size_t at = 0; at < shape->dims.len; at++) {
        if (shape->dims.ptr[at] < 0) {
            return TENON_SUPPORT_DEPENDS_ON_SHAPES;
        }
        elements *= shape->dims.ptr[at];
    }
    if (elements <= limit) {
        return TENON_SUPPORT_YES;
    }
    snprintf(reason, sizeof reason, "%lld elements exceed the limit of %lld", (long long)elements,
             (long long)limit);
    tenon_refuse(create, TENON_UNIMPLEMENTED, "%s", reason);
    return TENON_SUPPORT_NO;
}

static TenonSupport supports_small(const TenonCreate *create)
{
    char reason[120];
    int64_t limit;
    if (tenon_attr_int(create, "limit", &limit) != TENON_OK) {
        return TENON_SUPPORT_NO;
    }
    if (limit < 0) {
        snprintf(reason, sizeof reason, "limit is %lld, expected at least 0", (long long)limit);
        tenon_refuse(create, TENON_UNIMPLEMENTED, "%s", reason);
        return TENON_SUPPORT_NO;
    }
    return at_most(create, limit);
}

static TenonSupport supports_any(const TenonCreate *create)
{
    int64_t most;
    if (tenon_attr_int(create, "most", &most) != TENON_OK) {
        return TENON_SUPPORT_NO;
    }
    return most < 0 ? TENON_SUPPORT_YES : at_most(create, most);
}

static TenonCode give_numbered(const TenonCall *call, int is_small, const TenonKernelState *state)
{
    TenonCode code = zoo_give_bool(call, 0, is_small);
    return code != TENON_OK ? code : zoo_give_int(call, 1, ((const Numbered *)state)->object);
}

static TenonCode small(TenonKernelState *state, const TenonCall *call)
{
    return give_numbered(call, 1, state);
}

static TenonCode any_size(TenonKernelState *state, const TenonCall *call)
{
    return give_numbered(call, 0, state);
}

TENON_OP("ZooCSupports", inputs("x: float"), outputs("small: bool", "object: int64"),
         attrs("limit: int", "most: int = -1"), shape(zoo_shape_two_scalars));
static const TenonKernelTable small_table = {
    .struct_size = sizeof(TenonKernelTable),
    .create = create_numbered,
    .compute = small,
    .destroy = tenon_free_state,
    .supports = supports_small,
};
TENON_KERNEL("ZooCSupports", "CPU", small_table, label("small"), priority(1));
static const TenonKernelTable any_size_table = {
    .struct_size = sizeof(TenonKernelTable),
    .create = create_numbered,
    .compute = any_size,
    .destroy = tenon_free_state,
    .supports = supports_any,
};
KERNEL(any_size, "ZooCSupports");
