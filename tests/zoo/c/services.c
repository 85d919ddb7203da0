/* What the host lends: threads, knobs, the log, memory, names, paths, the clock. */
#include "zoo.h"

#include <stdatomic.h>

/* What the workers of one call share. */
typedef struct Shared {
    const float *from;
    float *to;
    uint32_t workers;
    atomic_int strangers;
} Shared;

static void double_block(void *data, uint64_t begin, uint64_t end, uint32_t worker)
{
    Shared *shared = data;
    if (worker >= shared->workers) {
        atomic_fetch_add(&shared->strangers, 1);
    }
    for (uint64_t at = begin; at < end; at++) {
        shared->to[at] = shared->from[at] + shared->from[at];
    }
}

static TenonCode parallel(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *x = call->inputs[0];
    Shared shared = { .from = x->data, .workers = call->services->parallelism(call->record) };
    TenonCode code = tenon_prepare_like(call, 0, 0);
    (void)state;
    if (code != TENON_OK) {
        return code;
    }
    shared.to = call->outputs[0].data;
    call->services->parallel_for(call->record, x->elements, 1000, double_block, &shared);
    return zoo_give_bool(call, 1, atomic_load(&shared.strangers) == 0);
}

TENON_OP("ZooCParallel", inputs("x: float"), outputs("y: float", "within: bool"), shape(zoo_shape_same_and_scalar));
STATELESS(parallel, parallel);
KERNEL(parallel, "ZooCParallel");

static void add_knob(ZooText *text, const TenonKnobValue *value)
{
    switch (value->kind) {
    case TENON_KNOB_BOOL:
        zoo_add(text, "%s", value->boolean ? "true" : "false");
        break;
    case TENON_KNOB_INT:
        zoo_add(text, "%lld", (long long)value->int_value);
        break;
    case TENON_KNOB_FLOAT:
        zoo_add(text, "%g", value->float_value);
        break;
    default:
        zoo_add_bytes(text, value->text);
    }
}

#define KNOBS 4

static TenonCode read_knobs(const TenonPluginContext *context, ZooText *texts)
{
    static const char *const names[KNOBS] = { "enabled", "answer", "ratio", "greeting" };
    for (size_t at = 0; at < KNOBS; at++) {
        TenonKnobValue value;
        TenonCode code = tenon_host->knob(context, tenon_str(names[at]), &value);
        if (code != TENON_OK) {
            return code;
        }
        add_knob(&texts[at], &value);
    }
    return TENON_OK;
}

/* The state of this kernel is the context itself, kept: each call reads anew. */
static TenonCode keep_knobs(const TenonCreate *create, TenonKernelState **state)
{
    tenon_host->retain_context(create->context);
    *state = (TenonKernelState *)(uintptr_t)create->context;
    return TENON_OK;
}

static void release_knobs(TenonKernelState *state)
{
    tenon_host->release_context((const TenonPluginContext *)state);
}

static TenonCode knobs(TenonKernelState *state, const TenonCall *call)
{
    ZooText texts[KNOBS] = { 0 };
    TenonCode code = read_knobs((const TenonPluginContext *)state, texts);
    if (code != TENON_OK) {
        return tenon_fail(call, code, "a knob that this plugin declared is missing");
    }
    return zoo_give_texts(call, 0, texts, KNOBS);
}

TENON_OP("ZooCKnobs", outputs("facts: string"), shape(zoo_shape_vector), stateful);
static const TenonKernelTable knobs_table = {
    .struct_size = sizeof(TenonKernelTable),
    .create = keep_knobs,
    .compute = knobs,
    .destroy = release_knobs,
};
KERNEL(knobs, "ZooCKnobs");

static TenonCode create_knobs(const TenonCreate *create, TenonKernelState **state)
{
    TenonCode code = tenon_zero_state(create, KNOBS * sizeof(ZooText), state);
    return code != TENON_OK ? code : read_knobs(create->context, (ZooText *)*state);
}

static TenonSupport knobs_support(const TenonCreate *create)
{
    TenonKnobValue value;
    if (tenon_host->knob(create->context, tenon_str("ratio"), &value) != TENON_OK) {
        return TENON_SUPPORT_NO;
    }
    if (value.float_value < 0) {
        tenon_refuse(create, TENON_UNIMPLEMENTED, "ratio is negative");
        return TENON_SUPPORT_NO;
    }
    return TENON_SUPPORT_YES;
}

