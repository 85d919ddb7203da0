/* Servers, saved models and log messages. */
#include "common.h"

#include <pthread.h>
#include <unistd.h>

static void* stop(void* server) {
  usleep(50000);
  tn_server_stop(server, 1000, NULL);
  return NULL;
}

static void remote(const char* target) {
  tn_graph* graph = new_graph();
  const int64_t dims[] = {2};
  const float values[] = {1, -2};
  placeholder(graph, "x", TN_FLOAT, dims, 1);
  node(graph, "Neg", "y", "x", NULL);
  tn_session_options options = TN_INIT(tn_session_options);
  options.target = target;
  tn_session* session = tn_session_new(graph, &options, status);
  OK();
  tn_tensor *value = floats(dims, 1, values), *result = NULL;
  EXPECT(number(run_one(session, "x", value, "y")) == -1);
  node(graph, "Square", "z", "y", NULL);
  const char *feed = "x", *fetch = "z";
  tn_callable* callable = tn_callable_new(session, &feed, 1, &fetch, 1, NULL, 0, status);
  OK();
  tn_run_options run = TN_INIT(tn_run_options);
  run.timeout_ms = 60000;
  EXPECT(tn_callable_run(callable, &run, &value, 1, &result, 1, status));
  EXPECT(number(result) == 1);
  tn_devices* devices = tn_session_devices(session, status);
  OK();
  EXPECT(tn_devices_count(devices) > 0);
  tn_devices_delete(devices);
  run.cancel = tn_cancel_new(status);
  EXPECT(!tn_callable_run(callable, &run, &value, 1, &result, 1, status));
  IS(TN_UNIMPLEMENTED, "this process");
  tn_cancel_delete(run.cancel);
  EXPECT(run_one(session, "x", value, "nothing") == NULL);
  EXPECT(tn_status_code(status) != TN_OK);
  tn_callable_delete(callable);
  EXPECT(tn_session_delete(session) == TN_OK);
  tn_tensor_delete(value);
  tn_graph_delete(graph);
}

