/*
 * zoo.h - what the files of the C zoo share beyond tenon_plugin.h: registrations in the forms that many of its
 * ops have, and small helpers.
 */
#ifndef ZOO_H
#define ZOO_H

#define TENON_PLUGIN_NAME "zoo-c"
#define TENON_PLUGIN_VERSION "0.1.0"
#include "tenon_plugin.h"

/* An op, as the variable `id`_op. `takes`, `gives` and `has` are lists. */
#define OP(id, op_name, takes, gives, has, op_flags, shape_fn) \
    TENON_OP_OF(id, op_name, takes, gives, has, shape_fn, "", op_flags, "", NULL)

/* As OP, with a link. `more` is what the link adds to the op's line of the manifest. */
#define OP_LINKED(id, op_name, takes, gives, has, op_flags, shape_fn, more, link) \
    TENON_OP_OF(id, op_name, takes, gives, has, shape_fn, "", op_flags, more, link)

/* The manifest line of a kernel; `types` is JSON, such as "{\"T\":[\"float\"]}", or "{}". */
#define KERNEL_LINE(op_name, device, kernel_label, kernel_priority, requested, types, needs) \
    TENON_MANIFEST("{\"kind\":\"kernel\",\"op\":\"" op_name "\",\"device\":\"" device \
                   "\",\"label\":\"" kernel_label "\",\"priority\":" #kernel_priority \
                   ",\"on_request\":" #requested ",\"types\":" types ",\"features\":" needs "}")

/* An ordinary kernel on the host device, as the variable `id`_kernel; its table is `id`_table. */
#define KERNEL(id, op_name) \
    TENON_KERNEL_FIXED(id, op_name, "CPU", "", 0, AUTO, tenon_unspecified, id##_table)

/* A table with `compute` alone: a kernel without state. */
#define STATELESS(id, compute_fn) TENON_TABLE(id##_table, .compute = (compute_fn))

/* A table of a kernel with state, which is allocated by `create_fn` and freed by `destroy_fn`. */
#define STATEFUL(id, create_fn, compute_fn, destroy_fn) \
    TENON_TABLE(id##_table, .create = (create_fn), .compute = (compute_fn), .destroy = (destroy_fn))

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
extern const ZooList zoo_bools;
extern const ZooList zoo_variants;
extern const ZooList zoo_resources;
extern const ZooList zoo_variables;
extern const ZooList zoo_kept;
extern const ZooList zoo_shapes;
extern const ZooList zoo_services;
extern const ZooList zoo_selection;

/* Sets a scalar output. */
TenonCode zoo_give_int(const TenonCall *call, uint32_t output, int64_t value);
TenonCode zoo_give_float(const TenonCall *call, uint32_t output, float value);
TenonCode zoo_give_bool(const TenonCall *call, uint32_t output, int value);

/* The one float of a scalar input. */
TenonCode zoo_take_float(const TenonCall *call, uint32_t input, float *value);

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

/* Shape function: output 0 is a scalar. */
TenonCode zoo_shape_scalar(const TenonHost *host, TenonShapeCall *call);
/* Output 0 has the shape of input 0, output 1 is a scalar. */
TenonCode zoo_shape_same_and_scalar(const TenonHost *host, TenonShapeCall *call);
/* Both outputs are scalars. */
TenonCode zoo_shape_two_scalars(const TenonHost *host, TenonShapeCall *call);
/* Output 0 is a vector of unknown length. */
TenonCode zoo_shape_vector(const TenonHost *host, TenonShapeCall *call);

#endif /* ZOO_H */
