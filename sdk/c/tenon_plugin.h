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
 * compares it with. One file of a plugin says TENON_PLUGIN; where there are several, all of them include this
 * header, and that one declares the others' definitions.
 *
 * A device type is TENON_DEVICE with a TenonDeviceTable, a knob is TENON_KNOB; TENON_PLUGIN_OF lists them too.
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

/* A function of this header that a plugin need not use, and one whose arguments are as printf's. */
#if defined(__GNUC__)
#define TENON_HELPER static __attribute__((unused))
#define TENON_SAYS static __attribute__((unused, format(printf, 3, 4)))
#else
#define TENON_HELPER static inline
#define TENON_SAYS static inline
#endif

/* A variable that all files of a plugin share and that no other library sees. */
#if defined(__GNUC__)
#define TENON_SHARED extern __attribute__((visibility("hidden")))
#else
#define TENON_SHARED extern
#endif

/* The host's table and its record of this plugin, from when it is opened. TENON_PLUGIN defines them. */
TENON_SHARED const TenonHost *tenon_host;
TENON_SHARED const TenonPlugin *tenon_self;

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
#define TENON_I_TENON_7(a, b, c, d, e, f, g) \
    { TENON_STR(a), TENON_STR(b), TENON_STR(c), TENON_STR(d), TENON_STR(e), TENON_STR(f), \
      TENON_STR(g) }
#define TENON_I_TENON_8(a, b, c, d, e, f, g, h) \
    { TENON_STR(a), TENON_STR(b), TENON_STR(c), TENON_STR(d), TENON_STR(e), TENON_STR(f), \
      TENON_STR(g), TENON_STR(h) }
#define TENON_C_TENON_0() 0
#define TENON_C_TENON_1(a) 1
#define TENON_C_TENON_2(a, b) 2
#define TENON_C_TENON_3(a, b, c) 3
#define TENON_C_TENON_4(a, b, c, d) 4
#define TENON_C_TENON_5(a, b, c, d, e) 5
#define TENON_C_TENON_6(a, b, c, d, e, f) 6
#define TENON_C_TENON_7(a, b, c, d, e, f, g) 7
#define TENON_C_TENON_8(a, b, c, d, e, f, g, h) 8
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
#define TENON_J_TENON_7(a, b, c, d, e, f, g) \
    "[" TENON_J_TEXT(a) "," TENON_J_TEXT(b) "," TENON_J_TEXT(c) "," TENON_J_TEXT(d) "," \
        TENON_J_TEXT(e) "," TENON_J_TEXT(f) "," TENON_J_TEXT(g) "]"
#define TENON_J_TENON_8(a, b, c, d, e, f, g, h) \
    "[" TENON_J_TEXT(a) "," TENON_J_TEXT(b) "," TENON_J_TEXT(c) "," TENON_J_TEXT(d) "," \
        TENON_J_TEXT(e) "," TENON_J_TEXT(f) "," TENON_J_TEXT(g) "," TENON_J_TEXT(h) "]"

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
    TENON_OP_OF(id, op_name, takes, gives, has, shape_fn, about, 0, "", NULL)

/*
 * As TENON_OP, with bits of TENON_OP_FLAG_* and a link, such as the header of a TENON_CASES; `more` is JSON that
 * the link adds to the op's line of the manifest, such as ",\"cases\":[...]".
 */
