// The part of cuDNN's interface that the fake has: types, numbers and descriptors. Values follow the published header of
// cuDNN 9.
#pragma once

#include <cstddef>
#include <functional>

#include "types.h"

using cudnnStatus_t = int;

constexpr cudnnStatus_t CUDNN_STATUS_SUCCESS = 0;
constexpr cudnnStatus_t CUDNN_STATUS_BAD_PARAM = 2000;
constexpr cudnnStatus_t CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002;
constexpr cudnnStatus_t CUDNN_STATUS_NOT_SUPPORTED = 3000;
constexpr cudnnStatus_t CUDNN_STATUS_INTERNAL_ERROR = 4000;
constexpr cudnnStatus_t CUDNN_STATUS_EXECUTION_FAILED = 5000;

enum { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 };
enum { CUDNN_DATA_FLOAT = 0, CUDNN_DATA_DOUBLE = 1, CUDNN_DATA_HALF = 2, CUDNN_DATA_BFLOAT16 = 9 };
enum { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 };
enum { CUDNN_ACTIVATION_RELU = 1, CUDNN_ACTIVATION_IDENTITY = 5 };
enum { CUDNN_NOT_PROPAGATE_NAN = 0, CUDNN_PROPAGATE_NAN = 1 };
enum { CUDNN_POOLING_MAX = 0, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2, CUDNN_POOLING_MAX_DETERMINISTIC = 3 };
enum { CUDNN_BATCHNORM_SPATIAL = 1 };
enum { CUDNN_ALGO_IMPLICIT_GEMM = 0, CUDNN_ALGO_IMPLICIT_PRECOMP_GEMM = 1 };
enum { CUDNN_DEFAULT_MATH = 0, CUDNN_TENSOR_OP_MATH = 1, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2, CUDNN_FMA_MATH = 3 };

namespace fake_cudnn {

// Extents are those of images (images, channels, rows, columns) or of a filter (outputs, channels, rows, columns).
struct Tensor {
    int type = -1;
    int format = 0;
    int extent[4] = {0, 0, 0, 0};
    size_t place(int n, int c, int h, int w) const;
    size_t elements() const;
};

struct Windows {
    bool filled = false;
    int pad[2], stride[2], dilation[2];
    int mode = 0, computes = 0, groups = 1, math = CUDNN_DEFAULT_MATH;
};

struct Activation {
    int mode = -1;
    double limit = 0;
};

struct Pools {
    int mode = -1;
    int nan = CUDNN_NOT_PROPAGATE_NAN;
    int window[2], pad[2], stride[2];
};

struct Handle {
    CUstream stream = nullptr;
};

// An element of a tensor of some type; rounded to it.
double get(int type, const void* data, size_t at);
void set(int type, void* data, size_t at, double value);

// What a stream does when it gets there; `milliseconds` at least.
struct Work {
    std::function<void()> run;
    int milliseconds = 0;
};
cudnnStatus_t enqueue(const Handle& handle, const Work& work);

// A line of the driver's log.
void note(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Whether the setting FAKE_CUDA_<name>, a list of digits, has this one.
bool is_listed(const char* name, int digit);

}  // namespace fake_cudnn

struct cudnnConvolutionFwdAlgoPerf_t {
    int algo;
    cudnnStatus_t status;
    float time;
    size_t memory;
    int determinism;
    int mathType;
    int reserved[3];
};
