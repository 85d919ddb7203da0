/* What a kernel's registration says: label, features, numerics contract, cost. */
#include "zoo.h"

static TenonCode ordinary(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return zoo_give_text(call, 0, tenon_str(""));
}

static TenonCode fast(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return zoo_give_text(call, 0, tenon_str("fast"));
}

static TenonCode reference(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return zoo_give_text(call, 0, tenon_str("reference"));
}

static TenonCode imaginary(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return zoo_give_text(call, 0, tenon_str("imaginary"));
}

STATELESS(ordinary, ordinary);
STATELESS(fast, fast);
STATELESS(reference, reference);
STATELESS(imaginary, imaginary);

OP(label, "ZooCLabel", A0(), A1("label: string"), A0(), 0, zoo_shape_scalar);
KERNEL(ordinary, "ZooCLabel");

KERNEL_LINE("ZooCLabel", "CPU", "fast", 1, false, "{}", "[]");
static const TenonKernelDef fast_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("ZooCLabel"),
    .device_type = TENON_STR("CPU"),
    .label = TENON_STR("fast"),
    .priority = 1,
    .table = &fast_table,
    .source = ZOO_HERE,
};

/* Never chosen by policy, though its priority is the highest. */
KERNEL_LINE("ZooCLabel", "CPU", "reference", 2, true, "{}", "[]");
static const TenonKernelDef reference_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .flags = TENON_KERNEL_DEF_FLAG_ON_REQUEST,
    .op = TENON_STR("ZooCLabel"),
    .device_type = TENON_STR("CPU"),
    .label = TENON_STR("reference"),
    .priority = 2,
    .table = &reference_table,
    .source = ZOO_HERE,
};

OP(feature, "ZooCFeature", A0(), A1("label: string"), A0(), 0, zoo_shape_scalar);
STATELESS(feature, ordinary);
KERNEL(feature, "ZooCFeature");

static const TenonStr imaginary_features[] = { TENON_STR("zoo-imaginary") };
KERNEL_LINE("ZooCFeature", "CPU", "imaginary", 9, false, "{}", "[\"zoo-imaginary\"]");
static const TenonKernelDef imaginary_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("ZooCFeature"),
    .device_type = TENON_STR("CPU"),
    .label = TENON_STR("imaginary"),
    .priority = 9,
    .features = { imaginary_features, ZOO_COUNT(imaginary_features) },
    .table = &imaginary_table,
    .source = ZOO_HERE,
};

static TenonCode sum(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    double total = 0;
    (void)state;
    for (uint64_t at = 0; at < x->elements; at++) {
        total += (double)((const float *)x->data)[at];
    }
    return zoo_give_float(call, 0, (float)total);
}

STATELESS(sum, sum);

OP(numerics, "ZooCNumerics", A1("x: float"), A1("sum: float"), A0(), 0, zoo_shape_scalar);
KERNEL_LINE("ZooCNumerics", "CPU", "", 0, false, "{}", "[]");
static const TenonKernelDef numerics_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("ZooCNumerics"),
    .device_type = TENON_STR("CPU"),
    .numerics = {
        .tolerance = TENON_TOLERANCE_ABSOLUTE_RELATIVE,
        .determinism = TENON_DETERMINISM_BITWISE,
        .relative = 1e-6,
        .accumulation = TENON_DOUBLE,
    },
    .table = &sum_table,
    .source = ZOO_HERE,
};

OP(cost, "ZooCCost", A1("x: float"), A1("sum: float"), A0(), 0, zoo_shape_scalar);
static const TenonExtCost cost_link = {
    .header = TENON_EXT_COST_HEADER(NULL),
    .fixed_ns = 5,
    .per_element_ns = 0.25,
};
KERNEL_LINE("ZooCCost", "CPU", "", 0, false, "{}", "[]");
static const TenonKernelDef cost_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("ZooCCost"),
    .device_type = TENON_STR("CPU"),
    .table = &sum_table,
    .source = ZOO_HERE,
    .ext = &cost_link.header,
};

static const TenonOpDef *const ops[] = { &label_op, &feature_op, &numerics_op, &cost_op };
static const TenonKernelDef *const kernels[] = {
    &ordinary_kernel, &fast_kernel,     &reference_kernel, &feature_kernel,
    &imaginary_kernel, &numerics_kernel, &cost_kernel,
};
ZOO_LIST(zoo_selection);
