/* Calls each function of the C API and prints what it gives. The same program, linked with TensorFlow's library or with ours,
 * prints the same lines. */
#include "common.h"

#include <inttypes.h>

static int freed;

static void count_free(void* data, size_t length, void* argument) {
  freed++;
  printf("freed: %zu bytes, argument %d\n", length, *(int*)argument);
  free(data);
}

static void free_buffer(void* data, size_t length) {
  printf("freed a buffer: %zu bytes\n", length);
  free(data);
}

static void buffers(void) {
  TF_Buffer* buffer = TF_NewBuffer();
  printf("new buffer: %d %zu\n", buffer->data == NULL, buffer->length);
  buffer->data = malloc(5);
  buffer->length = 5;
  buffer->data_deallocator = free_buffer;
  TF_DeleteBuffer(buffer);
  buffer = TF_NewBufferFromString("abc", 3);
  TF_Buffer copy = TF_GetBuffer(buffer);
  printf("buffer: %.*s %zu\n", (int)copy.length, (const char*)copy.data, buffer->length);
  TF_DeleteBuffer(buffer);
}

static void tensors(void) {
  static int argument = 7;
  const int64_t dims[] = {2, 3};
  TF_Tensor* tensor = TF_NewTensor(TF_FLOAT, dims, 2, aligned_alloc(64, 64), 24, count_free, &argument);
  printf("lent: aligned %d, moves %d, freed %d\n", TF_TensorIsAligned(tensor), TF_TensorMaybeMove(tensor) != NULL, freed);
  const int64_t four[] = {3, 2, 1};
  TF_SetShape(tensor, four, 3);
  printf("reshaped: %d %" PRId64 " %" PRId64 "\n", TF_NumDims(tensor), TF_Dim(tensor, 0), TF_TensorElementCount(tensor));
  TF_DeleteTensor(tensor);
  printf("freed %d\n", freed);
  tensor = TF_NewTensor(TF_FLOAT, dims, 2, malloc(20), 20, count_free, &argument);
  printf("too small: %d, freed %d\n", tensor == NULL, freed);
  tensor = TF_AllocateTensor(TF_INT32, dims, 2, 24);
  printf("allocated: type %d, aligned %d, %zu bytes\n", (int)TF_TensorType(tensor), TF_TensorIsAligned(tensor), TF_TensorByteSize(tensor));
  TF_Tensor* moved = TF_TensorMaybeMove(tensor);
  printf("moved %d\n", moved != NULL);
  if (moved) tensor = moved;
  printf("allocated too small: %d\n", TF_AllocateTensor(TF_INT32, dims, 2, 20) == NULL);
  const int64_t bytes[] = {24}, wrong[] = {23};
  TF_Tensor* cast = TF_AllocateTensor(TF_UINT8, bytes, 1, 24);
  TF_TensorBitcastFrom(tensor, TF_UINT8, cast, bytes, 1, status);
  code("bitcast");
  printf("shares %d, type %d\n", TF_TensorData(cast) == TF_TensorData(tensor), (int)TF_TensorType(cast));
  printf("shared moves %d\n", TF_TensorMaybeMove(tensor) != NULL);
  TF_TensorBitcastFrom(tensor, TF_UINT8, cast, wrong, 1, status);
  code("bitcast of another size");
  TF_TensorBitcastFrom(tensor, TF_STRING, cast, bytes, 1, status);
  code("bitcast to strings");
  TF_DeleteTensor(cast);
  TF_DeleteTensor(tensor);
  const int64_t none[] = {0, 4};
  tensor = TF_AllocateTensor(TF_FLOAT, none, 2, 0);
  printf("empty: %" PRId64 " elements, %zu bytes\n", TF_TensorElementCount(tensor), TF_TensorByteSize(tensor));
  TF_DeleteTensor(tensor);
  printf("default alignment is a power of two %d\n", (TF_TensorDefaultAlignment() & (TF_TensorDefaultAlignment() - 1)) == 0);
}

