// A libcudnn without a GPU: descriptors with the checks that cuDNN documents, and convolutions by plain loops, enqueued
// on the handle's stream as host functions of the fake driver. Device memory is host memory there.
//
// Sums are of doubles and rounded once, whatever the algorithm: they are what cuDNN's may differ from by rounding.
// Settings of the fake driver, lists of digits: FAKE_CUDA_CUDNN_REFUSES names algorithms that the heuristics do not offer,
// FAKE_CUDA_CUDNN_FAILS those that they offer and that do nothing behind a convolution, FAKE_CUDA_CUDNN_SLOW those that take
// fifty milliseconds, FAKE_CUDA_CUDNN_LACKS the element types (`cudnnDataType_t`) that no pooling and normalisation takes.
// Each call is a line of the log.

#include "cudnn.h"

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

extern "C" CUresult cuLaunchHostFunc(CUstream, CUhostFn, void*);
extern "C" CUresult cuStreamIsCapturing(CUstream, int*);
extern "C" void fake_cuda_get(const char* name, char* buffer, size_t length);
extern "C" void fake_cuda_note(const char* line);

#define CUDNN_API extern "C" __attribute__((visibility("default"))) cudnnStatus_t

namespace fake_cudnn {

size_t Tensor::place(int n, int c, int h, int w) const {
    const size_t C = extent[1], H = extent[2], W = extent[3];
    return format == CUDNN_TENSOR_NHWC ? ((n * H + h) * W + w) * C + c : ((n * C + c) * H + h) * W + w;
}

size_t Tensor::elements() const {
    return static_cast<size_t>(extent[0]) * extent[1] * extent[2] * extent[3];
}

namespace {

struct Ordered {
    Work work;
    bool kept;
};

void run_ordered(void* data) {
    auto* ordered = static_cast<Ordered*>(data);
    std::this_thread::sleep_for(std::chrono::milliseconds(ordered->work.milliseconds));
    ordered->work.run();
    if (!ordered->kept) {
        delete ordered;
    }
}

}  // namespace

cudnnStatus_t enqueue(const Handle& handle, const Work& work) {
    int capturing = 0;
    if (cuStreamIsCapturing(handle.stream, &capturing) != CUDA_SUCCESS) {
        return CUDNN_STATUS_EXECUTION_FAILED;
    }
    // A graph may run it any number of times.
    auto owned = std::make_unique<Ordered>(Ordered{work, capturing != 0});
    if (cuLaunchHostFunc(handle.stream, run_ordered, owned.get()) != CUDA_SUCCESS) {
        return CUDNN_STATUS_EXECUTION_FAILED;
    }
    owned.release();
    return CUDNN_STATUS_SUCCESS;
}

void note(const char* format, ...) {
    char line[128];
    va_list list;
    va_start(list, format);
    std::vsnprintf(line, sizeof line, format, list);
    va_end(list);
    fake_cuda_note(line);
}

bool is_listed(const char* name, int digit) {
    char text[32];
    fake_cuda_get(name, text, sizeof text);
    return std::strchr(text, '0' + digit) != nullptr;
}

namespace {

// A convolution with what follows it: y = f(alpha sum + beta z + bias).
struct Job {
    Tensor x, filter, y, bias;
    Windows windows;
    Activation activation;
    const void *x_data, *filter_data, *z_data, *bias_data;
    void* y_data;
    double alpha, beta;
    bool has_bias;
    // Scratch memory is written to, so that what lies there too is found out.
    void* workspace;
    size_t workspace_bytes;

    double sum(int n, int k, int oh, int ow) const {
        const int channels = filter.extent[1], group = k / (filter.extent[0] / windows.groups);
        double total = 0;
        for (int r = 0; r < filter.extent[2]; ++r) {
            const int h = oh * windows.stride[0] - windows.pad[0] + r * windows.dilation[0];
            for (int s = 0; s < filter.extent[3]; ++s) {
                const int w = ow * windows.stride[1] - windows.pad[1] + s * windows.dilation[1];
                if (h < 0 || h >= x.extent[2] || w < 0 || w >= x.extent[3]) {
                    continue;
                }
                // A true convolution mirrors its filter.
                const bool mirrored = windows.mode == CUDNN_CONVOLUTION;
                const int row = mirrored ? filter.extent[2] - 1 - r : r, column = mirrored ? filter.extent[3] - 1 - s : s;
                for (int c = 0; c < channels; ++c) {
                    total += get(x.type, x_data, x.place(n, group * channels + c, h, w)) *
                             get(filter.type, filter_data, filter.place(k, c, row, column));
                }
            }
        }
        return total;
    }

