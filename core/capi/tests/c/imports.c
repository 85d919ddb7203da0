/* Imports of graphs. */
#include "common.h"

static TF_Buffer* exported(void) {
  TF_Graph* graph = TF_NewGraph();
  const int64_t dims[] = {2};
  TF_Operation* x = placeholder(graph, "x", TF_FLOAT, dims, 1);
  TF_Operation* y = unary(graph, "Neg", "y", x);
  TF_OperationDescription* made = TF_NewOperation(graph, "Identity", "z");
  TF_AddInput(made, out(y, 0));
  TF_AddControlInput(made, x);
  TF_ColocateWith(made, y);
  TF_FinishOperation(made, status);
  ok("z");
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GraphToGraphDef(graph, buffer, status);
  ok("export");
  TF_DeleteGraph(graph);
  return buffer;
}

static void inputs(TF_Graph* graph, const char* name) {
  TF_Operation* oper = TF_GraphOperationByName(graph, name);
  if (!oper) {
    printf("%s is not there\n", name);
    return;
  }
  TF_Output sources[8];
  TF_Operation* before[8];
  int count = TF_OperationNumInputs(oper);
  TF_OperationAllInputs(oper, sources, 8);
  printf("%s on '%s':", name, TF_OperationDevice(oper));
  for (int i = 0; i < count; i++) printf(" %s:%d", TF_OperationName(sources[i].oper), sources[i].index);
  count = TF_OperationGetControlInputs(oper, before, 8);
  for (int i = 0; i < count; i++) printf(" ^%s", TF_OperationName(before[i]));
  printf("\n");
}

static void returned(TF_Graph* graph, const TF_Buffer* def, const char* what, TF_ImportGraphDefOptions* options) {
  TF_ImportGraphDefResults* results = TF_GraphImportGraphDefWithResults(graph, def, options, status);
  code(what);
  if (!results) return;
  int count;
  TF_Output* outputs;
  TF_ImportGraphDefResultsReturnOutputs(results, &count, &outputs);
  for (int i = 0; i < count; i++) printf("  output %s:%d\n", TF_OperationName(outputs[i].oper), outputs[i].index);
  TF_Operation** operations;
  TF_ImportGraphDefResultsReturnOperations(results, &count, &operations);
  for (int i = 0; i < count; i++) printf("  operation %s\n", TF_OperationName(operations[i]));
  const char** missing;
  int* indexes;
  TF_ImportGraphDefResultsMissingUnusedInputMappings(results, &count, &missing, &indexes);
  for (int i = 0; i < count; i++) printf("  missing %s:%d\n", missing[i], indexes[i]);
  TF_DeleteImportGraphDefResults(results);
}

static void mapped(TF_Graph* graph, const TF_Buffer* def) {
  TF_Operation* x = TF_GraphOperationByName(graph, "x");
  TF_Operation* first = placeholder(graph, "first", TF_INT32, NULL, -1);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(options, "mapped");
  TF_ImportGraphDefOptionsSetDefaultDevice(options, "/device:CPU:0");
  TF_ImportGraphDefOptionsAddInputMapping(options, "x", 0, out(x, 0));
  TF_ImportGraphDefOptionsAddInputMapping(options, "nobody", 3, out(x, 0));
  TF_ImportGraphDefOptionsRemapControlDependency(options, "x", first);
  TF_ImportGraphDefOptionsAddControlDependency(options, first);
  TF_ImportGraphDefOptionsAddReturnOutput(options, "z", 0);
  TF_ImportGraphDefOptionsAddReturnOutput(options, "x", 0);
  TF_ImportGraphDefOptionsAddReturnOperation(options, "y");
  printf("returns %d %d\n", TF_ImportGraphDefOptionsNumReturnOutputs(options), TF_ImportGraphDefOptionsNumReturnOperations(options));
  returned(graph, def, "mapped import", options);
  TF_DeleteImportGraphDefOptions(options);
  inputs(graph, "mapped/x");
  inputs(graph, "mapped/y");
  inputs(graph, "mapped/z");
}

static void refused(TF_Graph* graph, const TF_Buffer* def) {
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, def, options, status);
  code("the same names again");
  TF_ImportGraphDefOptionsAddReturnOutput(options, "nobody", 0);
  TF_ImportGraphDefOptionsSetPrefix(options, "other");
  returned(graph, def, "a return of a node that there is not", options);
  TF_DeleteImportGraphDefOptions(options);
  options = TF_NewImportGraphDefOptions();
  TF_Buffer* bad = TF_NewBufferFromString("\xff\xff", 2);
  TF_GraphImportGraphDef(graph, bad, options, status);
  code("bytes that are no graph");
  TF_DeleteBuffer(bad);
  /* A node 'a' of op NoOp that waits for 'b', and the other way round. */
  bad = TF_NewBufferFromString("\x0a\x0d\x0a\x01" "a\x12\x04NoOp\x1a\x02^b\x0a\x0d\x0a\x01" "b\x12\x04NoOp\x1a\x02^a", 30);
  TF_GraphImportGraphDef(graph, bad, options, status);
  code("a cycle");
  TF_DeleteBuffer(bad);
  bad = TF_NewBufferFromString("\x0a\x0d\x0a\x01" "a\x12\x04NoOp\x1a\x02^q", 15);
  TF_GraphImportGraphDef(graph, bad, options, status);
  code("an input of nobody");
  TF_DeleteBuffer(bad);
  bad = TF_NewBufferFromString("\x0a\x0b\x0a\x01" "a\x12\x06NoSuch", 13);
  TF_GraphImportGraphDef(graph, bad, options, status);
  code("an op that is not registered");
  TF_DeleteBuffer(bad);
  printf("unchanged: %d\n", TF_GraphOperationByName(graph, "a") == NULL);
  TF_DeleteImportGraphDefOptions(options);
}

void imports(void) {
  TF_Buffer* def = exported();
  TF_Graph* graph = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, def, options, status);
  code("import");
  inputs(graph, "z");
  TF_ImportGraphDefOptionsSetPrefix(options, "again");
  TF_ImportGraphDefOptionsAddReturnOutput(options, "y", 0);
  TF_Output output;
  TF_GraphImportGraphDefWithReturnOutputs(graph, def, options, &output, 1, status);
  code("import with a prefix");
  printf("output %s:%d\n", TF_OperationName(output.oper), output.index);
  inputs(graph, "again/z");
  TF_ImportGraphDefOptionsSetUniquifyPrefix(options, 1);
  returned(graph, def, "import with a prefix that is taken", options);
  TF_DeleteImportGraphDefOptions(options);
  options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetUniquifyNames(options, 1);
  TF_ImportGraphDefOptionsAddReturnOperation(options, "z");
  returned(graph, def, "import with names that are taken", options);
  TF_DeleteImportGraphDefOptions(options);
  inputs(graph, "z_1");
  mapped(graph, def);
  refused(graph, def);
  TF_DeleteBuffer(def);
  TF_DeleteGraph(graph);
}
