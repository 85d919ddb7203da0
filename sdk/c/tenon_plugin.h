/*
 * tenon_plugin.h - what a plugin in C includes: registrations that are said once (tenon_register.h), and small
 * helpers over the tables of tenon.h. C++ includes tenon.hpp, which includes this.
 *
 * Before it is included, name the plugin; in one of its files, open the door:
 *
 *     #define TENON_PLUGIN_NAME "my-op"
 *     #define TENON_PLUGIN_VERSION "0.1.0"
 *     #include "tenon_plugin.h"
 *
 *     TENON_OP("Cube", inputs("x: T"), outputs("y: T"), attrs("T: {float, double}"),
 *              shape(tenon_shape_of_first), summary("The third power."));
 *     ...
 *     TENON_TABLE(cube_table, .compute = cube);
 *     TENON_KERNEL("Cube", "CPU", cube_table, types(T, float), numerics(tenon_exact));
 *     TENON_PLUGIN();
 *
 * Registrations may be in any file that includes this header, any number of them on a line, also as the result of a
 * macro of yours; TENON_PLUGIN is in one file and finds them all.
 *
 * Include it after the headers of other libraries: what is declared after it is hidden, so that the library exports
 * nothing but its door, whatever flags it is built with. (A function of another library that was declared after it
 * is told by the linker: "hidden symbol ... isn't defined". Where such a header has to come later, put it between
 * `#pragma GCC visibility push(default)` and `#pragma GCC visibility pop`.) With TENON_KEEP_VISIBILITY defined before,
 * all but its own is as the compiler has it.
 */
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H

#include "tenon.h"
#include "tenon_half.h"

/* The C library, so that it is declared before what is hidden. */
#include <assert.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#ifndef TENON_PLUGIN_NAME
#error "define TENON_PLUGIN_NAME, such as \"my-op\", before tenon_plugin.h is included"
#endif
#ifndef TENON_PLUGIN_VERSION
#error "define TENON_PLUGIN_VERSION, such as \"0.1.0\", before tenon_plugin.h is included"
#endif
#if !defined(__GNUC__)
#error "tenon_plugin.h needs sections and constructors as GCC and clang have them"
#endif

/* Later compilers call __COUNTER__, which all of them have, a thing of C2y. */
#if defined(__clang_major__) && __clang_major__ >= 22 && !defined(__apple_build_version__)
#pragma clang diagnostic ignored "-Wc2y-extensions"
#endif

#pragma GCC visibility push(hidden)