    void run() const {
        std::memset(workspace, 0xff, workspace == nullptr ? 0 : workspace_bytes);
        for (int n = 0; n < y.extent[0]; ++n) {
            for (int k = 0; k < y.extent[1]; ++k) {
                for (int h = 0; h < y.extent[2]; ++h) {
                    for (int w = 0; w < y.extent[3]; ++w) {
                        const size_t at = y.place(n, k, h, w);
                        double value = alpha * sum(n, k, h, w);
                        value += beta == 0 ? 0 : beta * get(y.type, z_data, at);
                        value += has_bias ? get(bias.type, bias_data, k) : 0;
                        if (activation.mode == CUDNN_ACTIVATION_RELU && value < 0) {
                            value = 0;
                        }
                        set(y.type, y_data, at, value);
                    }
                }
            }
        }
    }
};

bool is_type(int type) {
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

cudnnStatus_t fill(Tensor* tensor, int type, int format, int n, int c, int h, int w) {
    if (tensor == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    if (!is_type(type) || (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC) || n < 1 || c < 1 || h < 1 || w < 1) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    tensor->type = type;
    tensor->format = format;
    const int extent[4] = {n, c, h, w};
    std::memcpy(tensor->extent, extent, sizeof extent);
    return tensor->elements() < (size_t{1} << 31) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

int outputs(const Tensor& x, const Tensor& filter, const Windows& windows, int i) {
    const int span = (filter.extent[2 + i] - 1) * windows.dilation[i] + 1;
    return 1 + (x.extent[2 + i] + 2 * windows.pad[i] - span) / windows.stride[i];
}

// Whether descriptors fit, and describe what there is an algorithm for: one type, one format, and with channels last a
// sum that is of floats.
cudnnStatus_t judge(const Tensor* x, const Tensor* filter, const Windows* windows, const Tensor* y) {
    if (x == nullptr || filter == nullptr || windows == nullptr || y == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    if (x->type < 0 || filter->type < 0 || y->type < 0 || !windows->filled) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    const int groups = windows->groups;
    const bool fits = x->type == filter->type && x->type == y->type && x->extent[0] == y->extent[0] &&
                      x->extent[1] == filter->extent[1] * groups && filter->extent[0] % groups == 0 &&
                      y->extent[1] == filter->extent[0] && y->extent[2] == outputs(*x, *filter, *windows, 0) &&
                      y->extent[3] == outputs(*x, *filter, *windows, 1);
    if (!fits) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    const int sums = x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    const bool supported = x->format == filter->format && x->format == y->format && windows->computes == sums &&
                           (x->format == CUDNN_TENSOR_NCHW || x->type != CUDNN_DATA_DOUBLE);
    return supported ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

bool is_refused(int algorithm) { return is_listed("CUDNN_REFUSES", algorithm); }

size_t workspace_of(int algorithm, const Tensor& filter) {
    return algorithm == CUDNN_ALGO_IMPLICIT_PRECOMP_GEMM ? 64 * static_cast<size_t>(filter.extent[2] * filter.extent[3]) : 0;
}

struct Call {
    const Handle* handle;
    const void* alpha;
    const void* beta;
    int algorithm;
    void* workspace;
    size_t bytes;
};

cudnnStatus_t convolve(const Call& call, Job job) {
    if (call.handle == nullptr || call.alpha == nullptr || call.beta == nullptr || job.x_data == nullptr ||
        job.filter_data == nullptr || job.y_data == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    if (const cudnnStatus_t status = judge(&job.x, &job.filter, &job.windows, &job.y)) {
        return status;
    }
    if (call.algorithm != CUDNN_ALGO_IMPLICIT_GEMM && call.algorithm != CUDNN_ALGO_IMPLICIT_PRECOMP_GEMM) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    const size_t needed = workspace_of(call.algorithm, job.filter);
    if (needed > call.bytes || (needed > 0 && call.workspace == nullptr)) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    const bool wide = job.y.type == CUDNN_DATA_DOUBLE;
    const auto factor = [wide](const void* p) { return wide ? *static_cast<const double*>(p) : double{*static_cast<const float*>(p)}; };
    job.alpha = factor(call.alpha);
    job.beta = factor(call.beta);
    job.workspace = call.workspace;
    job.workspace_bytes = needed;
    note("cudnn convolution algorithm=%d bias=%d type=%d", call.algorithm, job.has_bias, job.y.type);
    const int milliseconds = is_listed("CUDNN_SLOW", call.algorithm) ? 50 : 0;
    return enqueue(*call.handle, {[job] { job.run(); }, milliseconds});
}

}  // namespace

}  // namespace fake_cudnn

using fake_cudnn::Activation;
using fake_cudnn::Handle;
using fake_cudnn::Tensor;
using fake_cudnn::Windows;

#define DESCRIPTOR(NAME, TYPE) \
    CUDNN_API cudnnCreate##NAME##Descriptor(TYPE** descriptor) { \
        if (descriptor == nullptr) { \
            return CUDNN_STATUS_BAD_PARAM_NULL_POINTER; \
        } \
        *descriptor = new TYPE(); \
        return CUDNN_STATUS_SUCCESS; \
    } \
    CUDNN_API cudnnDestroy##NAME##Descriptor(TYPE* descriptor) { \
        delete descriptor; \
        return CUDNN_STATUS_SUCCESS; \
    }

DESCRIPTOR(Tensor, Tensor)
DESCRIPTOR(Filter, Tensor)
DESCRIPTOR(Convolution, Windows)
DESCRIPTOR(Activation, Activation)

extern "C" __attribute__((visibility("default"))) size_t cudnnGetVersion() { return 90000; }

CUDNN_API cudnnCreate(Handle** handle) {
    if (handle == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    *handle = new Handle();
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnDestroy(Handle* handle) {
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnSetStream(Handle* handle, CUstream stream) {
    if (handle == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

extern "C" __attribute__((visibility("default"))) const char* cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
        case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
        case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
        case CUDNN_STATUS_BAD_PARAM_NULL_POINTER: return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
        case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
        case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
        default: return "CUDNN_STATUS_INTERNAL_ERROR";
    }
}

CUDNN_API cudnnSetTensor4dDescriptor(Tensor* tensor, int format, int type, int n, int c, int h, int w) {
    return fake_cudnn::fill(tensor, type, format, n, c, h, w);
}

CUDNN_API cudnnSetFilter4dDescriptor(Tensor* filter, int type, int format, int k, int c, int h, int w) {
    return fake_cudnn::fill(filter, type, format, k, c, h, w);
}

CUDNN_API cudnnSetConvolution2dDescriptor(Windows* windows, int pad_h, int pad_w, int u, int v, int dilation_h,
                                          int dilation_w, int mode, int computes) {
    if (windows == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    if (pad_h < 0 || pad_w < 0 || u < 1 || v < 1 || dilation_h < 1 || dilation_w < 1 ||
        (mode != CUDNN_CONVOLUTION && mode != CUDNN_CROSS_CORRELATION) || !fake_cudnn::is_type(computes)) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    windows->filled = true;
    const int all[6] = {pad_h, pad_w, u, v, dilation_h, dilation_w};
    std::memcpy(windows->pad, all, sizeof windows->pad);
    std::memcpy(windows->stride, all + 2, sizeof windows->stride);
    std::memcpy(windows->dilation, all + 4, sizeof windows->dilation);
    windows->mode = mode;
    windows->computes = computes;
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnSetConvolutionGroupCount(Windows* windows, int groups) {
    if (windows == nullptr || groups < 1) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    windows->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnSetConvolutionMathType(Windows* windows, int math) {
    if (windows == nullptr || math < CUDNN_DEFAULT_MATH || math > CUDNN_FMA_MATH) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    windows->math = math;
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnSetActivationDescriptor(Activation* activation, int mode, int nan, double limit) {
    if (activation == nullptr || mode < 0 || mode > 6 || nan < 0 || nan > 1) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    *activation = {mode, limit};
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnGetConvolutionForwardWorkspaceSize(Handle* handle, const Tensor* x, const Tensor* filter,
                                                  const Windows* windows, const Tensor* y, int algorithm, size_t* bytes) {
    if (handle == nullptr || bytes == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    if (const cudnnStatus_t status = fake_cudnn::judge(x, filter, windows, y)) {
        return status;
    }
    if (algorithm > CUDNN_ALGO_IMPLICIT_PRECOMP_GEMM || fake_cudnn::is_refused(algorithm)) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    *bytes = fake_cudnn::workspace_of(algorithm, *filter);
    return CUDNN_STATUS_SUCCESS;
}

// All that are asked for, the fastest first; those that do not work come last, with a status that says so.
CUDNN_API cudnnGetConvolutionForwardAlgorithm_v7(Handle* handle, const Tensor* x, const Tensor* filter,
                                                 const Windows* windows, const Tensor* y, int requested, int* returned,
                                                 cudnnConvolutionFwdAlgoPerf_t* results) {
    if (handle == nullptr || returned == nullptr || results == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    if (requested < 1) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    if (const cudnnStatus_t status = fake_cudnn::judge(x, filter, windows, y)) {
        return status;
    }
    *returned = 0;
    const int order[3] = {CUDNN_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_ALGO_IMPLICIT_GEMM, 2};
    for (const bool working : {true, false}) {
        for (const int algorithm : order) {
            const bool works = algorithm < 2 && !fake_cudnn::is_refused(algorithm);
            if (works != working || *returned == requested) {
                continue;
            }
            const size_t memory = fake_cudnn::workspace_of(algorithm, *filter);
            const cudnnStatus_t status = works ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
            results[(*returned)++] = {algorithm, status, -1.0f, memory, 1, windows->math, {0, 0, 0}};
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnConvolutionForward(Handle* handle, const void* alpha, const Tensor* x, const void* x_data,
                                  const Tensor* filter, const void* filter_data, const Windows* windows, int algorithm,
                                  void* workspace, size_t bytes, const void* beta, const Tensor* y, void* y_data) {
    if (x == nullptr || filter == nullptr || windows == nullptr || y == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const fake_cudnn::Job job = {*x,     *filter,     *y,     Tensor(), *windows, Activation(), x_data, filter_data,
                                 y_data, nullptr,     y_data, 1,        0,        false,        nullptr, 0};
    return fake_cudnn::convolve({handle, alpha, beta, algorithm, workspace, bytes}, job);
}

CUDNN_API cudnnConvolutionBiasActivationForward(Handle* handle, const void* alpha1, const Tensor* x, const void* x_data,
                                                const Tensor* filter, const void* filter_data, const Windows* windows,
                                                int algorithm, void* workspace, size_t bytes, const void* alpha2,
                                                const Tensor* z, const void* z_data, const Tensor* bias,
                                                const void* bias_data, const Activation* activation, const Tensor* y,
                                                void* y_data) {
    if (x == nullptr || filter == nullptr || windows == nullptr || y == nullptr || z == nullptr || bias == nullptr ||
        activation == nullptr || z_data == nullptr || bias_data == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const bool same = std::memcmp(z->extent, y->extent, sizeof z->extent) == 0 && z->format == y->format;
    const int vector[4] = {1, y->extent[1], 1, 1};
    if (!same || std::memcmp(bias->extent, vector, sizeof vector) != 0) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    // Documented: without an activation there is but one algorithm.
    const bool identity = activation->mode == CUDNN_ACTIVATION_IDENTITY;
    if (fake_cudnn::is_listed("CUDNN_FAILS", algorithm) || (!identity && activation->mode != CUDNN_ACTIVATION_RELU) ||
        (identity && algorithm != CUDNN_ALGO_IMPLICIT_PRECOMP_GEMM)) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    const fake_cudnn::Job job = {*x,     *filter,   *y,     *bias, *windows, *activation, x_data, filter_data,
                                 z_data, bias_data, y_data, 1,     0,        true,        nullptr, 0};
    return fake_cudnn::convolve({handle, alpha1, alpha2, algorithm, workspace, bytes}, job);
}
