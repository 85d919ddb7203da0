/* Tensors that a plugin keeps beyond a call: the elements of a stack. */
#include "zoo.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct Entry {
    struct Entry *below;
    TenonKeptTensor *kept;
} Entry;

typedef struct Stack {
    pthread_mutex_t lock;
    Entry *top;
    int64_t depth;
} Stack;

static TenonCode new_stack(void *data, void **value, TenonSink *sink)
{
    Stack *stack = calloc(1, sizeof *stack);
    (void)data;
    if (stack == NULL || pthread_mutex_init(&stack->lock, NULL) != 0) {
        free(stack);
        tenon_host->report(sink, tenon_str("no memory for a stack"));
        return TENON_RESOURCE_EXHAUSTED;
    }
    *value = stack;
    return TENON_OK;
}

/* Takes the top entry off; null when there is none. The stack is locked, or nobody else has it. */
static TenonKeptTensor *take_top(Stack *stack)
{
    Entry *top = stack->top;
    TenonKeptTensor *kept;
    if (top == NULL) {
        return NULL;
    }
    kept = top->kept;
    stack->top = top->below;
    stack->depth--;
    free(top);
    return kept;
}

static void destroy_stack(void *value)
{
    Stack *stack = value;
    TenonKeptTensor *kept;
    while ((kept = take_top(stack)) != NULL) {
        tenon_host->release(kept);
    }
    pthread_mutex_destroy(&stack->lock);
    free(stack);
}

static const TenonResourceType stack_type = {
    .struct_size = sizeof(TenonResourceType),
    .name = TENON_STR("zoo_c.Stack"),
    .destroy = destroy_stack,
};

/* What is done with the locked stack. */
typedef TenonCode (*Locked)(const TenonCall *call, Stack *stack);

/* Finds or makes the stack that the state names, and does something with it under its lock. */
static TenonCode with_stack(const TenonKernelState *state, const TenonCall *call, Locked body)
{
    const ZooNamed *named = (const ZooNamed *)state;
    TenonResource *resource;
    Stack *stack;
    TenonCode code = tenon_host->state->resource(call->record, zoo_str(&named->container),
                                               zoo_str(&named->name), &stack_type, new_stack,
                                               NULL, &resource);
    if (code != TENON_OK) {
        return code;
    }
    stack = tenon_host->state->resource_value(resource, &stack_type);
    pthread_mutex_lock(&stack->lock);
    code = body(call, stack);
    pthread_mutex_unlock(&stack->lock);
    tenon_host->state->release_resource(resource);
    return code;
}

static TenonCode push_locked(const TenonCall *call, Stack *stack)
{
    Entry *entry = malloc(sizeof *entry);
    if (entry == NULL) {
        return tenon_fail(call, TENON_RESOURCE_EXHAUSTED, "no memory for an entry");
    }
    entry->kept = tenon_host->keep(call->inputs[0]);
    if (entry->kept == NULL) {
        free(entry);
        return tenon_fail(call, TENON_INVALID_ARGUMENT, "x: there is no tensor to keep");
    }
    entry->below = stack->top;
    stack->top = entry;
    return zoo_give_int(call, 0, ++stack->depth);
}

static TenonCode push(TenonKernelState *state, const TenonCall *call)
{
    return with_stack(state, call, push_locked);
}

TENON_OP("ZooCKeptPush", inputs("x: float"), outputs("depth: int64"),
         attrs("container: string = ''", "shared_name: string"), shape(zoo_shape_scalar), stateful);
STATEFUL(push, zoo_create_named, push, tenon_free_state);
KERNEL(push, "ZooCKeptPush");

static TenonCode empty(const TenonCall *call)
{
    return tenon_fail(call, TENON_FAILED_PRECONDITION, "the stack is empty: push a tensor first");
}

static TenonCode peek_locked(const TenonCall *call, Stack *stack)
{
    TenonSlot slot;
    float sum = 0;
    if (stack->top == NULL) {
        return empty(call);
    }
    tenon_host->view(stack->top->kept, &slot);
    for (uint64_t at = 0; at < slot.elements; at++) {
        sum += ((const float *)slot.data)[at];
    }
    return zoo_give_float(call, 0, sum);
}

static TenonCode peek(TenonKernelState *state, const TenonCall *call)
{
    return with_stack(state, call, peek_locked);
}

TENON_OP("ZooCKeptPeek", outputs("sum: float"), attrs("container: string = ''", "shared_name: string"),
         shape(zoo_shape_scalar), stateful);
STATEFUL(peek, zoo_create_named, peek, tenon_free_state);
KERNEL(peek, "ZooCKeptPeek");

static TenonCode pop_locked(const TenonCall *call, Stack *stack)
{
    TenonKeptTensor *kept = take_top(stack);
    TenonCode code;
    if (kept == NULL) {
        return empty(call);
    }
    code = call->services->output_kept(call->record, 0, kept);
    tenon_host->release(kept);
    return code;
}

static TenonCode pop(TenonKernelState *state, const TenonCall *call)
{
    return with_stack(state, call, pop_locked);
}

TENON_OP("ZooCKeptPop", outputs("x: float"), attrs("container: string = ''", "shared_name: string"), stateful);
STATEFUL(pop, zoo_create_named, pop, tenon_free_state);
KERNEL(pop, "ZooCKeptPop");