#ifdef __cplusplus
extern "C" {
#endif

/* A function of this header that a plugin need not use, and one whose arguments are as printf's. */
#define TENON_HELPER static __attribute__((unused))
#define TENON_SAYS static __attribute__((unused, format(printf, 3, 4)))

/* A registration in waiting: what gives it to the host. */
typedef TenonCode (*TenonGive)(TenonRegistrar *registrar, const TenonRegistrarTable *table);
typedef struct TenonListing TenonListing;
struct TenonListing {
    TenonListing *next;
    TenonGive give;
};

/*
 * The host's table and its record of this plugin, from when it is opened, and its registrations. All files of a
 * plugin share them; TENON_PLUGIN defines them.
 */
extern const TenonHost *tenon_host;
extern const TenonPlugin *tenon_self;
extern TenonListing *tenon_listings;

/* Puts a registration under this number into the list, when the library is opened. */
#define TENON_LIST(number, give_fn) \
    static TenonListing tenon_listing_##number = { NULL, give_fn }; \
    __attribute__((constructor)) static void tenon_listed_##number(void) \
    { \
        tenon_listing_##number.next = tenon_listings; \
        tenon_listings = &tenon_listing_##number; \
    } \
    struct tenon_semicolon

/* Plugin, file and line of a registration. */
#define TENON_HERE { TENON_STR(TENON_PLUGIN_NAME), TENON_STR(__FILE__), __LINE__ }

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

/* Computes `total` units of about `cost_ns` each on the host's threads, in blocks; returns when all are done. */
TENON_HELPER void tenon_parallel_for(const TenonCall *call, uint64_t total, double cost_ns,
                                     TenonParallelBody body, void *data)
{
    call->services->parallel_for(call->record, total, cost_ns, body, data);
}

/* Host memory for the time of the call, of so many items, aligned to 64 bytes; no memory is an error. */
TENON_HELPER TenonCode tenon_scratch(const TenonCall *call, uint64_t count, size_t item, void **result)
{
    if (item != 0 && count > UINT64_MAX / item) {
        return tenon_fail(call, TENON_RESOURCE_EXHAUSTED, "scratch: %" PRIu64 " items of %zu bytes are too many",
                          count, item);
    }
    return call->services->scratch(call->record, count * item, 64, TENON_ORDINARY_MEMORY, result);
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

/* Adds a node to the gradient of a node, of these inputs, and gives its first output. Attributes that the inputs
 * determine or that have a default need not be set; others need TenonGradientTable::add itself. */
TENON_HELPER TenonCode tenon_gradient_op(TenonGradientCall *call, const TenonGradientTable *table, const char *op,
                                         const TenonGraphValue *inputs, size_t count, TenonGraphValue *first)
{
    TenonGradientNode node;
    memset(&node, 0, sizeof node);
    node.struct_size = sizeof node;
    node.op = tenon_str(op);
    node.inputs = inputs;
    node.input_count = count;
    return table->add(call, &node, first, 1, NULL);
}

/* Sets the gradient of an input to a tensor of its shape. */
TENON_HELPER TenonCode tenon_gradient_set(TenonGradientCall *call, const TenonGradientTable *table, uint32_t input,
                                          TenonGraphValue value)
{
    TenonGradientParts parts;
    memset(&parts, 0, sizeof parts);
    parts.kind = TENON_GRADIENT_KIND_DENSE;
    parts.values = value;
    return table->set(call, input, &parts);
}

#ifdef __cplusplus
}
#endif

/* The door of the plugin, in one of its files. */
#define TENON_PLUGIN() \
    static TenonCode tenon_register(const TenonHost *host, TenonRegistrar *registrar, \
                                    const TenonRegistrarTable *table, TenonSink *sink) \
    { \
        const TenonListing *listing; \
        (void)host; \
        (void)sink; \
        for (listing = tenon_listings; listing != NULL; listing = listing->next) { \
            const TenonCode code = listing->give(registrar, table); \
            if (code != TENON_OK) { \
                return code; \
            } \
        } \
        return TENON_OK; \
    } \
    TENON_DOOR(tenon_register)

/* The door alone, for a plugin with a function of its own that registers everything. */
#define TENON_DOOR(register_fn) \
    TENON_MANIFEST("{\"kind\":\"plugin\",\"name\":\"" TENON_PLUGIN_NAME "\",\"version\":\"" \
                   TENON_PLUGIN_VERSION "\",\"abi\":[0,1]}"); \
    const TenonHost *tenon_host; \
    const TenonPlugin *tenon_self; \
    TenonListing *tenon_listings; \
    static TenonCode tenon_open(const TenonHost *host, const TenonPlugin *plugin, TenonSink *sink) \
    { \
        (void)sink; \
        tenon_host = host; \
        tenon_self = plugin; \
        return TENON_OK; \
    } \
    static const TenonPluginV1 tenon_plugin = { \
        sizeof(TenonPluginV1), TENON_ABI_MAJOR, TENON_ABI_MINOR, 0, TENON_STR(TENON_PLUGIN_NAME), \
        TENON_STR(TENON_PLUGIN_VERSION), tenon_open, (register_fn), NULL, \
    }; \
    TENON_DOOR_EXTERN TENON_EXPORT const TenonPluginV1 *tenon_plugin_v1(uint32_t host_major, uint32_t host_minor) \
    { \
        return TENON_ABI_ACCEPTS(host_major, host_minor) ? &tenon_plugin : NULL; \
    } \
    struct tenon_semicolon
#ifdef __cplusplus
#define TENON_DOOR_EXTERN extern "C"
#else
#define TENON_DOOR_EXTERN
#include "tenon_register.h"
#endif

#ifdef TENON_KEEP_VISIBILITY
#pragma GCC visibility pop
#endif

#endif /* TENON_PLUGIN_H */
