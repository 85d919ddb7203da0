/* What TensorFlow's library leaves undefined or decides otherwise: null arguments, other threads, plugins, a server.
 * Usage: own PLUGIN TARGET */
#include "common.h"

#include <pthread.h>

/* Ends the program where something is not as expected. */
static void expect(int holds, const char* what) {
  if (!holds) {
    printf("not so: %s (code %d, '%s')\n", what, (int)TF_GetCode(status), TF_Message(status));
    exit(1);
  }
  TF_SetStatus(status, TF_OK, "");
}

static void is(TF_Code expected, const char* what) {
  expect(TF_GetCode(status) == expected, what);
}

static void null_handles(void) {
  TF_Output none = {NULL, 0};
  TF_Input no_input = {NULL, 0};
  TF_DeleteStatus(NULL);
  TF_SetStatus(NULL, TF_OK, NULL);
  expect(TF_GetCode(NULL) == TF_OK && !*TF_Message(NULL), "no status");
  TF_DeleteBuffer(NULL);
  TF_DeleteTensor(NULL);
  TF_DeleteGraph(NULL);
  TF_DeleteSessionOptions(NULL);
  TF_DeleteImportGraphDefOptions(NULL);
  TF_DeleteImportGraphDefResults(NULL);
  TF_DeleteFunction(NULL);
  TF_DeleteDeviceList(NULL);
  TF_DeleteLibraryHandle(NULL);
  TF_DeleteServer(NULL);
  TF_DeletePRunHandle(NULL);
  TF_AbortWhile(NULL);
  TF_DeleteSession(NULL, NULL);
  expect(TF_TensorType(NULL) == 0 && TF_NumDims(NULL) == -1 && !TF_TensorData(NULL), "no tensor");
  expect(!TF_NewOperation(NULL, "NoOp", "a"), "an operation of no graph");
  expect(!TF_FinishOperation(NULL, status), "no description");
  is(TF_OK, "cleared");
  TF_FinishOperation(NULL, status);
  is(TF_INVALID_ARGUMENT, "no description");
  TF_AddInput(NULL, none);
  TF_SetAttrInt(NULL, "a", 1);
  expect(!TF_OperationName(NULL) && TF_OperationNumInputs(NULL) == 0, "no operation");
  expect(TF_OperationOutputType(none) == 0 && !TF_OperationInput(no_input).oper, "no output");
  expect(TF_OperationOutputNumConsumers(none) == 0, "no readers");
  expect(!TF_GraphOperationByName(NULL, "x"), "no graph");
  TF_GraphToGraphDef(NULL, NULL, status);
  is(TF_INVALID_ARGUMENT, "no graph");
  TF_SessionRun(NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, status);
  is(TF_INVALID_ARGUMENT, "no session");
  TF_SessionRun(NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL);
  TF_NewSession(NULL, NULL, NULL);
  TF_LoadSessionFromSavedModel(NULL, NULL, NULL, NULL, 0, NULL, NULL, status);
  is(TF_INVALID_ARGUMENT, "no graph and no folder of a model");
  TF_Graph* empty = TF_NewGraph();
  TF_LoadSessionFromSavedModel(NULL, NULL, "model", NULL, 1, empty, NULL, status);
  is(TF_INVALID_ARGUMENT, "no tags of a model");
  TF_DeleteGraph(empty);
  TF_SetPayload(NULL, "a", "b");
  TF_ForEachPayload(NULL, NULL, NULL);
  TF_SetStatusFromIOError(NULL, 2, NULL);
  TF_TensorFromProto(NULL, NULL, status);
  is(TF_INVALID_ARGUMENT, "no message of a tensor");
  TF_TryEvaluateConstant(NULL, none, NULL, status);
  is(TF_INVALID_ARGUMENT, "no graph of a constant");
  TF_AddGradients(NULL, NULL, 0, NULL, 0, NULL, status, NULL);
  is(TF_INVALID_ARGUMENT, "no graph");
  TF_LoadLibrary(NULL, status);
  is(TF_INVALID_ARGUMENT, "no file");
  TF_NewServer(NULL, 0, status);
  is(TF_NOT_FOUND, "no message of a server");
  TF_ServerStart(NULL, status);
  is(TF_INVALID_ARGUMENT, "no server to start");
  TF_ServerStop(NULL, status);
  is(TF_INVALID_ARGUMENT, "no server to stop");
  TF_ServerJoin(NULL, status);
  is(TF_INVALID_ARGUMENT, "no server to join");
  expect(!TF_ServerTarget(NULL), "no target");
}

