/* Gradients, functions, loops, and what is registered. */
#include "common.h"

void gradients(void) {
  TF_Graph* graph = TF_NewGraph();
  const int64_t dims[] = {2};
  const float values[] = {3, -2}, tens[] = {10, 100};
  TF_Operation* x = placeholder(graph, "x", TF_FLOAT, dims, 1);
  TF_Operation* other = placeholder(graph, "other", TF_FLOAT, dims, 1);
  TF_Operation* y = unary(graph, "Square", "y", x);
  TF_Operation* given = constant_f(graph, "given", dims, 1, tens);
  TF_Output ys[] = {out(y, 0)}, xs[] = {out(x, 0), out(other, 0)}, dx[] = {out(given, 0)}, dy[2];
  TF_AddGradients(graph, ys, 1, xs, 1, NULL, status, dy);
  ok("gradients");
  printf("gradients begin with their prefix: %d\n", strncmp(TF_OperationName(dy[0].oper), "gradients/", 10) == 0);
  TF_Session* in = session(graph);
  run("gradient", in, x, tensor_f(dims, 1, values), dy[0]);
  TF_AddGradientsWithPrefix(graph, "lost", ys, 1, xs, 2, NULL, status, dy);
  code("an x to which no path leads");
  TF_AddGradientsWithPrefix(graph, "again", ys, 1, xs, 1, dx, status, dy);
  ok("gradients with a prefix");
  printf("gradients begin with their prefix: %d\n", strncmp(TF_OperationName(dy[0].oper), "again/", 6) == 0);
  run("gradient of given ones", in, x, tensor_f(dims, 1, values), dy[0]);
  TF_AddGradientsWithPrefix(graph, "again", ys, 1, xs, 1, NULL, status, dy);
  code("a prefix that is taken");
  TF_DeleteSession(in, status);
  TF_DeleteGraph(graph);
}

/* Prints a FunctionDef: its signature, its nodes, its results. */
static void definition(TF_Function* function) {
  TF_Buffer* buffer = TF_NewBuffer();
  TF_FunctionToFunctionDef(function, buffer, status);
  ok("a definition");
  message signature = part(whole(buffer), 1);
  names("function", signature, 1, 0);
  names("arguments", signature, 2, 1);
  names("results", signature, 3, 1);
  names("nodes", whole(buffer), 3, 1);
  names("result names", whole(buffer), 4, 1);
  names("result tensors", whole(buffer), 4, 2);
  names("control results", whole(buffer), 6, 1);
  names("attributes", whole(buffer), 5, 1);
  TF_Function* copy = TF_FunctionImportFunctionDef(buffer->data, buffer->length, status);
  ok("a copy");
  printf("copy: %s\n", TF_FunctionName(copy));
  TF_DeleteFunction(copy);
  TF_DeleteBuffer(buffer);
}

static TF_Function* made(const char* name, int with_effect) {
  TF_Graph* body = TF_NewGraph();
  TF_Operation* x = placeholder(body, "Feed-1", TF_FLOAT, NULL, -1);
  TF_Operation* y = placeholder(body, "feed_1", TF_FLOAT, NULL, -1);
  TF_Operation* sum = binary(body, "AddV2", "Sum", x, y);
  TF_Operation* negative = unary(body, "Neg", "negative", sum);
  TF_Output inputs[] = {out(x, 0), out(y, 0)}, outputs[] = {out(sum, 0), out(negative, 0)};
  const char* given[] = {"total", "minus_total"};
  const TF_Operation* effects[] = {negative};
  const char* effect_names[] = {"effect"};
  TF_Function* function;
  if (with_effect) {
    function = TF_GraphToFunctionWithControlOutputs(body, name, 0, -1, NULL, 2, inputs, 2, outputs, given, 1, effects, effect_names,
                                                    NULL, "a description", status);
  } else {
    function = TF_GraphToFunction(body, name, 0, -1, NULL, 2, inputs, 2, outputs, NULL, NULL, NULL, status);
  }
  ok("a function");
  const TF_Operation* part_only[] = {negative};
  TF_GraphToFunction(body, "part", 0, 1, part_only, 2, inputs, 1, outputs + 1, NULL, NULL, NULL, status);
  code("a body without its inputs");
  TF_Output twice[] = {inputs[0], inputs[0]};
  TF_GraphToFunction(body, "twice", 0, -1, NULL, 2, twice, 1, outputs, NULL, NULL, NULL, status);
  code("an input twice");
  TF_Output beyond = out(x, 1);
  TF_GraphToFunction(body, "beyond", 0, -1, NULL, 1, &beyond, 1, outputs, NULL, NULL, NULL, status);
  code("an input that there is not");
  TF_GraphToFunction(body, "beyond", 0, -1, NULL, 2, inputs, 1, &beyond, NULL, NULL, NULL, status);
  code("an output that there is not");
  TF_DeleteGraph(body);
  return function;
}

