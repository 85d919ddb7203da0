/* Attributes of every kind, and lists of them. */
#include "zoo.h"

#include <stdlib.h>

/* A state of texts, which the call returns. */
typedef struct Facts {
    size_t count;
    ZooText texts[9];
} Facts;

static TenonCode give_facts(TenonKernelState *state, const TenonCall *call)
{
    const Facts *facts = (const Facts *)state;
    return zoo_give_texts(call, 0, facts->texts, facts->count);
}

/* Adds one item of an attribute. */
static void add_item(ZooText *text, TenonAttrKind kind, const void *data, size_t at)
{
    switch (kind) {
    case TENON_ATTR_INT:
        zoo_add(text, "%lld", (long long)((const int64_t *)data)[at]);
        break;
    case TENON_ATTR_FLOAT:
        zoo_add(text, "%g", (double)((const float *)data)[at]);
        break;
    case TENON_ATTR_BOOL:
        zoo_add(text, "%s", ((const uint8_t *)data)[at] ? "true" : "false");
        break;
    case TENON_ATTR_STRING:
        zoo_add_bytes(text, ((const TenonStr *)data)[at]);
        break;
    case TENON_ATTR_TYPE:
        zoo_add(text, "%u", ((const TenonDType *)data)[at]);
        break;
    case TENON_ATTR_SHAPE:
        zoo_add_shape(text, &((const TenonShapeView *)data)[at]);
        break;
    case TENON_ATTR_TENSOR: {
        const TenonSlot *slot = &((const TenonSlot *)data)[at];
        zoo_add(text, "%ux%llu", slot->dtype, (unsigned long long)slot->elements);
        break;
    }
    case TENON_ATTR_FUNC:
        zoo_add_bytes(text, ((const TenonFuncView *)data)[at].name);
        break;
    default:
        zoo_add(text, "unknown kind %u", kind);
    }
}

static TenonCode create_attributes(const TenonCreate *create, TenonKernelState **state)
{
    static const struct {
        const char *name;
        TenonAttrKind kind;
    } wanted[] = {
        { "i", TENON_ATTR_INT },    { "f", TENON_ATTR_FLOAT }, { "b", TENON_ATTR_BOOL },
        { "s", TENON_ATTR_STRING }, { "t", TENON_ATTR_TYPE },  { "shape", TENON_ATTR_SHAPE },
    };
    TenonCode code = tenon_zero_state(create, sizeof(Facts), state);
    for (size_t at = 0; code == TENON_OK && at < ZOO_COUNT(wanted); at++) {
        Facts *facts = (Facts *)*state;
        TenonAttrView view;
        code = tenon_attr(create, wanted[at].name, wanted[at].kind, &view);
        if (code == TENON_OK) {
            add_item(&facts->texts[facts->count++], view.kind, view.data, 0);
        }
    }
    if (code != TENON_OK) {
        tenon_free_state(*state);
    }
    return code;
}

TENON_OP("ZooCAttributes", outputs("facts: string"),
         attrs("i: int", "f: float", "b: bool", "s: string", "t: type", "shape: shape"));
STATEFUL(attributes, create_attributes, give_facts, tenon_free_state);
KERNEL(attributes, "ZooCAttributes");

static TenonCode create_lists(const TenonCreate *create, TenonKernelState **state)
{
    static const char *const names[] = {
        "ints", "floats", "bools", "strings", "types", "shapes", "tensors", "funcs",
    };
    TenonCode code = tenon_zero_state(create, sizeof(Facts), state);
    for (size_t at = 0; code == TENON_OK && at < ZOO_COUNT(names); at++) {
        Facts *facts = (Facts *)*state;
        ZooText *text = &facts->texts[facts->count++];
        TenonAttrView view;
        code = tenon_host->attr(create->attrs, tenon_str(names[at]), &view);
        for (size_t item = 0; code == TENON_OK && item < view.len; item++) {
            add_item(text, view.kind, view.data, item);
            zoo_add(text, ";");
        }
    }
    if (code != TENON_OK) {
        tenon_free_state(*state);
        return tenon_refuse(create, code, "an attribute is missing");
    }
    return TENON_OK;
}

TENON_OP("ZooCAttributeLists", outputs("facts: string"),
         attrs("ints: list(int)", "floats: list(float)", "bools: list(bool)", "strings: list(string)", "types: list(type)", "shapes: list(shape)", "tensors: list(tensor)", "funcs: list(func)"));
STATEFUL(lists, create_lists, give_facts, tenon_free_state);
KERNEL(lists, "ZooCAttributeLists");

/* The elements of an attribute that is a tensor. */
typedef struct Elements {
    int64_t count;
    float *data;
} Elements;

static void destroy_elements(TenonKernelState *state)
{
    free(((Elements *)state)->data);
    tenon_free_state(state);
}

static TenonCode create_tensor(const TenonCreate *create, TenonKernelState **state)
{
    TenonAttrView view;
    const TenonSlot *value;
    Elements *elements;
    TenonCode code = tenon_attr(create, "value", TENON_ATTR_TENSOR, &view);
    if (code != TENON_OK) {
        return code;
    }
    value = view.data;
    if (value->dtype != TENON_FLOAT) {
        return tenon_refuse(create, TENON_INVALID_ARGUMENT,
                          "attribute value: expected a tensor of float");
    }
    code = tenon_zero_state(create, sizeof(Elements), state);
    if (code != TENON_OK) {
        return code;
    }
    elements = (Elements *)*state;
    /* The attribute is lent while this runs: a kernel copies what it keeps. */
    elements->data = malloc(value->bytes > 0 ? value->bytes : 1);
    if (elements->data == NULL) {
        destroy_elements(*state);
        return tenon_refuse(create, TENON_RESOURCE_EXHAUSTED, "no memory for the elements");
    }
    elements->count = (int64_t)value->elements;
    memcpy(elements->data, value->data, value->bytes);
    return TENON_OK;
}

static TenonCode give_elements(TenonKernelState *state, const TenonCall *call)
{
    const Elements *elements = (const Elements *)state;
    TenonCode code = tenon_prepare(call, 0, &elements->count, 1);
    if (code == TENON_OK) {
        memcpy(call->outputs[0].data, elements->data, (size_t)elements->count * sizeof(float));
    }
    return code;
}

TENON_OP("ZooCAttributeTensor", outputs("y: float"), attrs("value: tensor"));
STATEFUL(tensor, create_tensor, give_elements, destroy_elements);
KERNEL(tensor, "ZooCAttributeTensor");

static TenonCode create_function(const TenonCreate *create, TenonKernelState **state)
{
    TenonAttrView view;
    TenonCode code = tenon_attr(create, "f", TENON_ATTR_FUNC, &view);
    if (code == TENON_OK) {
        code = tenon_zero_state(create, sizeof(Facts), state);
    }
    if (code == TENON_OK) {
        const TenonFuncView *function = view.data;
        Facts *facts = (Facts *)*state;
        facts->count = 3;
        zoo_add_bytes(&facts->texts[0], function->name);
        zoo_add_bytes(&facts->texts[1], function->call);
        zoo_add_bytes(&facts->texts[2], function->definition);
    }
    return code;
}

TENON_OP("ZooCAttributeFunction", outputs("facts: string"), attrs("f: func"));
STATEFUL(function, create_function, give_facts, tenon_free_state);
KERNEL(function, "ZooCAttributeFunction");
