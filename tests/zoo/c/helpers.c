/* Small helpers over the tables of tenon.h. */
#include "zoo.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

TenonCode zoo_fail(const TenonCall *call, TenonCode code, const char *message)
{
    return call->services->fail(call->record, code, tenon_str(message));
}

TenonCode zoo_refuse(const TenonCreate *create, TenonCode code, const char *message)
{
    zoo_host->report(create->sink, tenon_str(message));
    return code;
}

TenonCode zoo_attr(const TenonCreate *create, const char *name, TenonAttrKind kind,
                   TenonAttrView *view)
{
    char message[200];
    TenonCode code = zoo_host->attr(create->attrs, tenon_str(name), view);
    if (code != TENON_OK) {
        snprintf(message, sizeof message, "attribute %s: the node has none", name);
        return zoo_refuse(create, code, message);
    }
    if (view->kind != kind || view->is_list) {
        snprintf(message, sizeof message, "attribute %s: expected kind %u, found %s%u", name, kind,
                 view->is_list ? "a list of kind " : "kind ", view->kind);
        return zoo_refuse(create, TENON_INVALID_ARGUMENT, message);
    }
    return TENON_OK;
}

TenonCode zoo_attr_int(const TenonCreate *create, const char *name, int64_t *value)
{
    TenonAttrView view;
    TenonCode code = zoo_attr(create, name, TENON_ATTR_INT, &view);
    if (code == TENON_OK) {
        *value = *(const int64_t *)view.data;
    }
    return code;
}

TenonCode zoo_attr_text(const TenonCreate *create, const char *name, TenonStr *value)
{
    TenonAttrView view;
    TenonCode code = zoo_attr(create, name, TENON_ATTR_STRING, &view);
    if (code == TENON_OK) {
        *value = *(const TenonStr *)view.data;
    }
    return code;
}

static int same_dims(const TenonSlot *slot, const int64_t *dims, uint32_t rank)
{
    return slot->rank == rank
        && (rank == 0 || memcmp(slot->dims, dims, rank * sizeof *dims) == 0);
}

TenonCode zoo_prepare(const TenonCall *call, uint32_t output, const int64_t *dims, uint32_t rank)
{
    const TenonSlot *slot = &call->outputs[output];
    if ((slot->flags & TENON_SLOT_FLAG_PLANNED) && same_dims(slot, dims, rank)) {
        return TENON_OK;
    }
    return call->services->allocate(call->record, output, dims, rank, TENON_ORDINARY_MEMORY);
}

TenonCode zoo_prepare_like(const TenonCall *call, uint32_t output, uint32_t input)
{
    return zoo_prepare(call, output, call->inputs[input]->dims, call->inputs[input]->rank);
}

TenonCode zoo_give_int(const TenonCall *call, uint32_t output, int64_t value)
{
    TenonCode code = zoo_prepare(call, output, NULL, 0);
    if (code == TENON_OK) {
        *(int64_t *)call->outputs[output].data = value;
    }
    return code;
}

TenonCode zoo_give_float(const TenonCall *call, uint32_t output, float value)
{
    TenonCode code = zoo_prepare(call, output, NULL, 0);
    if (code == TENON_OK) {
        *(float *)call->outputs[output].data = value;
    }
    return code;
}

TenonCode zoo_give_bool(const TenonCall *call, uint32_t output, int value)
{
    TenonCode code = zoo_prepare(call, output, NULL, 0);
    if (code == TENON_OK) {
        *(uint8_t *)call->outputs[output].data = value != 0;
    }
    return code;
}

TenonCode zoo_take_float(const TenonCall *call, uint32_t input, float *value)
{
    const TenonSlot *slot = call->inputs[input];
    if (slot->dtype != TENON_FLOAT || slot->elements == 0) {
        return zoo_fail(call, TENON_INVALID_ARGUMENT, "expected one float, found none");
    }
    *value = *(const float *)slot->data;
    return TENON_OK;
}

TenonCode zoo_new_state(const TenonCreate *create, size_t size, TenonKernelState **state)
{
    *state = calloc(1, size);
    return *state != NULL ? TENON_OK
                          : zoo_refuse(create, TENON_RESOURCE_EXHAUSTED, "no memory for the kernel");
}

void zoo_free_state(TenonKernelState *state)
{
    free(state);
}

