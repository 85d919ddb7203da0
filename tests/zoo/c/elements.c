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

TENON_OP("ZooCBytes", inputs("x: T"), outputs("bytes: uint8"), attrs("T: type"), shape(zoo_shape_vector));
STATELESS(bytes, bytes);
/* Every type with elements of fixed size: their bytes may be copied. */
TENON_KERNEL("ZooCBytes", "CPU", bytes_table,
             types(T, bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, half, float, double, qint8,
                   quint8, bfloat16, qint32));

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

TENON_OP("ZooCStrings", inputs("x: string"), outputs("y: string"), attrs("removed: string = ''"),
         shape(tenon_shape_of_first));
STATEFUL(strings, create_strings, strings, tenon_free_state);
KERNEL(strings, "ZooCStrings");