static void decided_otherwise(void) {
  TF_Graph *graph = TF_NewGraph(), *another = TF_NewGraph();
  const int64_t dims[] = {2};
  const float values[] = {1, -2, 3};
  TF_Operation* x = placeholder(graph, "x", TF_FLOAT, dims, 1);
  TF_Operation* foreign = placeholder(another, "x", TF_FLOAT, dims, 1);
  TF_OperationDescription* made = TF_NewOperation(graph, "Relu", "y");
  TF_AddInput(made, out(foreign, 0));
  TF_FinishOperation(made, status);
  is(TF_INVALID_ARGUMENT, "an input of another graph");
  made = TF_NewOperation(graph, "Relu", "y");
  TF_AddInput(made, out(x, 0));
  TF_SetDevice(made, "not a device");
  TF_FinishOperation(made, status);
  is(TF_INVALID_ARGUMENT, "a device that is none");
  made = TF_NewOperation(graph, "Relu", "bad\xff");
  TF_FinishOperation(made, status);
  is(TF_INVALID_ARGUMENT, "a name that is no text");
  made = TF_NewOperation(graph, "Placeholder", "open");
  TF_SetAttrPlaceholder(made, "dtype", "T");
  TF_FinishOperation(made, status);
  is(TF_INVALID_ARGUMENT, "a placeholder as an attribute");
  made = TF_NewOperation(graph, "NoOp", "once");
  expect(TF_FinishOperation(made, status) != NULL, "a first finish");
  expect(!TF_FinishOperation(made, NULL), "a second finish");
  TF_FinishOperation(made, status);
  is(TF_INVALID_ARGUMENT, "a second finish");
  TF_Session* in = session(graph);
  TF_Output feed = out(x, 0), fetch = out(x, 0);
  TF_Tensor *value = tensor_f(dims, 1, values), *fetched = NULL;
  TF_SessionRun(in, NULL, &feed, &value, 1, &fetch, &fetched, 1, NULL, 0, NULL, status);
  is(TF_OK, "a fetch of what is fed");
  expect(TF_TensorData(fetched) == TF_TensorData(value), "without a copy");
  TF_DeleteTensor(fetched);
  TF_DeleteTensor(value);
  TF_DeleteGraph(another);
  TF_DeleteGraph(graph);
  TF_DeleteSession(in, status);
  is(TF_OK, "the session goes after its graph");
}

typedef struct job {
  TF_Graph* graph;
  TF_Session* in;
  TF_Operation* x;
  int number;
} job;

/* Adds operations to the graph, and runs each at once. */
static void* work(void* argument) {
  job* given = argument;
  TF_Status* own = TF_NewStatus();
  for (int i = 0; i < 50; i++) {
    char name[32];
    snprintf(name, sizeof name, "y_%d_%d", given->number, i);
    TF_OperationDescription* made = TF_NewOperation(given->graph, "Neg", name);
    TF_AddInput(made, out(given->x, 0));
    TF_Operation* y = TF_FinishOperation(made, own);
    TF_Output feed = out(given->x, 0), fetch = out(y, 0);
    TF_Tensor *value = scalar_i(i), *fetched = NULL;
    if (y) TF_SessionRun(given->in, NULL, &feed, &value, 1, &fetch, &fetched, 1, NULL, 0, NULL, own);
    if (TF_GetCode(own) != TF_OK || *(int32_t*)TF_TensorData(fetched) != -i) {
      printf("not so: %s: %s\n", name, TF_Message(own));
      exit(1);
    }
    TF_DeleteTensor(fetched);
    TF_DeleteTensor(value);
  }
  TF_DeleteStatus(own);
  return NULL;
}

static void threads(void) {
  TF_Graph* graph = TF_NewGraph();
  TF_Operation* x = placeholder(graph, "x", TF_INT32, NULL, 0);
  TF_Session* in = session(graph);
  pthread_t started[3];
  job jobs[3];
  for (int i = 0; i < 3; i++) {
    jobs[i] = (job){graph, in, x, i};
    pthread_create(&started[i], NULL, work, &jobs[i]);
  }
  for (int i = 0; i < 3; i++) pthread_join(started[i], NULL);
  size_t position = 0;
  int count = 0;
  while (TF_GraphNextOperation(graph, &position)) count++;
  expect(count == 151, "the operations of all threads");
  TF_DeleteSession(in, status);
  TF_DeleteGraph(graph);
}

static void plugin(const char* file) {
  TF_Library* library = TF_LoadLibrary(file, status);
  expect(library != NULL, "a plugin is loaded");
  TF_Buffer ops = TF_GetOpList(library);
  printf("ops of the plugin: %d\n", ops.length > 0);
  TF_DeleteLibraryHandle(library);
  library = TF_LoadLibrary(file, status);
  expect(library != NULL, "a plugin is loaded again");
  TF_DeleteLibraryHandle(library);
}