void zoo_add(ZooText *text, const char *format, ...)
{
    va_list arguments;
    size_t room = sizeof text->bytes - text->len;
    int added;
    va_start(arguments, format);
    added = vsnprintf(text->bytes + text->len, room, format, arguments);
    va_end(arguments);
    if (added > 0) {
        text->len += (size_t)added < room ? (size_t)added : room - 1;
    }
}

void zoo_add_bytes(ZooText *text, TenonStr bytes)
{
    size_t room = sizeof text->bytes - text->len;
    size_t added = bytes.len < room ? bytes.len : room;
    if (added > 0) {
        memcpy(text->bytes + text->len, bytes.ptr, added);
        text->len += added;
    }
}

void zoo_add_shape(ZooText *text, const TenonShapeView *shape)
{
    if (shape->unknown_rank) {
        zoo_add(text, "<unknown>");
        return;
    }
    zoo_add(text, "[");
    for (size_t at = 0; at < shape->dims.len; at++) {
        zoo_add(text, "%s", at > 0 ? "," : "");
        if (shape->dims.ptr[at] < 0) {
            zoo_add(text, "?");
        } else {
            zoo_add(text, "%lld", (long long)shape->dims.ptr[at]);
        }
    }
    zoo_add(text, "]");
}

void zoo_add_range(ZooText *text, const TenonRange *range)
{
    zoo_add(text, "%u+%u", range->start, range->len);
}

TenonStr zoo_str(const ZooText *text)
{
    TenonStr result = { (const uint8_t *)text->bytes, text->len };
    return result;
}

TenonCode zoo_give_texts(const TenonCall *call, uint32_t output, const ZooText *texts,
                         size_t count)
{
    int64_t length = (int64_t)count;
    TenonCode code = zoo_prepare(call, output, &length, 1);
    TenonStringElement *elements = call->outputs[output].data;
    for (size_t at = 0; code == TENON_OK && at < count; at++) {
        code = zoo_host->strings->set(&elements[at], zoo_str(&texts[at]));
    }
    return code;
}

TenonCode zoo_give_text(const TenonCall *call, uint32_t output, TenonStr text)
{
    TenonCode code = zoo_prepare(call, output, NULL, 0);
    return code != TENON_OK ? code : zoo_host->strings->set(call->outputs[output].data, text);
}

TenonCode zoo_create_named(const TenonCreate *create, TenonKernelState **state)
{
    TenonStr container;
    TenonStr name;
    ZooNamed *named;
    TenonCode code = zoo_attr_text(create, "container", &container);
    if (code == TENON_OK) {
        code = zoo_attr_text(create, "shared_name", &name);
    }
    if (code == TENON_OK) {
        code = zoo_new_state(create, sizeof(ZooNamed), state);
    }
    if (code != TENON_OK) {
        return code;
    }
    named = (ZooNamed *)*state;
    zoo_add_bytes(&named->container, container);
    zoo_add_bytes(&named->name, name.len > 0 ? name : create->node);
    return TENON_OK;
}

TenonCode zoo_shape_same(const TenonHost *host, TenonShapeCall *call)
{
    return host->shapes->set_output(call, 0, host->shapes->input(call, 0));
}

static TenonCode scalar(const TenonHost *host, TenonShapeCall *call, uint32_t output)
{
    return host->shapes->set_output(call, output, host->shapes->make_shape(call, NULL, 0));
}

TenonCode zoo_shape_scalar(const TenonHost *host, TenonShapeCall *call)
{
    return scalar(host, call, 0);
}

TenonCode zoo_shape_same_and_scalar(const TenonHost *host, TenonShapeCall *call)
{
    TenonCode code = zoo_shape_same(host, call);
    return code != TENON_OK ? code : scalar(host, call, 1);
}

TenonCode zoo_shape_two_scalars(const TenonHost *host, TenonShapeCall *call)
{
    TenonCode code = scalar(host, call, 0);
    return code != TENON_OK ? code : scalar(host, call, 1);
}

TenonCode zoo_shape_vector(const TenonHost *host, TenonShapeCall *call)
{
    TenonDimId length = host->shapes->make_dim(call, TENON_UNKNOWN_DIM);
    return host->shapes->set_output(call, 0, host->shapes->make_shape(call, &length, 1));
}
