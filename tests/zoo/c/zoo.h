/*
 * zoo.h - what the files of the C zoo share beyond tenon_plugin.h: registrations in the forms that many of its
 * kernels have, and small helpers.
 */
#ifndef ZOO_H
#define ZOO_H

#define TENON_PLUGIN_NAME "zoo-c"
#define TENON_PLUGIN_VERSION "0.1.0"
#include "tenon_plugin.h"

/* An ordinary kernel on the host device; its table is `id`_table. */
#define KERNEL(id, op_name) TENON_KERNEL(op_name, "CPU", id##_table)

/* A table with `compute` alone: a kernel without state. */
#define STATELESS(id, compute_fn) TENON_TABLE(id##_table, .compute = (compute_fn))

/* A table of a kernel with state, which is allocated by `create_fn` and freed by `destroy_fn`. */
#define STATEFUL(id, create_fn, compute_fn, destroy_fn) \
    TENON_TABLE(id##_table, .create = (create_fn), .compute = (compute_fn), .destroy = (destroy_fn))

#define ZOO_COUNT(array) (sizeof(array) / sizeof((array)[0]))

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