#define TENON_OP_OF(id, op_name, takes, gives, has, shape_fn, about, op_flags, more, link) \
    TENON_MANIFEST("{\"kind\":\"op\",\"name\":\"" op_name "\",\"inputs\":" TENON_J_##takes \
                   ",\"outputs\":" TENON_J_##gives ",\"attrs\":" TENON_J_##has more "}"); \
    static const TenonStr id##_takes[] = TENON_I_##takes; \
    static const TenonStr id##_gives[] = TENON_I_##gives; \
    static const TenonStr id##_has[] = TENON_I_##has; \
    static const TenonOpDef id##_op = { \
        .struct_size = sizeof(TenonOpDef), \
        .flags = (op_flags), \
        .name = TENON_STR(op_name), \
        .inputs = { id##_takes, TENON_C_##takes }, \
        .outputs = { id##_gives, TENON_C_##gives }, \
        .attrs = { id##_has, TENON_C_##has }, \
        .summary = TENON_STR(about), \
        .description = TENON_STR(""), \
        .shape = (shape_fn), \
        .source = TENON_HERE, \
        .ext = (link), \
    }

/* Numerics contracts; the first says nothing. */
#define tenon_unspecified \
    { TENON_TOLERANCE_UNSPECIFIED, TENON_DETERMINISM_NONE, 0.0, 0.0, 0.0, TENON_INVALID, 0 }
#define tenon_exact \
    { TENON_TOLERANCE_EXACT, TENON_DETERMINISM_BITWISE, 0.0, 0.0, 0.0, TENON_INVALID, 0 }
#define tenon_within_ulps(count) \
    { TENON_TOLERANCE_ULPS, TENON_DETERMINISM_RUN_TO_RUN, count, 0.0, 0.0, TENON_INVALID, 0 }
#define tenon_within(abs_error, rel_error) \
    { TENON_TOLERANCE_ABSOLUTE_RELATIVE, TENON_DETERMINISM_RUN_TO_RUN, 0.0, abs_error, rel_error, \
      TENON_INVALID, 0 }

/*
 * Arithmetic on the host's threads takes denormal numbers for zeros (see TenonCall): a kernel that needs them has
 * TENON_KERNEL_DEF_FLAG_KEEPS_DENORMALS among the flags of its definition.
 */

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
    TENON_KERNEL_LINE(op_name, device, variant, rank_, mode, "{\"" #attr_ "\":[\"" #type "\"]}"); \
    static const TenonDType id##_types[] = { TENON_TYPE_OF_##type }; \
    static const TenonTypeConstraint id##_constraint = { TENON_STR(#attr_), id##_types, 1 }; \
    TENON_KERNEL_DEF(id, op_name, device, variant, rank_, mode, &id##_constraint, 1, entries, contract)

/* As TENON_KERNEL, of an op whose signature names its types itself, such as "x: float". */
#define TENON_KERNEL_FIXED(id, op_name, device, variant, rank_, mode, contract, entries) \
    TENON_KERNEL_LINE(op_name, device, variant, rank_, mode, "{}"); \
    TENON_KERNEL_DEF(id, op_name, device, variant, rank_, mode, NULL, 0, entries, contract)

#define TENON_KERNEL_LINE(op_name, device, variant, rank_, mode, types) \
    TENON_MANIFEST("{\"kind\":\"kernel\",\"op\":\"" op_name "\",\"device\":\"" device \
                   "\",\"label\":\"" variant "\",\"priority\":" #rank_ \
                   ",\"on_request\":" TENON_JSON_OF_##mode ",\"types\":" types ",\"features\":[]}")
/* The contract comes last, for it has commas by now. */
#define TENON_KERNEL_DEF(id, op_name, device, variant, rank_, mode, limits, limit_count, entries, ...) \
    static const TenonKernelDef id##_kernel = { \
        .struct_size = sizeof(TenonKernelDef), \
        .flags = TENON_FLAGS_OF_##mode, \
        .op = TENON_STR(op_name), \
        .device_type = TENON_STR(device), \
        .label = TENON_STR(variant), \
        .priority = (rank_), \
        .reserved = 0, \
        .constraints = (limits), \
        .constraint_count = (limit_count), \
        .host_memory = { NULL, 0 }, \
        .in_place = NULL, \
        .in_place_count = 0, \
        .features = { NULL, 0 }, \
        .numerics = __VA_ARGS__, \
        .table = &(entries), \
        .source = TENON_HERE, \
        .ext = NULL, \
    }

/*
 * A device type, as the variable `id`_device: how many devices there are, what opens one, and the entries of an
 * open one. Below priority 0 it runs what names it and attracts nothing else.
 */
#define TENON_DEVICE(id, type_name, rank_, probe_fn, create_fn, entries) \
    TENON_MANIFEST("{\"kind\":\"device\",\"name\":\"" type_name "\",\"priority\":" #rank_ "}"); \
    static const TenonDeviceTypeDef id##_device = { \
        .struct_size = sizeof(TenonDeviceTypeDef), \
        .priority = (rank_), \
        .name = TENON_STR(type_name), \
        .probe = (probe_fn), \
        .create = (create_fn), \
        .table = &(entries), \
        .source = TENON_HERE, \
        .ext = NULL, \
    }

/* A knob, as the variable `id`_knob; `type` is BOOL, INT, FLOAT or STRING, the value a text. */
#define TENON_KNOB(id, knob_name, type, value, about) \
    TENON_MANIFEST("{\"kind\":\"knob\",\"name\":\"" knob_name "\",\"default\":\"" value "\"}"); \
    static const TenonKnobDef id##_knob = { \
        .struct_size = sizeof(TenonKnobDef), \
        .kind = TENON_KNOB_##type, \
        .name = TENON_STR(knob_name), \
        .default_value = TENON_STR(value), \
        .help = TENON_STR(about), \
        .source = TENON_HERE, \
        .ext = NULL, \
    }

/* Fails a call: an error's code comes back, to be returned. The message is as printf's. */
TENON_SAYS TenonCode tenon_fail(const TenonCall *call, TenonCode code, const char *format, ...)
{
    char message[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return call->services->fail(call->record, code, tenon_str(message));
}

/* Tells what is wrong where there is a sink for it, as tenon_fail does a call. */
TENON_SAYS TenonCode tenon_report(TenonSink *sink, TenonCode code, const char *format, ...)
{
    char message[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    tenon_host->report(sink, tenon_str(message));
    return code;
}

/* Refuses to make a kernel. */
#define tenon_refuse(create, ...) tenon_report((create)->sink, __VA_ARGS__)

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

/* An attribute of kind int, float, bool, string; a string is valid while the kernel is made. */
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

TENON_HELPER TenonCode tenon_attr_string(const TenonCreate *create, const char *name, TenonStr *value)
{
    TenonAttrView view;
    TenonCode code = tenon_attr(create, name, TENON_ATTR_STRING, &view);
    if (code == TENON_OK) {
        *value = *(const TenonStr *)view.data;
    }
    return code;
}

/* A state of so many bytes, all zero; no memory is refused. */
TENON_HELPER TenonCode tenon_zero_state(const TenonCreate *create, size_t size, TenonKernelState **state)
{
    *state = (TenonKernelState *)calloc(1, size);
    return *state != NULL
        ? TENON_OK
        : tenon_refuse(create, TENON_RESOURCE_EXHAUSTED, "no memory for the kernel's state");
}

/* A state that is a copy of these bytes. */
TENON_HELPER TenonCode tenon_new_state(const TenonCreate *create, const void *bytes, size_t size,
                                       TenonKernelState **state)
{
    TenonCode code = tenon_zero_state(create, size, state);
    if (code == TENON_OK) {
        memcpy(*state, bytes, size);
    }
    return code;
}

/* Frees what either gave: an entry `.destroy`. */
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
    static const TenonOpDef *const tenon_ops[] = op_list; \
    static const TenonKernelDef *const tenon_kernels[] = kernel_list; \
    static const TenonDeviceTypeDef *const tenon_devices[] = TENON_NONE; \
    static const TenonKnobDef *const tenon_knobs[] = TENON_NONE; \
    TENON_DOOR_OF_LISTS

/* As TENON_PLUGIN, with lists of device types and of knobs. */
#define TENON_PLUGIN_OF(op_list, kernel_list, device_list, knob_list) \
    static const TenonOpDef *const tenon_ops[] = op_list; \
    static const TenonKernelDef *const tenon_kernels[] = kernel_list; \
    static const TenonDeviceTypeDef *const tenon_devices[] = device_list; \
    static const TenonKnobDef *const tenon_knobs[] = knob_list; \
    TENON_DOOR_OF_LISTS

#define TENON_DOOR_OF_LISTS \
    static TenonCode tenon_register(const TenonHost *host, TenonRegistrar *registrar, \
                                    const TenonRegistrarTable *table, TenonSink *sink) \
    { \
        (void)host; \
        (void)sink; \
        TENON_REGISTER_EACH(op, tenon_ops) \
        TENON_REGISTER_EACH(kernel, tenon_kernels) \
        TENON_REGISTER_EACH(device_type, tenon_devices) \
        TENON_REGISTER_EACH(knob, tenon_knobs) \
        return TENON_OK; \
    } \
    TENON_DOOR(tenon_register)

#define TENON_REGISTER_EACH(entry, list) \
    for (size_t at = 0; at < sizeof list / sizeof list[0] && list[at] != NULL; at++) { \
        TenonCode code = table->entry(registrar, list[at]); \
        if (code != TENON_OK) { \
            return code; \
        } \
    }

/* The door alone, for a plugin with a function of its own that registers everything. */
#define TENON_DOOR(register_fn) \
    TENON_MANIFEST("{\"kind\":\"plugin\",\"name\":\"" TENON_PLUGIN_NAME "\",\"version\":\"" \
                   TENON_PLUGIN_VERSION "\",\"abi\":[0,1]}"); \
    const TenonHost *tenon_host; \
    const TenonPlugin *tenon_self; \
    static TenonCode tenon_open(const TenonHost *host, const TenonPlugin *plugin, TenonSink *sink) \
    { \
        (void)sink; \
        tenon_host = host; \
        tenon_self = plugin; \
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
        .register_all = (register_fn), \
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
