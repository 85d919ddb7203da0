/* Sessions, prepared steps, and cancellation. */
#include "common.h"

#include <pthread.h>
#include <unistd.h>

void sessions(void) {
  tn_graph* graph = new_graph();
  const int64_t dims[] = {2}, three[] = {3};
  const float values[] = {1, -2, 3};
  placeholder(graph, "x", TN_FLOAT, dims, 1);
  node(graph, "Neg", "y", "x", NULL);
  tn_session_options options = TN_INIT(tn_session_options);
  options.timeout_ms = 60000;
  tn_session* session = tn_session_new(graph, &options, status);
  OK();
  tn_tensor* value = floats(dims, 1, values);
  tn_tensor* result = run_one(session, "x:0", value, "y:0");
  OK();
  EXPECT(number(result) == -1);
  /* The graph grows. */
  node(graph, "Square", "z", "y", NULL);
  const char *feed = "x", *fetches[] = {"y", "z"}, *target = "z";
  tn_tensor* results[2] = {value, value};
  tn_buffer* stats = NULL;
  tn_run_options run = TN_INIT(tn_run_options);
  run.stats = &stats;
  EXPECT(tn_session_run(session, &run, &feed, &value, 1, fetches, results, 2, &target, 1, status));
  EXPECT(tn_buffer_size(stats) > 20);
  tn_buffer_delete(stats);
  EXPECT(number(results[0]) == -1 && number(results[1]) == 1);
  tn_graph* addition = new_graph();
  constant(addition, "five", 5);
  tn_buffer* message = tn_graph_message(addition, status);
  EXPECT(tn_session_extend(session, tn_buffer_data(message), tn_buffer_size(message), status));
  EXPECT(!tn_session_extend(session, tn_buffer_data(message), tn_buffer_size(message), status));
  EXPECT(!tn_session_extend(session, "\xff", 1, status));
  EXPECT(number(run_one(session, NULL, NULL, "five")) == 5);
  tn_buffer_delete(message);
  tn_graph_delete(addition);
  tn_devices* devices = tn_session_devices(session, status);
  OK();
  EXPECT(tn_devices_count(devices) > 0);
  tn_devices_delete(devices);
  /* What is wrong with a step. */
  tn_tensor* wrong = floats(three, 1, values);
  EXPECT(run_one(session, "x", wrong, "y") == NULL);
  IS(TN_INVALID_ARGUMENT, "x");
  tn_tensor_delete(wrong);
  EXPECT(run_one(session, "x", value, "nothing") == NULL);
  IS(TN_NOT_FOUND, "nothing");
  EXPECT(run_one(session, NULL, NULL, "y") == NULL);
  EXPECT(tn_status_code(status) != TN_OK && strcmp(tn_status_node(status), "x") == 0);
  EXPECT(run_one(session, "x", NULL, "y") == NULL);
  IS(TN_INVALID_ARGUMENT, "a tensor is null");
  EXPECT(!tn_session_run(session, NULL, &feed, &value, 1, fetches, NULL, 2, NULL, 0, status));
  IS(TN_INVALID_ARGUMENT, "results");
  EXPECT(!tn_session_run(session, NULL, NULL, &value, 1, fetches, results, 2, NULL, 0, status));
  EXPECT(!tn_session_run(session, NULL, &feed, &value, SIZE_MAX, fetches, results, 2, NULL, 0, status));
  run.stats = NULL;
  run.timeout_ms = -5;
  EXPECT(!tn_session_run(session, &run, &feed, &value, 1, fetches, results, 2, NULL, 0, status));
  IS(TN_INVALID_ARGUMENT, "timeout_ms");
  EXPECT(tn_session_close(session, status));
  EXPECT(!tn_session_close(session, status));
  IS(TN_FAILED_PRECONDITION, "closed");
  EXPECT(run_one(session, "x", value, "y") == NULL);
  IS(TN_FAILED_PRECONDITION, "closed");
  EXPECT(tn_session_devices(session, status) == NULL && !tn_session_extend(session, "", 0, status));
  EXPECT(tn_session_delete(session) == TN_OK && tn_session_delete(NULL) == TN_OK);
  options.target = "nowhere";
  EXPECT(tn_session_new(graph, &options, status) == NULL);
  IS(TN_NOT_FOUND, "nowhere");
  options.target = NULL;
  options.config = "\xff";
  options.config_bytes = 1;
  EXPECT(tn_session_new(graph, &options, status) == NULL);
  options.config_bytes = 0;
  options.timeout_ms = -1;
  EXPECT(tn_session_new(graph, &options, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "timeout_ms");
  EXPECT(tn_session_new(NULL, NULL, status) == NULL);
  tn_tensor_delete(value);
  tn_graph_delete(graph);
}

static void bound(tn_session* session, const char* feed, const char* fetch, tn_tensor* input) {
  tn_callable* callable = tn_callable_new(session, &feed, 1, &fetch, 1, NULL, 0, status);
  OK();
  EXPECT(!tn_callable_run_bound(callable, NULL, status));
  IS(TN_FAILED_PRECONDITION, "'x' is not bound");
  EXPECT(tn_callable_bind_input(callable, 0, input, status));
  EXPECT(!tn_callable_run_bound(callable, NULL, status));
  IS(TN_FAILED_PRECONDITION, "'y' is not bound");
  const int64_t dims[] = {2}, three[] = {3};
  tn_tensor* output = tn_tensor_new(TN_FLOAT, dims, 1, status);
  tn_tensor* wrong = tn_tensor_new(TN_FLOAT, three, 1, status);
  EXPECT(tn_callable_bind_output(callable, 0, wrong, status));
  EXPECT(!tn_callable_run_bound(callable, NULL, status));
  IS(TN_INVALID_ARGUMENT, "shape");
  EXPECT(tn_callable_bind_output(callable, 0, output, status));
  EXPECT(tn_callable_run_bound(callable, NULL, status));
  EXPECT(((const float*)tn_tensor_data(output, status))[1] == 2);
  EXPECT(!tn_callable_bind_output(callable, 1, output, status) && !tn_callable_bind_input(callable, -1, input, status));
  IS(TN_INVALID_ARGUMENT, "-1");
  EXPECT(!tn_callable_bind_input(callable, 0, NULL, status) && !tn_callable_bind_output(callable, 0, NULL, status));
  EXPECT(tn_callable_delete(callable) == TN_OK && tn_callable_delete(callable) == TN_INVALID_ARGUMENT);
  EXPECT(!tn_callable_run_bound(callable, NULL, status) && tn_callable_delete(NULL) == TN_OK);
  tn_tensor_delete(output);
  tn_tensor_delete(wrong);
}

typedef struct job {
  tn_callable* callable;
  float number;
} job;

/* Runs the callable of all threads with values of its own. */
static void* work(void* argument) {
  const job* given = argument;
  tn_status* own = tn_status_new();
  for (int i = 0; i < 200; i++) {
    const int64_t dims[] = {2};
    const float values[] = {given->number, (float)i};
    tn_tensor* value = tn_tensor_copy(TN_FLOAT, dims, 1, values, sizeof values, own);
    tn_tensor* result = NULL;
    tn_callable_run(given->callable, NULL, &value, 1, &result, 1, own);
    const float* found = tn_tensor_data(result, own);
    if (tn_status_code(own) != TN_OK || found[0] != -given->number || found[1] != (float)-i) {
      fprintf(stderr, "a thread: %s\n", tn_status_message(own));
      exit(1);
    }
    tn_tensor_delete(result);
    tn_tensor_delete(value);
  }
  tn_status_delete(own);
  return NULL;
}

void callables(void) {
  tn_graph* graph = new_graph();
  const int64_t dims[] = {2};
  const float values[] = {1, -2};
  placeholder(graph, "x", TN_FLOAT, dims, 1);
  node(graph, "Neg", "y", "x", NULL);
  tn_session* session = tn_session_new(graph, NULL, status);
  const char *feed = "x", *fetch = "y", *target = "y", *none = "nothing";
  tn_callable* callable = tn_callable_new(session, &feed, 1, &fetch, 1, &target, 1, status);
  OK();
  tn_tensor *value = floats(dims, 1, values), *result = NULL;
  EXPECT(tn_callable_run(callable, NULL, &value, 1, &result, 1, status));
  EXPECT(number(result) == -1);
  tn_buffer* stats = NULL;
  tn_run_options options = TN_INIT(tn_run_options);
  options.stats = &stats;
  options.timeout_ms = 60000;
  EXPECT(tn_callable_run(callable, &options, &value, 1, &result, 1, status));
  EXPECT(tn_buffer_size(stats) > 0 && number(result) == -1);
  tn_buffer_delete(stats);
  EXPECT(!tn_callable_run(callable, NULL, &value, 0, &result, 1, status));
  IS(TN_INVALID_ARGUMENT, "1 feeds, found 0");
  EXPECT(!tn_callable_run(callable, NULL, &value, 1, NULL, 0, status));
  IS(TN_INVALID_ARGUMENT, "1 fetches, found 0");
  EXPECT(!tn_callable_run(callable, NULL, NULL, 1, &result, 1, status));
  EXPECT(tn_callable_new(session, &none, 1, &fetch, 1, NULL, 0, status) == NULL);
  IS(TN_NOT_FOUND, "nothing");
  EXPECT(tn_callable_new(session, NULL, 1, &fetch, 1, NULL, 0, status) == NULL);
  bound(session, feed, fetch, value);
  pthread_t started[3];
  job jobs[3];
  for (int i = 0; i < 3; i++) {
    jobs[i] = (job){callable, (float)(i + 1)};
    pthread_create(&started[i], NULL, work, &jobs[i]);
  }
  for (int i = 0; i < 3; i++) pthread_join(started[i], NULL);
  EXPECT(tn_session_close(session, status));
  EXPECT(!tn_callable_run(callable, NULL, &value, 1, &result, 1, status) && result == NULL);
  IS(TN_FAILED_PRECONDITION, "closed");
  EXPECT(tn_callable_new(session, &feed, 1, &fetch, 1, NULL, 0, status) == NULL);
  tn_session_delete(session);
  tn_callable_delete(callable);
  tn_tensor_delete(value);
  tn_graph_delete(graph);
}

static void* cancel(void* token) {
  usleep(50000);
  tn_cancel_trigger(token, NULL);
  return NULL;
}

static void* close_it(void* session) {
  usleep(50000);
  tn_session_delete(session);
  return NULL;
}

void cancellation(void) {
  tn_graph* graph = new_graph();
  const tn_dtype types[] = {TN_FLOAT};
  tn_builder* builder = tn_builder_new(graph, "FIFOQueueV2", "queue", status);
  EXPECT(tn_builder_attr_type_list(builder, "component_types", types, 1, status));
  tn_list_delete(tn_builder_finish(builder, status));
  OK();
  tn_builder_delete(builder);
  builder = tn_builder_new(graph, "QueueDequeueV2", "next", status);
  EXPECT(tn_builder_input(builder, "queue", status) && tn_builder_attr_type_list(builder, "component_types", types, 1, status));
  tn_list_delete(tn_builder_finish(builder, status));
  OK();
  tn_builder_delete(builder);
  tn_session* session = tn_session_new(graph, NULL, status);
  OK();
  tn_cancel* token = tn_cancel_new(status);
  OK();
  EXPECT(!tn_cancel_is_triggered(token) && !tn_cancel_is_triggered(NULL));
  tn_run_options options = TN_INIT(tn_run_options);
  options.cancel = token;
  const char* fetch = "next";
  tn_tensor* result = NULL;
  pthread_t thread;
  pthread_create(&thread, NULL, cancel, token);
  EXPECT(!tn_session_run(session, &options, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, status) && result == NULL);
  EXPECT(tn_status_code(status) == TN_CANCELLED);
  pthread_join(thread, NULL);
  EXPECT(tn_cancel_is_triggered(token));
  tn_callable* callable = tn_callable_new(session, NULL, 0, &fetch, 1, NULL, 0, status);
  OK();
  EXPECT(!tn_callable_run(callable, &options, NULL, 0, &result, 1, status));
  EXPECT(tn_status_code(status) == TN_CANCELLED);
  options.cancel = NULL;
  options.timeout_ms = 50;
  EXPECT(!tn_callable_run(callable, &options, NULL, 0, &result, 1, status));
  EXPECT(tn_status_code(status) == TN_DEADLINE_EXCEEDED);
  tn_callable_delete(callable);
  EXPECT(tn_cancel_delete(token) == TN_OK && tn_cancel_delete(token) == TN_INVALID_ARGUMENT);
  options.cancel = token;
  EXPECT(!tn_session_run(session, &options, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, status));
  IS(TN_INVALID_ARGUMENT, "a token");
  EXPECT(!tn_cancel_trigger(NULL, status) && tn_cancel_delete(NULL) == TN_OK);
  /* Deleting a session ends the step of another thread. */
  pthread_create(&thread, NULL, close_it, session);
  EXPECT(run_one(session, NULL, NULL, "next") == NULL);
  EXPECT(tn_status_code(status) == TN_CANCELLED);
  pthread_join(thread, NULL);
  tn_graph_delete(graph);
}
