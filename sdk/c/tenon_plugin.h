/*
 * tenon_plugin.h - what a plugin in C or C++ includes: registrations that are said once, and small helpers
 * over the tables of tenon.h.
 *
 * Before it is included, name the plugin; after the registrations, list them:
 *
 *     #define TENON_PLUGIN_NAME "my-op"
 *     #define TENON_PLUGIN_VERSION "0.1.0"
 *     #include "tenon_plugin.h"
 *
 *     TENON_OP(cube, "Cube", TENON_1("x: T"), TENON_1("y: T"), TENON_1("T: {float, double}"),
 *              tenon_shape_of_first, "The third power.");
 *     ...
 *     TENON_TABLE(cube_table, .compute = compute);
 *     TENON_KERNEL(cube_float, "Cube", "CPU", "", 0, AUTO, T, float, tenon_exact, cube_table);
 *     TENON_PLUGIN(TENON_LIST(&cube_op), TENON_LIST(&cube_float_kernel))
 *
 * From each registration come the definition that the host gets and the line of the manifest that the host
 * compares it with. One file of a plugin says TENON_PLUGIN; a plugin of several files declares the others'
 * definitions there.
 */
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H

#include "tenon.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef TENON_PLUGIN_NAME
#error "define TENON_PLUGIN_NAME, such as \"my-op\", before tenon_plugin.h is included"
#endif
#ifndef TENON_PLUGIN_VERSION
#error "define TENON_PLUGIN_VERSION, such as \"0.1.0\", before tenon_plugin.h is included"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A function of this header that a plugin need not use. */
#if defined(__GNUC__)
#define TENON_HELPER static __attribute__((unused))
#else
#define TENON_HELPER static inline
#endif

/*
 * Lists of texts: TENON_0(), TENON_1("x: float"), TENON_2("a: float", "b: float"), ... Pasting a word in
 * front makes an initialiser (I_), a count (C_) or JSON (J_) of one.
 */
#define TENON_I_TENON_0() { TENON_STR("") }
#define TENON_I_TENON_1(a) { TENON_STR(a) }
#define TENON_I_TENON_2(a, b) { TENON_STR(a), TENON_STR(b) }
#define TENON_I_TENON_3(a, b, c) { TENON_STR(a), TENON_STR(b), TENON_STR(c) }
#define TENON_I_TENON_4(a, b, c, d) { TENON_STR(a), TENON_STR(b), TENON_STR(c), TENON_STR(d) }
#define TENON_I_TENON_5(a, b, c, d, e) \
    { TENON_STR(a), TENON_STR(b), TENON_STR(c), TENON_STR(d), TENON_STR(e) }
#define TENON_I_TENON_6(a, b, c, d, e, f) \
    { TENON_STR(a), TENON_STR(b), TENON_STR(c), TENON_STR(d), TENON_STR(e), TENON_STR(f) }
#define TENON_C_TENON_0() 0
#define TENON_C_TENON_1(a) 1
#define TENON_C_TENON_2(a, b) 2
#define TENON_C_TENON_3(a, b, c) 3
#define TENON_C_TENON_4(a, b, c, d) 4
#define TENON_C_TENON_5(a, b, c, d, e) 5
#define TENON_C_TENON_6(a, b, c, d, e, f) 6
#define TENON_J_TEXT(a) "\"" a "\""
#define TENON_J_TENON_0() "[]"
#define TENON_J_TENON_1(a) "[" TENON_J_TEXT(a) "]"
#define TENON_J_TENON_2(a, b) "[" TENON_J_TEXT(a) "," TENON_J_TEXT(b) "]"
#define TENON_J_TENON_3(a, b, c) "[" TENON_J_TEXT(a) "," TENON_J_TEXT(b) "," TENON_J_TEXT(c) "]"
#define TENON_J_TENON_4(a, b, c, d) \
    "[" TENON_J_TEXT(a) "," TENON_J_TEXT(b) "," TENON_J_TEXT(c) "," TENON_J_TEXT(d) "]"
#define TENON_J_TENON_5(a, b, c, d, e) \
    "[" TENON_J_TEXT(a) "," TENON_J_TEXT(b) "," TENON_J_TEXT(c) "," TENON_J_TEXT(d) "," \
        TENON_J_TEXT(e) "]"
