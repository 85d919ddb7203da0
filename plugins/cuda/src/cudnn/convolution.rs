//! A convolution of some shapes, as cuDNN computes it.
//!
//! `y = activation(convolution(x, filter) + z + bias)`, with what there is of it.

use super::{
    api::{Api, Number, Performance},
    descriptors::{Activation, Extents, Filter, Steps, Tensor, Windows},
    handles::Handles,
};
use crate::device::Stream;
use cudarc::cudnn::sys::{
    cudnnDataType_t as DataType, cudnnHandle_t, cudnnTensorFormat_t as Format,
};
use std::ffi::{c_int, c_void};
use tenon_sdk::{
    Code, DType, KernelError,
    geometry::{Conv2dGeometry, DataFormat, WindowDim},
};

/// `CUDNN_DEFAULT_MATH`, which includes TF32; `CUDNN_TENSOR_OP_MATH`; `CUDNN_FMA_MATH`, which does not.
const DEFAULT_MATH: Number = 0;
const TENSOR_MATH: Number = 1;
const FMA_MATH: Number = 3;

/// `CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM`: the only one with a bias and no activation.
const IMPLICIT_PRECOMP_GEMM: Number = 1;

/// Algorithms that cuDNN has.
const ALGORITHMS: usize = 8;

/// Most scratch memory that an algorithm may ask for.
const MOST_WORKSPACE: usize = 256 << 20;

/// Order of a filter's dimensions; that of the images goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// Outputs, rows, columns, channels.
    ChannelsLast,
    /// Outputs, channels, rows, columns.
    ChannelsFirst,
}

/// What follows the convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Ending {
    /// A vector of one value for each output channel.
    pub bias: bool,
    /// A tensor of the output's shape.
    pub other: bool,
    /// `max(x, 0)`.
    pub relu: bool,
}

impl Ending {
    fn is_none(self) -> bool {
        self == Ending::default()
    }
}

/// All that a convolution depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Shapes {
    pub order: Order,
    pub dtype: DType,
    pub tf32: bool,
    pub ending: Ending,
    x: Extents,
    filter: Extents,
    y: Extents,
    steps: Steps,
    groups: c_int,
}

impl Shapes {
    /// Of a known geometry; the reason where cuDNN has none of this kind.
    pub fn new(
        g: &Conv2dGeometry,
        dtype: DType,
        tf32: bool,
        ending: Ending,
    ) -> Result<Shapes, String> {
        let small = |value: i64| {
            c_int::try_from(value).map_err(|_| format!("cuDNN has sizes below 2^31, found {value}"))
        };
        let extents = |all: [i64; 4]| -> Result<Extents, String> {
            let elements = all.iter().try_fold(1i64, |product, one| product.checked_mul(*one));
            if elements.is_none_or(|elements| elements >= 1 << 31) {
                return Err(format!(
                    "cuDNN has tensors of fewer than 2^31 elements, found {all:?}"
                ));
            }
            let [a, b, c, d] = all.map(small);
            Ok([a?, b?, c?, d?])
        };
        let pair = |rows: i64, columns: i64| Ok::<_, String>([small(rows)?, small(columns)?]);
        let (h, w) = (&g.height, &g.width);
        if let Some(dim) = [h, w].into_iter().find(|dim| !is_symmetric(dim)) {
            return Err(format!(
                "cuDNN pads both sides alike, found {} before and {} after for {} outputs",
                dim.pad_before, dim.pad_after, dim.output
            ));
        }
        let order = match g.format {
            DataFormat::Nhwc => Order::ChannelsLast,
            DataFormat::Nchw => Order::ChannelsFirst,
        };
        Ok(Shapes {
            order,
            dtype,
            tf32,
            ending,
            x: extents([g.batch, g.in_channels, h.input, w.input])?,
            filter: extents([g.out_channels, g.filter_channels, h.kernel, w.kernel])?,
            y: extents([g.batch, g.out_channels, h.output, w.output])?,
            steps: Steps {
                padding: pair(h.pad_before, w.pad_before)?,
                strides: pair(h.stride, w.stride)?,
                dilations: pair(h.dilation, w.dilation)?,
            },
            groups: small(g.groups)?,
        })
    }