/* A function that gives its arguments in another order, and one with the name of an argument for a result. */
static void names_of_arguments(void) {
  TF_Graph* body = TF_NewGraph();
  TF_Operation* a = placeholder(body, "a", TF_FLOAT, NULL, -1);
  TF_Operation* b = placeholder(body, "b", TF_FLOAT, NULL, -1);
  TF_Output inputs[] = {out(a, 0), out(b, 0)}, outputs[] = {out(b, 0), out(a, 0)};
  TF_Function* swapped = TF_GraphToFunction(body, "Swapped", 0, -1, NULL, 2, inputs, 2, outputs, NULL, NULL, NULL, status);
  ok("a function without nodes");
  definition(swapped);
  TF_DeleteFunction(swapped);
  TF_Output sum = out(binary(body, "AddV2", "sum", a, b), 0);
  const char* name = "b";
  TF_Function* named = TF_GraphToFunction(body, "SameName", 0, -1, NULL, 2, inputs, 1, &sum, &name, NULL, NULL, status);
  ok("a result with the name of an argument");
  definition(named);
  TF_DeleteFunction(named);
  TF_DeleteGraph(body);
}

void functions(void) {
  names_of_arguments();
  TF_Function* plain = made("Plain", 0);
  definition(plain);
  TF_Function* named = made("Named", 1);
  const unsigned char flag[] = {0x28, 1};
  TF_FunctionSetAttrValueProto(named, "_flag", flag, sizeof flag, status);
  ok("an attribute of a function");
  definition(named);
  TF_Buffer* value = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(named, "_flag", value, status);
  ok("an attribute of a function");
  printf("attribute: %zu bytes\n", value->length);
  TF_DeleteBuffer(value);
  value = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(named, "nothing", value, status);
  code("an attribute that there is not");
  TF_DeleteBuffer(value);

  TF_Graph* graph = TF_NewGraph();
  TF_GraphCopyFunction(graph, plain, NULL, status);
  ok("copied");
  TF_GraphCopyFunction(graph, plain, NULL, status);
  code("copied again");
  TF_GraphCopyFunction(graph, named, NULL, status);
  ok("copied");
  printf("functions: %d\n", TF_GraphNumFunctions(graph));
  TF_Function* found[2] = {NULL, NULL};
  printf("found: %d\n", TF_GraphGetFunctions(graph, found, 2, status));
  for (int i = 0; i < 2; i++) TF_DeleteFunction(found[i]);
  TF_DeleteFunction(plain);
  TF_DeleteFunction(named);
  const int64_t dims[] = {2};
  const float values[] = {3, -2}, tens[] = {10, 100};
  TF_Operation* x = placeholder(graph, "x", TF_FLOAT, dims, 1);
  TF_Operation* c = constant_f(graph, "c", dims, 1, tens);
  TF_Operation* call = binary(graph, "Plain", "call", x, c);
  printf("call: %d outputs\n", TF_OperationNumOutputs(call));
  TF_Session* in = session(graph);
  run("call", in, x, tensor_f(dims, 1, values), out(call, 1));
  TF_DeleteSession(in, status);
  TF_DeleteGraph(graph);
  TF_FunctionImportFunctionDef("\xff", 1, status);
  code("bytes that are no function");
}

