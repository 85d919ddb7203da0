/* Attributes that are lists. Names that begin with an underscore are of no op, so that one node has a list of each kind. */
#include "common.h"

#include <inttypes.h>

static void set(TF_OperationDescription* made) {
  const void* texts[] = {"one", "", "three"};
  const size_t lengths[] = {3, 0, 5};
  TF_SetAttrStringList(made, "_texts", texts, lengths, 3);
  const int64_t integers[] = {1, -2, 3};
  TF_SetAttrIntList(made, "_integers", integers, 3);
  const float numbers[] = {0.5f, -1.5f};
  TF_SetAttrFloatList(made, "_numbers", numbers, 2);
  const unsigned char flags[] = {1, 0, 1, 1};
  TF_SetAttrBoolList(made, "_flags", flags, 4);
  const TF_DataType types[] = {TF_FLOAT, TF_STRING};
  TF_SetAttrTypeList(made, "_types", types, 2);
  const int64_t first[] = {2, 3}, second[] = {-1};
  const int64_t* dims[] = {first, second, NULL};
  const int ranks[] = {2, 1, -1};
  TF_SetAttrShapeList(made, "_shapes", dims, ranks, 3);
  const void* messages[] = {"\x12\x02\x08\x05", "\x18\x01"};
  const size_t sizes[] = {4, 2};
  TF_SetAttrTensorShapeProtoList(made, "_shapes_by_message", messages, sizes, 2, status);
  ok("shapes by messages");
  TF_Tensor* tensors[] = {scalar_i(3), scalar_i(4)};
  TF_SetAttrTensorList(made, "_tensors", tensors, 2, status);
  ok("tensors");
  TF_DeleteTensor(tensors[0]);
  TF_DeleteTensor(tensors[1]);
  TF_SetAttrFuncName(made, "_function", "twice", 5);
}

static void texts_and_shapes(TF_Operation* oper) {
  void* values[3];
  size_t lengths[3];
  char storage[8];
  TF_OperationGetAttrStringList(oper, "_texts", values, lengths, 3, storage, sizeof storage, status);
  ok("texts");
  printf("texts:");
  for (int i = 0; i < 3; i++) printf(" '%.*s'", (int)lengths[i], (const char*)values[i]);
  printf("\n");
  TF_OperationGetAttrStringList(oper, "_texts", values, lengths, 3, storage, 4, status);
  code("texts into too little storage");
  int64_t* dims[3];
  int ranks[3];
  int64_t room[3];
  TF_OperationGetAttrShapeList(oper, "_shapes", dims, ranks, 3, room, 3, status);
  ok("shapes");
  printf("shapes: %d [%" PRId64 " %" PRId64 "], %d [%" PRId64 "], %d\n", ranks[0], dims[0][0], dims[0][1], ranks[1], dims[1][0], ranks[2]);
  TF_OperationGetAttrShapeList(oper, "_shapes", dims, ranks, 3, room, 2, status);
  code("shapes into too little storage");
  TF_Buffer* buffers[2];
  TF_OperationGetAttrTensorShapeProtoList(oper, "_shapes_by_message", buffers, 2, status);
  ok("shapes as messages");
  printf("shapes as messages: %zu %zu\n", buffers[0]->length, buffers[1]->length);
  TF_DeleteBuffer(buffers[0]);
  TF_DeleteBuffer(buffers[1]);
}

static void get(TF_Operation* oper) {
  const char* all[] = {"_texts", "_integers", "_numbers", "_flags", "_types", "_shapes", "_shapes_by_message", "_tensors", "_function"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    TF_AttrMetadata found = TF_OperationGetAttrMetadata(oper, all[i], status);
    ok(all[i]);
    printf("%s: list %d of %" PRId64 ", type %d, total %" PRId64 "\n", all[i], found.is_list, found.list_size, (int)found.type,
           found.total_size);
  }
  texts_and_shapes(oper);
  int64_t integers[3];
  TF_OperationGetAttrIntList(oper, "_integers", integers, 3, status);
  float numbers[2];
  TF_OperationGetAttrFloatList(oper, "_numbers", numbers, 2, status);
  unsigned char flags[4];
  TF_OperationGetAttrBoolList(oper, "_flags", flags, 4, status);
  TF_DataType types[2];
  TF_OperationGetAttrTypeList(oper, "_types", types, 2, status);
  ok("types");
  printf("lists: %" PRId64 " %" PRId64 ", %g %g, %d %d %d %d, %d %d\n", integers[1], integers[2], (double)numbers[0], (double)numbers[1],
         flags[0], flags[1], flags[2], flags[3], (int)types[0], (int)types[1]);
  TF_Tensor* tensors[2];
  TF_OperationGetAttrTensorList(oper, "_tensors", tensors, 2, status);
  ok("tensors");
  show("first tensor", tensors[0]);
  show("second tensor", tensors[1]);
  TF_OperationGetAttrInt(oper, "_numbers", integers, status);
  code("a list as an integer");
}

void attribute_lists(void) {
  TF_Graph* graph = TF_NewGraph();
  TF_OperationDescription* made = TF_NewOperation(graph, "NoOp", "lists");
  set(made);
  TF_Operation* oper = TF_FinishOperation(made, status);
  ok("a node with lists");
  get(oper);
  TF_DeleteGraph(graph);
}