#define TENON_J_TENON_6(a, b, c, d, e, f) \
    "[" TENON_J_TEXT(a) "," TENON_J_TEXT(b) "," TENON_J_TEXT(c) "," TENON_J_TEXT(d) "," \
        TENON_J_TEXT(e) "," TENON_J_TEXT(f) "]"

/* Where a registration stands. */
#define TENON_HERE { TENON_STR(TENON_PLUGIN_NAME), TENON_STR(__FILE__), __LINE__ }

/* The element type of a name in lower case, as ops write it. */
#define TENON_TYPE_OF_float TENON_FLOAT
#define TENON_TYPE_OF_double TENON_DOUBLE
#define TENON_TYPE_OF_half TENON_HALF
#define TENON_TYPE_OF_bfloat16 TENON_BFLOAT16
#define TENON_TYPE_OF_int8 TENON_INT8
#define TENON_TYPE_OF_int16 TENON_INT16
#define TENON_TYPE_OF_int32 TENON_INT32
#define TENON_TYPE_OF_int64 TENON_INT64
#define TENON_TYPE_OF_uint8 TENON_UINT8
#define TENON_TYPE_OF_uint16 TENON_UINT16
#define TENON_TYPE_OF_uint32 TENON_UINT32
#define TENON_TYPE_OF_uint64 TENON_UINT64

