/* Variants: values of a type that only the plugin knows, handled through its table. */
#include "zoo.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Values that are alive, so that a test sees that each is destroyed. */
static atomic_llong live_values;

static TenonCode make_amount(float amount, void **result)
{
    float *value = malloc(sizeof *value);
    if (value == NULL) {
        return TENON_RESOURCE_EXHAUSTED;
    }
    *value = amount;
    *result = value;
    atomic_fetch_add(&live_values, 1);
    return TENON_OK;
}

static TenonCode clone_amount(const void *value, void **copy, TenonSink *sink)
{
    (void)sink;
    return make_amount(*(const float *)value, copy);
}

static void destroy_amount(void *value)
{
    free(value);
    atomic_fetch_sub(&live_values, 1);
}

static TenonCode encode_amount(const void *value, TenonVariantParts *parts, TenonTensorGive give,
                               TenonSink *sink)
{
    ZooText text = { 0 };
    (void)parts;
    (void)give;
    zoo_add(&text, "%g", (double)*(const float *)value);
    tenon_host->report(sink, zoo_str(&text));
    return TENON_OK;
}

static TenonCode copy_amount(const void *value, TenonDevice *device, TenonMemoryKind memory,
                             TenonStream *stream, void **copy, TenonSink *sink)
{
    (void)device;
    (void)stream;
    if (memory != TENON_DEVICE_MEMORY) {
        return clone_amount(value, copy, sink);
    }
    tenon_host->report(sink, tenon_str("an amount holds no tensor: it lives in host memory"));
    return TENON_UNIMPLEMENTED;
}

static TenonCode zeros_like_amount(const void *value, void **result, TenonSink *sink)
{
    (void)value;
    (void)sink;
    return make_amount(0, result);
}

static TenonCode add_amounts(const void *a, const void *b, void **result, TenonSink *sink)
{
    (void)sink;
    return make_amount(*(const float *)a + *(const float *)b, result);
}

static const TenonVariantTable amount_table = {
    .struct_size = sizeof(TenonVariantTable),
    .type_name = TENON_STR("zoo_c.Amount"),
    .clone = clone_amount,
    .destroy = destroy_amount,
    .encode = encode_amount,
    .copy_to_device = copy_amount,
    .zeros_like = zeros_like_amount,
    .add = add_amounts,
};

/* The value of a scalar variant input; null, with the error kept, when it is of another type. */
static const void *take(const TenonCall *call, uint32_t input)
{
    const void *value = tenon_variant_at(call->inputs[input], 0, &amount_table);
    if (value == NULL) {
        tenon_fail(call, TENON_INVALID_ARGUMENT, "expected a variant of type zoo_c.Amount");
    }
    return value;
}

/* Moves a value into output 0, a scalar; a fresh buffer of variants is all zero: empty. */
static TenonCode give(const TenonCall *call, TenonCode made, void *value)
{
    TenonCode code = made;
    if (code != TENON_OK) {
        return tenon_fail(call, code, "cannot make a variant");
    }
    code = tenon_prepare(call, 0, NULL, 0);
    if (code != TENON_OK) {
        destroy_amount(value);
        return code;
    }
    *(TenonVariantElement *)call->outputs[0].data = (TenonVariantElement){ value, &amount_table };
    return TENON_OK;
}

static TenonCode make(TenonKernelState *state, const TenonCall *call)
{
    float amount;
    void *value = NULL;
    TenonCode code = zoo_take_float(call, 0, &amount);
    (void)state;
    if (code != TENON_OK) {
        return code;
    }
    code = make_amount(amount, &value);
    return give(call, code, value);
}

static TenonCode read_amount(TenonKernelState *state, const TenonCall *call)
{
    const void *v = take(call, 0);
    (void)state;
    return v == NULL ? TENON_INVALID_ARGUMENT : zoo_give_float(call, 0, *(const float *)v);
}

static TenonCode clone(TenonKernelState *state, const TenonCall *call)
{
    const void *v = take(call, 0);
    void *value = NULL;
    TenonCode code;
    (void)state;
    if (v == NULL) {
        return TENON_INVALID_ARGUMENT;
    }
    code = amount_table.clone(v, &value, NULL);
    return give(call, code, value);
}

static TenonCode zeros(TenonKernelState *state, const TenonCall *call)
{
    const void *v = take(call, 0);
    void *value = NULL;
    TenonCode code;
    (void)state;
    if (v == NULL) {
        return TENON_INVALID_ARGUMENT;
    }
    code = amount_table.zeros_like(v, &value, NULL);
    return give(call, code, value);
}

static TenonCode add(TenonKernelState *state, const TenonCall *call)
{
    const void *a = take(call, 0);
    const void *b = take(call, 1);
    void *value = NULL;
    TenonCode code;
    (void)state;
    if (a == NULL || b == NULL) {
        return TENON_INVALID_ARGUMENT;
    }
    code = amount_table.add(a, b, &value, NULL);
    return give(call, code, value);
}

static TenonCode count_live(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return zoo_give_int(call, 0, atomic_load(&live_values));
}

TENON_OP("ZooCVariantMake", inputs("value: float"), outputs("v: variant"), shape(zoo_shape_scalar));
STATELESS(make, make);
KERNEL(make, "ZooCVariantMake");

TENON_OP("ZooCVariantRead", inputs("v: variant"), outputs("value: float"), shape(zoo_shape_scalar));
STATELESS(read, read_amount);
KERNEL(read, "ZooCVariantRead");

TENON_OP("ZooCVariantClone", inputs("v: variant"), outputs("copy: variant"), shape(zoo_shape_scalar));
STATELESS(clone, clone);
KERNEL(clone, "ZooCVariantClone");

TENON_OP("ZooCVariantZeros", inputs("v: variant"), outputs("zeros: variant"), shape(zoo_shape_scalar));
STATELESS(zeros, zeros);
KERNEL(zeros, "ZooCVariantZeros");

TENON_OP("ZooCVariantAdd", inputs("a: variant", "b: variant"), outputs("sum: variant"), shape(zoo_shape_scalar),
         flags(TENON_OP_FLAG_COMMUTATIVE));
STATELESS(add, add);
KERNEL(add, "ZooCVariantAdd");

TENON_OP("ZooCVariantLive", outputs("count: int64"), shape(zoo_shape_scalar), stateful);
STATELESS(live, count_live);
KERNEL(live, "ZooCVariantLive");
