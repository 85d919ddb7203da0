/* Sessions over saved models: the module of tests/goldens/saved_models, which TensorFlow wrote. */
#include "common.h"

static TF_Session* load(const char* folder, const char* name, const char* tag, TF_Graph* graph, TF_Buffer* message) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const char* tags[] = {tag};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* made = TF_LoadSessionFromSavedModel(options, NULL, path, tags, 1, graph, message, status);
  TF_DeleteSessionOptions(options);
  return made;
}

static TF_Output of(TF_Graph* graph, const char* name, int index) {
  return out(TF_GraphOperationByName(graph, name), index);
}

static void counted(TF_Graph* graph, TF_Session* in, unsigned char negate) {
  const int64_t dims[] = {2};
  const float values[] = {1.5f, -2};
  TF_Output feeds[] = {of(graph, "counted_a", 0), of(graph, "counted_negate", 0)};
  TF_Output fetches[] = {of(graph, "StatefulPartitionedCall", 0), of(graph, "StatefulPartitionedCall", 1)};
  TF_Tensor* given[] = {tensor_f(dims, 1, values), TF_AllocateTensor(TF_BOOL, NULL, 0, 1)};
  *(unsigned char*)TF_TensorData(given[1]) = negate;
  TF_Tensor* fetched[2] = {NULL, NULL};
  TF_SessionRun(in, NULL, feeds, given, 2, fetches, fetched, 2, NULL, 0, NULL, status);
  ok("signature 'counted'");
  show("counted, a", fetched[0]);
  show("counted, count", fetched[1]);
  TF_DeleteTensor(given[0]);
  TF_DeleteTensor(given[1]);
}

void saved_models(const char* folder) {
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* message = TF_NewBuffer();
  TF_Session* in = load(folder, "tf2_module", "serve", graph, message);
  ok("a saved model");
  names("signatures", whole(message), 5, 1);
  printf("graph in the message: %d\n", part(whole(message), 2).length > 0);
  counted(graph, in, 1);
  counted(graph, in, 0);
  TF_OperationDescription* made = TF_NewOperation(graph, "Neg", "added");
  TF_AddInput(made, of(graph, "StatefulPartitionedCall", 1));
  TF_Operation* added = TF_FinishOperation(made, status);
  ok("an operation over a saved model");
  printf("type of the result: %d\n", (int)TF_OperationOutputType(out(added, 0)));
  TF_DeleteSession(in, status);
  TF_DeleteBuffer(message);
  TF_DeleteGraph(graph);
  graph = TF_NewGraph();
  printf("tags that there are not: %d\n", load(folder, "tf2_module", "train", graph, NULL) == NULL);
  code("tags that there are not");
  printf("folder that there is not: %d\n", load(folder, "nothing", "serve", graph, NULL) == NULL);
  code("folder that there is not");
  TF_DeleteGraph(graph);
}
