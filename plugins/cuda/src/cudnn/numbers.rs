//! Constants of cuDNN's headers as numbers, since a library may have values that this crate does
//! not know.
//!
//! `.ci/cuda-libraries` compares them, and the constants of cudarc in use, with the headers for
//! CUDA 12 and 13.

use super::{
    api::{Api, Number, Performance, signatures},
    descriptors::{Activation, Filter, Pools, Steps, Tensor, Windows},
    require,
};
use cudarc::cudnn::sys::{
    cudnnActivationMode_t as Mode, cudnnConvolutionMode_t as Slides, cudnnDataType_t as Type,
    cudnnNanPropagation_t as Nan, cudnnPoolingMode_t as Pool, cudnnTensorFormat_t as Format,
};
use std::{fmt::Debug, mem::offset_of};
use tenon_sdk::KernelError;

/// `cudnnMathType_t`: with TF32; on tensor cores; with neither.
pub(super) const DEFAULT_MATH: Number = 0;
pub(super) const TENSOR_MATH: Number = 1;
pub(super) const FMA_MATH: Number = 3;

/// `cudnnConvolutionFwdAlgo_t`. The algorithms up to `LAST_DIRECT` are direct: each product of the
/// convolution is computed and added. The error of the others, Fourier transforms and Winograd,
/// depends on the whole tile instead of the terms of one result.
pub(super) const IMPLICIT_GEMM: Number = 0;
pub(super) const IMPLICIT_PRECOMP_GEMM: Number = 1;
pub(super) const LAST_DIRECT: Number = 3;

/// Number of algorithms in cuDNN.
pub(super) const ALGORITHMS: usize = 8;

/// `CUDNN_BATCHNORM_SPATIAL`: statistics of each channel.
pub(super) const BATCHNORM_SPATIAL: Number = 1;

fn value(name: &dyn Debug, value: u32) -> String {
    format!("value\tcudnn.h\t{name:?}\t{value}")
}

/// The plugin's assumptions about the library: lines of `value`, `size`, `offset` and `function`,
/// fields separated by tabs.
#[doc(hidden)]
pub fn believed() -> Vec<String> {
    let named = [
        ("CUDNN_DEFAULT_MATH", DEFAULT_MATH),
        ("CUDNN_TENSOR_OP_MATH", TENSOR_MATH),
        ("CUDNN_FMA_MATH", FMA_MATH),
        ("CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM", IMPLICIT_GEMM),
        ("CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM", IMPLICIT_PRECOMP_GEMM),
        ("CUDNN_CONVOLUTION_FWD_ALGO_DIRECT", LAST_DIRECT),
        ("CUDNN_CONVOLUTION_FWD_ALGO_COUNT", ALGORITHMS as Number),
        ("CUDNN_BATCHNORM_SPATIAL", BATCHNORM_SPATIAL),
        ("CUDNN_STATUS_SUCCESS", 0),
        ("CUDNN_STATUS_NOT_INITIALIZED", 1001),
        ("CUDNN_STATUS_NOT_SUPPORTED", 3000),
        ("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", 4003),
        ("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", 4004),
    ];
    let mut lines: Vec<String> =
        named.iter().map(|(name, it)| format!("value\tcudnn.h\t{name}\t{it}")).collect();
    let types = [
        Type::CUDNN_DATA_FLOAT,
        Type::CUDNN_DATA_DOUBLE,
        Type::CUDNN_DATA_HALF,
        Type::CUDNN_DATA_BFLOAT16,
    ];
    lines.extend(types.map(|it| value(&it, it as u32)));
    lines.extend(
        [Format::CUDNN_TENSOR_NCHW, Format::CUDNN_TENSOR_NHWC].map(|it| value(&it, it as u32)),
    );
    lines.extend([Slides::CUDNN_CROSS_CORRELATION].map(|it| value(&it, it as u32)));
    let modes = [Mode::CUDNN_ACTIVATION_RELU, Mode::CUDNN_ACTIVATION_IDENTITY];
    lines.extend(modes.map(|it| value(&it, it as u32)));
    let nans = [Nan::CUDNN_NOT_PROPAGATE_NAN, Nan::CUDNN_PROPAGATE_NAN];
    lines.extend(nans.map(|it| value(&it, it as u32)));
    let pools = [Pool::CUDNN_POOLING_MAX, Pool::CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING];
    lines.extend(pools.map(|it| value(&it, it as u32)));
    lines.extend(performance());
    let function = |(name, classes)| format!("function\tcudnn.h\tcudnn\t{name}\t{classes}");
    lines.extend(signatures().into_iter().map(function));
    lines
}

fn performance() -> Vec<String> {
    const NAME: &str = "cudnnConvolutionFwdAlgoPerf_t";
    let fields = [
        ("algo", offset_of!(Performance, algorithm)),
        ("status", offset_of!(Performance, status)),
        ("time", offset_of!(Performance, time)),
        ("memory", offset_of!(Performance, memory)),
        ("determinism", offset_of!(Performance, determinism)),
        ("mathType", offset_of!(Performance, math)),
        ("reserved", offset_of!(Performance, reserved)),
    ];
    let size = format!("size\tcudnn.h\t{NAME}\t{}", size_of::<Performance>());
    let offset = |(field, at)| format!("offset\tcudnn.h\t{NAME}\t{field}\t{at}");
    fields.into_iter().map(offset).chain([size]).collect()
}

/// Makes the library create and fill every kind of descriptor, which takes no device; returns their
/// number, and the library's version.
///
/// # Errors
/// The library is missing, or rejects a descriptor.
#[doc(hidden)]
pub fn describe() -> Result<(usize, usize), KernelError> {
    require()?;
    let mut made = 0;
    let types = [
        (Type::CUDNN_DATA_FLOAT, FMA_MATH),
        (Type::CUDNN_DATA_FLOAT, DEFAULT_MATH),
        (Type::CUDNN_DATA_DOUBLE, FMA_MATH),
        (Type::CUDNN_DATA_HALF, TENSOR_MATH),
        (Type::CUDNN_DATA_BFLOAT16, TENSOR_MATH),
    ];
    let steps = Steps { padding: [1, 1], strides: [2, 2], dilations: [1, 1] };
    for format in [Format::CUDNN_TENSOR_NCHW, Format::CUDNN_TENSOR_NHWC] {
        for (ty, math) in types {
            let sums = if ty == Type::CUDNN_DATA_DOUBLE { ty } else { Type::CUDNN_DATA_FLOAT };
            Tensor::new(format, ty, [2, 8, 9, 9])?;
            Filter::new(format, ty, [16, 8, 3, 3])?;
            Windows::new(&steps, 2, sums, math)?;
            made += 3;
        }
    }
    for mode in [Pool::CUDNN_POOLING_MAX, Pool::CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING] {
        Pools::new(mode, [3, 3], [1, 1], [2, 2])?;
        made += 1;
    }
    for relu in [false, true] {
        Activation::new(relu)?;
        made += 1;
    }
    // SAFETY: the function takes no arguments.
    Ok((made, unsafe { (Api::get()?.cudnnGetVersion)() }))
}
