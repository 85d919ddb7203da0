/* Variables, by handle and by reference: resources of the host that hold one tensor. */
#include "zoo.h"

#include <stdatomic.h>

/* Finds or makes the variable that the state names; a counted reference. */
static TenonCode find_variable(const TenonKernelState *state, const TenonCall *call,
                               TenonVariable **result)
{
    const ZooNamed *named = (const ZooNamed *)state;
    return tenon_host->state->variable(call->record, zoo_str(&named->container),
                                     zoo_str(&named->name), TENON_FLOAT, result);
}

static TenonCode variable(TenonKernelState *state, const TenonCall *call)
{
    TenonVariable *found;
    TenonCode code = tenon_prepare(call, 0, NULL, 0);
    if (code == TENON_OK) {
        code = find_variable(state, call, &found);
    }
    if (code == TENON_OK) {
        /* The counted reference moves into the element. */
        ((TenonResourceElement *)call->outputs[0].data)->resource =
            tenon_host->state->variable_resource(found);
    }
    return code;
}

/* Says of the handle what the attribute says of the value. */
static TenonCode variable_shape(const TenonHost *host, TenonShapeCall *call)
{
    const TenonShapeTable *shapes = host->shapes;
    TenonDimId dims[TENON_MAX_RANK];
    TenonShapeId shape;
    TenonAttrView view;
    const TenonShapeView *wanted;
    TenonCode code = host->attr(shapes->attrs(call), tenon_str("shape"), &view);
    if (code != TENON_OK) {
        return shapes->fail(call, code, tenon_str("attribute shape: the node has none"));
    }
    wanted = view.data;
    if (wanted->unknown_rank || wanted->dims.len > TENON_MAX_RANK) {
        shape = shapes->unknown_shape(call);
    } else {
        for (size_t at = 0; at < wanted->dims.len; at++) {
            dims[at] = shapes->make_dim(call, wanted->dims.ptr[at]);
        }
        shape = shapes->make_shape(call, dims, (uint32_t)wanted->dims.len);
    }
    code = shapes->add_output_handle(call, 0, TENON_FLOAT, shape);
    return code != TENON_OK ? code : zoo_shape_scalar(host, call);
}

TENON_OP("ZooCVariable", outputs("handle: resource"),
         attrs("container: string = ''", "shared_name: string = ''", "shape: shape"), shape(variable_shape),
         stateful);
STATEFUL(variable, zoo_create_named, variable, tenon_free_state);
KERNEL(variable, "ZooCVariable");

/* The variable behind a resource input; null, with the error kept, when it is none. */
static TenonVariable *take_variable(const TenonCall *call, uint32_t input)
{
    TenonVariable *found =
        tenon_host->state->as_variable(tenon_resource_at(call->inputs[input], 0));
    if (found == NULL) {
        tenon_fail(call, TENON_INVALID_ARGUMENT, "expected the handle of a variable");
    }
    return found;
}

/* What is done with locked variables. */
typedef TenonCode (*Locked)(const TenonCall *call, TenonVariable *const *variables);

/* Locks variables, in an order of the host's, does something with them, and unlocks them. */
static TenonCode with_lock(const TenonCall *call, TenonVariable *const *variables, size_t count,
                           Locked body)
{
    TenonCode code = tenon_host->state->lock_variables(call->record, variables, count);
    if (code == TENON_OK) {
        code = body(call, variables);
        tenon_host->state->unlock_variables(call->record, variables, count);
    }
    return code;
}

/* As with_lock, with the variable behind the handle that is input 0. */
static TenonCode with_input(const TenonCall *call, Locked body)
{
    TenonVariable *found = take_variable(call, 0);
    return found == NULL ? TENON_INVALID_ARGUMENT : with_lock(call, &found, 1, body);
}

static TenonCode nothing_to_infer(const TenonHost *host, TenonShapeCall *call)
{
    (void)host;
    (void)call;
    return TENON_OK;
}

static TenonCode assign_locked(const TenonCall *call, TenonVariable *const *variables)
{
    return tenon_host->state->assign_variable(call->record, variables[0], 1);
}

static TenonCode assign(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return with_input(call, assign_locked);
}

TENON_OP("ZooCVariableAssign", inputs("handle: resource", "value: float"), shape(nothing_to_infer), stateful);
STATELESS(assign, assign);
KERNEL(assign, "ZooCVariableAssign");

