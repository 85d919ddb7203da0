/* Kinds of elements: numbers as bytes, strings. */
#include "zoo.h"

static TenonCode bytes(TenonKernelState *state, const TenonCall *call)
{
    int64_t count = (int64_t)call->inputs[0]->bytes;
    TenonCode code = tenon_prepare(call, 0, &count, 1);
    (void)state;
    if (code == TENON_OK) {
        memcpy(call->outputs[0].data, call->inputs[0]->data, call->inputs[0]->bytes);
    }
    return code;
}

OP(bytes, "ZooCBytes", TENON_1("x: T"), TENON_1("bytes: uint8"), TENON_1("T: type"), 0, zoo_shape_vector);
STATELESS(bytes, bytes);
/* Every type with elements of fixed size: their bytes may be copied. */
static const TenonDType fixed_types[] = {
    TENON_BOOL,   TENON_INT8,   TENON_INT16,    TENON_INT32, TENON_INT64,  TENON_UINT8,
    TENON_UINT16, TENON_UINT32, TENON_UINT64,   TENON_HALF,  TENON_FLOAT,  TENON_DOUBLE,
    TENON_QINT8,  TENON_QUINT8, TENON_BFLOAT16, TENON_QINT32,
};
static const TenonTypeConstraint bytes_constraint = {
    TENON_STR("T"), fixed_types, ZOO_COUNT(fixed_types),
};
KERNEL_LINE("ZooCBytes", "CPU", "", 0, false,
            "{\"T\":[\"bool\",\"int8\",\"int16\",\"int32\",\"int64\",\"uint8\",\"uint16\","
            "\"uint32\",\"uint64\",\"half\",\"float\",\"double\",\"qint8\",\"quint8\","
            "\"bfloat16\",\"qint32\"]}",
            "[]");
static const TenonKernelDef bytes_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("ZooCBytes"),
    .device_type = TENON_STR("CPU"),
    .constraints = &bytes_constraint,
    .constraint_count = 1,
    .table = &bytes_table,
    .source = TENON_HERE,
};

static TenonCode create_strings(const TenonCreate *create, TenonKernelState **state)
{
    TenonStr removed;
    TenonCode code = tenon_attr_string(create, "removed", &removed);
    if (code == TENON_OK) {
        code = tenon_zero_state(create, sizeof(ZooText), state);
    }
    if (code == TENON_OK) {
        zoo_add_bytes((ZooText *)*state, removed);
    }
    return code;
}

/* Writes `from` in reverse into an element of the output, in room made beforehand. */
static TenonCode write_reversed(const TenonStringElement *from, TenonStringElement *to)
{
    TenonCode code = tenon_host->strings->reserve(to, from->len);
    for (uint64_t at = 0; code == TENON_OK && at < from->len; at++) {
        to->data[at] = from->data[from->len - 1 - at];
    }
    if (code == TENON_OK) {
        to->len = from->len;
    }
    return code;
}

static int same_text(const TenonStringElement *element, const ZooText *text)
{
    return element->len == text->len
        && (text->len == 0 || memcmp(element->data, text->bytes, text->len) == 0);
}

static TenonCode strings(TenonKernelState *state, const TenonCall *call)
{
    const TenonStringTable *table = tenon_host->strings;
    const TenonStringElement *from = call->inputs[0]->data;
    TenonStringElement *to;
    TenonCode code = tenon_prepare_like(call, 0, 0);
    if (code != TENON_OK) {
        return code;
    }
    to = call->outputs[0].data;
    for (uint64_t at = 0; code == TENON_OK && at < call->inputs[0]->elements; at++) {
        code = write_reversed(&from[at], &to[at]);
        if (code == TENON_OK && same_text(&from[at], (const ZooText *)state)) {
            /* `set` and `destroy` are all that this op has not used yet. */
            code = table->set(&to[at], tenon_str("gone"));
            table->destroy(&to[at]);
        }
    }
    return code;
}

OP(strings, "ZooCStrings", TENON_1("x: string"), TENON_1("y: string"), TENON_1("removed: string = ''"), 0,
   tenon_shape_of_first);
STATEFUL(strings, create_strings, strings, tenon_free_state);
KERNEL(strings, "ZooCStrings");

static const TenonOpDef *const ops[] = { &bytes_op, &strings_op };
static const TenonKernelDef *const kernels[] = { &bytes_kernel, &strings_kernel };
ZOO_LIST(zoo_elements);
