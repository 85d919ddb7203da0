/* Statuses, runtimes, devices and kernels; structs of other versions; handles that were deleted. */
#include "common.h"

void statuses(void) {
  EXPECT(strchr(tn_version(), '.') != NULL);
  EXPECT(sizeof(tn_code) == sizeof(int) && sizeof(tn_dtype) == sizeof(int) && sizeof(tn_log_level) == sizeof(int));
  tn_status* own = tn_status_new();
  EXPECT(tn_status_code(own) == TN_OK && *tn_status_message(own) == 0);
  tn_status_set(own, TN_ABORTED, "told so");
  EXPECT(tn_status_code(own) == TN_ABORTED && strcmp(tn_status_message(own), "told so") == 0);
  EXPECT(*tn_status_node(own) == 0 && *tn_status_op(own) == 0 && *tn_status_device(own) == 0);
  tn_status_set(own, TN_ABORTED, NULL);
  EXPECT(*tn_status_message(own) == 0);
  tn_status_set(own, TN_OK, "not kept");
  EXPECT(tn_status_code(own) == TN_OK && *tn_status_message(own) == 0);
  EXPECT(tn_status_delete(own) == TN_OK);
  EXPECT(tn_status_delete(own) == TN_INVALID_ARGUMENT);
  EXPECT(tn_status_delete(NULL) == TN_OK);
  EXPECT(tn_status_code(NULL) == TN_OK && *tn_status_message(NULL) == 0 && *tn_status_node(NULL) == 0);
  EXPECT(*tn_status_op(NULL) == 0 && *tn_status_device(NULL) == 0);
  tn_status_set(NULL, TN_ABORTED, "nobody learns of it");
  EXPECT(strcmp(tn_code_name(TN_DATA_LOSS), "DATA_LOSS") == 0);
  EXPECT(strcmp(tn_code_name((tn_code)99), "UNKNOWN") == 0);
  EXPECT(tn_buffer_data(NULL) == NULL && tn_buffer_size(NULL) == 0 && tn_buffer_delete(NULL) == TN_OK);
  EXPECT(tn_list_at(NULL, 0) == NULL && tn_list_count(NULL) == 0 && tn_list_delete(NULL) == TN_OK);
}

/* A struct as an older and as a later version of the library has it. */
static void versions(void) {
  struct {
    size_t size;
    size_t threads;
  } older = {sizeof older, 1};
  tn_runtime* made = tn_runtime_new((tn_runtime_options*)(void*)&older, status);
  OK();
  EXPECT(tn_runtime_delete(made) == TN_OK);
  struct {
    tn_run_options known;
    size_t more[2];
  } later = {{.size = sizeof later}, {0, 0}};
  tn_graph* graph = new_graph();
  constant(graph, "c", 3);
  tn_session* session = tn_session_new(graph, NULL, status);
  const char* fetch = "c";
  tn_tensor* value = NULL;
  tn_session_run(session, &later.known, NULL, NULL, 0, &fetch, &value, 1, NULL, 0, status);
  OK();
  EXPECT(number(value) == 3);
  later.more[1] = 1;
  tn_session_run(session, &later.known, NULL, NULL, 0, &fetch, &value, 1, NULL, 0, status);
  IS(TN_INVALID_ARGUMENT, "tn_run_options");
  EXPECT(value == NULL);
  tn_run_options none;
  memset(&none, 0, sizeof none);
  tn_session_run(session, &none, NULL, NULL, 0, &fetch, &value, 1, NULL, 0, status);
  IS(TN_INVALID_ARGUMENT, "tn_run_options.size");
  none.size = (size_t)1 << 40;
  tn_session_run(session, &none, NULL, NULL, 0, &fetch, &value, 1, NULL, 0, status);
  IS(TN_INVALID_ARGUMENT, "tn_run_options.size");
  tn_session_delete(session);
  tn_graph_delete(graph);
}

static void devices(void) {
  tn_devices* all = tn_runtime_devices(runtime, status);
  OK();
  EXPECT(tn_devices_count(all) > 0);
  tn_device_info info = TN_INIT(tn_device_info);
  size_t cpu = 0;
  /* Plugins may have devices of their own. */
  while (cpu < tn_devices_count(all) && tn_devices_get(all, cpu, &info, status) && strcmp(info.device_type, "CPU") != 0) {
    ++cpu;
  }
  OK();
  EXPECT(cpu < tn_devices_count(all) && strstr(info.name, "/device:CPU:0") && info.incarnation != 0);
  size_t at = cpu + 7;
  EXPECT(tn_devices_find(all, info.name, &at, status) && at == cpu);
  EXPECT(!tn_devices_find(all, "/device:NONE:0", &at, status));
  IS(TN_NOT_FOUND, "CPU:0");
  struct {
    size_t size;
    const char* name;
  } older = {sizeof older, NULL};
  EXPECT(tn_devices_get(all, cpu, (tn_device_info*)(void*)&older, status) && older.name == info.name);
  EXPECT(!tn_devices_get(all, tn_devices_count(all), &info, status));
  IS(TN_INVALID_ARGUMENT, "devices");
  EXPECT(!tn_devices_get(all, 0, NULL, status));
  IS(TN_INVALID_ARGUMENT, "tn_device_info");
  info.size = 3;
  EXPECT(!tn_devices_get(all, 0, &info, status));
  IS(TN_INVALID_ARGUMENT, "tn_device_info.size");
  EXPECT(tn_devices_delete(all) == TN_OK);
  EXPECT(tn_devices_delete(all) == TN_INVALID_ARGUMENT);
  EXPECT(tn_devices_count(all) == 0);
}