static TenonCode read_locked(const TenonCall *call, TenonVariable *const *variables)
{
    return tenon_host->state->output_variable(call->record, variables[0], 0);
}

static TenonCode read_variable(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return with_input(call, read_locked);
}

static TenonCode read_shape(const TenonHost *host, TenonShapeCall *call)
{
    TenonDType dtype;
    TenonShapeId shape;
    if (host->shapes->input_handle(call, 0, 0, &dtype, &shape) == 0) {
        shape = host->shapes->unknown_shape(call);
    }
    return host->shapes->set_output(call, 0, shape);
}

TENON_OP("ZooCVariableRead", inputs("handle: resource"), outputs("value: float"), shape(read_shape), stateful);
STATELESS(read, read_variable);
KERNEL(read, "ZooCVariableRead");

static TenonCode value_of(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    TenonVariable *found = take_variable(call, 0);
    return found == NULL ? TENON_INVALID_ARGUMENT : tenon_host->state->output_value(call->record, found, 0);
}

static TenonCode unknown_value(const TenonHost *host, TenonShapeCall *call)
{
    return host->shapes->set_output(call, 0, host->shapes->unknown_shape(call));
}

TENON_OP("ZooCVariableValue", inputs("handle: resource"), outputs("value: float"), shape(unknown_value), stateful);
STATELESS(value, value_of);
KERNEL(value, "ZooCVariableValue");

static float sum_of(const TenonSlot *slot)
{
    float sum = 0;
    for (uint64_t at = 0; at < slot->elements; at++) {
        sum += ((const float *)slot->data)[at];
    }
    return sum;
}

static TenonCode sum_locked(const TenonCall *call, TenonVariable *const *variables)
{
    TenonSlot value;
    TenonCode code = tenon_host->state->read_variable(call->record, variables[0], &value);
    if (code != TENON_OK) {
        return tenon_fail(call, code, "the variable has no value: run its initialiser first");
    }
    return zoo_give_float(call, 0, sum_of(&value));
}

static TenonCode sum(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return with_input(call, sum_locked);
}

TENON_OP("ZooCVariableSum", inputs("handle: resource"), outputs("sum: float"), shape(zoo_shape_scalar), stateful);
STATELESS(sum, sum);
KERNEL(sum, "ZooCVariableSum");

/* Adds an amount to every element of a locked variable, in place. */
static TenonCode add_to(const TenonCall *call, TenonVariable *target, float amount)
{
    TenonSlot value;
    TenonCode code = tenon_host->state->update_variable(call->record, target, &value);
    if (code != TENON_OK) {
        return tenon_fail(call, code, "the variable has no value: run its initialiser first");
    }
    for (uint64_t at = 0; at < value.elements; at++) {
        ((float *)value.data)[at] += amount;
    }
    return TENON_OK;
}

static TenonCode add_locked(const TenonCall *call, TenonVariable *const *variables)
{
    float amount;
    TenonCode code = zoo_take_float(call, 1, &amount);
    return code != TENON_OK ? code : add_to(call, variables[0], amount);
}

static TenonCode add(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return with_input(call, add_locked);
}

TENON_OP("ZooCVariableAdd", inputs("handle: resource", "amount: float"), shape(nothing_to_infer), stateful);
STATELESS(add, add);
KERNEL(add, "ZooCVariableAdd");

/* The value as it was is kept: the update leaves it alone, and it is read without the lock. */
static TenonCode keep_locked(const TenonCall *call, TenonVariable *const *variables)
{
    TenonSlot value;
    TenonCode code = tenon_host->state->read_variable(call->record, variables[0], &value);
    TenonKeptTensor *kept = code == TENON_OK ? tenon_host->keep(&value) : NULL;
    if (kept == NULL) {
        return tenon_fail(call, TENON_FAILED_PRECONDITION, "the variable has no value to keep");
    }
    code = add_locked(call, variables);
    if (code == TENON_OK) {
        tenon_host->view(kept, &value);
        code = zoo_give_float(call, 0, sum_of(&value));
    }
    tenon_host->release(kept);
    if (code == TENON_OK) {
        code = tenon_host->state->read_variable(call->record, variables[0], &value);
    }
    return code != TENON_OK ? code : zoo_give_float(call, 1, sum_of(&value));
}