void servers(void) {
  tn_server_options options = TN_INIT(tn_server_options);
  options.listen = "127.0.0.1:0";
  options.sessions = 4;
  tn_server* server = tn_server_start(runtime, &options, status);
  OK();
  EXPECT(strncmp(tn_server_target(server), "grpc://127.0.0.1:", 17) == 0);
  remote(tn_server_target(server));
  EXPECT(!tn_server_join(server, 20, status));
  IS(TN_DEADLINE_EXCEEDED, "stop");
  pthread_t thread;
  pthread_create(&thread, NULL, stop, server);
  EXPECT(tn_server_join(server, -1, status));
  pthread_join(thread, NULL);
  EXPECT(tn_server_join(server, 0, status));
  EXPECT(!tn_server_stop(server, 0, status));
  IS(TN_FAILED_PRECONDITION, "stopped");
  EXPECT(!tn_server_stop(server, -1, status) && !tn_server_join(server, -2, status));
  EXPECT(tn_server_delete(server) == TN_OK && tn_server_delete(server) == TN_INVALID_ARGUMENT);
  EXPECT(tn_server_target(server) == NULL && tn_server_delete(NULL) == TN_OK);
  server = tn_server_start(runtime, NULL, status);
  OK();
  EXPECT(tn_server_delete(server) == TN_OK);
  options.listen = "nowhere";
  EXPECT(tn_server_start(runtime, &options, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "ADDRESS:PORT");
  options.listen = "0.0.0.0:0";
  EXPECT(tn_server_start(runtime, &options, status) == NULL);
  EXPECT(tn_status_code(status) != TN_OK);
  options.listen = NULL;
  options.cluster = "{";
  EXPECT(tn_server_start(runtime, &options, status) == NULL);
  options.cluster = NULL;
  options.token_file = "/nowhere/tokens";
  EXPECT(tn_server_start(runtime, &options, status) == NULL);
  EXPECT(tn_server_start(NULL, NULL, status) == NULL && !tn_server_stop(NULL, 0, status) && !tn_server_join(NULL, 0, status));
}

void models(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/tf2_module", folder);
  const char *serve = "serve", *train = "train";
  tn_model* model = tn_model_load(runtime, path, &serve, 1, status);
  OK();
  tn_list* keys = tn_model_signatures(model, status);
  OK();
  EXPECT(has(keys, "serving_default") && has(keys, "counted"));
  tn_list_delete(keys);
  tn_list *inputs = tn_model_inputs(model, NULL, status), *outputs = tn_model_outputs(model, "counted", status);
  OK();
  EXPECT(tn_list_count(inputs) == 1 && has(inputs, "x") && has(outputs, "count"));
  tn_list_delete(inputs);
  tn_list_delete(outputs);
  tn_value_info info = TN_INIT(tn_value_info);
  EXPECT(tn_model_input_info(model, NULL, "x", &info, status) && info.rank == 2 && info.dims[1] == 3);
  EXPECT(tn_model_output_info(model, "counted", "count", &info, status) && info.dtype == TN_INT64);
  const int64_t dims[] = {1, 3};
  const float row[] = {-0.6311416f, 0.9291375f, 0.03381452f};
  tn_tensor *value = floats(dims, 2, row), *results[2] = {NULL, NULL};
  const char *input = "x", *wanted[] = {"product", "positive"}, *none = "none";
  EXPECT(tn_model_run(model, NULL, NULL, &input, &value, 1, wanted, results, 2, status));
  const float* product = tn_tensor_data(results[0], status);
  OK();
  /* What TensorFlow gave: tests/goldens/saved_models/expected/tf2_module.npz. */
  EXPECT(product[0] > -1.1567f && product[0] < -1.1565f && product[1] > 3.6250f && product[1] < 3.6253f);
  tn_tensor_delete(results[0]);
  tn_tensor_delete(results[1]);
  tn_run_options options = TN_INIT(tn_run_options);
  tn_buffer* stats = NULL;
  options.stats = &stats;
  EXPECT(tn_model_run(model, "serving_default", &options, &input, &value, 1, wanted, results, 1, status));
  EXPECT(tn_buffer_size(stats) > 0);
  tn_buffer_delete(stats);
  tn_tensor_delete(results[0]);
  EXPECT(!tn_model_run(model, NULL, NULL, &none, &value, 1, wanted, results, 2, status) && results[0] == NULL);
  EXPECT(strstr(tn_status_message(status), "none"));
  EXPECT(!tn_model_run(model, NULL, NULL, &input, &value, 1, &none, results, 1, status));
  EXPECT(strstr(tn_status_message(status), "none"));
  EXPECT(!tn_model_run(model, "none", NULL, &input, &value, 1, wanted, results, 2, status));
  EXPECT(strstr(tn_status_message(status), "serving_default"));
  EXPECT(!tn_model_run(model, NULL, NULL, NULL, NULL, 0, wanted, results, 2, status));
  EXPECT(!tn_model_run(model, NULL, NULL, &input, &value, 1, wanted, NULL, 2, status));
  EXPECT(!tn_model_input_info(model, NULL, "none", &info, status) && !tn_model_output_info(model, NULL, "none", &info, status));
  EXPECT(tn_model_inputs(model, "none", status) == NULL && tn_model_outputs(model, "none", status) == NULL);
  EXPECT(tn_model_delete(model) == TN_OK && tn_model_delete(model) == TN_INVALID_ARGUMENT && tn_model_delete(NULL) == TN_OK);
  EXPECT(tn_model_signatures(model, status) == NULL);
  EXPECT(tn_model_load(runtime, path, &train, 1, status) == NULL);
  EXPECT(strstr(tn_status_message(status), "serve"));
  EXPECT(tn_model_load(runtime, "/nowhere", NULL, 0, status) == NULL);
  IS(TN_NOT_FOUND, "/nowhere");
  EXPECT(tn_model_load(runtime, NULL, NULL, 0, status) == NULL && tn_model_load(NULL, path, NULL, 0, status) == NULL);
  tn_tensor_delete(value);
}

typedef struct heard {
  int calls;
  int level;
  bool names_file;
  tn_code nested;
} heard;

static void hear(tn_log_level level, const char* target, const char* message, void* argument) {
  heard* all = argument;
  all->calls++;
  all->level = (int)level;
  if (strncmp(target, "tenon", 5) == 0 && strstr(message, "libtenon_not_a_plugin")) all->names_file = true;
  tn_status* own = tn_status_new();
  tn_log_set(NULL, NULL, TN_LOG_OFF, own);
  all->nested = tn_status_code(own);
  tn_status_delete(own);
}

void logs(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/libtenon_not_a_plugin.so", folder);
  FILE* file = fopen(path, "w");
  EXPECT(file != NULL && fputs("no library", file) >= 0 && fclose(file) == 0);
  heard all = {0, 0, false, TN_OK};
  EXPECT(tn_log_set(hear, &all, TN_LOG_WARN, status));
  EXPECT(tn_runtime_load(runtime, path, status) == NULL);
  EXPECT(strstr(tn_status_message(status), "libtenon_not_a_plugin"));
  EXPECT(all.calls > 0 && all.names_file && all.level <= TN_LOG_WARN && all.nested == TN_FAILED_PRECONDITION);
  heard others = {0, 0, false, TN_OK};
  EXPECT(tn_log_set(hear, &others, TN_LOG_OFF, status));
  int before = all.calls;
  EXPECT(tn_runtime_load(runtime, path, status) == NULL);
  EXPECT(all.calls == before && others.calls == 0);
  EXPECT(!tn_log_set(hear, &all, (tn_log_level)9, status));
  IS(TN_INVALID_ARGUMENT, "tn_log_level");
  EXPECT(tn_log_set(NULL, NULL, TN_LOG_OFF, status));
  remove(path);
}
