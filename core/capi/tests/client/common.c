#include "common.h"

tn_status* status;
tn_runtime* runtime;

void expect(bool holds, const char* what, const char* file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: not so: %s (status %s: %s)\n", file, line, what, tn_code_name(tn_status_code(status)), tn_status_message(status));
  exit(1);
}

void expect_code(tn_code code, const char* words, const char* file, int line) {
  const char* message = tn_status_message(status);
  if (tn_status_code(status) == code && (!words || strstr(message, words)) && (code == TN_OK) == (*message == 0)) return;
  fprintf(stderr, "%s:%d: expected %s with '%s', found %s: %s\n", file, line, tn_code_name(code), words ? words : "", tn_code_name(tn_status_code(status)),
          message);
  exit(1);
}

tn_graph* new_graph(void) {
  tn_graph* graph = tn_graph_new(runtime, status);
  OK();
  return graph;
}

void placeholder(tn_graph* graph, const char* name, tn_dtype dtype, const int64_t* dims, int rank) {
  tn_builder* builder = tn_builder_new(graph, "Placeholder", name, status);
  OK();
  EXPECT(tn_builder_attr_type(builder, "dtype", dtype, status));
  EXPECT(tn_builder_attr_shape(builder, "shape", dims, rank, status));
  tn_list* outputs = tn_builder_finish(builder, status);
  OK();
  EXPECT(tn_list_count(outputs) == 1);
  tn_list_delete(outputs);
  tn_builder_delete(builder);
}

void node(tn_graph* graph, const char* op, const char* name, const char* x, const char* y) {
  tn_builder* builder = tn_builder_new(graph, op, name, status);
  OK();
  if (x) EXPECT(tn_builder_input(builder, x, status));
  if (y) EXPECT(tn_builder_input(builder, y, status));
  tn_list_delete(tn_builder_finish(builder, status));
  OK();
  tn_builder_delete(builder);
}

void constant(tn_graph* graph, const char* name, float value) {
  tn_tensor* tensor = tn_tensor_copy(TN_FLOAT, NULL, 0, &value, sizeof value, status);
  tn_builder* builder = tn_builder_new(graph, "Const", name, status);
  EXPECT(tn_builder_attr_type(builder, "dtype", TN_FLOAT, status));
  EXPECT(tn_builder_attr_tensor(builder, "value", tensor, status));
  tn_list_delete(tn_builder_finish(builder, status));
  OK();
  tn_builder_delete(builder);
  tn_tensor_delete(tensor);
}

tn_tensor* floats(const int64_t* dims, int rank, const float* values) {
  size_t count = 1;
  for (int axis = 0; axis < rank; axis++) count *= (size_t)dims[axis];
  tn_tensor* tensor = tn_tensor_copy(TN_FLOAT, dims, rank, values, count * sizeof *values, status);
  OK();
  return tensor;
}

tn_tensor* run_one(tn_session* session, const char* feed, tn_tensor* value, const char* fetch) {
  tn_tensor* result = NULL;
  tn_session_run(session, NULL, &feed, &value, feed ? 1 : 0, &fetch, &result, 1, NULL, 0, status);
  return result;
}

float number(tn_tensor* tensor) {
  const float* data = tn_tensor_data(tensor, status);
  OK();
  float found = data[0];
  EXPECT(tn_tensor_delete(tensor) == TN_OK);
  return found;
}

bool has(tn_list* list, const char* text) {
  for (size_t at = 0; at < tn_list_count(list); at++) {
    if (strcmp(tn_list_at(list, at), text) == 0) return true;
  }
  return false;
}
