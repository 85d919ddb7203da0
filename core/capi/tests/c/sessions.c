/* Sessions and steps. */
#include "common.h"

#include <inttypes.h>

static void strings_through(void) {
  TF_Graph* graph = TF_NewGraph();
  TF_Operation* x = placeholder(graph, "x", TF_STRING, NULL, -1);
  TF_OperationDescription* made = TF_NewOperation(graph, "Pack", "packed");
  TF_Output both[] = {out(x, 0), out(x, 0)};
  TF_AddInputList(made, both, 2);
  TF_Operation* packed = TF_FinishOperation(made, status);
  ok("packed");
  TF_Session* in = session(graph);
  const int64_t dims[] = {2};
  TF_Tensor* texts = TF_AllocateTensor(TF_STRING, dims, 1, 2 * sizeof(TF_TString));
  TF_TString* first = TF_TensorData(texts);
  TF_StringInit(&first[0]);
  TF_StringInit(&first[1]);
  TF_StringCopy(&first[0], "short", 5);
  TF_StringCopy(&first[1], "a text that is longer than what is stored in place", 50);
  TF_Output feed = out(x, 0), fetch = out(packed, 0);
  TF_Tensor* fetched = NULL;
  TF_SessionRun(in, NULL, &feed, &texts, 1, &fetch, &fetched, 1, NULL, 0, NULL, status);
  ok("a step with strings");
  show("packed", fetched);
  TF_StringDealloc(&first[0]);
  TF_StringDealloc(&first[1]);
  TF_DeleteTensor(texts);
  TF_DeleteSession(in, status);
  TF_DeleteGraph(graph);
}

static void growing(void) {
  TF_Graph* graph = TF_NewGraph();
  const int64_t dims[] = {2};
  const float values[] = {1, -2};
  TF_Operation* x = placeholder(graph, "x", TF_FLOAT, dims, 1);
  TF_Session* in = session(graph);
  TF_Operation* y = unary(graph, "Neg", "y", x);
  run("first step", in, x, tensor_f(dims, 1, values), out(y, 0));
  TF_Operation* z = unary(graph, "Abs", "z", y);
  run("step of a node that was added", in, x, tensor_f(dims, 1, values), out(z, 0));
  run("first step again", in, x, tensor_f(dims, 1, values), out(y, 0));
  const int64_t others[] = {3, 1};
  const float more[] = {1, -2, 3};
  run("feed of another shape", in, x, tensor_f(others, 1, more), out(y, 0));
  run("feed of another rank", in, x, tensor_f(others, 2, more), out(y, 0));
  run("first step after them", in, x, tensor_f(dims, 1, values), out(y, 0));
  run("step without its feed", in, NULL, NULL, out(y, 0));
  run("feed of another type", in, x, scalar_i(1), out(y, 0));
  run("output that there is not", in, x, tensor_f(dims, 1, values), out(y, 1));
  TF_CloseSession(in, status);
  code("close");
  run("step of a closed session", in, x, tensor_f(dims, 1, values), out(y, 0));
  TF_DeleteSession(in, status);
  code("delete");
  TF_DeleteGraph(graph);
}

static void variables(void) {
  TF_Graph* graph = TF_NewGraph();
  TF_OperationDescription* made = TF_NewOperation(graph, "VarHandleOp", "v");
  TF_SetAttrType(made, "dtype", TF_INT32);
  TF_SetAttrShape(made, "shape", NULL, 0);
  TF_Operation* v = TF_FinishOperation(made, status);
  ok("v");
  TF_Operation* five = constant_i(graph, "five", 5);
  made = TF_NewOperation(graph, "AssignVariableOp", "assign");
  TF_AddInput(made, out(v, 0));
  TF_AddInput(made, out(five, 0));
  TF_Operation* assign = TF_FinishOperation(made, status);
  ok("assign");
  made = TF_NewOperation(graph, "ReadVariableOp", "read");
  TF_AddInput(made, out(v, 0));
  TF_SetAttrType(made, "dtype", TF_INT32);
  TF_Operation* read = TF_FinishOperation(made, status);
  ok("read");
  TF_Session* in = session(graph);
  TF_Session* other = session(graph);
  run("variable before it is assigned", in, NULL, NULL, out(read, 0));
  const TF_Operation* targets[] = {assign};
  TF_SessionRun(in, NULL, NULL, NULL, 0, NULL, NULL, 0, targets, 1, NULL, status);
  code("target");
  run("variable", in, NULL, NULL, out(read, 0));
  run("variable of another session", other, NULL, NULL, out(read, 0));
  TF_DeleteGraph(graph);
  run("variable after the graph is deleted", in, NULL, NULL, out(read, 0));
  TF_DeleteSession(in, status);
  TF_DeleteSession(other, status);
  code("delete");
}

