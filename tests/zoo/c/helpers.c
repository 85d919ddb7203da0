/* Small helpers beyond those of tenon_plugin.h. */
#include "zoo.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

TenonCode zoo_give_int(const TenonCall *call, uint32_t output, int64_t value)
{
    TenonCode code = tenon_prepare(call, output, NULL, 0);
    if (code == TENON_OK) {
        *(int64_t *)call->outputs[output].data = value;
    }
    return code;
}

TenonCode zoo_give_float(const TenonCall *call, uint32_t output, float value)
{
    TenonCode code = tenon_prepare(call, output, NULL, 0);
    if (code == TENON_OK) {
        *(float *)call->outputs[output].data = value;
    }
    return code;
}

TenonCode zoo_give_bool(const TenonCall *call, uint32_t output, int value)
{
    TenonCode code = tenon_prepare(call, output, NULL, 0);
    if (code == TENON_OK) {
        *(uint8_t *)call->outputs[output].data = value != 0;
    }
    return code;
}

TenonCode zoo_take_float(const TenonCall *call, uint32_t input, float *value)
{
    const TenonSlot *slot = call->inputs[input];
    if (slot->dtype != TENON_FLOAT || slot->elements == 0) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "expected one float, found none");
    }
    *value = *(const float *)slot->data;
    return TENON_OK;
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
    TenonCode code = tenon_prepare(call, output, &length, 1);
    TenonStringElement *elements = call->outputs[output].data;
    for (size_t at = 0; code == TENON_OK && at < count; at++) {
        code = tenon_host->strings->set(&elements[at], zoo_str(&texts[at]));
    }
    return code;
}

TenonCode zoo_give_text(const TenonCall *call, uint32_t output, TenonStr text)
{
    TenonCode code = tenon_prepare(call, output, NULL, 0);
    return code != TENON_OK ? code : tenon_host->strings->set(call->outputs[output].data, text);
}

TenonCode zoo_create_named(const TenonCreate *create, TenonKernelState **state)
{
    TenonStr container;
    TenonStr name;
    ZooNamed *named;
    TenonCode code = tenon_attr_string(create, "container", &container);
    if (code == TENON_OK) {
        code = tenon_attr_string(create, "shared_name", &name);
    }
    if (code == TENON_OK) {
        code = tenon_zero_state(create, sizeof(ZooNamed), state);
    }
    if (code != TENON_OK) {
        return code;
    }
    named = (ZooNamed *)*state;
    zoo_add_bytes(&named->container, container);
    zoo_add_bytes(&named->name, name.len > 0 ? name : create->node);
    return TENON_OK;
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
    TenonCode code = tenon_shape_of_first(host, call);
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
