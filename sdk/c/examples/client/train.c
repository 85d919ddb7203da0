/* Fits a line by gradient descent, saves a checkpoint, and restores it in another session: train FOLDER */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon_client.h>

static tn_status* status;

static void check(void) {
  if (tn_status_code(status) == TN_OK) return;
  fprintf(stderr, "%s: %s\n", tn_code_name(tn_status_code(status)), tn_status_message(status));
  exit(1);
}

/* Adds a node of one output, whose name is NAME:0. */
static void add(tn_graph* graph, const char* op, const char* name, const char* x, const char* y) {
  tn_builder* builder = tn_builder_new(graph, op, name, status);
  check();
  if (x) tn_builder_input(builder, x, status);
  check();
  if (y) tn_builder_input(builder, y, status);
  check();
  tn_list_delete(tn_builder_finish(builder, status));
  check();
  tn_builder_delete(builder);
}

static void placeholder(tn_graph* graph, const char* name) {
  const int64_t dims[] = {-1};
  tn_builder* builder = tn_builder_new(graph, "Placeholder", name, status);
  tn_builder_attr_type(builder, "dtype", TN_FLOAT, status);
  tn_builder_attr_shape(builder, "shape", dims, 1, status);
  tn_list_delete(tn_builder_finish(builder, status));
  check();
  tn_builder_delete(builder);
}

static void constant(tn_graph* graph, const char* name, tn_dtype dtype, const void* value, size_t bytes, int rank) {
  const int64_t dims[] = {1};
  tn_tensor* tensor = tn_tensor_copy(dtype, dims, rank, value, bytes, status);
  check();
  tn_builder* builder = tn_builder_new(graph, "Const", name, status);
  tn_builder_attr_type(builder, "dtype", dtype, status);
  tn_builder_attr_tensor(builder, "value", tensor, status);
  tn_list_delete(tn_builder_finish(builder, status));
  check();
  tn_builder_delete(builder);
  tn_tensor_delete(tensor);
}

/* Adds a variable that is 0 at first, and returns the names of its handle, its value and its initialiser. */
static tn_list* variable(tn_graph* graph, const char* name) {
  tn_list* made = tn_graph_add_variable(graph, name, TN_FLOAT, NULL, 0, "zero", NULL, true, status);
  check();
  return made;
}

/* Adds a node that moves a variable against its gradient. */
static void descend(tn_graph* graph, const char* name, const char* handle, const char* gradient) {
  tn_builder* builder = tn_builder_new(graph, "ResourceApplyGradientDescent", name, status);
  tn_builder_input(builder, handle, status);
  tn_builder_input(builder, "rate", status);
  tn_builder_input(builder, gradient, status);
  tn_list_delete(tn_builder_finish(builder, status));
  check();
  tn_builder_delete(builder);
}

static float fetch(tn_session* session, const char* name) {
  tn_tensor* value = NULL;
  tn_session_run(session, NULL, NULL, NULL, 0, &name, &value, 1, NULL, 0, status);
  check();
  float number = *(const float*)tn_tensor_data(value, status);
  tn_tensor_delete(value);
  return number;
}

int main(int count, char** arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: train FOLDER\n");
    return 2;
  }
  status = tn_status_new();
  tn_runtime* runtime = tn_runtime_new(NULL, status);
  check();
  tn_graph* graph = tn_graph_new(runtime, status);
  check();

  /* The loss of the line w x + b. */
  const float zero = 0, rate = 0.1f;
  const int32_t axis = 0;
  placeholder(graph, "x");
  placeholder(graph, "y");
  constant(graph, "zero", TN_FLOAT, &zero, sizeof zero, 0);
  constant(graph, "rate", TN_FLOAT, &rate, sizeof rate, 0);
  constant(graph, "axes", TN_INT32, &axis, sizeof axis, 1);
  tn_list* w = variable(graph, "w");
  tn_list* b = variable(graph, "b");
  add(graph, "Mul", "product", "x", tn_list_at(w, 1));
  add(graph, "AddV2", "line", "product", tn_list_at(b, 1));
  add(graph, "SquaredDifference", "square", "line", "y");
  add(graph, "Mean", "loss", "square", "axes");

  const char* ys[] = {"loss"};
  const char* xs[] = {tn_list_at(w, 1), tn_list_at(b, 1)};
  tn_list* gradients = tn_graph_gradients(graph, NULL, ys, 1, xs, 2, NULL, status);
  check();
  descend(graph, "descend_w", tn_list_at(w, 0), tn_list_at(gradients, 0));
  descend(graph, "descend_b", tn_list_at(b, 0), tn_list_at(gradients, 1));
  tn_graph_add_initializer(graph, "init", status);
  tn_saver* saver = tn_saver_new(graph, NULL, status);
  check();

  tn_session* session = tn_session_new(graph, NULL, status);
  check();
  const char* init = "init";
  tn_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &init, 1, status);
  check();

  const int64_t dims[] = {4};
  const float x[] = {-1, 0, 1, 2}, y[] = {-2, 1, 4, 7};
  const char* feeds[] = {"x", "y"};
  const char* targets[] = {"descend_w", "descend_b"};
  tn_tensor* values[] = {tn_tensor_copy(TN_FLOAT, dims, 1, x, sizeof x, status),
                         tn_tensor_copy(TN_FLOAT, dims, 1, y, sizeof y, status)};
  for (int step = 0; step < 200; step++) {
    tn_session_run(session, NULL, feeds, values, 2, NULL, NULL, 0, targets, 2, status);
    check();
  }
  printf("trained: w = %.3f, b = %.3f\n", (double)fetch(session, tn_list_at(w, 1)), (double)fetch(session, tn_list_at(b, 1)));

  char prefix[4096];
  snprintf(prefix, sizeof prefix, "%s/line", arguments[1]);
  tn_list* saved = tn_saver_save(saver, session, prefix, 200, status);
  check();
  tn_session_delete(session);

  /* Another session has the values of the checkpoint. */
  session = tn_session_new(graph, NULL, status);
  check();
  tn_saver_restore(saver, session, tn_list_at(saved, 0), status);
  check();
  printf("restored: w = %.3f\n", (double)fetch(session, tn_list_at(w, 1)));
  tn_checkpoint* checkpoint = tn_checkpoint_open(tn_list_at(saved, 0), status);
  check();
  tn_list* names = tn_checkpoint_names(checkpoint, status);
  check();
  printf("%s:", strrchr(tn_list_at(saved, 0), '/') + 1);
  for (size_t i = 0; i < tn_list_count(names); i++) printf(" %s", tn_list_at(names, i));
  printf("\n");

  tn_list_delete(names);
  tn_checkpoint_delete(checkpoint);
  tn_list_delete(saved);
  tn_tensor_delete(values[0]);
  tn_tensor_delete(values[1]);
  tn_session_delete(session);
  tn_saver_delete(saver);
  tn_list_delete(gradients);
  tn_list_delete(w);
  tn_list_delete(b);
  tn_graph_delete(graph);
  tn_runtime_delete(runtime);
  tn_status_delete(status);
  return 0;
}
