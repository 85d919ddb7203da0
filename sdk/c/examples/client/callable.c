/* A prepared step in a loop over two buffers of the program: nothing is allocated, and the input is not copied. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon_client.h>

enum { SIZE = 1024 };

static tn_status* status;

static void check(void) {
  if (tn_status_code(status) == TN_OK) return;
  fprintf(stderr, "%s: %s\n", tn_code_name(tn_status_code(status)), tn_status_message(status));
  exit(1);
}

/* The library no longer uses a buffer. */
static void release(void* data, size_t bytes, void* argument) {
  (void)bytes;
  ++*(int*)argument;
  free(data);
}

int main(void) {
  status = tn_status_new();
  tn_runtime* runtime = tn_runtime_new(NULL, status);
  check();
  tn_graph* graph = tn_graph_new(runtime, status);
  check();
  const int64_t dims[] = {SIZE};
  tn_builder* builder = tn_builder_new(graph, "Placeholder", "x", status);
  tn_builder_attr_type(builder, "dtype", TN_FLOAT, status);
  tn_builder_attr_shape(builder, "shape", dims, 1, status);
  tn_list_delete(tn_builder_finish(builder, status));
  check();
  tn_builder_delete(builder);
  builder = tn_builder_new(graph, "Square", "y", status);
  tn_builder_input(builder, "x", status);
  tn_list_delete(tn_builder_finish(builder, status));
  check();
  tn_builder_delete(builder);

  tn_session* session = tn_session_new(graph, NULL, status);
  check();
  const char *feed = "x", *fetch = "y";
  tn_callable* callable = tn_callable_new(session, &feed, 1, &fetch, 1, NULL, 0, status);
  check();

  /* Memory at a multiple of 64 is used as it is. */
  int released = 0;
  float* in = aligned_alloc(64, SIZE * sizeof(float));
  float* out = aligned_alloc(64, SIZE * sizeof(float));
  tn_tensor* input = tn_tensor_lend(TN_FLOAT, dims, 1, in, SIZE * sizeof(float), release, &released, status);
  check();
  tn_tensor* output = tn_tensor_lend(TN_FLOAT, dims, 1, out, SIZE * sizeof(float), release, &released, status);
  check();
  printf("the tensor is the buffer: %s\n", tn_tensor_data(input, status) == in ? "yes" : "no");
  tn_callable_bind_input(callable, 0, input, status);
  check();
  tn_callable_bind_output(callable, 0, output, status);
  check();

  double sum = 0;
  for (int step = 1; step <= 100; step++) {
    for (int i = 0; i < SIZE; i++) in[i] = (float)step;
    tn_callable_run_bound(callable, NULL, status);
    check();
    sum += (double)out[SIZE - 1];
  }
  printf("sum of squares: %.0f\n", sum);

  tn_tensor_delete(input);
  tn_tensor_delete(output);
  printf("released while they are bound: %d\n", released);
  tn_callable_delete(callable);
  printf("released: %d\n", released);
  tn_session_delete(session);
  tn_graph_delete(graph);
  tn_runtime_delete(runtime);
  tn_status_delete(status);
  return 0;
}
