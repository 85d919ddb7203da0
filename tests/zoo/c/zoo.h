/*
 * zoo.h - what the files of the C zoo share: registrations that write their own manifest lines, and
 * small helpers over the tables of tenon.h.
 *
 * OP and KERNEL state a registration once; from it come the definition that is given to the host and the
 * line of the manifest that the host compares it with.
 */
#ifndef ZOO_H
#define ZOO_H

#include "tenon.h"

#define ZOO_PROJECT "zoo-c"

/*
 * Lists of texts: A0(), A1("x: float"), A2("a: float", "b: float"), ... Pasting a letter in front makes an
 * initialiser (I_), a count (C_) or JSON (J_) of one.
 */
#define I_A0() { TENON_STR("") }
#define I_A1(a) { TENON_STR(a) }
#define I_A2(a, b) { TENON_STR(a), TENON_STR(b) }
#define I_A3(a, b, c) { TENON_STR(a), TENON_STR(b), TENON_STR(c) }
#define I_A6(a, b, c, d, e, f) \
    { TENON_STR(a), TENON_STR(b), TENON_STR(c), TENON_STR(d), TENON_STR(e), TENON_STR(f) }
#define I_A8(a, b, c, d, e, f, g, h) \
    { TENON_STR(a), TENON_STR(b), TENON_STR(c), TENON_STR(d), \
      TENON_STR(e), TENON_STR(f), TENON_STR(g), TENON_STR(h) }
#define C_A0() 0
#define C_A1(a) 1
#define C_A2(a, b) 2
#define C_A3(a, b, c) 3
#define C_A6(a, b, c, d, e, f) 6
#define C_A8(a, b, c, d, e, f, g, h) 8
#define J_TEXT(a) "\"" a "\""
#define J_A0() "[]"
#define J_A1(a) "[" J_TEXT(a) "]"
#define J_A2(a, b) "[" J_TEXT(a) "," J_TEXT(b) "]"
#define J_A3(a, b, c) "[" J_TEXT(a) "," J_TEXT(b) "," J_TEXT(c) "]"
#define J_A6(a, b, c, d, e, f) \
    "[" J_TEXT(a) "," J_TEXT(b) "," J_TEXT(c) "," J_TEXT(d) "," J_TEXT(e) "," J_TEXT(f) "]"
#define J_A8(a, b, c, d, e, f, g, h) \
    "[" J_TEXT(a) "," J_TEXT(b) "," J_TEXT(c) "," J_TEXT(d) "," \
        J_TEXT(e) "," J_TEXT(f) "," J_TEXT(g) "," J_TEXT(h) "]"

/* Where a registration stands. */
#define ZOO_HERE { TENON_STR(ZOO_PROJECT), TENON_STR(__FILE__), __LINE__ }

/* An op, as the variable `id`_op. `takes`, `gives` and `has` are lists. */
#define OP(id, op_name, takes, gives, has, op_flags, shape_fn) \
    OP_LINKED(id, op_name, takes, gives, has, op_flags, shape_fn, "", NULL)

