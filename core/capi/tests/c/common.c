#include "common.h"

#include <inttypes.h>

TF_Status* status;

void code(const char* what) {
  printf("%s: code %d, %s\n", what, (int)TF_GetCode(status), *TF_Message(status) ? "a message" : "no message");
  /* Some functions leave a status as it is when they succeed. */
  TF_SetStatus(status, TF_OK, "");
}

void ok(const char* what) {
  if (TF_GetCode(status) != TF_OK) {
    printf("%s failed: code %d\n", what, (int)TF_GetCode(status));
    fprintf(stderr, "%s: %s\n", what, TF_Message(status));
    exit(1);
  }
}

TF_Output out(TF_Operation* oper, int index) {
  TF_Output output = {oper, index};
  return output;
}

TF_Operation* placeholder(TF_Graph* graph, const char* name, TF_DataType type, const int64_t* dims, int rank) {
  TF_OperationDescription* made = TF_NewOperation(graph, "Placeholder", name);
  TF_SetAttrType(made, "dtype", type);
  TF_SetAttrShape(made, "shape", dims, rank);
  TF_Operation* oper = TF_FinishOperation(made, status);
  ok(name);
  return oper;
}

static TF_Operation* constant(TF_Graph* graph, const char* name, TF_Tensor* value) {
  TF_OperationDescription* made = TF_NewOperation(graph, "Const", name);
  TF_SetAttrType(made, "dtype", TF_TensorType(value));
  TF_SetAttrTensor(made, "value", value, status);
  ok(name);
  TF_DeleteTensor(value);
  TF_Operation* oper = TF_FinishOperation(made, status);
  ok(name);
  return oper;
}

TF_Operation* constant_f(TF_Graph* graph, const char* name, const int64_t* dims, int rank, const float* values) {
  return constant(graph, name, tensor_f(dims, rank, values));
}

TF_Operation* constant_i(TF_Graph* graph, const char* name, int32_t value) {
  return constant(graph, name, scalar_i(value));
}

TF_Operation* unary(TF_Graph* graph, const char* op, const char* name, TF_Operation* x) {
  TF_OperationDescription* made = TF_NewOperation(graph, op, name);
  TF_AddInput(made, out(x, 0));
  TF_Operation* oper = TF_FinishOperation(made, status);
  ok(name);
  return oper;
}

TF_Operation* binary(TF_Graph* graph, const char* op, const char* name, TF_Operation* x, TF_Operation* y) {
  TF_OperationDescription* made = TF_NewOperation(graph, op, name);
  TF_AddInput(made, out(x, 0));
  TF_AddInput(made, out(y, 0));
  TF_Operation* oper = TF_FinishOperation(made, status);
  ok(name);
  return oper;
}

TF_Tensor* tensor_f(const int64_t* dims, int rank, const float* values) {
  size_t count = 1;
  for (int i = 0; i < rank; i++) count *= (size_t)dims[i];
  TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims, rank, count * sizeof(float));
  memcpy(TF_TensorData(tensor), values, count * sizeof(float));
  return tensor;
}

TF_Tensor* scalar_i(int32_t value) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_INT32, NULL, 0, sizeof value);
  memcpy(TF_TensorData(tensor), &value, sizeof value);
  return tensor;
}

TF_Session* session(TF_Graph* graph) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* made = TF_NewSession(graph, options, status);
  ok("a session");
  TF_DeleteSessionOptions(options);
  return made;
}

void show(const char* what, TF_Tensor* tensor) {
  printf("%s: type %d, [", what, (int)TF_TensorType(tensor));
  for (int i = 0; i < TF_NumDims(tensor); i++) printf(" %" PRId64, TF_Dim(tensor, i));
  printf(" ], %zu bytes:", TF_TensorByteSize(tensor));
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); i++) {
    const void* data = TF_TensorData(tensor);
    switch (TF_TensorType(tensor)) {
      case TF_FLOAT: printf(" %g", (double)((const float*)data)[i]); break;
      case TF_INT32: printf(" %" PRId32, ((const int32_t*)data)[i]); break;
      case TF_INT64: printf(" %" PRId64, ((const int64_t*)data)[i]); break;
      case TF_BOOL: printf(" %d", ((const unsigned char*)data)[i]); break;
      case TF_STRING: {
        const TF_TString* text = (const TF_TString*)data + i;
        printf(" '%.*s'", (int)TF_StringGetSize(text), TF_StringGetDataPointer(text));
        break;
      }
      default: printf(" ?");
    }
  }
  printf("\n");
  TF_DeleteTensor(tensor);
}

