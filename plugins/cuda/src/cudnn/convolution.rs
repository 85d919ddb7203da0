//! A convolution of given shapes by cuDNN.
//!
//! `y = activation(convolution(x, filter) + z + bias)`, where `z`, `bias` and the activation are
//! optional.
//!
//! cuDNN's heuristics rank its algorithms for the convolution alone. An algorithm may not support
//! what follows it, which only the call itself reports: then the next algorithm is tried, until
//! none is left.

use super::{
    api::{Api, Number, Performance},
    descriptors::{Activation, Filter, Tensor, Windows},
    handles::Handles,
    numbers::{ALGORITHMS, IMPLICIT_PRECOMP_GEMM, LAST_DIRECT},
    shapes::{Ending, Order, Shapes},
};
use crate::{
    arguments::{Factors, pointer},
    device::{Context, Stream},
    search,
};
use cudarc::cudnn::sys::{
    cudnnDataType_t as DataType, cudnnHandle_t, cudnnTensorFormat_t as Format,
};
use std::{
    ffi::c_int,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tenon_sdk::{Code, KernelError};

/// Most scratch memory that an algorithm may ask for.
const MOST_WORKSPACE: usize = 256 << 20;

/// Number of results requested: an algorithm may appear twice, with and without tensor cores.
const RESULTS: usize = 2 * ALGORITHMS;

/// An algorithm, and the scratch memory that it needs.
#[derive(Debug, Clone, Copy)]
struct Way {
    algorithm: Number,
    workspace: usize,
}

/// Descriptors and algorithms of a convolution.
pub(crate) struct Convolution {
    api: &'static Api,
    x: Tensor,
    filter: Filter,
    y: Tensor,
    bias: Tensor,
    windows: Windows,
    activation: Activation,
    ending: Ending,
    factors: Factors,
    /// Algorithms as the heuristics rank them.
    ways: Vec<Way>,
    /// Index of the algorithm in use; the length of `ways` when none is left.
    current: AtomicUsize,
    /// Whether a measurement would yield nothing more.
    searched: AtomicBool,
}

/// Addresses of a call; 0 for an absent operand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub x: u64,
    pub filter: u64,
    pub bias: u64,
    pub other: u64,
    pub y: u64,
    pub workspace: u64,
}

pub(super) fn format_of(order: Order) -> Format {
    match order {
        Order::ChannelsLast => Format::CUDNN_TENSOR_NHWC,
        Order::ChannelsFirst => Format::CUDNN_TENSOR_NCHW,
    }
}

impl Convolution {
    /// Describes the convolution, and asks cuDNN's heuristics for algorithms.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` where cuDNN has no algorithm for it; cuDNN's error.
    pub fn new(
        shapes: &Shapes,
        handles: &Handles,
        stream: &Stream,
    ) -> Result<Convolution, KernelError> {
        let (ty, computes) = shapes.types()?;
        let format = format_of(shapes.order);
        let mut made = Convolution {
            api: Api::get()?,
            x: Tensor::new(format, ty, shapes.x)?,
            filter: Filter::new(format, ty, shapes.filter)?,
            y: Tensor::new(format, ty, shapes.y)?,
            bias: Tensor::new(format, ty, [1, shapes.y[1], 1, 1])?,
            windows: Windows::new(&shapes.steps, shapes.groups, computes, shapes.math())?,
            activation: Activation::new(shapes.ending.relu)?,
            ending: shapes.ending,
            factors: Factors::new(ty == DataType::CUDNN_DATA_DOUBLE),
            ways: Vec::new(),
            current: AtomicUsize::new(0),
            searched: AtomicBool::new(false),
        };
        made.ways = handles.with(stream, |handle| made.rank(handle))?;
        match made.ways.is_empty() {
            true => Err(KernelError::unimplemented("cuDNN has no algorithm for a convolution")),
            false => Ok(made),
        }
    }

    /// The usable algorithms in the heuristics' order: direct ones, whose results are within what
    /// the kernel promises, that use only the allowed products and little enough memory, whatever
    /// the heuristics name.
    fn rank(&self, handle: cudnnHandle_t) -> Result<Vec<Way>, KernelError> {
        let mut found = [Performance::default(); RESULTS];
        let mut count: c_int = 0;
        // SAFETY: the handle exists, the descriptors are filled, and there is room for the number
        // of results given.
        let result = unsafe {
            (self.api.cudnnGetConvolutionForwardAlgorithm_v7)(
                handle,
                self.x.raw(),
                self.filter.raw(),
                self.windows.raw(),
                self.y.raw(),
                RESULTS as c_int,
                &mut count,
                found.as_mut_ptr(),
            )
        };
        self.api.check(result, "cudnnGetConvolutionForwardAlgorithm_v7")?;
        let count = usize::try_from(count).unwrap_or(0).min(RESULTS);
        // cuDNN has only one algorithm with a bias and no activation.
        let only_precomputed = !self.ending.is_none() && !self.ending.relu;
        let wanted = |one: &&Performance| {
            one.status == 0
                && one.algorithm <= LAST_DIRECT
                && (!only_precomputed || one.algorithm == IMPLICIT_PRECOMP_GEMM)
        };
        let mut ways: Vec<Way> = Vec::new();
        for algorithm in found[..count].iter().filter(wanted).map(|one| one.algorithm) {
            // The heuristics may name an algorithm for several kinds of products.
            if !ways.iter().any(|way| way.algorithm == algorithm)
                && let Some(workspace) = self.workspace_of(handle, algorithm)
            {
                ways.push(Way { algorithm, workspace });
            }
        }
        Ok(ways)
    }

