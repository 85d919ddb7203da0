/* Operations that are refused. */
#include "common.h"

static void finish(TF_Graph* graph, const char* what, TF_OperationDescription* made) {
  size_t before = 0, after = 0;
  while (TF_GraphNextOperation(graph, &before)) {}
  TF_Operation* oper = TF_FinishOperation(made, status);
  code(what);
  while (TF_GraphNextOperation(graph, &after)) {}
  printf("  no operation: %d, the graph is unchanged: %d\n", oper == NULL, before == after);
}

void bad_input(void) {
  TF_Graph* graph = TF_NewGraph();
  const int64_t dims[] = {2, 3};
  TF_Operation* x = placeholder(graph, "x", TF_FLOAT, dims, 2);
  TF_Operation* number = constant_i(graph, "number", 1);

  TF_OperationDescription* made = TF_NewOperation(graph, "Relu", "x");
  TF_AddInput(made, out(x, 0));
  finish(graph, "a name that is taken", made);

  finish(graph, "an op that is not registered", TF_NewOperation(graph, "NoSuchOp", "a"));

  finish(graph, "a missing input", TF_NewOperation(graph, "Relu", "b"));

  finish(graph, "a missing attribute", TF_NewOperation(graph, "Placeholder", "c"));

  made = TF_NewOperation(graph, "Placeholder", "d");
  TF_SetAttrInt(made, "dtype", 1);
  finish(graph, "an attribute of another kind", made);

  made = TF_NewOperation(graph, "Relu", "e");
  TF_AddInput(made, out(x, 0));
  TF_SetAttrInt(made, "no_such_attribute", 1);
  finish(graph, "an attribute that the op does not have", made);

  made = TF_NewOperation(graph, "AddV2", "f");
  TF_AddInput(made, out(x, 0));
  TF_AddInput(made, out(number, 0));
  finish(graph, "inputs of two types", made);

  made = TF_NewOperation(graph, "MatMul", "g");
  TF_AddInput(made, out(x, 0));
  TF_AddInput(made, out(x, 0));
  /* TensorFlow keeps the node that it refuses here. */
  printf("no operation: %d\n", TF_FinishOperation(made, status) == NULL);
  code("shapes that do not fit");

  made = TF_NewOperation(graph, "AddN", "h");
  TF_AddInput(made, out(x, 0));
  finish(graph, "one tensor for a list", made);

  TF_Output list[] = {out(x, 0), out(x, 0)};
  made = TF_NewOperation(graph, "Relu", "i");
  TF_AddInputList(made, list, 2);
  finish(graph, "a list for one tensor", made);

  made = TF_NewOperation(graph, "Relu", "j");
  TF_AddInput(made, out(x, 0));
  TF_AddInput(made, out(x, 0));
  finish(graph, "an input too many", made);

  made = TF_NewOperation(graph, "Relu", "k");
  TF_AddInput(made, out(x, 1));
  finish(graph, "an output that there is not", made);

  made = TF_NewOperation(graph, "Relu", "m");
  TF_AddInput(made, out(number, 0));
  TF_SetAttrType(made, "T", TF_STRING);
  finish(graph, "a type that contradicts the input's", made);
  TF_DeleteGraph(graph);
}