/* An op without state, as the variable `id`_op. `takes`, `gives` and `has` are lists of texts. */
#define TENON_OP(id, op_name, takes, gives, has, shape_fn, about) \
    TENON_MANIFEST("{\"kind\":\"op\",\"name\":\"" op_name "\",\"inputs\":" TENON_J_##takes \
                   ",\"outputs\":" TENON_J_##gives ",\"attrs\":" TENON_J_##has "}"); \
    static const TenonStr id##_takes[] = TENON_I_##takes; \
    static const TenonStr id##_gives[] = TENON_I_##gives; \
    static const TenonStr id##_has[] = TENON_I_##has; \
    static const TenonOpDef id##_op = { \
        .struct_size = sizeof(TenonOpDef), \
        .flags = 0, \
        .name = TENON_STR(op_name), \
        .inputs = { id##_takes, TENON_C_##takes }, \
        .outputs = { id##_gives, TENON_C_##gives }, \
        .attrs = { id##_has, TENON_C_##has }, \
        .summary = TENON_STR(about), \
        .description = TENON_STR(""), \
        .shape = (shape_fn), \
        .source = TENON_HERE, \
        .ext = NULL, \
    }

/* Numerics contracts. */
#define tenon_exact \
    { TENON_TOLERANCE_EXACT, TENON_DETERMINISM_BITWISE, 0.0, 0.0, 0.0, TENON_INVALID, 0 }
#define tenon_within_ulps(count) \
    { TENON_TOLERANCE_ULPS, TENON_DETERMINISM_RUN_TO_RUN, count, 0.0, 0.0, TENON_INVALID, 0 }
#define tenon_within(abs_error, rel_error) \
    { TENON_TOLERANCE_ABSOLUTE_RELATIVE, TENON_DETERMINISM_RUN_TO_RUN, 0.0, abs_error, rel_error, \
      TENON_INVALID, 0 }

/* Whether the policy may choose a kernel (AUTO), or its label must be asked for (ON_REQUEST). */
#define TENON_FLAGS_OF_AUTO 0
#define TENON_FLAGS_OF_ON_REQUEST TENON_KERNEL_DEF_FLAG_ON_REQUEST
#define TENON_JSON_OF_AUTO "false"
#define TENON_JSON_OF_ON_REQUEST "true"

/* A kernel's entries in the order of TenonKernelTable: `.create = ...`, `.compute = ...`, `.destroy = ...`. */
#define TENON_TABLE(id, ...) \
    static const TenonKernelTable id = { \
        .struct_size = sizeof(TenonKernelTable), .flags = 0, __VA_ARGS__ \
    }

/*
 * A kernel for one element type, as the variable `id`_kernel. `mode` is AUTO or ON_REQUEST; `attr_` is the
 * type attribute and `type` its type, plain words; `contract` is one of the above.
 */
#define TENON_KERNEL(id, op_name, device, variant, rank_, mode, attr_, type, contract, entries) \
    TENON_MANIFEST("{\"kind\":\"kernel\",\"op\":\"" op_name "\",\"device\":\"" device \
                   "\",\"label\":\"" variant "\",\"priority\":" #rank_ \
                   ",\"on_request\":" TENON_JSON_OF_##mode \
                   ",\"types\":{\"" #attr_ "\":[\"" #type "\"]},\"features\":[]}"); \
    static const TenonDType id##_types[] = { TENON_TYPE_OF_##type }; \
    static const TenonTypeConstraint id##_constraint = { TENON_STR(#attr_), id##_types, 1 }; \
    static const TenonKernelDef id##_kernel = { \
        .struct_size = sizeof(TenonKernelDef), \
        .flags = TENON_FLAGS_OF_##mode, \
        .op = TENON_STR(op_name), \
        .device_type = TENON_STR(device), \
        .label = TENON_STR(variant), \
        .priority = (rank_), \
        .reserved = 0, \
        .constraints = &id##_constraint, \
        .constraint_count = 1, \
        .host_memory = { NULL, 0 }, \
        .in_place = NULL, \
        .in_place_count = 0, \
        .features = { NULL, 0 }, \
        .numerics = contract, \
        .table = &(entries), \
        .source = TENON_HERE, \
        .ext = NULL, \
    }

/* The host's table and its record of this plugin, from when it is opened. */
static const TenonHost *tenon_host;
static const TenonPlugin *tenon_self;

/* Fails a call: an error's code comes back, to be returned. The message is as printf's. */
TENON_HELPER TenonCode tenon_fail(const TenonCall *call, TenonCode code, const char *format, ...)
{
    char message[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return call->services->fail(call->record, code, tenon_str(message));
}

/* Refuses to make a kernel, as tenon_fail does a call. */
TENON_HELPER TenonCode tenon_refuse(const TenonCreate *create, TenonCode code, const char *format, ...)
{
    char message[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    tenon_host->report(create->sink, tenon_str(message));
    return code;
}

/* A single attribute of this kind; what is missing or of another kind is refused. */
TENON_HELPER TenonCode tenon_attr(const TenonCreate *create, const char *name, TenonAttrKind kind,
                                  TenonAttrView *view)
{
    TenonCode code = tenon_host->attr(create->attrs, tenon_str(name), view);
    if (code != TENON_OK) {
        return tenon_refuse(create, code, "attribute %s: the node has none", name);
    }
    if (view->kind != kind || view->is_list) {
        return tenon_refuse(create, TENON_INVALID_ARGUMENT,
                            "attribute %s: expected kind %u, found %skind %u", name, kind,
                            view->is_list ? "a list of " : "", view->kind);
    }
    return TENON_OK;
}

/* An attribute of kind int, float, bool. */
TENON_HELPER TenonCode tenon_attr_int(const TenonCreate *create, const char *name, int64_t *value)
{
    TenonAttrView view;
    TenonCode code = tenon_attr(create, name, TENON_ATTR_INT, &view);
    if (code == TENON_OK) {
        *value = *(const int64_t *)view.data;
    }
    return code;
}

TENON_HELPER TenonCode tenon_attr_float(const TenonCreate *create, const char *name, float *value)
{
    TenonAttrView view;
    TenonCode code = tenon_attr(create, name, TENON_ATTR_FLOAT, &view);
    if (code == TENON_OK) {
        *value = *(const float *)view.data;
    }
    return code;
}

TENON_HELPER TenonCode tenon_attr_bool(const TenonCreate *create, const char *name, int *value)
{
    TenonAttrView view;
    TenonCode code = tenon_attr(create, name, TENON_ATTR_BOOL, &view);
    if (code == TENON_OK) {
        *value = *(const uint8_t *)view.data != 0;
    }
    return code;
}

/* A state that is a copy of these bytes; no memory is refused. */
TENON_HELPER TenonCode tenon_new_state(const TenonCreate *create, const void *bytes, size_t size,
                                       TenonKernelState **state)
{
    *state = (TenonKernelState *)malloc(size);
    if (*state == NULL) {
        return tenon_refuse(create, TENON_RESOURCE_EXHAUSTED, "no memory for the kernel's state");
    }
    memcpy(*state, bytes, size);
    return TENON_OK;
}

/* Frees what tenon_new_state gave: an entry `.destroy`. */
TENON_HELPER void tenon_free_state(TenonKernelState *state)
{
    free(state);
}

/* Makes sure that an output has a buffer of this shape: the planned one, or a fresh one. */
TENON_HELPER TenonCode tenon_prepare(const TenonCall *call, uint32_t output, const int64_t *dims,
                                     uint32_t rank)
{
    const TenonSlot *slot = &call->outputs[output];
    int planned = (slot->flags & TENON_SLOT_FLAG_PLANNED) != 0 && slot->rank == rank
        && (rank == 0 || memcmp(slot->dims, dims, rank * sizeof *dims) == 0);
    if (planned) {
        return TENON_OK;
    }
    return call->services->allocate(call->record, output, dims, rank, TENON_ORDINARY_MEMORY);
}

/* As tenon_prepare, with the shape of an input. */
TENON_HELPER TenonCode tenon_prepare_like(const TenonCall *call, uint32_t output, uint32_t input)
{
    return tenon_prepare(call, output, call->inputs[input]->dims, call->inputs[input]->rank);
}

/* Shape function: output 0 has the shape of input 0. */
TENON_HELPER TenonCode tenon_shape_of_first(const TenonHost *host, TenonShapeCall *call)
{
    return host->shapes->set_output(call, 0, host->shapes->input(call, 0));
}

/* The door of the plugin: TENON_PLUGIN(TENON_LIST(&cube_op), TENON_LIST(&cube_float_kernel)). */
#define TENON_LIST(...) { __VA_ARGS__ }
/* A list of nothing. */
#define TENON_NONE { NULL }
#define TENON_PLUGIN(op_list, kernel_list) \
    TENON_MANIFEST("{\"kind\":\"plugin\",\"name\":\"" TENON_PLUGIN_NAME "\",\"version\":\"" \
                   TENON_PLUGIN_VERSION "\",\"abi\":[0,1]}"); \
    static TenonCode tenon_open(const TenonHost *host, const TenonPlugin *plugin, TenonSink *sink) \
    { \
        (void)sink; \
        tenon_host = host; \
        tenon_self = plugin; \
        return TENON_OK; \
    } \
    static TenonCode tenon_register(const TenonHost *host, TenonRegistrar *registrar, \
                                    const TenonRegistrarTable *table, TenonSink *sink) \
    { \
        static const TenonOpDef *const ops[] = op_list; \
        static const TenonKernelDef *const kernels[] = kernel_list; \
        (void)host; \
        (void)sink; \
        for (size_t at = 0; at < sizeof ops / sizeof ops[0]; at++) { \
            TenonCode code = ops[at] ? table->op(registrar, ops[at]) : TENON_OK; \
            if (code != TENON_OK) { \
                return code; \
            } \
        } \
        for (size_t at = 0; at < sizeof kernels / sizeof kernels[0]; at++) { \
            TenonCode code = kernels[at] ? table->kernel(registrar, kernels[at]) : TENON_OK; \
            if (code != TENON_OK) { \
                return code; \
            } \
        } \
        return TENON_OK; \
    } \
    static const TenonPluginV1 tenon_plugin = { \
        .struct_size = sizeof(TenonPluginV1), \
        .abi_major = TENON_ABI_MAJOR, \
        .abi_minor = TENON_ABI_MINOR, \
        .reserved = 0, \
        .name = TENON_STR(TENON_PLUGIN_NAME), \
        .version = TENON_STR(TENON_PLUGIN_VERSION), \
        .open = tenon_open, \
        .register_all = tenon_register, \
        .ext = NULL, \
    }; \
    TENON_EXPORT const TenonPluginV1 *tenon_plugin_v1(uint32_t host_major, uint32_t host_minor) \
    { \
        return TENON_ABI_ACCEPTS(host_major, host_minor) ? &tenon_plugin : NULL; \
    }

#ifdef __cplusplus
}
#endif

#endif /* TENON_PLUGIN_H */
