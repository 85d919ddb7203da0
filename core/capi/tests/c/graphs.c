/* Graphs: operations, who reads whom, shapes, messages. */
#include "common.h"

#include <inttypes.h>

static void shape(TF_Graph* graph, const char* what, TF_Output of) {
  int rank = TF_GraphGetTensorNumDims(graph, of, status);
  ok(what);
  int64_t dims[8];
  printf("%s: rank %d [", what, rank);
  if (rank >= 0) {
    TF_GraphGetTensorShape(graph, of, dims, rank, status);
    ok(what);
  }
  for (int i = 0; i < rank; i++) printf(" %" PRId64, dims[i]);
  printf(" ]\n");
}

static void describe(TF_Operation* oper) {
  printf("%s: op %s, device '%s', %d inputs, %d outputs, %d before, %d after\n", TF_OperationName(oper), TF_OperationOpType(oper),
         TF_OperationDevice(oper), TF_OperationNumInputs(oper), TF_OperationNumOutputs(oper),
         TF_OperationNumControlInputs(oper), TF_OperationNumControlOutputs(oper));
  TF_Output sources[8];
  TF_OperationAllInputs(oper, sources, 8);
  for (int i = 0; i < TF_OperationNumInputs(oper); i++) {
    TF_Input input = {oper, i};
    TF_Output source = TF_OperationInput(input);
    printf("  input %d: %s:%d, type %d, same %d\n", i, TF_OperationName(source.oper), source.index,
           (int)TF_OperationInputType(input), sources[i].oper == source.oper && sources[i].index == source.index);
  }
  for (int i = 0; i < TF_OperationNumOutputs(oper); i++) {
    TF_Input readers[8];
    int count = TF_OperationOutputConsumers(out(oper, i), readers, 8);
    printf("  output %d: type %d, %d readers:", i, (int)TF_OperationOutputType(out(oper, i)),
           TF_OperationOutputNumConsumers(out(oper, i)));
    for (int j = 0; j < count; j++) printf(" %s:%d", TF_OperationName(readers[j].oper), readers[j].index);
    printf("\n");
  }
  TF_Operation* others[8];
  int count = TF_OperationGetControlInputs(oper, others, 8);
  for (int i = 0; i < count; i++) printf("  after %s\n", TF_OperationName(others[i]));
  count = TF_OperationGetControlOutputs(oper, others, 8);
  for (int i = 0; i < count; i++) printf("  before %s\n", TF_OperationName(others[i]));
}

static void node(TF_Operation* oper) {
  TF_Buffer* buffer = TF_NewBuffer();
  TF_OperationToNodeDef(oper, buffer, status);
  ok("node");
  names("node name", whole(buffer), 1, 0);
  names("node op", whole(buffer), 2, 0);
  names("node inputs", whole(buffer), 3, 0);
  names("node device", whole(buffer), 4, 0);
  names("node attributes", whole(buffer), 5, 1);
  TF_OperationToNodeDef(oper, buffer, status);
  code("node into a full buffer");
  TF_DeleteBuffer(buffer);
}

static void messages(TF_Graph* graph) {
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GraphToGraphDef(graph, buffer, status);
  ok("graph message");
  names("graph nodes", whole(buffer), 1, 1);
  TF_DeleteBuffer(buffer);
  buffer = TF_NewBuffer();
  TF_GraphVersions(graph, buffer, status);
  ok("versions");
  int field;
  message bytes, from = whole(buffer);
  uint64_t value;
  while (next(&from, &field, &bytes, &value)) printf("version field %d: %" PRIu64 "\n", field, value);
  TF_DeleteBuffer(buffer);
  buffer = TF_NewBuffer();
  TF_GraphGetOpDef(graph, "AddN", buffer, status);
  ok("op");
  names("op name", whole(buffer), 1, 0);
  names("op inputs", whole(buffer), 2, 1);
  names("op attributes", whole(buffer), 4, 1);
  TF_DeleteBuffer(buffer);
  buffer = TF_NewBuffer();
  TF_GraphGetOpDef(graph, "NoSuchOp", buffer, status);
  code("op that is not registered");
  TF_DeleteBuffer(buffer);
}

static TF_Operation* sum_and_split(TF_Graph* graph, TF_Operation* x, TF_Operation* w) {
  TF_Output addends[] = {out(x, 0), out(w, 0), out(x, 0)};
  TF_OperationDescription* made = TF_NewOperation(graph, "AddN", "sum");
  TF_AddInputList(made, addends, 3);
  TF_AddControlInput(made, w);
  TF_SetDevice(made, "/device:CPU:0");
  TF_Operation* sum = TF_FinishOperation(made, status);
  ok("sum");
  TF_Operation* axis = constant_i(graph, "axis", 0);
  made = TF_NewOperation(graph, "Split", "parts");
  TF_AddInput(made, out(axis, 0));
  TF_AddInput(made, out(sum, 0));
  TF_SetAttrInt(made, "num_split", 2);
  TF_ColocateWith(made, sum);
  TF_Operation* parts = TF_FinishOperation(made, status);
  ok("parts");
  return parts;
}

