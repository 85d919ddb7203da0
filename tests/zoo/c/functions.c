/* Calls of functions of the graph's library: within the step of a call, and beyond it. */
#include "zoo.h"

#include <pthread.h>
#include <stdlib.h>

/* The host's link, or null in a host without functions. */
static const TenonExtFunctions *functions(void)
{
    return (const TenonExtFunctions *)tenon_find_ext(tenon_host->ext, TENON_EXT_FUNCTIONS,
                                                     sizeof(TenonExtFunctions));
}

static TenonCode no_functions(const TenonCall *call)
{
    return tenon_fail(call, TENON_UNIMPLEMENTED, "the host offers no calls of functions");
}

/* Takes the end of a call: the first result becomes output 0 of the kernel's call. */
static void finish(void *data, TenonCode code, TenonStr message, TenonKeptTensor *const *results,
                   size_t result_count)
{
    const TenonCall *call = data;
    if (code != TENON_OK) {
        code = call->services->fail(call->record, code, message);
    } else if (result_count == 0) {
        code = tenon_fail(call, TENON_INVALID_ARGUMENT, "expected a function with a result");
    } else {
        code = call->services->output_kept(call->record, 0, results[0]);
    }
    for (size_t at = 0; at < result_count; at++) {
        tenon_host->release(results[at]);
    }
    call->services->complete(call->record, code);
}

/* Calls a function with input 0, within the step of `record` or as a step of its own. */
static TenonCode call_with_input(TenonFunction *function, const TenonCall *call,
                                 TenonCallRecord *record, TenonFunctionStart start)
{
    const TenonKeptTensor *args[1];
    TenonKeptTensor *x = tenon_host->keep(call->inputs[0]);
    TenonFunctionDone done = finish;
    if (x == NULL) {
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "x: there is no tensor to keep");
    }
    args[0] = x;
    functions()->call(function, record, args, 1, start, done, (void *)call);
    tenon_host->release(x);
    return TENON_PENDING;
}

typedef struct Apply {
    int on_pool;
} Apply;

static TenonCode create_apply(const TenonCreate *create, TenonKernelState **state)
{
    int on_pool;
    TenonCode code = tenon_attr_bool(create, "on_pool", &on_pool);
    if (code == TENON_OK) {
        code = tenon_zero_state(create, sizeof(Apply), state);
    }
    if (code == TENON_OK) {
        ((Apply *)*state)->on_pool = on_pool;
    }
    return code;
}

static TenonFunctionStart start_of(int on_pool)
{
    return on_pool ? TENON_FUNCTION_START_POOL : TENON_FUNCTION_START_HERE;
}

static TenonCode apply(TenonKernelState *state, const TenonCall *call)
{
    const TenonExtFunctions *link = functions();
    TenonFunction *function = NULL;
    TenonCode code;
    if (link == NULL) {
        return no_functions(call);
    }
    code = link->find(call->record, tenon_str("f"), 0, &function);
    if (code != TENON_OK) {
        return code;
    }
    code = call_with_input(function, call, call->record, start_of(((const Apply *)state)->on_pool));
    link->release(function);
    return code;
}

TENON_OP("ZooCApply", inputs("x: float"), outputs("y: float"), attrs("f: func", "on_pool: bool = false"), stateful);
static const TenonKernelTable apply_table = {
    .struct_size = sizeof(TenonKernelTable),
    .flags = TENON_KERNEL_FLAG_ASYNC,
    .create = create_apply,
    .compute = apply,
    .destroy = tenon_free_state,
};
KERNEL(apply, "ZooCApply");

/* A place for a function. */
typedef struct Place {
    pthread_mutex_t lock;
    TenonFunction *function;
} Place;

static TenonCode new_place(void *data, void **value, TenonSink *sink)
{
    Place *place = calloc(1, sizeof *place);
    (void)data;
    if (place == NULL || pthread_mutex_init(&place->lock, NULL) != 0) {
        free(place);
        tenon_host->report(sink, tenon_str("no memory for a place"));
        return TENON_RESOURCE_EXHAUSTED;
    }
    *value = place;
    return TENON_OK;
}

static void destroy_place(void *value)
{
    Place *place = value;
    if (place->function != NULL) {
        functions()->release(place->function);
    }
    pthread_mutex_destroy(&place->lock);
    free(place);
}