/* As OP, with a link. `more` is what the link adds to the op's line of the manifest. */
#define OP_LINKED(id, op_name, takes, gives, has, op_flags, shape_fn, more, link) \
    TENON_MANIFEST("{\"kind\":\"op\",\"name\":\"" op_name "\",\"inputs\":" J_##takes \
                   ",\"outputs\":" J_##gives ",\"attrs\":" J_##has more "}"); \
    static const TenonStr id##_takes[] = I_##takes; \
    static const TenonStr id##_gives[] = I_##gives; \
    static const TenonStr id##_has[] = I_##has; \
    static const TenonOpDef id##_op = { \
        .struct_size = sizeof(TenonOpDef), \
        .flags = (op_flags), \
        .name = TENON_STR(op_name), \
        .inputs = { id##_takes, C_##takes }, \
        .outputs = { id##_gives, C_##gives }, \
        .attrs = { id##_has, C_##has }, \
        .shape = (shape_fn), \
        .source = ZOO_HERE, \
        .ext = (link), \
    }

/* The manifest line of a kernel; `types` is JSON, such as "{\"T\":[\"float\"]}", or "{}". */
#define KERNEL_LINE(op_name, device, kernel_label, kernel_priority, requested, types, needs) \
    TENON_MANIFEST("{\"kind\":\"kernel\",\"op\":\"" op_name "\",\"device\":\"" device \
                   "\",\"label\":\"" kernel_label "\",\"priority\":" #kernel_priority \
                   ",\"on_request\":" #requested ",\"types\":" types ",\"features\":" needs "}")

/* An ordinary kernel on the host device, as the variable `id`_kernel; its table is `id`_table. */
#define KERNEL(id, op_name) \
    KERNEL_LINE(op_name, "CPU", "", 0, false, "{}", "[]"); \
    static const TenonKernelDef id##_kernel = { \
        .struct_size = sizeof(TenonKernelDef), \
        .op = TENON_STR(op_name), \
        .device_type = TENON_STR("CPU"), \
        .table = &id##_table, \
        .source = ZOO_HERE, \
    }

/* A table with `compute` alone: a kernel without state. */
#define STATELESS(id, compute_fn) \
    static const TenonKernelTable id##_table = { \
        .struct_size = sizeof(TenonKernelTable), \
        .compute = (compute_fn), \
    }

/* A table of a kernel with state, which is allocated by `create_fn` and freed by `destroy_fn`. */
#define STATEFUL(id, create_fn, compute_fn, destroy_fn) \
    static const TenonKernelTable id##_table = { \
        .struct_size = sizeof(TenonKernelTable), \
        .create = (create_fn), \
        .compute = (compute_fn), \
        .destroy = (destroy_fn), \
    }

/* The registrations of one file. */
typedef struct ZooList {
    const TenonOpDef *const *ops;
    size_t op_count;
    const TenonKernelDef *const *kernels;
    size_t kernel_count;
} ZooList;

#define ZOO_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The list of one file, from its arrays `ops` and `kernels`. */
#define ZOO_LIST(id) \
    const ZooList id = { ops, ZOO_COUNT(ops), kernels, ZOO_COUNT(kernels) }

extern const ZooList zoo_attributes;
extern const ZooList zoo_create;
extern const ZooList zoo_compute;
extern const ZooList zoo_outputs;
extern const ZooList zoo_asynchronous;
extern const ZooList zoo_elements;
extern const ZooList zoo_variants;
extern const ZooList zoo_resources;
extern const ZooList zoo_variables;
extern const ZooList zoo_kept;
extern const ZooList zoo_shapes;
extern const ZooList zoo_services;
extern const ZooList zoo_selection;

/* The host's table and its record of this plugin, kept when the plugin is opened. */
extern const TenonHost *zoo_host;
extern const TenonPlugin *zoo_plugin;

/* Fails a call with a text. */
TenonCode zoo_fail(const TenonCall *call, TenonCode code, const char *message);

/* Refuses to create a kernel, with a text. */
TenonCode zoo_refuse(const TenonCreate *create, TenonCode code, const char *message);

/* Reads an attribute of this kind, which is single; reports a missing or different one. */
TenonCode zoo_attr(const TenonCreate *create, const char *name, TenonAttrKind kind,
                   TenonAttrView *view);

/* As zoo_attr, of an int. */
TenonCode zoo_attr_int(const TenonCreate *create, const char *name, int64_t *value);

/* As zoo_attr, of a string; the text is valid while the kernel is created. */
TenonCode zoo_attr_text(const TenonCreate *create, const char *name, TenonStr *value);

/* Makes sure that an output has a buffer of this shape: the planned one, or a fresh one. */
TenonCode zoo_prepare(const TenonCall *call, uint32_t output, const int64_t *dims, uint32_t rank);

/* As zoo_prepare, with the shape of an input. */
TenonCode zoo_prepare_like(const TenonCall *call, uint32_t output, uint32_t input);

/* Sets a scalar output. */
TenonCode zoo_give_int(const TenonCall *call, uint32_t output, int64_t value);
TenonCode zoo_give_float(const TenonCall *call, uint32_t output, float value);
TenonCode zoo_give_bool(const TenonCall *call, uint32_t output, int value);

/* The one float of a scalar input. */
TenonCode zoo_take_float(const TenonCall *call, uint32_t input, float *value);

/* A state of `size` bytes, all zero; reports when there is no memory. */
TenonCode zoo_new_state(const TenonCreate *create, size_t size, TenonKernelState **state);

/* Frees what zoo_new_state gave. */
void zoo_free_state(TenonKernelState *state);

/* A text that grows, for facts that a kernel returns. Too long a text is cut. */
typedef struct ZooText {
    size_t len;
    char bytes[1000];
} ZooText;

void zoo_add(ZooText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void zoo_add_bytes(ZooText *text, TenonStr bytes);
void zoo_add_shape(ZooText *text, const TenonShapeView *shape);
void zoo_add_range(ZooText *text, const TenonRange *range);

/* Writes texts as string output `output`, a vector. */
TenonCode zoo_give_texts(const TenonCall *call, uint32_t output, const ZooText *texts,
                         size_t count);

/* Writes one text as string output `output`, a scalar. */
TenonCode zoo_give_text(const TenonCall *call, uint32_t output, TenonStr text);

/* Container and name of a resource, copied from the attributes `container` and `shared_name`. */
typedef struct ZooNamed {
    ZooText container;
    ZooText name;
} ZooNamed;

/* A state that is a ZooNamed; without a shared name it has the node's own. */
TenonCode zoo_create_named(const TenonCreate *create, TenonKernelState **state);

/* A text as the host takes it. */
TenonStr zoo_str(const ZooText *text);

/* Shape functions: output 0 has the shape of input 0; output 0 is a scalar; nothing is known. */
TenonCode zoo_shape_same(const TenonHost *host, TenonShapeCall *call);
TenonCode zoo_shape_scalar(const TenonHost *host, TenonShapeCall *call);
/* Output 0 has the shape of input 0, output 1 is a scalar. */
TenonCode zoo_shape_same_and_scalar(const TenonHost *host, TenonShapeCall *call);
/* Both outputs are scalars. */
TenonCode zoo_shape_two_scalars(const TenonHost *host, TenonShapeCall *call);
/* Output 0 is a vector of unknown length. */
TenonCode zoo_shape_vector(const TenonHost *host, TenonShapeCall *call);

#endif /* ZOO_H */