static void from_message(void) {
  /* A TensorProto: type int32, shape [2], values 7 and -1. */
  static const char bytes[] = "\x08\x03\x12\x04\x12\x02\x08\x02\x3a\x0b\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  TF_Buffer* message = TF_NewBufferFromString(bytes, sizeof bytes - 1);
  TF_Tensor* tensor = scalar_i(5);
  TF_TensorFromProto(message, tensor, status);
  ok("a tensor of a message");
  show("tensor of a message", tensor);
  TF_DeleteBuffer(message);
  message = TF_NewBufferFromString("\xff", 1);
  tensor = scalar_i(5);
  TF_TensorFromProto(message, tensor, status);
  code("tensor of a malformed message");
  show("tensor that is left", tensor);
  TF_DeleteBuffer(message);
}

static void visit(const char* key, const char* value, void* capture) {
  printf("payload %s: %s\n", key, value);
  ++*(int*)capture;
}

static void payloads(void) {
  TF_Status* own = TF_NewStatus();
  int count = 0;
  TF_SetPayload(own, "where", "nowhere");
  TF_ForEachPayload(own, visit, &count);
  printf("payloads without a failure: %d\n", count);
  TF_SetStatus(own, TF_ABORTED, "with payloads");
  TF_SetPayload(own, "where", "here");
  TF_SetPayload(own, "where", "there");
  TF_ForEachPayload(own, visit, &count);
  printf("payloads: %d\n", count);
  TF_SetStatus(own, TF_ABORTED, "without them");
  TF_ForEachPayload(own, visit, &count);
  printf("payloads of a new failure: %d\n", count - 1);
  printf("codes of the system:");
  for (int number = 0; number < 140; number++) {
    TF_SetStatusFromIOError(own, number, "a file");
    printf(" %d", (int)TF_GetCode(own));
  }
  printf("\n");
  TF_SetStatusFromIOError(own, 2, "a file");
  printf("message of the system: %.34s\n", TF_Message(own));
  TF_DeleteStatus(own);
}

void basics(void) {
  printf("version begins with 2.21.0: %d\n", strncmp(TF_Version(), "2.21.0", 6) == 0);
  TF_Status* own = TF_NewStatus();
  printf("new status: %d '%s'\n", (int)TF_GetCode(own), TF_Message(own));
  TF_SetStatus(own, TF_CANCELLED, "told so");
  printf("set status: %d '%s'\n", (int)TF_GetCode(own), TF_Message(own));
  TF_SetStatus(own, TF_OK, "not kept");
  printf("cleared status: %d '%s'\n", (int)TF_GetCode(own), TF_Message(own));
  TF_DeleteStatus(own);
  payloads();
  from_message();
  buffers();
  printf("sizes:");
  for (int type = 1; type <= 33; type++) printf(" %zu", TF_DataTypeSize((TF_DataType)type));
  printf("\n");
  tensors();
}

void strings(void) {
  TF_TString text;
  TF_StringInit(&text);
  printf("string: type %d, size %zu, capacity %zu\n", (int)TF_StringGetType(&text), TF_StringGetSize(&text), TF_StringGetCapacity(&text));
  static const size_t sizes[] = {3, 22, 23, 31, 32, 100, 60, 40, 5};
  char bytes[101];
  for (int i = 0; i < 101; i++) bytes[i] = (char)('a' + i % 26);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    TF_StringCopy(&text, bytes, sizes[i]);
    printf("string of %zu: type %d, size %zu, capacity %zu, same %d\n", sizes[i], (int)TF_StringGetType(&text),
           TF_StringGetSize(&text), TF_StringGetCapacity(&text), memcmp(TF_StringGetDataPointer(&text), bytes, sizes[i]) == 0);
  }
  TF_StringCopy(&text, bytes, 100);
  TF_StringAssignView(&text, bytes, 50);
  printf("view: type %d, size %zu, capacity %zu, same %d\n", (int)TF_StringGetType(&text), TF_StringGetSize(&text),
         TF_StringGetCapacity(&text), TF_StringGetDataPointer(&text) == bytes);
  TF_StringCopy(&text, "own", 3);
  TF_StringDealloc(&text);
  TF_StringCopy(&text, bytes, 90);
  TF_StringDealloc(&text);
  printf("freed string: type %d, size %zu\n", (int)TF_StringGetType(&text), TF_StringGetSize(&text));
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  status = TF_NewStatus();
  basics();
  strings();
  graphs();
  attributes();
  attribute_lists();
  imports();
  sessions();
  partial_runs();
  gradients();
  functions();
  loops();
  registered();
  bad_input();
  saved_models(arguments[1]);
  servers();
  TF_DeleteStatus(status);
  return 0;
}