/* A step on a server in two parts: x is fed and z fetched, then another feed for what reads both. */
static void partial(TF_Graph* graph, TF_Session* in, TF_Operation* x, TF_Operation* y, TF_Operation* z) {
  TF_Operation* other = placeholder(graph, "other", TF_INT32, NULL, 0);
  TF_Operation* sum = binary(graph, "AddV2", "sum", y, other);
  const TF_Output feeds[] = {out(x, 0), out(other, 0)}, fetches[] = {out(z, 0), out(sum, 0)};
  const char* handle = NULL;
  TF_SessionPRunSetup(in, feeds, 2, fetches, 2, NULL, 0, &handle, status);
  ok("a partial run on a server");
  TF_Tensor *value = scalar_i(3), *fetched = NULL;
  TF_SessionPRun(in, handle, feeds, &value, 1, fetches, &fetched, 1, NULL, 0, status);
  ok("the first part on a server");
  TF_DeleteTensor(value);
  show("the first part on a server", fetched);
  value = scalar_i(10);
  TF_SessionPRun(in, handle, feeds + 1, &value, 1, fetches + 1, &fetched, 1, NULL, 0, status);
  ok("the second part on a server");
  show("the second part on a server", fetched);
  TF_SessionPRun(in, handle, feeds + 1, &value, 1, fetches + 1, &fetched, 1, NULL, 0, status);
  is(TF_INVALID_ARGUMENT, "a part after the last");
  TF_DeleteTensor(value);
  TF_DeletePRunHandle(handle);
  TF_SessionPRunSetup(in, feeds, 2, fetches, 2, NULL, 0, &handle, NULL);
  TF_DeletePRunHandle(handle);
}

static void served(const char* target) {
  TF_Graph* graph = TF_NewGraph();
  TF_Operation* x = placeholder(graph, "x", TF_INT32, NULL, 0);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, target);
  TF_Session* in = TF_NewSession(graph, options, status);
  ok("a session on a server");
  TF_DeleteSessionOptions(options);
  TF_Operation* y = unary(graph, "Neg", "y", x);
  run("on a server", in, x, scalar_i(7), out(y, 0));
  TF_Operation* z = unary(graph, "Square", "z", y);
  run("on a server, later", in, x, scalar_i(7), out(z, 0));
  partial(graph, in, x, y, z);
  TF_DeviceList* list = TF_SessionListDevices(in, status);
  ok("devices of a server");
  expect(TF_DeviceListCount(list) > 0, "a server has devices");
  TF_DeleteDeviceList(list);
  TF_DeleteSession(in, status);
  is(TF_OK, "the session is closed");
  TF_DeleteGraph(graph);
}

static void* join(void* argument) {
  TF_Status* own = TF_NewStatus();
  TF_ServerJoin(argument, own);
  if (TF_GetCode(own) != TF_OK) exit(1);
  TF_DeleteStatus(own);
  return NULL;
}

/* A server that serves may be stopped and deleted here. */
static void own_servers(void) {
  server("grpc", "ps", "localhost:0");
  is(TF_NOT_FOUND, "a server of another job");
  server("grpc", "worker", "localhost");
  is(TF_INVALID_ARGUMENT, "an address without a port");
  server("grpc", "worker", "0.0.0.0:0");
  is(TF_FAILED_PRECONDITION, "an address that other machines reach");
  TF_Server* made = server("grpc", "worker", "localhost:0");
  ok("a server");
  const char* address = TF_ServerTarget(made) + strlen("grpc://");
  server("grpc", "worker", address);
  is(TF_ALREADY_EXISTS, "an address that is taken");
  TF_ServerStart(made, status);
  ok("a start");
  pthread_t joins;
  pthread_create(&joins, NULL, join, made);
  served(TF_ServerTarget(made));
  TF_ServerStop(made, status);
  is(TF_OK, "a stop");
  pthread_join(joins, NULL);
  TF_ServerStart(made, status);
  is(TF_FAILED_PRECONDITION, "a start after the stop");
  TF_DeleteServer(made);
  made = server("grpc", "worker", "localhost:0");
  TF_ServerStart(made, status);
  ok("another start");
  TF_DeleteServer(made);
}

int main(int argc, char** argv) {
  status = TF_NewStatus();
  null_handles();
  decided_otherwise();
  threads();
  if (argc > 1) plugin(argv[1]);
  if (argc > 2) served(argv[2]);
  own_servers();
  printf("as expected\n");
  TF_DeleteStatus(status);
  return 0;
}
