//! A pooling and a batch normalisation of given shapes by cuDNN.

use super::{
    api::Api,
    convolution::format_of,
    descriptors::{Extents, Pools, Tensor},
    handles::Handles,
    numbers::BATCHNORM_SPATIAL,
    shapes::{Order, check_padding, extents, pair, type_of},
};
use crate::{
    arguments::{Factors, pointer},
    device::Stream,
};
use cudarc::cudnn::sys::{cudnnDataType_t as DataType, cudnnPoolingMode_t as Mode};
use std::ffi::c_int;
use tenon_sdk::{DType, KernelError, geometry::Pool2dGeometry};

/// Everything that a pooling depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PoolShapes {
    order: Order,
    dtype: DType,
    mean: bool,
    x: Extents,
    y: Extents,
    window: [c_int; 2],
    padding: [c_int; 2],
    strides: [c_int; 2],
}

impl PoolShapes {
    /// The shapes of a known geometry, for the mean or the greatest element of each window; as an
    /// error, the reason why cuDNN does not support them.
    pub fn new(g: &Pool2dGeometry, dtype: DType, mean: bool) -> Result<PoolShapes, String> {
        if g.depth_window != 1 {
            return Err("cuDNN's windows are over rows and columns".to_owned());
        }
        let (h, w) = (&g.height, &g.width);
        check_padding([h, w])?;
        Ok(PoolShapes {
            order: Order::of(g.format),
            dtype,
            mean,
            x: extents([g.batch, g.in_channels, h.input, w.input])?,
            y: extents([g.batch, g.out_channels, h.output, w.output])?,
            window: pair(h.kernel, w.kernel)?,
            padding: pair(h.pad_before, w.pad_before)?,
            strides: pair(h.stride, w.stride)?,
        })
    }
}

/// Descriptors of a pooling.
pub(crate) struct Pooling {
    api: &'static Api,
    x: Tensor,
    y: Tensor,
    pools: Pools,
    factors: Factors,
}

impl Pooling {
    /// Describes the pooling to cuDNN.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` where cuDNN does not support it; cuDNN's error.
    pub fn new(shapes: &PoolShapes) -> Result<Pooling, KernelError> {
        let (format, ty) = (format_of(shapes.order), type_of(shapes.dtype)?);
        let mode = match shapes.mean {
            true => Mode::CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
            false => Mode::CUDNN_POOLING_MAX,
        };
        Ok(Pooling {
            api: Api::get()?,
            x: Tensor::new(format, ty, shapes.x)?,
            y: Tensor::new(format, ty, shapes.y)?,
            pools: Pools::new(mode, shapes.window, shapes.padding, shapes.strides)?,
            factors: Factors::new(ty == DataType::CUDNN_DATA_DOUBLE),
        })
    }

    /// Enqueues the pooling.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` where cuDNN does not support it; `UNAVAILABLE` when the device is lost;
    /// cuDNN's error.
    ///
    /// # Safety
    /// - The addresses are of tensors of the shapes, on the stream's device.
    /// - They stay valid until the device has completed the call.
    pub unsafe fn run(
        &self,
        handles: &Handles,
        stream: &Stream,
        x: u64,
        y: u64,
    ) -> Result<(), KernelError> {
        handles.with(stream, |handle| {
            // SAFETY: the handle exists, the descriptors are filled, and the factors have the type
            // that cuDNN expects for these; the caller guarantees that the addresses are valid
            // until the device has completed the call.
            let result = unsafe {
                (self.api.cudnnPoolingForward)(
                    handle,
                    self.pools.raw(),
                    self.factors.one(),
                    self.x.raw(),
                    pointer(x),
                    self.factors.zero(),
                    self.y.raw(),
                    pointer(y),
                )
            };
            self.api.check(result, "cudnnPoolingForward")
        })
    }
}

/// Descriptors of a batch normalisation with given statistics.
pub(crate) struct Normalisation {
    api: &'static Api,
    x: Tensor,
    lists: Tensor,
    factors: Factors,
}

/// Addresses of a normalisation's operands; each list has a float for each channel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lists {
    pub x: u64,
    pub y: u64,
    pub scale: u64,
    pub offset: u64,
    pub mean: u64,
    pub variance: u64,
}

impl Normalisation {
    /// Describes images with a given number of channels, and of elements per channel.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for sizes that cuDNN does not support; cuDNN's error.
    pub fn new(
        order: Order,
        dtype: DType,
        [images, channels, elements]: [i64; 3],
    ) -> Result<Normalisation, KernelError> {
        let (format, ty) = (format_of(order), type_of(dtype)?);
        let sizes = |all| extents(all).map_err(KernelError::unimplemented);
        let lists = sizes([1, channels, 1, 1])?;
        Ok(Normalisation {
            api: Api::get()?,
            x: Tensor::new(format, ty, sizes([images, channels, elements, 1])?)?,
            lists: Tensor::new(format, DataType::CUDNN_DATA_FLOAT, lists)?,
            factors: Factors::new(ty == DataType::CUDNN_DATA_DOUBLE),
        })
    }

    /// Enqueues the normalisation.
    ///
    /// # Errors
    /// As [`Pooling::run`].
    ///
    /// # Safety
    /// - The caller upholds what [`Pooling::run`] requires.
    pub unsafe fn run(
        &self,
        handles: &Handles,
        stream: &Stream,
        at: Lists,
        epsilon: f64,
    ) -> Result<(), KernelError> {
        handles.with(stream, |handle| {
            // SAFETY: as in `Pooling::run`.
            let result = unsafe {
                (self.api.cudnnBatchNormalizationForwardInference)(
                    handle,
                    BATCHNORM_SPATIAL,
                    self.factors.one(),
                    self.factors.zero(),
                    self.x.raw(),
                    pointer(at.x),
                    self.x.raw(),
                    pointer(at.y),
                    self.lists.raw(),
                    pointer(at.scale),
                    pointer(at.offset),
                    pointer(at.mean),
                    pointer(at.variance),
                    epsilon,
                )
            };
            self.api.check(result, "cudnnBatchNormalizationForwardInference")
        })
    }
}