static void options_and_metadata(void) {
  TF_Graph* graph = TF_NewGraph();
  const int64_t dims[] = {2};
  const float values[] = {1, -2};
  TF_Operation* x = placeholder(graph, "x", TF_FLOAT, dims, 1);
  TF_Operation* y = unary(graph, "Neg", "y", x);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, "");
  TF_SetConfig(options, "\x38\x01", 2, status);
  code("config");
  TF_SetConfig(options, "\xff", 1, status);
  code("malformed config");
  TF_Session* in = TF_NewSession(graph, options, status);
  code("session with options");
  TF_SetTarget(options, "nowhere://");
  printf("session nowhere: %d\n", TF_NewSession(graph, options, status) == NULL);
  code("session nowhere");
  TF_DeleteSessionOptions(options);
  /* Traces fully, within a minute. */
  TF_Buffer* step = TF_NewBufferFromString("\x08\x03\x10\xe0\xd4\x03", 6);
  TF_Buffer* metadata = TF_NewBuffer();
  TF_Output feed = out(x, 0), fetch = out(y, 0);
  TF_Tensor *value = tensor_f(dims, 1, values), *fetched = NULL;
  TF_SessionRun(in, step, &feed, &value, 1, &fetch, &fetched, 1, NULL, 0, metadata, status);
  ok("traced step");
  show("traced step", fetched);
  printf("times: %d\n", part(part(whole(metadata), 1), 1).length > 0);
  TF_SessionRun(in, step, &feed, &value, 1, &fetch, &fetched, 1, NULL, 0, metadata, status);
  code("metadata into a full buffer");
  TF_DeleteBuffer(metadata);
  TF_DeleteBuffer(step);
  step = TF_NewBufferFromString("\xff", 1);
  TF_SessionRun(in, step, &feed, &value, 1, &fetch, &fetched, 1, NULL, 0, NULL, status);
  code("malformed options of a step");
  TF_DeleteBuffer(step);
  TF_DeleteTensor(value);
  TF_DeleteSession(in, status);
  TF_DeleteGraph(graph);
}

static void devices(void) {
  TF_Graph* graph = TF_NewGraph();
  TF_Session* in = session(graph);
  TF_DeviceList* list = TF_SessionListDevices(in, status);
  ok("devices");
  for (int i = 0; i < TF_DeviceListCount(list); i++) {
    const char* type = TF_DeviceListType(list, i, status);
    if (strcmp(type, "CPU")) continue;
    printf("device: %s %s, memory %d, incarnation %d\n", TF_DeviceListName(list, i, status), type,
           TF_DeviceListMemoryBytes(list, i, status) >= 0, TF_DeviceListIncarnation(list, i, status) != 0);
  }
  TF_DeviceListName(list, 100, status);
  code("device that there is not");
  TF_DeviceListType(list, -1, status);
  code("device that there is not");
  TF_DeleteDeviceList(list);
  TF_DeleteSession(in, status);
  TF_DeleteGraph(graph);
}

void sessions(void) {
  growing();
  strings_through();
  variables();
  options_and_metadata();
  devices();
}

void partial_runs(void) {
  TF_Graph* graph = TF_NewGraph();
  TF_Operation* a = placeholder(graph, "a", TF_INT32, NULL, 0);
  TF_Operation* b = placeholder(graph, "b", TF_INT32, NULL, 0);
  TF_Operation* two = constant_i(graph, "two", 2);
  TF_Operation* first = binary(graph, "AddV2", "first", a, two);
  TF_Operation* second = binary(graph, "AddV2", "second", first, b);
  TF_Session* in = session(graph);
  TF_Output feeds[] = {out(a, 0), out(b, 0)}, fetches[] = {out(first, 0), out(second, 0)};
  const char* handle = NULL;
  TF_SessionPRunSetup(in, feeds, 2, fetches, 2, NULL, 0, &handle, status);
  ok("set-up");
  TF_Tensor *value = scalar_i(1), *fetched = NULL;
  TF_SessionPRun(in, handle, feeds, &value, 1, fetches, &fetched, 1, NULL, 0, status);
  ok("first part");
  show("first part", fetched);
  TF_SessionPRun(in, handle, feeds, &value, 1, fetches, &fetched, 1, NULL, 0, status);
  code("the same feed again");
  TF_SessionPRun(in, handle, feeds + 1, &value, 1, fetches + 1, &fetched, 1, NULL, 0, status);
  ok("second part");
  show("second part", fetched);
  TF_SessionPRun(in, "no such handle", feeds, &value, 1, fetches, &fetched, 1, NULL, 0, status);
  code("a handle of nobody");
  TF_DeletePRunHandle(handle);
  TF_DeleteTensor(value);
  TF_DeleteSession(in, status);
  TF_DeleteGraph(graph);
}
