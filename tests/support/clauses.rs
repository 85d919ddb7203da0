//! The clauses of "What a call carries" and of "Devices", and the ops of the zoo that use each.
//!
//! `tests/zoo/README.md` shows the same table for readers; a test holds the two together, and both against
//! what the zoo's plugins register.

/// A clause of the boundary.
#[derive(Debug, Clone, Copy)]
pub struct Clause {
    /// The clause, in few words.
    pub text: &'static str,
    /// Ops that use it, without the prefix of the language.
    pub ops: &'static [&'static str],
    /// The test that calls them.
    pub test: &'static str,
}

const fn clause(text: &'static str, ops: &'static [&'static str], test: &'static str) -> Clause {
    Clause { text, ops, test }
}

/// What a call carries.
pub const CALL: &[Clause] = &[
    clause("create: attributes of each single kind", &["Attributes"], "attributes"),
    clause("create: lists of attributes of each kind", &["AttributeLists"], "attribute_lists"),
    clause("create: an attribute that is a tensor", &["AttributeTensor"], "attribute_tensor"),
    clause("create: an attribute that is a function", &["AttributeFunction"], "attribute_function"),
    clause(
        "create: op, node, device, types, partial shapes, names and positions of arguments",
        &["CreateFacts"],
        "create_facts",
    ),
    clause("create: views of constant inputs", &["ConstantView"], "constant_view"),
    clause("prepack: a packed form, shared between instances", &["Prepack"], "prepacked_constant"),
    clause("supports: yes, no with a reason, depends on shapes", &["Supports"], "supports"),
    clause("compute: variadic arguments are ranges", &["Variadic"], "variadic_arguments"),
    clause("compute: arguments of several types", &["TypeList"], "type_list"),
    clause(
        "compute: type, shape, memory kind, alias class of a slot",
        &["SlotFacts"],
        "slot_facts",
    ),
    clause("compute: step, frame and iteration", &["StepFacts"], "step_facts"),
    clause("compute: the cancel flag", &["CancelFlag"], "cancel_flag"),
    clause("compute: on_cancel wakes a blocking kernel", &["Blocking"], "blocking_kernel_is_woken"),
    clause("compute: the deadline", &["Deadline"], "deadline"),
    clause("compute: scratch memory", &["Scratch"], "scratch"),
    clause("compute: trace events", &["Trace"], "trace_event"),
    clause("errors: a code, and a message through a callback", &["Failure"], "failure"),
    clause("outputs: planned", &["Planned"], "planned_output"),
    clause("outputs: allocated by the kernel", &["Allocate"], "allocated_output"),
    clause("outputs: an input's buffer is taken over", &["Forward"], "forwarded_output"),
    clause("outputs: an input's buffer under another shape", &["Share"], "shared_output"),
    clause("outputs: one that nobody reads is left out", &["Unused"], "unused_output"),
    clause("asynchronous: completion from a foreign thread", &["Async"], "asynchronous_kernel"),
    clause("elements: numbers of fixed size, as bytes", &["Bytes"], "bytes_of_every_type"),
    clause("elements: strings", &["Strings"], "strings"),
    clause(
        "elements: variants and their table",
        &[
            "VariantMake",
            "VariantRead",
            "VariantClone",
            "VariantZeros",
            "VariantAdd",
            "VariantLive",
        ],
        "variants",
    ),
    clause("elements: resources", &["CounterHandle", "CounterRead"], "resource_handles"),
    clause("elements: references", &["RefVariable", "RefAssign", "RefRead"], "references"),
    clause("state: resources found or made by name", &["CounterNext", "CounterRemove"], "counter"),
    clause(
        "state: variables are locked, read, assigned, updated in place",
        &["Variable", "VariableAssign", "VariableRead", "VariableSum", "VariableAdd"],
        "variables",
    ),
    clause(
        "state: a variable's value is returned without its lock",
        &["VariableValue"],
        "value_of_a_variable",
    ),
    clause(
        "state: a variable's value is kept as it is",
        &["VariableSnapshot"],
        "snapshot_of_a_variable",
    ),
    clause(
        "state: several variables are locked in order",
        &["VariableMove"],
        "variables_are_locked_in_order",
    ),
    clause(
        "state: kernels of several plugins update one variable",
        &["VariableAdd"],
        "two_plugins_update_one_variable",
    ),
    clause("state: a stateful kernel is created once", &["CallCount"], "kernel_state"),
    clause(
        "state: tensors kept beyond a call",
        &["KeptPush", "KeptPeek", "KeptPop"],
        "kept_tensors",
    ),
    clause("functions: called within the step", &["Apply"], "a_kernel_calls_a_function"),
    clause(
        "functions: kept beyond the step, and cancelled",
        &["FunctionKeep", "FunctionCall", "FunctionCancel"],
        "a_function_outlives_its_session",
    ),
    clause(
        "gradients: made of nodes",
        &["GradientProduct"],
        "an_op_of_a_plugin_has_the_gradient_that_it_brings",
    ),
    clause(
        "gradients: a node is refused",
        &["GradientRefused"],
        "a_gradient_of_a_plugin_refuses_a_node_by_its_own_words",
    ),
    clause("shape functions: merge", &["ShapeMerge"], "shapes_merge"),
    clause(
        "shape functions: rank, merged and made dimensions",
        &["ShapeMatrix"],
        "shapes_of_matrices",
    ),
    clause("shape functions: a constant that is a shape", &["ShapeFill"], "shape_from_a_constant"),
    clause(
        "shape functions: values of constants, unknown rank",
        &["ShapeRepeat"],
        "shape_from_a_value",
    ),
    clause(
        "shape functions: shapes behind handles",
        &["Variable", "VariableRead"],
        "shapes_behind_handles",
    ),
    clause("services: parallel_for with a cost, workers by number", &["Parallel"], "parallel_for"),
    clause("services: knobs", &["Knobs", "KnobsAtCreate"], "knobs"),
    clause("services: logger", &["Log"], "log_line"),
    clause("services: allocators", &["HostMemory"], "host_memory"),
    clause("services: the node's name, clocks", &["Names"], "names_and_clocks"),
    clause("services: the plugin's own path", &["Path"], "path_of_the_plugin"),
    clause("registration: labels, on_request", &["Label"], "labels"),
    clause("registration: required features", &["Feature"], "missing_feature"),
    clause("registration: numerics contract", &["Numerics"], "numerics_contract"),
    clause("registration: cost, an extension link", &["Cost"], "cost_link"),
    clause("registration: links of a plugin's own", &["Links"], "links_of_a_plugin_s_own"),
    clause("registration: cases, an extension link of an op", &["Cases"], "cases_link"),
    clause(
        "registration: facts, an extension link of an op",
        &["FactsPass", "FactsSum", "FactsShape", "FactsCheck"],
        "facts_link",
    ),
];

/// Clauses that one language alone can use, with the reason.
pub const ONE_LANGUAGE: &[(&str, &str, &str)] = &[
    ("ZooPanic", "panics", "C has no panics"),
    ("ZooParcelPack", "a variant that has a tensor", "the entries are those of C"),
    ("ZooParcelUnpack", "the tensor of a variant", "the entries are those of C"),
    ("ZooStepCount", "the container of a step", "a name that C makes as well"),
    ("ZooVariableScatterAdd", "a shared lock, for an update", "the entry is that of C"),
    ("ZooVariableGather", "a shared lock, to read", "the entry is that of C"),
    ("ZooCMask", "bools of any byte", "a bool in Rust is 0 or 1"),
    ("ZooCMaskLater", "bools of any byte, from a foreign thread", "a bool in Rust is 0 or 1"),
    ("ZooCMaskShared", "bytes returned as bools without a copy", "a bool in Rust is 0 or 1"),
];

/// What a device gives. Those without an op are used by the host on the way to one.
pub const DEVICE: &[Clause] = &[
    clause("probe: a number, or the reason why not", &[], "probe"),
    clause("attributes and locality", &[], "attributes"),
    clause("memory kinds", &["DeviceFacts", "DeviceKinds"], "memory_kinds"),
    clause("a pool of its own", &[], "pool"),
    clause("streams: returned means enqueued", &["DeviceScale"], "kernels_are_enqueued"),
    clause("arguments in host memory", &["DeviceScale", "DeviceFacts"], "kernels_are_enqueued"),
    clause("scratch memory of the device", &["DeviceScratch"], "device_scratch"),
    clause("events between streams", &[], "events"),
    clause("can_copy and asynchronous copies", &[], "copies"),
    clause(
        "asynchronous kernels complete on a stream",
        &["DeviceAsync"],
        "asynchronous_on_a_stream",
    ),
    clause(
        "synchronise, and a stream's first error",
        &["DeviceFailure"],
        "first_error_of_a_stream",
    ),
    clause("lost: Unavailable from then on", &["DeviceLose"], "lost_device"),
];