static void kernels(void) {
  tn_kernels* all = tn_runtime_kernels(runtime, NULL, status);
  tn_kernels* some = tn_runtime_kernels(runtime, "MatMul", status);
  OK();
  EXPECT(tn_kernels_count(some) > 0 && tn_kernels_count(some) < tn_kernels_count(all));
  tn_kernel_info info = TN_INIT(tn_kernel_info);
  EXPECT(tn_kernels_get(some, 0, &info, status));
  EXPECT(strcmp(info.op, "MatMul") == 0 && *info.device_type && *info.plugin && info.label);
  EXPECT(!tn_kernels_get(some, 100000, &info, status));
  IS(TN_INVALID_ARGUMENT, "kernels");
  EXPECT(!tn_kernels_get(some, 0, NULL, status));
  EXPECT(tn_kernels_delete(all) == TN_OK && tn_kernels_delete(some) == TN_OK && tn_kernels_delete(NULL) == TN_OK);
  some = tn_runtime_kernels(runtime, "NoSuchOp", status);
  OK();
  EXPECT(tn_kernels_count(some) == 0);
  tn_kernels_delete(some);
}

static void ops(void) {
  tn_list* all = tn_runtime_ops(runtime, status);
  OK();
  EXPECT(has(all, "MatMul") && !has(all, "NoSuchOp"));
  EXPECT(tn_list_at(all, tn_list_count(all)) == NULL);
  EXPECT(tn_list_delete(all) == TN_OK);
  tn_buffer* one = tn_runtime_op_def(runtime, "MatMul", status);
  tn_buffer* every = tn_runtime_op_def(runtime, NULL, status);
  OK();
  EXPECT(tn_buffer_size(one) > 8 && tn_buffer_size(every) > tn_buffer_size(one));
  EXPECT(memcmp((const char*)tn_buffer_data(one) + 2, "MatMul", 6) == 0);
  EXPECT(tn_buffer_delete(one) == TN_OK && tn_buffer_delete(every) == TN_OK);
  EXPECT(tn_runtime_op_def(runtime, "NoSuchOp", status) == NULL);
  IS(TN_NOT_FOUND, "NoSuchOp");
}

static void bad_options(void) {
  tn_runtime_options options = TN_INIT(tn_runtime_options);
  const char *missing = "/nowhere/libtenon_none.so", *setting = "graph.optimize", *unknown = "no.such_knob=1";
  options.named_only = true;
  options.plugins = &missing;
  options.plugin_count = 1;
  EXPECT(tn_runtime_new(&options, status) == NULL);
  IS(TN_NOT_FOUND, "libtenon_none.so");
  options.plugins = NULL;
  EXPECT(tn_runtime_new(&options, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "a plugin to load is null");
  options.plugin_count = 0;
  options.settings = &setting;
  options.setting_count = 1;
  EXPECT(tn_runtime_new(&options, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "scope.name=value");
  options.settings = &unknown;
  EXPECT(tn_runtime_new(&options, status) == NULL);
  EXPECT(tn_status_code(status) != TN_OK && strstr(tn_status_message(status), "no.such_knob"));
  options.setting_count = 0;
  options.job = "not a job/";
  EXPECT(tn_runtime_new(&options, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "job");
  options.job = "\xff";
  EXPECT(tn_runtime_new(&options, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "UTF-8");
}

void runtimes(const char* plugin, const char* folder) {
  versions();
  devices();
  kernels();
  ops();
  bad_options();
  tn_list* loaded = tn_runtime_load(runtime, plugin, status);
  OK();
  EXPECT(tn_list_count(loaded) == 1);
  tn_list* plugins = tn_runtime_plugins(runtime, status);
  OK();
  EXPECT(has(plugins, tn_list_at(loaded, 0)));
  tn_list_delete(loaded);
  tn_list_delete(plugins);
  EXPECT(tn_runtime_load(runtime, "/nowhere/libtenon_none.so", status) == NULL);
  IS(TN_NOT_FOUND, "/nowhere");
  EXPECT(tn_runtime_load(runtime, NULL, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "null");
  /* A runtime whose plugins come from a folder, by a list that does not permit them, and without one. */
  tn_runtime_options options = TN_INIT(tn_runtime_options);
  options.named_only = true;
  options.threads = 1;
  tn_runtime* own = tn_runtime_new(&options, status);
  OK();
  loaded = tn_runtime_load(own, folder, status);
  OK();
  EXPECT(has(loaded, "tenon-cpu"));
  tn_list_delete(loaded);
  EXPECT(tn_runtime_delete(own) == TN_OK);
  options.trust_file = "/nowhere/trust.toml";
  own = tn_runtime_new(&options, status);
  if (own) {
    EXPECT(tn_runtime_load(own, plugin, status) == NULL);
    tn_runtime_delete(own);
  }
  EXPECT(strstr(tn_status_message(status), "trust"));
  EXPECT(tn_runtime_load(runtime, "/proc/self", status) == NULL);
  IS(TN_NOT_FOUND, "no plugin");
}

void stale(void) {
  tn_graph* graph = new_graph();
  constant(graph, "c", 1);
  tn_session* session = tn_session_new(graph, NULL, status);
  OK();
  EXPECT(tn_graph_delete(graph) == TN_OK);
  EXPECT(number(run_one(session, NULL, NULL, "c")) == 1);
  EXPECT(tn_graph_delete(graph) == TN_INVALID_ARGUMENT);
  EXPECT(tn_graph_nodes(graph, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "deleted");
  EXPECT(tn_graph_nodes((tn_graph*)(void*)session, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "another kind");
  EXPECT(tn_session_delete((tn_session*)(void*)status) == TN_INVALID_ARGUMENT);
  EXPECT(tn_session_delete(session) == TN_OK);
  EXPECT(run_one(session, NULL, NULL, "c") == NULL);
  IS(TN_INVALID_ARGUMENT, "a session");
}