static const TenonResourceType place_type = {
    .struct_size = sizeof(TenonResourceType),
    .name = TENON_STR("zoo_c.Function"),
    .destroy = destroy_place,
};

/* Puts a function into the place that the state names, in exchange for the one there. */
static TenonCode exchange(const ZooNamed *named, const TenonCall *call, TenonFunction **function)
{
    TenonResource *resource;
    TenonFunction *before;
    Place *place;
    TenonCode code = tenon_host->state->resource(call->record, zoo_str(&named->container),
                                                 zoo_str(&named->name), &place_type, new_place,
                                                 NULL, &resource);
    if (code != TENON_OK) {
        return code;
    }
    place = tenon_host->state->resource_value(resource, &place_type);
    pthread_mutex_lock(&place->lock);
    before = place->function;
    if (*function != NULL) {
        place->function = *function;
    } else {
        functions()->retain(before);
    }
    pthread_mutex_unlock(&place->lock);
    *function = before;
    tenon_host->state->release_resource(resource);
    return TENON_OK;
}

static TenonCode keep(TenonKernelState *state, const TenonCall *call)
{
    const TenonExtFunctions *link = functions();
    TenonFunction *function = NULL;
    TenonCode code;
    if (link == NULL) {
        return no_functions(call);
    }
    code = link->find(call->record, tenon_str("f"), 0, &function);
    if (code == TENON_OK) {
        code = exchange((const ZooNamed *)state, call, &function);
        link->release(function);
    }
    return code;
}

TENON_OP("ZooCFunctionKeep", attrs("f: func", "container: string = ''", "shared_name: string = ''"), stateful);
STATEFUL(keep, zoo_create_named, keep, tenon_free_state);
KERNEL(keep, "ZooCFunctionKeep");

/* Finds the function that the state names. */
static TenonCode kept(const ZooNamed *named, const TenonCall *call, TenonFunction **function)
{
    TenonCode code;
    *function = NULL;
    if (functions() == NULL) {
        return no_functions(call);
    }
    code = exchange(named, call, function);
    if (code == TENON_OK && *function == NULL) {
        code = tenon_fail(call, TENON_FAILED_PRECONDITION, "no function is kept: keep one first");
    }
    return code;
}

typedef struct CallKept {
    ZooNamed named;
    int on_pool;
} CallKept;

static TenonCode create_call(const TenonCreate *create, TenonKernelState **state)
{
    int on_pool;
    TenonKernelState *named = NULL;
    TenonCode code = tenon_attr_bool(create, "on_pool", &on_pool);
    if (code == TENON_OK) {
        code = zoo_create_named(create, &named);
    }
    if (code == TENON_OK) {
        code = tenon_zero_state(create, sizeof(CallKept), state);
    }
    if (code == TENON_OK) {
        ((CallKept *)*state)->named = *(const ZooNamed *)named;
        ((CallKept *)*state)->on_pool = on_pool;
    }
    if (named != NULL) {
        tenon_free_state(named);
    }
    return code;
}

static TenonCode call_kept(TenonKernelState *state, const TenonCall *call)
{
    const CallKept *own = (const CallKept *)state;
    TenonFunction *function;
    TenonCode code = kept(&own->named, call, &function);
    if (code != TENON_OK) {
        return code;
    }
    code = call_with_input(function, call, NULL, start_of(own->on_pool));
    functions()->release(function);
    return code;
}

TENON_OP("ZooCFunctionCall", inputs("x: float"), outputs("y: float"),
         attrs("container: string = ''", "shared_name: string = ''", "on_pool: bool = false"), stateful);
static const TenonKernelTable call_table = {
    .struct_size = sizeof(TenonKernelTable),
    .flags = TENON_KERNEL_FLAG_ASYNC,
    .create = create_call,
    .compute = call_kept,
    .destroy = tenon_free_state,
};
KERNEL(call, "ZooCFunctionCall");

static TenonCode cancel(TenonKernelState *state, const TenonCall *call)
{
    TenonFunction *function;
    TenonCode code = kept((const ZooNamed *)state, call, &function);
    if (code == TENON_OK) {
        functions()->cancel(function);
        functions()->release(function);
    }
    return code;
}

TENON_OP("ZooCFunctionCancel", attrs("container: string = ''", "shared_name: string = ''"), stateful);
STATEFUL(cancel, zoo_create_named, cancel, tenon_free_state);
KERNEL(cancel, "ZooCFunctionCancel");