void run(const char* what, TF_Session* in, TF_Operation* feed, TF_Tensor* value, TF_Output fetch) {
  TF_Output fed = out(feed, 0);
  TF_Tensor* fetched = NULL;
  TF_SessionRun(in, NULL, &fed, &value, feed ? 1 : 0, &fetch, &fetched, 1, NULL, 0, NULL, status);
  if (value) TF_DeleteTensor(value);
  if (TF_GetCode(status) == TF_OK) {
    show(what, fetched);
  } else {
    code(what);
    if (fetched) printf("%s: a value in spite of that\n", what);
  }
}

message whole(const TF_Buffer* buffer) {
  message made = {buffer->data, buffer->length};
  return made;
}

static uint64_t number(message* from) {
  uint64_t value = 0;
  for (int shift = 0; from->length; shift += 7) {
    unsigned char byte = *from->data++;
    from->length--;
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) break;
  }
  return value;
}

bool next(message* from, int* field, message* bytes, uint64_t* value) {
  if (!from->length) return false;
  uint64_t key = number(from);
  *field = (int)(key >> 3);
  *value = 0;
  bytes->data = from->data;
  bytes->length = 0;
  switch (key & 7) {
    case 0: *value = number(from); return true;
    case 1: bytes->length = 8; break;
    case 5: bytes->length = 4; break;
    default: bytes->length = (size_t)number(from); bytes->data = from->data;
  }
  from->data += bytes->length;
  from->length -= bytes->length;
  return true;
}

message part(message from, int wanted) {
  int field;
  message bytes, none = {NULL, 0};
  uint64_t value;
  while (next(&from, &field, &bytes, &value))
    if (field == wanted) return bytes;
  return none;
}

static int compare(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

void names(const char* what, message from, int wanted, int inner) {
  char* found[64];
  int count = 0, field;
  message bytes;
  uint64_t value;
  while (next(&from, &field, &bytes, &value) && count < 64) {
    if (field != wanted) continue;
    if (inner) bytes = part(bytes, inner);
    found[count] = calloc(bytes.length + 1, 1);
    if (bytes.length) memcpy(found[count], bytes.data, bytes.length);
    count++;
  }
  qsort(found, (size_t)count, sizeof *found, compare);
  printf("%s:", what);
  for (int i = 0; i < count; i++) {
    printf(" %s", found[i]);
    free(found[i]);
  }
  printf("\n");
}

/* Writes a field of bytes after `at`, and gives the place after it. */
static char* field(char* at, int number, const char* bytes, size_t length) {
  *at++ = (char)(number << 3 | 2);
  *at++ = (char)length;
  memcpy(at, bytes, length);
  return at + length;
}

TF_Server* server(const char* protocol, const char* job, const char* address) {
  /* The ServerDef of the first task of a job of one task, in a cluster of the job "worker". */
  char task[64], tasks[96], cluster[100], def[160], *at = task;
  *at++ = 1 << 3;
  *at++ = 0;
  at = field(at, 2, address, strlen(address));
  char* next = field(tasks, 1, "worker", 6);
  next = field(next, 2, task, (size_t)(at - task));
  at = field(cluster, 1, tasks, (size_t)(next - tasks));
  next = field(def, 1, cluster, (size_t)(at - cluster));
  next = field(next, 2, job, strlen(job));
  next = field(next, 5, protocol, strlen(protocol));
  return TF_NewServer(def, (size_t)(next - def), status);
}
