//! Descriptors of tensors, filters and convolutions. Each is created, filled once, and destroyed
//! when dropped.

use super::api::{Api, Number};
use cudarc::cudnn::sys::{
    cudnnActivationDescriptor_t, cudnnActivationMode_t, cudnnConvolutionDescriptor_t,
    cudnnConvolutionMode_t, cudnnDataType_t, cudnnFilterDescriptor_t, cudnnNanPropagation_t,
    cudnnPoolingDescriptor_t, cudnnPoolingMode_t, cudnnTensorDescriptor_t, cudnnTensorFormat_t,
};
use std::ffi::c_int;
use tenon_sdk::KernelError;

macro_rules! descriptors {
    ($($(#[$meta:meta])* $name:ident($raw:ty): $create:ident, $destroy:ident;)*) => {$(
        $(#[$meta])*
        pub(super) struct $name {
            api: &'static Api,
            raw: $raw,
        }

        // SAFETY: a descriptor is read only, once it is filled.
        unsafe impl Send for $name {}
        // SAFETY: as for `Send`.
        unsafe impl Sync for $name {}

        impl $name {
            fn empty() -> Result<$name, KernelError> {
                let api = Api::get()?;
                let mut raw: $raw = std::ptr::null_mut();
                // SAFETY: the result pointer is valid for writes.
                api.check(unsafe { (api.$create)(&mut raw) }, stringify!($create))?;
                Ok($name { api, raw })
            }

            /// The library's pointer.
            pub fn raw(&self) -> $raw {
                self.raw
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: this object created it, and nothing uses it any more.
                let _ = unsafe { (self.api.$destroy)(self.raw) };
            }
        }
    )*};
}

descriptors! {
    /// Descriptor of images.
    Tensor(cudnnTensorDescriptor_t): cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor;
    /// Descriptor of a filter.
    Filter(cudnnFilterDescriptor_t): cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor;
    /// Descriptor of a convolution: its windows, and how to compute it.
    Windows(cudnnConvolutionDescriptor_t): cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor;
    /// Descriptor of an activation.
    Activation(cudnnActivationDescriptor_t): cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor;
    /// Descriptor of a pooling: its windows, and how to reduce them.
    Pools(cudnnPoolingDescriptor_t): cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor;
}

/// Sizes of images or of a filter: images or outputs, channels, rows, columns.
pub(crate) type Extents = [c_int; 4];

impl Tensor {
    /// Describes dense images.
    pub fn new(
        format: cudnnTensorFormat_t,
        ty: cudnnDataType_t,
        [n, c, h, w]: Extents,
    ) -> Result<Tensor, KernelError> {
        let made = Tensor::empty()?;
        // SAFETY: a descriptor of this object.
        let result =
            unsafe { (made.api.cudnnSetTensor4dDescriptor)(made.raw, format, ty, n, c, h, w) };
        made.api.check(result, "cudnnSetTensor4dDescriptor")?;
        Ok(made)
    }
}

impl Filter {
    /// Describes a dense filter.
    pub fn new(
        format: cudnnTensorFormat_t,
        ty: cudnnDataType_t,
        [k, c, h, w]: Extents,
    ) -> Result<Filter, KernelError> {
        let made = Filter::empty()?;
        // SAFETY: a descriptor of this object.
        let result =
            unsafe { (made.api.cudnnSetFilter4dDescriptor)(made.raw, ty, format, k, c, h, w) };
        made.api.check(result, "cudnnSetFilter4dDescriptor")?;
        Ok(made)
    }
}

/// Padding on each side, strides and dilations, of rows and of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Steps {
    pub padding: [c_int; 2],
    pub strides: [c_int; 2],
    pub dilations: [c_int; 2],
}

impl Windows {
    /// Describes a convolution that does not mirror its filter, as in TensorFlow.
    pub fn new(
        steps: &Steps,
        groups: c_int,
        computes: cudnnDataType_t,
        math: Number,
    ) -> Result<Windows, KernelError> {
        let made = Windows::empty()?;
        let (api, raw) = (made.api, made.raw);
        let Steps { padding: [top, left], strides: [down, right], dilations: [by_row, by_column] } =
            *steps;
        let mode = cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION;
        // SAFETY: a descriptor of this object.
        let result = unsafe {
            (api.cudnnSetConvolution2dDescriptor)(
                raw, top, left, down, right, by_row, by_column, mode, computes,
            )
        };
        api.check(result, "cudnnSetConvolution2dDescriptor")?;
        // SAFETY: a descriptor of this object.
        let result = unsafe { (api.cudnnSetConvolutionGroupCount)(raw, groups) };
        api.check(result, "cudnnSetConvolutionGroupCount")?;
        made.set_math(math)?;
        Ok(made)
    }

    /// Selects the products that the convolution may use.
    pub fn set_math(&self, math: Number) -> Result<(), KernelError> {
        // SAFETY: as above; nothing else uses it yet.
        let result = unsafe { (self.api.cudnnSetConvolutionMathType)(self.raw, math) };
        self.api.check(result, "cudnnSetConvolutionMathType")
    }
}

impl Activation {
    /// Describes `max(x, 0)`, or the identity. NaN is preserved.
    pub fn new(relu: bool) -> Result<Activation, KernelError> {
        let made = Activation::empty()?;
        let mode = match relu {
            true => cudnnActivationMode_t::CUDNN_ACTIVATION_RELU,
            false => cudnnActivationMode_t::CUDNN_ACTIVATION_IDENTITY,
        };
        let nan = cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN;
        // SAFETY: a descriptor of this object.
        let result = unsafe { (made.api.cudnnSetActivationDescriptor)(made.raw, mode, nan, 0.0) };
        made.api.check(result, "cudnnSetActivationDescriptor")?;
        Ok(made)
    }
}

impl Pools {
    /// Describes windows of given rows and columns; a window gives its greatest element, or the
    /// mean of its elements that are not padding. A NaN is never the greatest.
    pub fn new(
        mode: cudnnPoolingMode_t,
        window: [c_int; 2],
        padding: [c_int; 2],
        strides: [c_int; 2],
    ) -> Result<Pools, KernelError> {
        let made = Pools::empty()?;
        let nan = cudnnNanPropagation_t::CUDNN_NOT_PROPAGATE_NAN;
        let ([h, w], [top, left], [down, right]) = (window, padding, strides);
        // SAFETY: a descriptor of this object.
        let result = unsafe {
            (made.api.cudnnSetPooling2dDescriptor)(
                made.raw, mode, nan, h, w, top, left, down, right,
            )
        };
        made.api.check(result, "cudnnSetPooling2dDescriptor")?;
        Ok(made)
    }
}