static void constants(void) {
  TF_Graph* graph = TF_NewGraph();
  TF_Operation* five = constant_i(graph, "five", 5);
  TF_Operation* x = placeholder(graph, "x", TF_INT32, NULL, 0);
  TF_Operation* square = binary(graph, "Mul", "square", five, five);
  TF_Operation* mixed = binary(graph, "Mul", "mixed", square, x);
  TF_Tensor* value = NULL;
  printf("constant: %d\n", TF_TryEvaluateConstant(graph, out(square, 0), &value, status));
  ok("a constant");
  show("value of a constant", value);
  value = NULL;
  printf("value that depends on a feed: %d\n", TF_TryEvaluateConstant(graph, out(mixed, 0), &value, status));
  code("value that depends on a feed");
  printf("no value: %d\n", value == NULL);
  TF_DeleteGraph(graph);
}

/* Whom an operation is colocated with, as an attribute and by function; `list` of bytes is the attribute as a message. */
static void colocated(TF_Graph* graph, const char* name, int first, const char* list, size_t length, int last) {
  TF_OperationDescription* made = TF_NewOperation(graph, "NoOp", name);
  TF_Operation* a = TF_GraphOperationByName(graph, "a");
  if (first) TF_ColocateWith(made, a);
  TF_SetAttrValueProto(made, "_class", list, length, status);
  ok("a list");
  if (last) TF_ColocateWith(made, a);
  TF_Operation* oper = TF_FinishOperation(made, status);
  ok(name);
  TF_AttrMetadata found = TF_OperationGetAttrMetadata(oper, "_class", status);
  if (TF_GetCode(status) == TF_OK) printf("%s: %d of %d bytes\n", name, (int)found.list_size, (int)found.total_size);
  code(name);
}

static void colocations(void) {
  static const char other[] = "\x0a\x09\x12\x07loc:@bc", none[] = "\x0a\x00";
  TF_Graph* graph = TF_NewGraph();
  TF_FinishOperation(TF_NewOperation(graph, "NoOp", "a"), status);
  ok("a");
  TF_FinishOperation(TF_NewOperation(graph, "NoOp", "bc"), status);
  ok("bc");
  colocated(graph, "list_alone", 0, other, sizeof other - 1, 0);
  colocated(graph, "list_in_the_place_of_another", 1, other, sizeof other - 1, 0);
  colocated(graph, "list_with_another", 0, other, sizeof other - 1, 1);
  colocated(graph, "empty_list", 1, none, sizeof none - 1, 0);
  colocated(graph, "no_list", 1, none, 0, 0);
  TF_DeleteGraph(graph);
}

void graphs(void) {
  TF_Graph* graph = TF_NewGraph();
  const int64_t dims[] = {4, -1};
  const int64_t two[] = {4, 2};
  const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
  TF_Operation* x = placeholder(graph, "x", TF_FLOAT, dims, 2);
  TF_Operation* w = constant_f(graph, "w", two, 2, values);
  TF_Operation* parts = sum_and_split(graph, x, w);
  describe(x);
  describe(w);
  TF_Operation* sum = TF_GraphOperationByName(graph, "sum");
  describe(sum);
  describe(parts);
  printf("lists: %d", TF_OperationInputListLength(sum, "inputs", status));
  ok("list");
  printf(" %d\n", TF_OperationOutputListLength(parts, "output", status));
  ok("list");
  printf("no length: %d", TF_OperationInputListLength(sum, "no such input", status));
  printf(" %d\n", TF_OperationOutputListLength(sum, "no such output", status));
  TF_OperationInputListLength(sum, "no such input", status);
  code("list of an input that there is not");
  printf("by name: %d %d\n", TF_GraphOperationByName(graph, "x") == x, TF_GraphOperationByName(graph, "nobody") == NULL);
  size_t position = 0;
  TF_Operation* oper;
  while ((oper = TF_GraphNextOperation(graph, &position))) printf("operation: %s\n", TF_OperationName(oper));
  shape(graph, "shape of x", out(x, 0));
  shape(graph, "shape of the sum", out(sum, 0));
  shape(graph, "shape of a part", out(parts, 1));
  const int64_t refined[] = {-1, 2}, wrong[] = {5, 2};
  TF_GraphSetTensorShape(graph, out(x, 0), refined, 2, status);
  ok("refine");
  shape(graph, "refined shape of x", out(x, 0));
  TF_GraphSetTensorShape(graph, out(x, 0), wrong, 2, status);
  code("a shape that contradicts");
  int64_t one[1];
  TF_GraphGetTensorShape(graph, out(x, 0), one, 1, status);
  code("room for another rank");
  TF_Operation* any = placeholder(graph, "any", TF_FLOAT, NULL, -1);
  shape(graph, "shape of any", out(any, 0));
  node(sum);
  messages(graph);
  TF_DeleteGraph(graph);
  constants();
  colocations();
}