static TenonCode snapshot(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return with_input(call, keep_locked);
}

TENON_OP("ZooCVariableSnapshot", inputs("handle: resource", "amount: float"),
         outputs("before: float", "after: float"), shape(zoo_shape_two_scalars), stateful);
STATELESS(snapshot, snapshot);
KERNEL(snapshot, "ZooCVariableSnapshot");

static TenonCode move_locked(const TenonCall *call, TenonVariable *const *variables)
{
    float amount;
    TenonCode code = zoo_take_float(call, 2, &amount);
    if (code == TENON_OK) {
        code = add_to(call, variables[0], -amount);
    }
    return code != TENON_OK ? code : add_to(call, variables[1], amount);
}

/* Two of these with the variables the other way round would deadlock, did the host not order the locks. */
static TenonCode move(TenonKernelState *state, const TenonCall *call)
{
    TenonVariable *both[] = { take_variable(call, 0), take_variable(call, 1) };
    (void)state;
    if (both[0] == NULL || both[1] == NULL) {
        return TENON_INVALID_ARGUMENT;
    }
    return with_lock(call, both, ZOO_COUNT(both), move_locked);
}

TENON_OP("ZooCVariableMove", inputs("from: resource", "to: resource", "amount: float"), shape(nothing_to_infer),
         stateful);
STATELESS(move, move);
KERNEL(move, "ZooCVariableMove");

typedef struct Calls {
    atomic_llong count;
} Calls;

static TenonCode create_calls(const TenonCreate *create, TenonKernelState **state)
{
    return tenon_zero_state(create, sizeof(Calls), state);
}

static TenonCode count_calls(TenonKernelState *state, const TenonCall *call)
{
    return zoo_give_int(call, 0, atomic_fetch_add(&((Calls *)state)->count, 1) + 1);
}

TENON_OP("ZooCCallCount", outputs("count: int64"), shape(zoo_shape_scalar), stateful);
STATEFUL(calls, create_calls, count_calls, tenon_free_state);
KERNEL(calls, "ZooCCallCount");

static TenonCode ref_variable(TenonKernelState *state, const TenonCall *call)
{
    TenonVariable *found;
    TenonCode code = find_variable(state, call, &found);
    if (code == TENON_OK) {
        const TenonStateTable *table = tenon_host->state;
        code = table->output_ref(call->record, found, 0);
        table->release_resource(table->variable_resource(found));
    }
    return code;
}

TENON_OP("ZooCRefVariable", outputs("ref: Ref(float)"), attrs("container: string = ''", "shared_name: string = ''"),
         stateful);
STATEFUL(ref_variable, zoo_create_named, ref_variable, tenon_free_state);
KERNEL(ref_variable, "ZooCRefVariable");

/* As with_lock, with the variable behind the reference that is input 0. */
static TenonCode with_ref(const TenonCall *call, Locked body)
{
    TenonVariable *found = tenon_host->state->ref_variable(call->inputs[0]);
    return found == NULL
        ? tenon_fail(call, TENON_INVALID_ARGUMENT, "ref: expected a reference to a variable")
        : with_lock(call, &found, 1, body);
}

static TenonCode ref_assign(TenonKernelState *state, const TenonCall *call)
{
    TenonCode code = with_ref(call, assign_locked);
    (void)state;
    return code != TENON_OK
        ? code
        : tenon_host->state->output_ref(call->record,
                                      tenon_host->state->ref_variable(call->inputs[0]), 0);
}

static TenonCode ref_assign_shape(const TenonHost *host, TenonShapeCall *call)
{
    return host->shapes->set_output(call, 0, host->shapes->input(call, 1));
}

TENON_OP("ZooCRefAssign", inputs("ref: Ref(float)", "value: float"), outputs("out: Ref(float)"),
         shape(ref_assign_shape), flags(TENON_OP_FLAG_STATEFUL | TENON_OP_FLAG_ALLOWS_UNINITIALIZED_INPUT));
STATELESS(ref_assign, ref_assign);
KERNEL(ref_assign, "ZooCRefAssign");

static TenonCode ref_read(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return with_ref(call, read_locked);
}

TENON_OP("ZooCRefRead", inputs("ref: Ref(float)"), outputs("value: float"), shape(tenon_shape_of_first), stateful);
STATELESS(ref_read, ref_read);
KERNEL(ref_read, "ZooCRefRead");
