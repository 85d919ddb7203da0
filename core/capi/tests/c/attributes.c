/* Attributes of operations. */
#include "common.h"

#include <inttypes.h>

static void metadata(TF_Operation* oper, const char* name) {
  TF_AttrMetadata found = TF_OperationGetAttrMetadata(oper, name, status);
  if (TF_GetCode(status) != TF_OK) {
    code(name);
    return;
  }
  printf("attribute %s: list %d of %" PRId64 ", type %d, total %" PRId64 "\n", name, found.is_list, found.list_size, (int)found.type,
         found.total_size);
}

static int compare(const void* a, const void* b) {
  return strcmp(a, b);
}

static void attribute_names(TF_Operation* oper) {
  char found[16][64];
  int count = TF_OperationGetNumAttrs(oper);
  for (int i = 0; i < count; i++) {
    memset(found[i], 0, sizeof found[i]);
    TF_OperationGetAttrName(oper, i, found[i], status);
    ok("the name of an attribute");
    if ((int)strlen(found[i]) != TF_OperationGetAttrNameLength(oper, i)) printf("another length\n");
  }
  qsort(found, (size_t)count, sizeof *found, compare);
  for (int i = 0; i < count; i++) printf("attribute name: %s\n", found[i]);
  char name[64];
  TF_OperationGetAttrName(oper, count, name, status);
  code("the name of an attribute that there is not");
}

static TF_Operation* convolution(TF_Graph* graph) {
  TF_Operation* x = placeholder(graph, "image", TF_FLOAT, NULL, -1);
  TF_Operation* w = placeholder(graph, "filter", TF_FLOAT, NULL, -1);
  TF_OperationDescription* made = TF_NewOperation(graph, "Conv2D", "conv");
  TF_AddInput(made, out(x, 0));
  TF_AddInput(made, out(w, 0));
  const int64_t strides[] = {1, 2, 2, 1};
  TF_SetAttrIntList(made, "strides", strides, 4);
  TF_SetAttrString(made, "padding", "SAME", 4);
  TF_SetAttrBool(made, "use_cudnn_on_gpu", 0);
  TF_Operation* conv = TF_FinishOperation(made, status);
  ok("conv");
  return conv;
}

static void of_convolution(TF_Graph* graph) {
  TF_Operation* conv = convolution(graph);
  const char* known[] = {"T", "strides", "padding", "use_cudnn_on_gpu", "data_format", "explicit_paddings", "nothing"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) metadata(conv, known[i]);
  TF_DataType type;
  TF_OperationGetAttrType(conv, "T", &type, status);
  ok("T");
  char text[16] = "................";
  TF_OperationGetAttrString(conv, "data_format", text, 2, status);
  ok("data_format");
  unsigned char flag = 9;
  TF_OperationGetAttrBool(conv, "use_cudnn_on_gpu", &flag, status);
  ok("use_cudnn_on_gpu");
  int64_t strides[4];
  TF_OperationGetAttrIntList(conv, "strides", strides, 3, status);
  ok("strides");
  printf("values: %d %.4s %d %" PRId64 " %" PRId64 "\n", (int)type, text, flag, strides[0], strides[2]);
  TF_OperationGetAttrType(conv, "padding", &type, status);
  code("a text as a type");
  attribute_names(conv);
  TF_Buffer* buffer = TF_NewBuffer();
  TF_OperationGetAttrValueProto(conv, "padding", buffer, status);
  ok("value");
  names("value as a message", whole(buffer), 2, 0);
  TF_DeleteBuffer(buffer);
}

static void of_shapes(TF_Graph* graph) {
  const int64_t dims[] = {2, -1, 3};
  TF_Operation* x = placeholder(graph, "shaped", TF_FLOAT, dims, 3);
  metadata(x, "shape");
  int64_t found[3] = {0, 0, 0};
  TF_OperationGetAttrShape(x, "shape", found, 3, status);
  ok("shape");
  printf("shape: %" PRId64 " %" PRId64 " %" PRId64 "\n", found[0], found[1], found[2]);
  TF_Buffer* buffer = TF_NewBuffer();
  TF_OperationGetAttrTensorShapeProto(x, "shape", buffer, status);
  ok("shape");
  printf("shape as a message: %zu bytes\n", buffer->length);
  TF_OperationDescription* made = TF_NewOperation(graph, "Placeholder", "by_message");
  TF_SetAttrType(made, "dtype", TF_INT32);
  TF_SetAttrTensorShapeProto(made, "shape", buffer->data, buffer->length, status);
  ok("shape by a message");
  TF_DeleteBuffer(buffer);
  TF_SetAttrTensorShapeProto(made, "shape", "\xff", 1, status);
  code("a malformed shape");
  TF_Operation* y = TF_FinishOperation(made, status);
  ok("a placeholder by a message");
  metadata(y, "shape");
}

static void of_constants(TF_Graph* graph) {
  TF_Operation* c = constant_i(graph, "number", 42);
  metadata(c, "value");
  TF_Tensor* value = NULL;
  TF_OperationGetAttrTensor(c, "value", &value, status);
  ok("value");
  show("value", value);
  TF_OperationDescription* made = TF_NewOperation(graph, "Multinomial", "numbers");
  TF_Operation* logits = placeholder(graph, "logits", TF_FLOAT, NULL, -1);
  TF_AddInput(made, out(logits, 0));
  TF_AddInput(made, out(c, 0));
  TF_SetAttrInt(made, "seed", 5);
  const unsigned char message[] = {0x18, 7};
  TF_SetAttrValueProto(made, "seed2", message, sizeof message, status);
  ok("seed2 by a message");
  TF_SetAttrValueProto(made, "seed2", "\xff", 1, status);
  code("a malformed value");
  TF_Operation* numbers = TF_FinishOperation(made, status);
  ok("numbers");
  int64_t seeds[2];
  TF_OperationGetAttrInt(numbers, "seed", &seeds[0], status);
  TF_OperationGetAttrInt(numbers, "seed2", &seeds[1], status);
  printf("seeds: %" PRId64 " %" PRId64 "\n", seeds[0], seeds[1]);
}

void attributes(void) {
  TF_Graph* graph = TF_NewGraph();
  of_convolution(graph);
  of_shapes(graph);
  of_constants(graph);
  TF_OperationDescription* made = TF_NewOperation(graph, "LeakyRelu", "leaky");
  TF_AddInput(made, out(TF_GraphOperationByName(graph, "image"), 0));
  TF_SetAttrFloat(made, "alpha", 0.25f);
  TF_Operation* leaky = TF_FinishOperation(made, status);
  ok("leaky");
  float alpha = 0;
  TF_OperationGetAttrFloat(leaky, "alpha", &alpha, status);
  printf("alpha: %g\n", (double)alpha);
  TF_DeleteGraph(graph);
}
