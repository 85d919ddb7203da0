/* A whole plugin of one op and one kernel, and a main that uses it as a host would. */
#include "tenon.h"

#include "sizes.h"

TENON_MANIFEST("{\"first\": 1}");
TENON_MANIFEST("{\"second\": 2}");

static TenonCode add_one(TenonKernelState *state, const TenonCall *call)
{
    const TenonSlot *input = call->inputs[0];
    const float *from = (const float *)input->data;
    float *to = (float *)call->outputs[0].data;
    uint64_t at;
    (void)state;
    if (input->dtype != TENON_FLOAT || input->memory != TENON_HOST_MEMORY) {
        return call->services->fail(call->record, TENON_INVALID_ARGUMENT, tenon_str("not float"));
    }
    for (at = 0; at < input->elements; at++) {
        if (tenon_cancelled(call)) {
            return TENON_CANCELLED;
        }
        to[at] = from[at] + 1;
    }
    return TENON_OK;
}

static const TenonKernelTable add_one_table = {
    .struct_size = sizeof(TenonKernelTable),
    .compute = add_one,
};

static const TenonDType floats[] = { TENON_FLOAT };
static const TenonTypeConstraint constraint = { TENON_STR("T"), floats, 1 };

static const TenonExtCost cost = {
    .header = TENON_EXT_COST_HEADER(NULL),
    .fixed_ns = 5,
    .per_element_ns = 0.25,
};

static const TenonKernelDef add_one_def = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("AddOne"),
    .device_type = TENON_STR("CPU"),
    .constraints = &constraint,
    .constraint_count = 1,
    .table = &add_one_table,
    .source = { TENON_STR("example"), TENON_STR(__FILE__), __LINE__ },
    .ext = &cost.header,
};

TENON_CASES(add_one_cases, TENON_STR("one; x: [1]"), TENON_STR("some; n in 2..9; x: [n]"));

TENON_BENCH(add_one_bench, &add_one_cases.header, "x", "", TENON_STR("large; x: [4096]"));

TENON_FACTS(add_one_facts, &add_one_bench.header, .flags = TENON_FACT_ELEMENTWISE,
            .refusal = TENON_REFUSES_NOTHING);

static TenonCode register_all(const TenonHost *host, TenonRegistrar *registrar,
                              const TenonRegistrarTable *table, TenonSink *sink)
{
    TenonStr inputs[] = { TENON_STR("x: T") };
    TenonStr outputs[] = { TENON_STR("y: T") };
    TenonStr attrs[] = { TENON_STR("T: {float}") };
    TenonOpDef op = { .struct_size = sizeof(TenonOpDef), .name = TENON_STR("AddOne") };
    TenonCode code;
    (void)host;
    (void)sink;
    op.inputs.ptr = inputs;
    op.inputs.len = 1;
    op.outputs.ptr = outputs;
    op.outputs.len = 1;
    op.attrs.ptr = attrs;
    op.attrs.len = 1;
    op.ext = &add_one_facts.header;
    code = table->op(registrar, &op);
    return code != TENON_OK ? code : table->kernel(registrar, &add_one_def);
}

static const TenonPluginV1 plugin = {
    .struct_size = sizeof(TenonPluginV1),
    .abi_major = TENON_ABI_MAJOR,
    .abi_minor = TENON_ABI_MINOR,
    .name = TENON_STR("example"),
    .version = TENON_STR("1.0"),
    .register_all = register_all,
};

TENON_EXPORT const TenonPluginV1 *tenon_plugin_v1(uint32_t host_major, uint32_t host_minor)
{
    return TENON_ABI_ACCEPTS(host_major, host_minor) ? &plugin : NULL;
}

/* What the linker makes of the manifest on ELF: the records in either order, without gaps. */
#if defined(__ELF__)
extern const char __start_tenon_manifest[];
extern const char __stop_tenon_manifest[];

static int manifest_is_joined(void)
{
    static const char one[] = "{\"first\": 1}\n\0{\"second\": 2}\n";
    static const char other[] = "{\"second\": 2}\n\0{\"first\": 1}\n";
    size_t size = (size_t)(__stop_tenon_manifest - __start_tenon_manifest);
    return size == sizeof one && (memcmp(__start_tenon_manifest, one, size) == 0
                                  || memcmp(__start_tenon_manifest, other, size) == 0);
}
#else
static int manifest_is_joined(void)
{
    return 1;
}
#endif

static int adds_one(void)
{
    float from[2] = { 1, 2 };
    float to[2] = { 0, 0 };
    uint32_t cancelled = 0;
    TenonSlot input = { .data = from, .elements = 2, .dtype = TENON_FLOAT };
    TenonSlot output = { .data = to, .elements = 2, .dtype = TENON_FLOAT };
    const TenonSlot *inputs[] = { &input };
    TenonStep step = { .struct_size = sizeof(TenonStep), .cancelled = &cancelled };
    TenonCall call = { .struct_size = sizeof(TenonCall), .inputs = inputs, .outputs = &output };
    call.step = &step;
    if (add_one_table.compute(NULL, &call) != TENON_OK || to[0] != 2 || to[1] != 3) {
        return 0;
    }
    cancelled = 1;
    return add_one_table.compute(NULL, &call) == TENON_CANCELLED;
}

static int links_are_found(void)
{
    TenonExtHeader unknown = { 77, 1, sizeof(TenonExtHeader), 0, &cost.header };
    TenonExtHeader ring = { 78, 1, sizeof(TenonExtHeader), 0, NULL };
    ring.next = &ring;
    if (add_one_cases.header.tag != TENON_EXT_CASES || add_one_cases.cases.len != 2
        || add_one_cases.cases.ptr[1].len != strlen("some; n in 2..9; x: [n]")) {
        return 0;
    }
    return tenon_find_ext(&unknown, TENON_EXT_COST, sizeof(TenonExtCost)) == &cost.header
        && tenon_find_ext(&unknown, TENON_EXT_COST, sizeof(TenonExtCost) + 8) == NULL
        && tenon_find_ext(&ring, TENON_EXT_COST, 0) == NULL;
}

int main(void)
{
    print_sizes();
    if (tenon_plugin_v1(TENON_ABI_MAJOR, TENON_ABI_MINOR) != &plugin) {
        return 1;
    }
    if (tenon_plugin_v1(TENON_ABI_MAJOR + 1, TENON_ABI_MINOR) != NULL) {
        return 2;
    }
    if (!manifest_is_joined()) {
        return 3;
    }
    if (!links_are_found()) {
        return 4;
    }
    return adds_one() ? 0 : 5;
}
