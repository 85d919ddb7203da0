// A step that waits for a queue without elements, cancelled by another thread; and one that ends at its time limit.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <tenon_client.h>

static void check(const tn_status* status) {
  if (tn_status_code(status) == TN_OK) return;
  std::fprintf(stderr, "%s: %s\n", tn_code_name(tn_status_code(status)), tn_status_message(status));
  std::exit(1);
}

int main() {
  tn_status* status = tn_status_new();
  tn_runtime* runtime = tn_runtime_new(nullptr, status);
  check(status);
  tn_graph* graph = tn_graph_new(runtime, status);
  check(status);
  const tn_dtype types[] = {TN_FLOAT};
  tn_builder* builder = tn_builder_new(graph, "FIFOQueueV2", "queue", status);
  tn_builder_attr_type_list(builder, "component_types", types, 1, status);
  tn_list_delete(tn_builder_finish(builder, status));
  check(status);
  tn_builder_delete(builder);
  builder = tn_builder_new(graph, "QueueDequeueV2", "next", status);
  tn_builder_input(builder, "queue", status);
  tn_builder_attr_type_list(builder, "component_types", types, 1, status);
  tn_list_delete(tn_builder_finish(builder, status));
  check(status);
  tn_builder_delete(builder);
  tn_session* session = tn_session_new(graph, nullptr, status);
  check(status);

  const char* fetch = "next";
  tn_tensor* value = nullptr;
  tn_run_options options = TN_INIT(tn_run_options);
  options.cancel = tn_cancel_new(status);
  std::thread other([&options] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    tn_cancel_trigger(options.cancel, nullptr);
  });
  tn_session_run(session, &options, nullptr, nullptr, 0, &fetch, &value, 1, nullptr, 0, status);
  other.join();
  std::printf("cancelled: %s, %s\n", tn_code_name(tn_status_code(status)), value ? "with a value" : "without a value");
  tn_cancel_delete(options.cancel);

  options = TN_INIT(tn_run_options);
  options.timeout_ms = 100;
  tn_session_run(session, &options, nullptr, nullptr, 0, &fetch, &value, 1, nullptr, 0, status);
  std::printf("too late: %s\n", tn_code_name(tn_status_code(status)));

  tn_session_delete(session);
  tn_graph_delete(graph);
  tn_runtime_delete(runtime);
  tn_status_delete(status);
  return 0;
}
