/* Memory that goes from another library into Tenon and back by DLPack, without a copy. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon_client.h>

/* The structs of DLPack 1.0, as dlpack.h declares them. A program that includes dlpack.h does not need these lines. */
typedef struct DLDevice {
  int32_t device_type;
  int32_t device_id;
} DLDevice;
typedef struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;
typedef struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;
typedef struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

static tn_status* status;

static void check(void) {
  if (tn_status_code(status) == TN_OK) return;
  fprintf(stderr, "%s: %s\n", tn_code_name(tn_status_code(status)), tn_status_message(status));
  exit(1);
}

static void delete_ours(DLManagedTensorVersioned* self) {
  printf("the producer's memory is free\n");
  free(self->dl_tensor.data);
  free(self->dl_tensor.shape);
  free(self);
}

/* What another library would export: a matrix of floats. */
static DLManagedTensorVersioned* produced(int64_t rows, int64_t columns) {
  DLManagedTensorVersioned* made = calloc(1, sizeof *made);
  made->version.major = 1;
  made->deleter = delete_ours;
  made->dl_tensor.device.device_type = 1; /* kDLCPU */
  made->dl_tensor.ndim = 2;
  made->dl_tensor.dtype = (DLDataType){2, 32, 1}; /* kDLFloat */
  made->dl_tensor.shape = malloc(2 * sizeof(int64_t));
  made->dl_tensor.shape[0] = rows;
  made->dl_tensor.shape[1] = columns;
  made->dl_tensor.data = aligned_alloc(64, 64 * (size_t)((rows * columns * 4 + 63) / 64));
  for (int64_t i = 0; i < rows * columns; i++) ((float*)made->dl_tensor.data)[i] = (float)i;
  return made;
}

int main(void) {
  status = tn_status_new();
  DLManagedTensorVersioned* theirs = produced(2, 3);
  void* memory = theirs->dl_tensor.data;
  tn_tensor* tensor = tn_tensor_from_dlpack(theirs, status);
  check();
  printf("imported: %lld x %lld, the same memory: %s\n", (long long)tn_tensor_dim(tensor, 0), (long long)tn_tensor_dim(tensor, 1),
         tn_tensor_data(tensor, status) == memory ? "yes" : "no");

  DLManagedTensorVersioned* ours = tn_tensor_to_dlpack(tensor, status);
  check();
  tn_tensor_delete(tensor);
  const DLTensor* shown = &ours->dl_tensor;
  printf("exported: version %u, type %u of %u bits, strides %lld and %lld, the same memory: %s\n", (unsigned)ours->version.major,
         (unsigned)shown->dtype.code, (unsigned)shown->dtype.bits, (long long)shown->strides[0], (long long)shown->strides[1],
         shown->data == memory ? "yes" : "no");
  printf("last element: %g\n", (double)((const float*)shown->data)[5]);
  ours->deleter(ours);
  tn_status_delete(status);
  return 0;
}
