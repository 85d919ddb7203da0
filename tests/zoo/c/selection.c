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

TENON_OP("ZooCLabel", outputs("label: string"), shape(zoo_shape_scalar));
KERNEL(ordinary, "ZooCLabel");

TENON_KERNEL("ZooCLabel", "CPU", fast_table, label("fast"), priority(1));

/* Never chosen by policy, though its priority is the highest. */
TENON_KERNEL("ZooCLabel", "CPU", reference_table, label("reference"), priority(2), on_request);

TENON_OP("ZooCFeature", outputs("label: string"), shape(zoo_shape_scalar));
STATELESS(feature, ordinary);
KERNEL(feature, "ZooCFeature");

/* No processor has both. */
TENON_KERNEL("ZooCFeature", "CPU", imaginary_table, label("imaginary"), priority(9), features("neon", "sse2"));

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

TENON_OP("ZooCNumerics", inputs("x: float"), outputs("sum: float"), shape(zoo_shape_scalar));
TENON_KERNEL("ZooCNumerics", "CPU", sum_table,
             numerics({ .tolerance = TENON_TOLERANCE_ABSOLUTE_RELATIVE,
                        .determinism = TENON_DETERMINISM_BITWISE,
                        .relative = 1e-6,
                        .accumulation = TENON_DOUBLE }));

TENON_OP("ZooCCost", inputs("x: float"), outputs("sum: float"), shape(zoo_shape_scalar));
TENON_KERNEL("ZooCCost", "CPU", sum_table, cost(5, 0.25));

/* What only this plugin's own tools read: hosts skip it. */
typedef struct Note {
    TenonExtHeader header;
    uint64_t number;
} Note;

#define NOTE_TAG (TENON_EXT_PRIVATE | 0x151u)

static const Note note = { { NOTE_TAG, 1, sizeof(Note), 0, NULL }, 43 };

TENON_OP("ZooCLinks", inputs("x: float"), outputs("sum: float"), shape(zoo_shape_scalar),
         cases("any; x: [n]"), ext(&note.header));

/* A cost behind a link that nobody knows. */
static const TenonExtCost noted_cost = { TENON_EXT_COST_HEADER(NULL), 7, 0.5 };
static const Note noted = { { NOTE_TAG, 1, sizeof(Note), 0, &noted_cost.header }, 42 };
TENON_KERNEL("ZooCLinks", "CPU", sum_table, ext(&noted.header));

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

TENON_OP("ZooCCases", inputs("x: float", "rows: int64"), outputs("y: float"), shape(rows_shape),
         cases("some; n in 1..9; x: [n, 3] uniform(-1, 1); rows: [k] integers(0..n)",
               "last; n in {1, 4}; x: [n, d]; rows: [1] values(n-1)"),
         bench("many; n in {8, 64}; x: [n, 3]; rows: [16] integers(0..n)"), flops("2 * y"),
         bytes("2 * bytes(y) + bytes(rows)"));
STATELESS(rows, rows);
KERNEL(rows, "ZooCCases");