    fn types(&self) -> Result<(DataType, DataType), KernelError> {
        Ok(match self.dtype {
            DType::FLOAT => (DataType::CUDNN_DATA_FLOAT, DataType::CUDNN_DATA_FLOAT),
            DType::HALF => (DataType::CUDNN_DATA_HALF, DataType::CUDNN_DATA_FLOAT),
            DType::BFLOAT16 => (DataType::CUDNN_DATA_BFLOAT16, DataType::CUDNN_DATA_FLOAT),
            other => {
                let what = format!("convolutions of {other} do not go through cuDNN");
                return Err(KernelError::unimplemented(what));
            }
        })
    }

    /// Products that are allowed.
    fn math(&self) -> Number {
        match (self.dtype, self.tf32) {
            (DType::FLOAT, false) => FMA_MATH,
            (DType::FLOAT, true) => DEFAULT_MATH,
            _ => TENSOR_MATH,
        }
    }
}

/// Whether padding of `pad_before` on both sides gives these outputs. Padding behind that no window reaches does not
/// count.
fn is_symmetric(dim: &WindowDim) -> bool {
    let WindowDim { input, kernel, stride, dilation, pad_before, output, .. } = *dim;
    let span = (kernel - 1).checked_mul(dilation).and_then(|span| span.checked_add(1));
    let padded = pad_before.checked_mul(2).and_then(|padding| padding.checked_add(input));
    match padded.zip(span) {
        Some((padded, span)) if padded >= span => (padded - span) / stride + 1 == output,
        _ => false,
    }
}

/// Descriptors and algorithm.
pub(crate) struct Convolution {
    api: &'static Api,
    x: Tensor,
    filter: Filter,
    y: Tensor,
    bias: Tensor,
    windows: Windows,
    activation: Activation,
    ending: Ending,
    algorithm: Number,
    workspace: usize,
}

/// Addresses of a call; 0 for what there is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub x: u64,
    pub filter: u64,
    pub bias: u64,
    pub other: u64,
    pub y: u64,
    pub workspace: u64,
}

