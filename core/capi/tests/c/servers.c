#include "common.h"

static void refused(void) {
  printf("no server: %d\n", TF_NewServer("\xff", 1, status) == NULL);
  code("a server of a malformed message");
  printf("no server: %d\n", TF_NewServer("", 0, status) == NULL);
  code("a server of an empty message");
  printf("no server: %d\n", server("no such", "worker", "localhost:0") == NULL);
  code("a server of another protocol");
}

static void never_started(void) {
  TF_Server* made = server("grpc", "worker", "localhost:0");
  ok("a server");
  printf("target: %.7s\n", TF_ServerTarget(made));
  TF_ServerJoin(made, status);
  code("a join before the start");
  TF_ServerStart(made, status);
  code("a start after that");
  TF_DeleteServer(made);
  made = server("grpc", "worker", "localhost:0");
  ok("a server");
  TF_ServerStop(made, status);
  code("a stop before the start");
  TF_ServerStop(made, status);
  code("a stop again");
  TF_ServerStart(made, status);
  code("a start after that");
  TF_ServerJoin(made, status);
  code("a join after the stop");
  TF_DeleteServer(made);
}

static void started(void) {
  /* TensorFlow's library can neither stop nor delete a server that serves. */
  static TF_Server* made;
  made = server("grpc", "worker", "localhost:0");
  ok("a server");
  TF_ServerStart(made, status);
  code("a start");
  TF_ServerStart(made, status);
  code("a start again");
  TF_Graph* graph = TF_NewGraph();
  TF_Operation* x = placeholder(graph, "x", TF_INT32, NULL, 0);
  TF_Operation* y = unary(graph, "Neg", "y", x);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, TF_ServerTarget(made));
  TF_Session* in = TF_NewSession(graph, options, status);
  ok("a session on the server");
  TF_DeleteSessionOptions(options);
  run("on the server", in, x, scalar_i(7), out(y, 0));
  TF_DeviceList* list = TF_SessionListDevices(in, status);
  ok("devices of the server");
  for (int i = 0; i < TF_DeviceListCount(list); i++)
    if (!strcmp(TF_DeviceListType(list, i, status), "CPU")) printf("device: %s\n", TF_DeviceListName(list, i, status));
  TF_DeleteDeviceList(list);
  TF_DeleteSession(in, status);
  ok("the session is closed");
  TF_DeleteGraph(graph);
}

void servers(void) {
  refused();
  never_started();
  started();
}
