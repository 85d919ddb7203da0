// Poolings and batch normalisation of the fake cuDNN, as its documentation defines them.

#include <algorithm>
#include <cmath>

#include "cudnn.h"

#define CUDNN_API extern "C" __attribute__((visibility("default"))) cudnnStatus_t

using fake_cudnn::Handle;
using fake_cudnn::Pools;
using fake_cudnn::Tensor;

namespace {

int outputs(const Tensor& x, const Pools& pools, int i) {
    return 1 + (x.extent[2 + i] + 2 * pools.pad[i] - pools.window[i]) / pools.stride[i];
}

double pooled(const Tensor& x, const void* data, const Pools& pools, int n, int c, int oh, int ow) {
    const bool mean = pools.mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    double sum = 0, greatest = -INFINITY;
    int count = 0;
    for (int r = 0; r < pools.window[0]; ++r) {
        for (int s = 0; s < pools.window[1]; ++s) {
            const int h = oh * pools.stride[0] - pools.pad[0] + r, w = ow * pools.stride[1] - pools.pad[1] + s;
            if (h < 0 || h >= x.extent[2] || w < 0 || w >= x.extent[3]) {
                continue;
            }
            const double value = fake_cudnn::get(x.type, data, x.place(n, c, h, w));
            sum += value;
            if (std::isnan(value) && pools.nan == CUDNN_PROPAGATE_NAN) {
                greatest = value;
            }
            greatest = value > greatest ? value : greatest;
            ++count;
        }
    }
    return mean ? sum / count : greatest;
}

bool is_lacking(int type) { return fake_cudnn::is_listed("CUDNN_LACKS", type); }

bool are_factors(const void* alpha, const void* beta, int type) {
    const auto value = [type](const void* p) {
        return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(p) : double{*static_cast<const float*>(p)};
    };
    return value(alpha) == 1 && value(beta) == 0;
}

}  // namespace

CUDNN_API cudnnCreatePoolingDescriptor(Pools** pools) {
    if (pools == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    *pools = new Pools();
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnDestroyPoolingDescriptor(Pools* pools) {
    delete pools;
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnSetPooling2dDescriptor(Pools* pools, int mode, int nan, int window_h, int window_w, int pad_h, int pad_w,
                                      int stride_h, int stride_w) {
    if (pools == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    if (mode < CUDNN_POOLING_MAX || mode > CUDNN_POOLING_MAX_DETERMINISTIC || nan < 0 || nan > 1 || window_h < 1 ||
        window_w < 1 || pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    *pools = {mode, nan, {window_h, window_w}, {pad_h, pad_w}, {stride_h, stride_w}};
    return CUDNN_STATUS_SUCCESS;
}

CUDNN_API cudnnPoolingForward(Handle* handle, const Pools* pools, const void* alpha, const Tensor* x, const void* x_data,
                              const void* beta, const Tensor* y, void* y_data) {
    if (handle == nullptr || pools == nullptr || alpha == nullptr || x == nullptr || x_data == nullptr || beta == nullptr ||
        y == nullptr || y_data == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const bool fits = pools->mode >= 0 && x->type >= 0 && x->type == y->type && x->extent[0] == y->extent[0] &&
                      x->extent[1] == y->extent[1] && y->extent[2] == outputs(*x, *pools, 0) &&
                      y->extent[3] == outputs(*x, *pools, 1);
    if (!fits) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    // What the plugin does not ask for is absent.
    const bool known = pools->mode == CUDNN_POOLING_MAX || pools->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    if (!known || is_lacking(x->type) || !are_factors(alpha, beta, x->type)) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    fake_cudnn::note("cudnn pooling mode=%d type=%d", pools->mode, x->type);
    const auto run = [from = *x, to = *y, how = *pools, x_data, y_data] {
        for (int n = 0; n < to.extent[0]; ++n) {
            for (int c = 0; c < to.extent[1]; ++c) {
                for (int h = 0; h < to.extent[2]; ++h) {
                    for (int w = 0; w < to.extent[3]; ++w) {
                        const double value = pooled(from, x_data, how, n, c, h, w);
                        fake_cudnn::set(to.type, y_data, to.place(n, c, h, w), value);
                    }
                }
            }
        }
    };
    return fake_cudnn::enqueue(*handle, {run});
}

CUDNN_API cudnnBatchNormalizationForwardInference(Handle* handle, int mode, const void* alpha, const void* beta,
                                                  const Tensor* x, const void* x_data, const Tensor* y, void* y_data,
                                                  const Tensor* lists, const void* scale, const void* offset,
                                                  const void* mean, const void* variance, double epsilon) {
    if (handle == nullptr || alpha == nullptr || beta == nullptr || x == nullptr || x_data == nullptr || y == nullptr ||
        y_data == nullptr || lists == nullptr || scale == nullptr || offset == nullptr || mean == nullptr ||
        variance == nullptr) {
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const int list[4] = {1, x->extent[1], 1, 1};
    const int type = x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    const bool fits = x->type >= 0 && x->type == y->type && std::equal(x->extent, x->extent + 4, y->extent) &&
                      std::equal(list, list + 4, lists->extent) && lists->type == type && epsilon >= 0;
    if (!fits) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    if (mode != CUDNN_BATCHNORM_SPATIAL || is_lacking(x->type) || !are_factors(alpha, beta, x->type)) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    fake_cudnn::note("cudnn normalisation type=%d", x->type);
    const auto run = [from = *x, to = *y, type, x_data, y_data, scale, offset, mean, variance, epsilon] {
        const auto of = [type](const void* data, int c) { return fake_cudnn::get(type, data, c); };
        for (int n = 0; n < to.extent[0]; ++n) {
            for (int c = 0; c < to.extent[1]; ++c) {
                const double factor = of(scale, c) / std::sqrt(of(variance, c) + epsilon);
                for (int h = 0; h < to.extent[2]; ++h) {
                    for (int w = 0; w < to.extent[3]; ++w) {
                        const double value = fake_cudnn::get(from.type, x_data, from.place(n, c, h, w));
                        fake_cudnn::set(to.type, y_data, to.place(n, c, h, w), (value - of(mean, c)) * factor + of(offset, c));
                    }
                }
            }
        }
    };
    return fake_cudnn::enqueue(*handle, {run});
}