/* Counts to a limit by twos, and multiplies another value by three each time. */
void loops(void) {
  TF_Graph* graph = TF_NewGraph();
  TF_Operation* limit = placeholder(graph, "start", TF_INT32, NULL, 0);
  TF_Operation* one = constant_i(graph, "one", 1);
  TF_Output first[] = {out(limit, 0), out(one, 0)}, last[2];
  TF_WhileParams params = TF_NewWhile(graph, first, 2, status);
  ok("a loop");
  printf("loop of %d values\n", params.ninputs);
  TF_Operation* ten = constant_i(params.cond_graph, "ten", 10);
  params.cond_output = out(binary(params.cond_graph, "Less", "less", params.cond_inputs[0].oper, ten), 0);
  TF_Operation* two = constant_i(params.body_graph, "two", 2);
  TF_Operation* three = constant_i(params.body_graph, "three", 3);
  params.body_outputs[0] = out(binary(params.body_graph, "AddV2", "next", params.body_inputs[0].oper, two), 0);
  params.body_outputs[1] = out(binary(params.body_graph, "Mul", "product", params.body_inputs[1].oper, three), 0);
  params.name = "count";
  TF_FinishWhile(&params, status, last);
  ok("the end of a loop");
  printf("types: %d %d\n", (int)TF_OperationOutputType(last[0]), (int)TF_OperationOutputType(last[1]));
  TF_Session* in = session(graph);
  run("count", in, limit, scalar_i(3), last[0]);
  run("product", in, limit, scalar_i(3), last[1]);
  run("no iteration", in, limit, scalar_i(30), last[1]);
  TF_DeleteSession(in, status);
  TF_WhileParams abandoned = TF_NewWhile(graph, first, 1, status);
  ok("another loop");
  abandoned.name = "abandoned";
  TF_AbortWhile(&abandoned);
  TF_WhileParams unfinished = TF_NewWhile(graph, first, 1, status);
  ok("another loop");
  unfinished.name = "unfinished";
  TF_FinishWhile(&unfinished, status, last);
  code("a loop without results");
  TF_NewWhile(graph, first, 0, status);
  code("a loop without values");
  TF_DeleteGraph(graph);
}

/* Whether a list of ops or kernels has one of this name. */
static int has(const TF_Buffer* buffer, const char* name) {
  message from = whole(buffer), bytes;
  int field;
  uint64_t value;
  while (next(&from, &field, &bytes, &value)) {
    message found = part(bytes, 1);
    if (found.length == strlen(name) && !memcmp(found.data, name, found.length)) return 1;
  }
  return 0;
}

void registered(void) {
  TF_Buffer* list = TF_GetAllOpList();
  printf("ops: %d %d\n", has(list, "MatMul"), has(list, "NoSuchOp"));
  TF_DeleteBuffer(list);
  list = TF_GetAllRegisteredKernels(status);
  ok("kernels");
  printf("kernels: %d\n", has(list, "Relu"));
  TF_DeleteBuffer(list);
  list = TF_GetRegisteredKernelsForOp("Relu", status);
  ok("kernels");
  printf("kernels of Relu: %d %d\n", has(list, "Relu"), has(list, "MatMul"));
  TF_DeleteBuffer(list);
  list = TF_GetRegisteredKernelsForOp("NoSuchOp", status);
  ok("kernels");
  printf("kernels of no op: %zu bytes\n", list->length);
  TF_DeleteBuffer(list);
  printf("no library: %d\n", TF_LoadLibrary("/no/such/library.so", status) == NULL);
  code("no library");
}
