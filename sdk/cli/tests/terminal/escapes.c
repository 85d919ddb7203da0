/* A plugin whose name, version and error carry commands for a terminal. With PLAIN_NAME, only its error does. */
#ifdef PLAIN_NAME
#define TENON_PLUGIN_NAME "cli-escapes"
#define TENON_PLUGIN_VERSION "0.1.0"
#else
#define TENON_PLUGIN_NAME "escapes\\u001b]0;owned\\u0007"
#define TENON_PLUGIN_VERSION "0.1.0\\u001b[31m\\u009b2J\\u202e"
#endif
#include "tenon_plugin.h"

TENON_OP("CliEscapes", inputs("x: float"), outputs("y: float"), shape(tenon_shape_of_first));

static TenonCode compute(TenonKernelState *state, const TenonCall *call)
{
    (void)state;
    return tenon_fail(call, TENON_INTERNAL, "\x1b]0;owned\x07\x1b[31mred\xc2\x9b");
}

TENON_TABLE(entries, .compute = compute);
TENON_KERNEL("CliEscapes", "CPU", entries, numerics(tenon_exact));
TENON_PLUGIN();
