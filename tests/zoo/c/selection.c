/* What registrations say: label, features, numerics contract, cost of a kernel, cases of an op. */
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

OP(label, "ZooCLabel", TENON_0(), TENON_1("label: string"), TENON_0(), 0, zoo_shape_scalar);
KERNEL(ordinary, "ZooCLabel");

KERNEL_LINE("ZooCLabel", "CPU", "fast", 1, false, "{}", "[]");
static const TenonKernelDef fast_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("ZooCLabel"),
    .device_type = TENON_STR("CPU"),
    .label = TENON_STR("fast"),
    .priority = 1,
    .table = &fast_table,
    .source = TENON_HERE,
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
    .source = TENON_HERE,
};

OP(feature, "ZooCFeature", TENON_0(), TENON_1("label: string"), TENON_0(), 0, zoo_shape_scalar);
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
    .source = TENON_HERE,
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

OP(numerics, "ZooCNumerics", TENON_1("x: float"), TENON_1("sum: float"), TENON_0(), 0, zoo_shape_scalar);
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
    .source = TENON_HERE,
};

OP(cost, "ZooCCost", TENON_1("x: float"), TENON_1("sum: float"), TENON_0(), 0, zoo_shape_scalar);
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
    .source = TENON_HERE,
    .ext = &cost_link.header,
};

/* What only this plugin's own tools read: hosts skip it. */
typedef struct Note {
    TenonExtHeader header;
    uint64_t number;
} Note;

#define NOTE_TAG (TENON_EXT_PRIVATE | 0x151u)

/* A cost behind a link that nobody knows. */
static const TenonExtCost noted_cost = {
    .header = TENON_EXT_COST_HEADER(NULL),
    .fixed_ns = 7,
    .per_element_ns = 0.5,
};
static const Note noted = { { NOTE_TAG, 1, sizeof(Note), 0, &noted_cost.header }, 42 };
static const Note note = { { NOTE_TAG, 1, sizeof(Note), 0, NULL }, 43 };

#define ANY_LENGTH "any; x: [n]"
static const TenonStr any_length[] = { TENON_STR(ANY_LENGTH) };
static const TenonExtCases noted_cases = {
    .header = TENON_EXT_CASES_HEADER(&note.header),
    .cases = { any_length, 1 },
};
OP_LINKED(links, "ZooCLinks", TENON_1("x: float"), TENON_1("sum: float"), TENON_0(), 0, zoo_shape_scalar,
          ",\"cases\":" TENON_J_TENON_1(ANY_LENGTH), &noted_cases.header);
KERNEL_LINE("ZooCLinks", "CPU", "", 0, false, "{}", "[]");
static const TenonKernelDef links_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("ZooCLinks"),
    .device_type = TENON_STR("CPU"),
    .table = &sum_table,
    .source = TENON_HERE,
    .ext = &noted.header,
};

static TenonCode rows(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    const TenonSlot *index = call->inputs[1];
    const int64_t *row = index->data;
    int64_t dims[2];
    TenonCode code;
    (void)state;
    if (x->rank != 2 || index->rank != 1) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "expected a matrix and a vector");
    }
    dims[0] = index->dims[0];
    dims[1] = x->dims[1];
    code = tenon_prepare(call, 0, dims, 2);
    for (int64_t at = 0; code == TENON_OK && at < dims[0]; at++) {
        if (row[at] < 0 || row[at] >= x->dims[0]) {
            return tenon_fail(call, TENON_INVALID_ARGUMENT, "rows: expected rows of x");
        }
        memcpy((float *)call->outputs[0].data + at * dims[1],
               (const float *)x->data + row[at] * dims[1], (size_t)dims[1] * sizeof(float));
    }
    return code;
}

static TenonCode rows_shape(const TenonHost *host, TenonShapeCall *call)
{
    const TenonShapeTable *shapes = host->shapes;
    TenonShapeId x;
    TenonShapeId index;
    TenonDimId dims[2];
    TenonCode code = shapes->with_rank(call, shapes->input(call, 0), 2, &x);
    if (code == TENON_OK) {
        code = shapes->with_rank(call, shapes->input(call, 1), 1, &index);
    }
    if (code != TENON_OK) {
        return code;
    }
    dims[0] = shapes->dim(call, index, 0);
    dims[1] = shapes->dim(call, x, 1);
    return shapes->set_output(call, 0, shapes->make_shape(call, dims, 2));
}

#define SOME_ROWS "some; n in 1..9; x: [n, 3] uniform(-1, 1); rows: [k] integers(0..n)"
#define LAST_ROW "last; n in {1, 4}; x: [n, d]; rows: [1] values(n-1)"
TENON_CASES(rows_cases, TENON_STR(SOME_ROWS), TENON_STR(LAST_ROW));
TENON_BENCH(rows_bench, &rows_cases.header, "2 * y", "2 * bytes(y) + bytes(rows)",
            TENON_STR("many; n in {8, 64}; x: [n, 3]; rows: [16] integers(0..n)"));
OP_LINKED(rows, "ZooCCases", TENON_2("x: float", "rows: int64"), TENON_1("y: float"), TENON_0(), 0, rows_shape,
          ",\"cases\":" TENON_J_TENON_2(SOME_ROWS, LAST_ROW), &rows_bench.header);
STATELESS(rows, rows);
KERNEL(rows, "ZooCCases");

static const TenonOpDef *const ops[] = {
    &label_op, &feature_op, &numerics_op, &cost_op, &links_op, &rows_op,
};
static const TenonKernelDef *const kernels[] = {
    &ordinary_kernel, &fast_kernel,     &reference_kernel, &feature_kernel,
    &imaginary_kernel, &numerics_kernel, &cost_kernel,
    &links_kernel,     &rows_kernel,
};
ZOO_LIST(zoo_selection);
