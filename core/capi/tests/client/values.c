/* Tensors, and DLPack. */
#include "common.h"

static int released;

static void release(void* data, size_t bytes, void* argument) {
  EXPECT(bytes == 24 && argument == &released);
  released++;
  free(data);
}

static void lent(void) {
  const int64_t dims[] = {2, 3};
  float* memory = aligned_alloc(64, 64);
  for (int i = 0; i < 6; i++) memory[i] = (float)i;
  tn_tensor* tensor = tn_tensor_lend(TN_FLOAT, dims, 2, memory, 24, release, &released, status);
  OK();
  EXPECT(tn_tensor_data(tensor, status) == memory && tn_tensor_mutable_data(tensor, status) == memory);
  const int64_t flat[] = {-6, 6};
  tn_tensor* reshaped = tn_tensor_reshape(tensor, flat + 1, 1, status);
  OK();
  EXPECT(tn_tensor_data(reshaped, status) == memory && tn_tensor_dim(reshaped, 0) == 6);
  EXPECT(tn_tensor_mutable_data(tensor, status) == NULL);
  IS(TN_FAILED_PRECONDITION, "shared");
  EXPECT(tn_tensor_reshape(tensor, flat, 1, status) == NULL);
  EXPECT(tn_status_code(status) == TN_INVALID_ARGUMENT);
  EXPECT(tn_tensor_delete(tensor) == TN_OK && released == 0);
  EXPECT(tn_tensor_delete(reshaped) == TN_OK && released == 1);
  /* Memory that is not aligned is copied, and released at once. */
  char* block = malloc(64 + 24);
  char* odd = block + 4;
  memset(block, 0, 64 + 24);
  tensor = tn_tensor_lend(TN_FLOAT, dims, 2, odd, 24, NULL, NULL, status);
  OK();
  EXPECT(tn_tensor_data(tensor, status) != odd);
  free(block);
  EXPECT(number(tensor) == 0);
  /* Where the function fails, the memory stays the caller's. */
  memory = aligned_alloc(64, 64);
  EXPECT(tn_tensor_lend(TN_FLOAT, dims, 2, memory, 23, release, &released, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "24 bytes");
  EXPECT(tn_tensor_lend((tn_dtype)77, dims, 2, memory, 24, release, &released, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "77");
  EXPECT(tn_tensor_lend(TN_STRING, dims, 2, memory, 24, release, &released, status) == NULL);
  IS(TN_UNIMPLEMENTED, "plain");
  EXPECT(tn_tensor_lend(TN_FLOAT, dims, 2, NULL, 24, release, &released, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "null");
  memset(memory, 2, 24);
  EXPECT(tn_tensor_lend(TN_BOOL, dims, 2, memory, 24, release, &released, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "bool");
  EXPECT(released == 1);
  free(memory);
}

static void strings(void) {
  const int64_t dims[] = {2, 2};
  const char* texts[] = {"a", "", "zero\0inside", "a text that is longer than what fits in place"};
  const size_t lengths[] = {1, 0, 11, 46};
  tn_tensor* tensor = tn_tensor_from_strings(dims, 2, texts, lengths, 4, status);
  OK();
  EXPECT(tn_tensor_dtype(tensor) == TN_STRING && tn_tensor_elements(tensor) == 4 && tn_tensor_bytes(tensor) == 0);
  for (size_t at = 0; at < 4; at++) {
    size_t length = 99;
    const char* found = tn_tensor_string(tensor, at, &length, status);
    OK();
    EXPECT(length == lengths[at] && memcmp(found, texts[at], length) == 0);
  }
  size_t length = 0;
  EXPECT(tn_tensor_string(tensor, 4, &length, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "4 elements");
  EXPECT(tn_tensor_data(tensor, status) == NULL);
  IS(TN_UNIMPLEMENTED, "string");
  EXPECT(tn_tensor_mutable_data(tensor, status) == NULL);
  tn_buffer* message = tn_tensor_message(tensor, status);
  OK();
  EXPECT(tn_buffer_size(message) > 50);
  tn_buffer_delete(message);
  tn_tensor_delete(tensor);
  EXPECT(tn_tensor_from_strings(dims, 2, texts, lengths, 3, status) == NULL);
  EXPECT(tn_status_code(status) == TN_INVALID_ARGUMENT);
  EXPECT(tn_tensor_from_strings(dims, 2, NULL, lengths, 4, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "null");
  EXPECT(tn_tensor_from_strings(dims, 2, texts, NULL, 4, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "null");
}

static void bad_shapes(void) {
  const int64_t negative[] = {-1}, large[] = {INT64_MAX, 2}, many[17] = {1};
  EXPECT(tn_tensor_new(TN_FLOAT, negative, 1, status) == NULL);
  EXPECT(tn_status_code(status) == TN_INVALID_ARGUMENT);
  EXPECT(tn_tensor_new(TN_FLOAT, large, 2, status) == NULL);
  EXPECT(tn_status_code(status) != TN_OK);
  EXPECT(tn_tensor_new(TN_DOUBLE, large, 1, status) == NULL);
  EXPECT(tn_status_code(status) != TN_OK);
  EXPECT(tn_tensor_new(TN_FLOAT, many, 17, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "17 dimensions");
  EXPECT(tn_tensor_new(TN_FLOAT, NULL, 1, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "null");
  EXPECT(tn_tensor_new(TN_FLOAT, many, -1, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "-1");
  EXPECT(tn_tensor_new(TN_STRING, NULL, 0, status) == NULL);
  IS(TN_UNIMPLEMENTED, "string");
  EXPECT(tn_tensor_copy(TN_FLOAT, NULL, 0, "abc", 3, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "4 bytes");
}

void tensors(void) {
  const int64_t dims[] = {2, 3}, none[] = {0, 4};
  tn_tensor* tensor = tn_tensor_new(TN_INT32, dims, 2, status);
  OK();
  EXPECT(tn_tensor_dtype(tensor) == TN_INT32 && tn_tensor_rank(tensor) == 2 && tn_tensor_dim(tensor, 1) == 3);
  EXPECT(tn_tensor_dim(tensor, 2) == -1 && tn_tensor_dim(tensor, -1) == -1);
  EXPECT(tn_tensor_elements(tensor) == 6 && tn_tensor_bytes(tensor) == 24);
  int32_t* data = tn_tensor_mutable_data(tensor, status);
  EXPECT(data != NULL && data[5] == 0);
  data[5] = 7;
  tn_value_info info = TN_INIT(tn_value_info);
  EXPECT(tn_tensor_info(tensor, &info, status) && info.dtype == TN_INT32 && info.rank == 2 && info.dims[0] == 2);
  EXPECT(!tn_tensor_info(tensor, NULL, status));
  tn_buffer* message = tn_tensor_message(tensor, status);
  OK();
  EXPECT(tn_buffer_size(message) > 0);
  tn_buffer_delete(message);
  EXPECT(tn_tensor_string(tensor, 0, NULL, status) == NULL);
  EXPECT(tn_status_code(status) == TN_INVALID_ARGUMENT);
  EXPECT(tn_tensor_delete(tensor) == TN_OK && tn_tensor_delete(tensor) == TN_INVALID_ARGUMENT);
  tensor = tn_tensor_new(TN_FLOAT, none, 2, status);
  OK();
  EXPECT(tn_tensor_elements(tensor) == 0 && tn_tensor_bytes(tensor) == 0);
  tn_tensor_delete(tensor);
  EXPECT(tn_tensor_dtype(NULL) == 0 && tn_tensor_rank(NULL) == -1 && tn_tensor_dim(NULL, 0) == -1);
  EXPECT(tn_tensor_elements(NULL) == 0 && tn_tensor_bytes(NULL) == 0 && tn_tensor_delete(NULL) == TN_OK);
  EXPECT(tn_tensor_data(NULL, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "a tensor is null");
  EXPECT(tn_tensor_data(NULL, NULL) == NULL);
  EXPECT(tn_dtype_size(TN_DOUBLE) == 8 && tn_dtype_size(TN_STRING) == 0 && tn_dtype_size((tn_dtype)-3) == 0);
  EXPECT(strcmp(tn_dtype_name(TN_BFLOAT16), "bfloat16") == 0 && tn_dtype_name((tn_dtype)1000) == NULL);
  lent();
  strings();
  bad_shapes();
}

/* The structs of DLPack. */
typedef struct view {
  void* data;
  int32_t device[2];
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} view;
struct DLManagedTensor {
  view tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags;
  view tensor;
};

static int ended;

static void end_plain(struct DLManagedTensor* managed) {
  (void)managed;
  ended++;
}

static void end_versioned(struct DLManagedTensorVersioned* managed) {
  (void)managed;
  ended++;
}

static void foreign(void) {
  static int64_t sizes[] = {2, 2}, dense[] = {2, 1}, columns[] = {1, 2};
  double* memory = aligned_alloc(64, 128);
  for (int i = 0; i < 16; i++) memory[i] = i;
  view shown = {memory, {1, 0}, 2, 2, 64, 1, sizes, dense, 64};
  struct DLManagedTensorVersioned versioned = {1, 2, NULL, end_versioned, 1, shown};
  tn_tensor* tensor = tn_tensor_from_dlpack(&versioned, status);
  OK();
  EXPECT(tn_tensor_data(tensor, status) == memory + 8 && tn_tensor_dtype(tensor) == TN_DOUBLE && ended == 0);
  tn_tensor_delete(tensor);
  EXPECT(ended == 1);
  struct DLManagedTensor plain = {shown, NULL, end_plain};
  plain.tensor.strides = NULL;
  plain.tensor.byte_offset = 8;
  tensor = tn_tensor_from_dlpack_unversioned(&plain, status);
  OK();
  EXPECT(ended == 2 && ((const double*)tn_tensor_data(tensor, status))[3] == 4);
  tn_tensor_delete(tensor);
  plain.tensor.strides = columns;
  EXPECT(tn_tensor_from_dlpack_unversioned(&plain, status) == NULL);
  IS(TN_UNIMPLEMENTED, "dense");
  plain.tensor = shown;
  plain.tensor.device[0] = 2;
  EXPECT(tn_tensor_from_dlpack_unversioned(&plain, status) == NULL);
  IS(TN_UNIMPLEMENTED, "device");
  plain.tensor = shown;
  plain.tensor.lanes = 4;
  EXPECT(tn_tensor_from_dlpack_unversioned(&plain, status) == NULL);
  IS(TN_UNIMPLEMENTED, "lanes");
  plain.tensor = shown;
  plain.tensor.ndim = -1;
  EXPECT(tn_tensor_from_dlpack_unversioned(&plain, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "dimensions");
  plain.tensor = shown;
  plain.tensor.data = NULL;
  EXPECT(tn_tensor_from_dlpack_unversioned(&plain, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "null");
  plain.tensor = shown;
  plain.tensor.shape = NULL;
  EXPECT(tn_tensor_from_dlpack_unversioned(&plain, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "sizes");
  versioned.major = 2;
  EXPECT(tn_tensor_from_dlpack(&versioned, status) == NULL);
  IS(TN_UNIMPLEMENTED, "DLPack 2");
  EXPECT(tn_tensor_from_dlpack(NULL, status) == NULL && tn_tensor_from_dlpack_unversioned(NULL, status) == NULL);
  EXPECT(ended == 2);
  free(memory);
}

void dlpack(void) {
  foreign();
  const int64_t dims[] = {2, 3};
  const float values[] = {0, 1, 2, 3, 4, 5};
  tn_tensor* tensor = floats(dims, 2, values);
  struct DLManagedTensorVersioned* versioned = tn_tensor_to_dlpack(tensor, status);
  OK();
  struct DLManagedTensor* plain = tn_tensor_to_dlpack_unversioned(tensor, status);
  OK();
  EXPECT(versioned->major == 1 && versioned->flags == 1 && versioned->tensor.data == tn_tensor_data(tensor, status));
  tn_tensor_delete(tensor);
  EXPECT(plain->tensor.ndim == 2 && plain->tensor.shape[1] == 3 && plain->tensor.strides[0] == 3);
  EXPECT(((const float*)plain->tensor.data)[5] == 5);
  /* A tensor that comes back is in the same memory. */
  tn_tensor* back = tn_tensor_from_dlpack(versioned, status);
  OK();
  EXPECT(tn_tensor_data(back, status) == plain->tensor.data);
  plain->deleter(plain);
  tn_tensor_delete(back);
  const char* text = "a";
  const size_t length = 1;
  tensor = tn_tensor_from_strings(NULL, 0, &text, &length, 1, status);
  EXPECT(tn_tensor_to_dlpack(tensor, status) == NULL);
  IS(TN_UNIMPLEMENTED, "DLPack");
  EXPECT(tn_tensor_to_dlpack_unversioned(tensor, status) == NULL);
  tn_tensor_delete(tensor);
  EXPECT(tn_tensor_to_dlpack(NULL, status) == NULL && tn_tensor_to_dlpack_unversioned(NULL, status) == NULL);
}
