/*
 * A plugin in C whose op CliTwice is wrong for more than four elements; its kernel 'reference' is right. With
 * CLI_EXITS it ends the process there, as if all were well; with CLI_ELSEWHERE that kernel needs features that no
 * processor has together, and with CLI_SLIP one that none has.
 */
#include <stdlib.h>
#include <tenon.h>

TENON_MANIFEST("{\"kind\":\"plugin\",\"name\":\"cli-wrong\",\"version\":\"0.1.0\",\"abi\":[0,1]}");
TENON_MANIFEST("{\"kind\":\"op\",\"name\":\"CliTwice\",\"inputs\":[\"x: float\"],"
               "\"outputs\":[\"y: float\"]}");
#if defined(CLI_ELSEWHERE)
#define NEEDED "[\"neon\",\"sse2\"]"
static const TenonStr needed[] = { TENON_STR("neon"), TENON_STR("sse2") };
#elif defined(CLI_SLIP)
#define NEEDED "[\"avx-2\"]"
static const TenonStr needed[] = { TENON_STR("avx-2") };
#endif
#ifdef NEEDED
TENON_MANIFEST("{\"kind\":\"kernel\",\"op\":\"CliTwice\",\"device\":\"CPU\",\"features\":" NEEDED "}");
#else
TENON_MANIFEST("{\"kind\":\"kernel\",\"op\":\"CliTwice\",\"device\":\"CPU\"}");
#endif
TENON_MANIFEST("{\"kind\":\"kernel\",\"op\":\"CliTwice\",\"device\":\"CPU\",\"label\":\"reference\","
               "\"on_request\":true}");

#define HERE { TENON_STR("cli-wrong"), TENON_STR(__FILE__), __LINE__ }

static TenonCode times(const TenonCall *call, float factor)
{
    const TenonSlot *x = call->inputs[0];
    const float *from = x->data;
    TenonCode code = TENON_OK;
    float *to;
    if (!(call->outputs[0].flags & TENON_SLOT_FLAG_PLANNED)) {
        code = call->services->allocate(call->record, 0, x->dims, x->rank, call->outputs[0].memory);
    }
    if (code != TENON_OK) {
        return code;
    }
    to = call->outputs[0].data;
    for (uint64_t at = 0; at < x->elements; at++) {
        to[at] = from[at] * factor;
    }
    return TENON_OK;
}

static TenonCode wrong(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
#ifdef CLI_EXITS
    if (call->inputs[0]->elements > 4) {
        exit(0);
    }
#endif
    return times(call, call->inputs[0]->elements > 4 ? 3.0f : 2.0f);
}

static TenonCode right(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return times(call, 2.0f);
}

static TenonCode same(const TenonHost *host, TenonShapeCall *call)
{
    return host->shapes->set_output(call, 0, host->shapes->input(call, 0));
}

static const TenonStr takes[] = { TENON_STR("x: float") };
static const TenonStr gives[] = { TENON_STR("y: float") };
static const TenonOpDef op = {
    .struct_size = sizeof(TenonOpDef),
    .name = TENON_STR("CliTwice"),
    .inputs = { takes, 1 },
    .outputs = { gives, 1 },
    .shape = same,
    .source = HERE,
};

static const TenonKernelTable wrong_table = { .struct_size = sizeof(TenonKernelTable), .compute = wrong };
static const TenonKernelTable right_table = { .struct_size = sizeof(TenonKernelTable), .compute = right };
static const TenonKernelDef wrong_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("CliTwice"),
    .device_type = TENON_STR("CPU"),
#ifdef NEEDED
    .features = { needed, sizeof needed / sizeof needed[0] },
#endif
    .table = &wrong_table,
    .source = HERE,
};
static const TenonKernelDef right_kernel = {
    .struct_size = sizeof(TenonKernelDef),
    .op = TENON_STR("CliTwice"),
    .device_type = TENON_STR("CPU"),
    .label = TENON_STR("reference"),
    .flags = TENON_KERNEL_DEF_FLAG_ON_REQUEST,
    .table = &right_table,
    .source = HERE,
};

static TenonCode register_all(const TenonHost *host, TenonRegistrar *registrar,
                              const TenonRegistrarTable *table, TenonSink *sink)
{
    TenonCode code = table->op(registrar, &op);
    (void)host;
    (void)sink;
    code = code != TENON_OK ? code : table->kernel(registrar, &wrong_kernel);
    return code != TENON_OK ? code : table->kernel(registrar, &right_kernel);
}

static const TenonPluginV1 plugin = {
    .struct_size = sizeof(TenonPluginV1),
    .abi_major = TENON_ABI_MAJOR,
    .abi_minor = TENON_ABI_MINOR,
    .name = TENON_STR("cli-wrong"),
    .version = TENON_STR("0.1.0"),
    .register_all = register_all,
};

TENON_EXPORT const TenonPluginV1 *tenon_plugin_v1(uint32_t host_major, uint32_t host_minor)
{
    return TENON_ABI_ACCEPTS(host_major, host_minor) ? &plugin : NULL;
}
