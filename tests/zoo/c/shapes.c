/* Shape functions: what the host's table offers them. */
#include "zoo.h"

static TenonCode merge_shape(const TenonHost *host, TenonShapeCall *call)
{
    const TenonShapeTable *shapes = host->shapes;
    TenonShapeId merged;
    TenonCode code = shapes->merge(call, shapes->input(call, 0), shapes->input(call, 1), &merged);
    return code != TENON_OK ? code : shapes->set_output(call, 0, merged);
}

static TenonCode merge(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *a = call->inputs[0];
    const TenonSlot *b = call->inputs[1];
    TenonCode code;
    (void)state;
    if (a->rank != b->rank
        || (a->rank > 0 && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0)) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "expected equal shapes");
    }
    code = tenon_prepare_like(call, 0, 0);
    if (code == TENON_OK) {
        float *y = call->outputs[0].data;
        for (uint64_t at = 0; at < a->elements; at++) {
            y[at] = ((const float *)a->data)[at] + ((const float *)b->data)[at];
        }
    }
    return code;
}

TENON_OP("ZooCShapeMerge", inputs("a: float", "b: float"), outputs("y: float"), shape(merge_shape));
STATELESS(merge, merge);
KERNEL(merge, "ZooCShapeMerge");

static TenonCode matrix_shape(const TenonHost *host, TenonShapeCall *call)
{
    const TenonShapeTable *shapes = host->shapes;
    TenonShapeId a;
    TenonShapeId b;
    TenonDimId inner;
    TenonDimId dims[2];
    TenonCode code = shapes->with_rank(call, shapes->input(call, 0), 2, &a);
    if (code == TENON_OK) {
        code = shapes->with_rank(call, shapes->input(call, 1), 2, &b);
    }
    if (code == TENON_OK) {
        code = shapes->merge_dim(call, shapes->dim(call, a, 1), shapes->dim(call, b, 0), &inner);
    }
    if (code != TENON_OK) {
        return code;
    }
    dims[0] = shapes->dim(call, a, 0);
    dims[1] = shapes->dim(call, b, 1);
    return shapes->set_output(call, 0, shapes->make_shape(call, dims, 2));
}

static float product(const TenonSlot *a, const TenonSlot *b, int64_t row, int64_t column)
{
    const int64_t inner = a->dims[1];
    float sum = 0;
    for (int64_t k = 0; k < inner; k++) {
        sum += ((const float *)a->data)[row * inner + k]
            * ((const float *)b->data)[k * b->dims[1] + column];
    }
    return sum;
}

static TenonCode matrix(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *a = call->inputs[0];
    const TenonSlot *b = call->inputs[1];
    TenonCode code;
    (void)state;
    if (a->rank != 2 || b->rank != 2 || a->dims[1] != b->dims[0]) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "expected two matrices that can be multiplied");
    }
    code = tenon_prepare(call, 0, (const int64_t[]){ a->dims[0], b->dims[1] }, 2);
    if (code == TENON_OK) {
        float *y = call->outputs[0].data;
        for (int64_t row = 0; row < a->dims[0]; row++) {
            for (int64_t column = 0; column < b->dims[1]; column++) {
                *y++ = product(a, b, row, column);
            }
        }
    }
    return code;
}

TENON_OP("ZooCShapeMatrix", inputs("a: float", "b: float"), outputs("y: float"), shape(matrix_shape));
STATELESS(matrix, matrix);
KERNEL(matrix, "ZooCShapeMatrix");

static TenonCode fill_shape(const TenonHost *host, TenonShapeCall *call)
{
    TenonShapeId shape;
    TenonCode code = host->shapes->constant_as_shape(call, 0, &shape);
    return code != TENON_OK ? code : host->shapes->set_output(call, 0, shape);
}

static TenonCode fill(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *wanted = call->inputs[0];
    int64_t dims[TENON_MAX_RANK];
    float value;
    TenonCode code = zoo_take_float(call, 1, &value);
    (void)state;
    if (code != TENON_OK) {
        return code;
    }
    if (wanted->rank != 1 || wanted->elements > TENON_MAX_RANK) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "dims: expected a vector of at most 16 numbers");
    }
    for (uint64_t at = 0; at < wanted->elements; at++) {
        dims[at] = ((const int32_t *)wanted->data)[at];
    }
    code = tenon_prepare(call, 0, dims, (uint32_t)wanted->elements);
    if (code == TENON_OK) {
        for (uint64_t at = 0; at < call->outputs[0].elements; at++) {
            ((float *)call->outputs[0].data)[at] = value;
        }
    }
    return code;
}

TENON_OP("ZooCShapeFill", inputs("dims: int32", "value: float"), outputs("y: float"), shape(fill_shape));
STATELESS(fill, fill);
KERNEL(fill, "ZooCShapeFill");

static TenonCode repeat_shape(const TenonHost *host, TenonShapeCall *call)
{
    const TenonShapeTable *shapes = host->shapes;
    const TenonSlot *n = shapes->constant(call, 1);
    TenonShapeId x = shapes->input(call, 0);
    int32_t rank = shapes->rank(call, x);
    TenonDimId dims[TENON_MAX_RANK + 1];
    int64_t known = TENON_UNKNOWN_DIM;
    if (rank == TENON_UNKNOWN_RANK || rank >= (int32_t)TENON_MAX_RANK) {
        return shapes->set_output(call, 0, shapes->unknown_shape(call));
    }
    if (n != NULL && n->elements > 0) {
        known = *(const int32_t *)n->data;
        if (known < 0) {
            return shapes->fail(call, TENON_INVALID_ARGUMENT, tenon_str("n: expected at least 0"));
        }
    }
    dims[0] = shapes->make_dim(call, known);
    for (uint32_t at = 0; at < (uint32_t)rank; at++) {
        dims[at + 1] = shapes->dim(call, x, at);
    }
    return shapes->set_output(call, 0, shapes->make_shape(call, dims, (uint32_t)rank + 1));
}

static TenonCode repeat(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    const TenonSlot *n = call->inputs[1];
    int64_t dims[TENON_MAX_RANK + 1];
    TenonCode code;
    (void)state;
    dims[0] = n->elements > 0 ? *(const int32_t *)n->data : -1;
    if (dims[0] < 0 || x->rank >= TENON_MAX_RANK) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "n: expected at least 0");
    }
    for (uint32_t at = 0; at < x->rank; at++) {
        dims[at + 1] = x->dims[at];
    }
    code = tenon_prepare(call, 0, dims, x->rank + 1);
    if (code == TENON_OK) {
        uint8_t *to = call->outputs[0].data;
        for (int64_t at = 0; at < dims[0]; at++, to += x->bytes) {
            memcpy(to, x->data, x->bytes);
        }
    }
    return code;
}

TENON_OP("ZooCShapeRepeat", inputs("x: float", "n: int32"), outputs("y: float"), shape(repeat_shape));
STATELESS(repeat, repeat);
KERNEL(repeat, "ZooCShapeRepeat");