static TenonCode give_knobs(TenonKernelState *state, const TenonCall *call)
{
    return zoo_give_texts(call, 0, (const ZooText *)state, KNOBS);
}

TENON_OP("ZooCKnobsAtCreate", outputs("facts: string"), shape(zoo_shape_vector), stateful);
static const TenonKernelTable knobs_at_create_table = {
    .struct_size = sizeof(TenonKernelTable),
    .create = create_knobs,
    .compute = give_knobs,
    .destroy = tenon_free_state,
    .supports = knobs_support,
};
KERNEL(knobs_at_create, "ZooCKnobsAtCreate");

static TenonCode create_log(const TenonCreate *create, TenonKernelState **state)
{
    TenonStr message;
    TenonCode code = tenon_attr_string(create, "message", &message);
    if (code == TENON_OK) {
        code = tenon_zero_state(create, sizeof(ZooText), state);
    }
    if (code == TENON_OK) {
        zoo_add_bytes((ZooText *)*state, message);
    }
    return code;
}

static TenonCode write_log(TenonKernelState *state, const TenonCall *call)
{
    tenon_host->log(tenon_self, TENON_LOG_WARN, zoo_str((const ZooText *)state));
    return zoo_give_bool(call, 0, 1);
}

TENON_OP("ZooCLog", outputs("y: bool"), attrs("message: string"), shape(zoo_shape_scalar), stateful);
STATEFUL(log, create_log, write_log, tenon_free_state);
KERNEL(log, "ZooCLog");

#define TABLE_ALIGNMENT 64

/* A table in memory of the host's, which accounts for it. */
typedef struct Squares {
    int64_t *table;
    int64_t count;
} Squares;

static uint64_t table_bytes(const Squares *squares)
{
    return (uint64_t)squares->count * sizeof *squares->table;
}

static TenonCode create_squares(const TenonCreate *create, TenonKernelState **state)
{
    Squares squares;
    TenonCode code = tenon_attr_int(create, "n", &squares.count);
    if (code != TENON_OK) {
        return code;
    }
    if (squares.count < 1 || squares.count > 1 << 20) {
        return tenon_refuse(create, TENON_INVALID_ARGUMENT, "n: expected 1 to 2^20");
    }
    code = tenon_zero_state(create, sizeof(Squares), state);
    if (code != TENON_OK) {
        return code;
    }
    squares.table = tenon_host->allocate(table_bytes(&squares), TABLE_ALIGNMENT);
    if (squares.table == NULL) {
        tenon_free_state(*state);
        return tenon_refuse(create, TENON_RESOURCE_EXHAUSTED, "no host memory for the table");
    }
    for (int64_t at = 0; at < squares.count; at++) {
        squares.table[at] = at * at;
    }
    *(Squares *)*state = squares;
    return TENON_OK;
}

static void destroy_squares(TenonKernelState *state)
{
    Squares *squares = (Squares *)state;
    tenon_host->deallocate(squares->table, table_bytes(squares), TABLE_ALIGNMENT);
    tenon_free_state(state);
}

static TenonCode give_squares(TenonKernelState *state, const TenonCall *call)
{
    const Squares *squares = (const Squares *)state;
    TenonCode code = tenon_prepare(call, 0, &squares->count, 1);
    if (code == TENON_OK) {
        memcpy(call->outputs[0].data, squares->table, table_bytes(squares));
    }
    return code;
}

TENON_OP("ZooCHostMemory", outputs("squares: int64"), attrs("n: int >= 1"), shape(zoo_shape_vector));
STATEFUL(squares, create_squares, give_squares, destroy_squares);
KERNEL(squares, "ZooCHostMemory");

static TenonCode names(TenonKernelState *state, const TenonCall *call)
{
    uint64_t before = call->services->now_ns();
    uint64_t between = tenon_host->now_ns();
    uint64_t after = call->services->now_ns();
    TenonCode code = zoo_give_text(call, 0, call->services->node(call->record));
    (void)state;
    return code != TENON_OK ? code
                            : zoo_give_bool(call, 1, before <= between && between <= after);
}

TENON_OP("ZooCNames", outputs("node: string", "later: bool"), shape(zoo_shape_two_scalars), stateful);
STATELESS(names, names);
KERNEL(names, "ZooCNames");

static TenonCode path(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return zoo_give_text(call, 0, tenon_host->path(tenon_self));
}

TENON_OP("ZooCPath", outputs("path: string"), shape(zoo_shape_scalar), stateful);
STATELESS(path, path);
KERNEL(path, "ZooCPath");