    /// Scratch memory of an algorithm; `None` where it does not work or takes too much.
    fn workspace_of(&self, handle: cudnnHandle_t, algorithm: Number) -> Option<usize> {
        let mut bytes = 0usize;
        // SAFETY: the handle exists, the descriptors are filled, and the result pointer is valid
        // for writes.
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

    /// Whether a search may find a faster algorithm.
    pub fn is_open(&self) -> bool {
        self.ways.len() > 1 && !self.searched.load(Ordering::Relaxed)
    }

    /// Bytes of scratch memory that suffice for each of the algorithms.
    pub fn most_workspace(&self) -> usize {
        self.ways.iter().map(|way| way.workspace).max().unwrap_or(0)
    }

    /// Bytes of scratch memory for a call; `None` when no algorithm is left.
    pub fn workspace(&self) -> Option<usize> {
        let current = self.current.load(Ordering::Relaxed);
        self.ways.get(current).map(|way| way.workspace)
    }

    /// Selects the fastest algorithm for all later calls; waits for the device. The result is
    /// written.
    ///
    /// # Errors
    /// As [`Convolution::run`].
    ///
    /// # Safety
    /// - The caller upholds what [`Convolution::run`] requires.
    /// - There is scratch memory of [`Convolution::most_workspace`] bytes.
    pub unsafe fn search(
        &self,
        context: &Arc<Context>,
        handles: &Handles,
        stream: &Stream,
        at: Addresses,
    ) -> Result<(), KernelError> {
        let run = |way: usize| {
            let way = self.ways[way];
            // SAFETY: the caller guarantees that the addresses are of tensors of the shapes, and of
            // scratch memory for any of the algorithms.
            handles.with(stream, |handle| unsafe { self.call(handle, way, at) })
        };
        let fastest = search::fastest(context, stream, self.ways.len(), run);
        self.searched.store(true, Ordering::Relaxed);
        match fastest {
            Ok(fastest) => self.current.store(fastest, Ordering::Relaxed),
            // Later calls reach the same conclusion.
            Err(error) if error.code == Code::UNIMPLEMENTED => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Enqueues the convolution; false when the current algorithm does not support what follows it:
    /// then the next one becomes current.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost; cuDNN's error.
    ///
    /// # Safety
    /// - The addresses are of tensors of the shapes, on the stream's device.
    /// - There are as many bytes of scratch memory as `workspace` says.
    /// - All of them stay valid until the device has completed the call.
    pub unsafe fn run(
        &self,
        handles: &Handles,
        stream: &Stream,
        at: Addresses,
        workspace: usize,
    ) -> Result<bool, KernelError> {
        let current = self.current.load(Ordering::Relaxed);
        // Another call may have moved on to an algorithm that needs more.
        let Some(&way) = self.ways.get(current).filter(|way| way.workspace <= workspace) else {
            return Ok(false);
        };
        // SAFETY: the caller guarantees that the addresses are of tensors of the shapes, and of as
        // much scratch memory as it says; that is enough for this algorithm.
        let done = handles.with(stream, |handle| unsafe { self.call(handle, way, at) });
        match done {
            Err(error) if error.code == Code::UNIMPLEMENTED => {
                let next = current + 1;
                // If another call has moved on first, its choice remains.
                let _ = self.current.compare_exchange(
                    current,
                    next,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }

    /// # Safety
    /// - The caller upholds what [`Convolution::run`] requires.
    unsafe fn call(
        &self,
        handle: cudnnHandle_t,
        way: Way,
        at: Addresses,
    ) -> Result<(), KernelError> {
        // SAFETY: the caller guarantees that the addresses are of tensors of the shapes, and of as
        // much scratch memory as `way` wants.
        unsafe {
            match self.ending.is_none() {
                true => self.plain(handle, way, at),
                false => self.ended(handle, way, at),
            }
        }
    }

    /// # Safety
    /// - The caller upholds what [`Convolution::run`] requires.
    unsafe fn plain(
        &self,
        handle: cudnnHandle_t,
        way: Way,
        at: Addresses,
    ) -> Result<(), KernelError> {
        // SAFETY: the handle exists, the descriptors are filled, and the factors have their type;
        // the caller guarantees that the addresses are of such tensors, and of as much scratch
        // memory as `way` wants.
        let result = unsafe {
            (self.api.cudnnConvolutionForward)(
                handle,
                self.factors.one(),
                self.x.raw(),
                pointer(at.x),
                self.filter.raw(),
                pointer(at.filter),
                self.windows.raw(),
                way.algorithm,
                pointer(at.workspace),
                way.workspace,
                self.factors.zero(),
                self.y.raw(),
                pointer(at.y),
            )
        };
        self.api.check(result, "cudnnConvolutionForward")
    }

    /// # Safety
    /// - The caller upholds what [`Convolution::run`] requires.
    unsafe fn ended(
        &self,
        handle: cudnnHandle_t,
        way: Way,
        at: Addresses,
    ) -> Result<(), KernelError> {
        // Without `z` its factor is 0, and the output's address takes its place.
        let (other, factor) = match self.ending.other {
            true => (at.other, self.factors.one()),
            false => (at.y, self.factors.zero()),
        };
        // SAFETY: as in `plain`.
        let result = unsafe {
            (self.api.cudnnConvolutionBiasActivationForward)(
                handle,
                self.factors.one(),
                self.x.raw(),
                pointer(at.x),
                self.filter.raw(),
                pointer(at.filter),
                self.windows.raw(),
                way.algorithm,
                pointer(at.workspace),
                way.workspace,
                factor,
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