fn pointer(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

impl Convolution {
    /// Asks cuDNN's heuristics.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` where cuDNN has no algorithm for this; what cuDNN says.
    pub fn new(
        shapes: &Shapes,
        handles: &Handles,
        stream: &Stream,
    ) -> Result<Convolution, KernelError> {
        let (ty, computes) = shapes.types()?;
        let format = match shapes.order {
            Order::ChannelsLast => Format::CUDNN_TENSOR_NHWC,
            Order::ChannelsFirst => Format::CUDNN_TENSOR_NCHW,
        };
        let mut made = Convolution {
            api: Api::get()?,
            x: Tensor::new(format, ty, shapes.x)?,
            filter: Filter::new(format, ty, shapes.filter)?,
            y: Tensor::new(format, ty, shapes.y)?,
            bias: Tensor::new(format, ty, [1, shapes.y[1], 1, 1])?,
            windows: Windows::new(&shapes.steps, shapes.groups, computes, shapes.math())?,
            activation: Activation::new(shapes.ending.relu)?,
            ending: shapes.ending,
            algorithm: 0,
            workspace: 0,
        };
        handles.with(stream, |handle| made.choose(handle))?;
        Ok(made)
    }

    /// The first algorithm, in the heuristics' order, that does what is wanted with little enough memory. It keeps the
    /// products that are allowed: the heuristics may name others.
    fn choose(&mut self, handle: cudnnHandle_t) -> Result<(), KernelError> {
        let mut found = [Performance::default(); ALGORITHMS];
        let mut count: c_int = 0;
        // SAFETY: a handle that is there, filled descriptors, places for as many results as are said.
        let result = unsafe {
            (self.api.cudnnGetConvolutionForwardAlgorithm_v7)(
                handle,
                self.x.raw(),
                self.filter.raw(),
                self.windows.raw(),
                self.y.raw(),
                ALGORITHMS as c_int,
                &mut count,
                found.as_mut_ptr(),
            )
        };
        self.api.check(result, "cudnnGetConvolutionForwardAlgorithm_v7")?;
        let count = usize::try_from(count).unwrap_or(0).min(ALGORITHMS);
        let only_precomputed = !self.ending.is_none() && !self.ending.relu;
        for one in found[..count].iter().filter(|one| one.status == 0) {
            if only_precomputed && one.algorithm != IMPLICIT_PRECOMP_GEMM {
                continue;
            }
            if let Some(workspace) = self.workspace_of(handle, one.algorithm) {
                (self.algorithm, self.workspace) = (one.algorithm, workspace);
                return Ok(());
            }
        }
        Err(KernelError::new(
            Code::UNIMPLEMENTED,
            format!("cuDNN names {count} algorithms for a convolution, and none that can be used"),
        ))
    }

    /// Scratch memory of an algorithm; `None` where it does not work or takes too much.
    fn workspace_of(&self, handle: cudnnHandle_t, algorithm: Number) -> Option<usize> {
        let mut bytes = 0usize;
        // SAFETY: a handle that is there, filled descriptors, a place for the result.
        let result = unsafe {
            (self.api.cudnnGetConvolutionForwardWorkspaceSize)(
                handle,
                self.x.raw(),
                self.filter.raw(),
                self.windows.raw(),
                self.y.raw(),
                algorithm,
                &mut bytes,
            )
        };
        (result == 0 && bytes <= MOST_WORKSPACE).then_some(bytes)
    }

    /// Bytes of scratch memory for a call.
    pub fn workspace(&self) -> usize {
        self.workspace
    }

    /// Enqueues it.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost; what cuDNN says.
    ///
    /// # Safety
    /// The addresses are of tensors of the shapes, and of as much scratch memory as is asked for, on the stream's
    /// device, until the call is done there.
    pub unsafe fn run(
        &self,
        handles: &Handles,
        stream: &Stream,
        at: Addresses,
    ) -> Result<(), KernelError> {
        handles.with(stream, |handle| {
            // SAFETY: the caller's promise.
            unsafe {
                if self.ending.is_none() { self.plain(handle, at) } else { self.ended(handle, at) }
            }
        })
    }

    /// # Safety
    /// As [`Convolution::run`].
    unsafe fn plain(&self, handle: cudnnHandle_t, at: Addresses) -> Result<(), KernelError> {
        let (one, zero) = (1f32, 0f32);
        // SAFETY: a handle that is there, filled descriptors; factors are floats for these types; the caller's
        // promise.
        let result = unsafe {
            (self.api.cudnnConvolutionForward)(
                handle,
                (&raw const one).cast(),
                self.x.raw(),
                pointer(at.x),
                self.filter.raw(),
                pointer(at.filter),
                self.windows.raw(),
                self.algorithm,
                pointer(at.workspace),
                self.workspace,
                (&raw const zero).cast(),
                self.y.raw(),
                pointer(at.y),
            )
        };
        self.api.check(result, "cudnnConvolutionForward")
    }

    /// # Safety
    /// As [`Convolution::run`].
    unsafe fn ended(&self, handle: cudnnHandle_t, at: Addresses) -> Result<(), KernelError> {
        let (one, factor) = (1f32, if self.ending.other { 1f32 } else { 0f32 });
        // Without another tensor its factor is 0, and the output stands for it.
        let other = if self.ending.other { at.other } else { at.y };
        // SAFETY: as in `plain`.
        let result = unsafe {
            (self.api.cudnnConvolutionBiasActivationForward)(
                handle,
                (&raw const one).cast(),
                self.x.raw(),
                pointer(at.x),
                self.filter.raw(),
                pointer(at.filter),
                self.windows.raw(),
                self.algorithm,
                pointer(at.workspace),
                self.workspace,
                (&raw const factor).cast(),
                self.y.raw(),
                pointer(other),
                self.bias.raw(),
                pointer(at.bias),
                self.activation.raw(),
                self.y.raw(),
                pointer(at.y),
            )
        };
        self.api.check(result, "cudnnConvolutionBiasActivationForward")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::geometry::DimPadding;

    #[test]
    fn padding_counts_as_far_as_windows_reach() {
        let symmetric = |input, kernel, stride, padding| {
            is_symmetric(&WindowDim::new(input, kernel, stride, 1, padding).unwrap())
        };
        assert!(symmetric(9, 3, 1, DimPadding::Same));
        assert!(symmetric(9, 3, 2, DimPadding::Valid));
        // One before and one behind, though only one behind is said to be needed.
        assert!(symmetric(9, 3, 2, DimPadding::Same));
        // None before, one behind.
        assert!(!symmetric(8, 3, 2, DimPadding::Same));
        // Two behind that no window reaches.
        assert!(symmetric(8, 3, 4, DimPadding::Explicit { before: 0, after: 2 }));
    }
}
