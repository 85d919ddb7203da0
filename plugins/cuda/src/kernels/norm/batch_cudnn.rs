//! Batch normalisation through cuDNN: label `cudnn`, with lower priority than the plugin's own
//! kernels, which move no more bytes (core/docs/decisions/cuda-libraries.md). The plugin's own
//! kernels compute the statistics of a batch, and the output statistics.

use super::batch::{Call, FusedBatchNorm};
use crate::{
    cudnn::{self, Handles, Lists, Normalisation, Order},
    device::Library,
    launch::device_for,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_sdk::{Code, DType, KernelError, author::Supported, prelude::*, reg::Numerics};

/// Most shapes that are remembered.
const MOST_PLANS: usize = 256;

/// What a normalisation depends on: images, channels, and elements of a channel of an image.
type Sizes = [i64; 3];

/// cuDNN's plan for each size; `None`: cuDNN does not support it.
type Plans = HashMap<(Order, Sizes), Option<Arc<Normalisation>>>;

struct CudnnBatchNorm {
    own: FusedBatchNorm,
    dtype: DType,
    handles: Library<Handles>,
    plans: Mutex<Plans>,
}

impl Kernel for CudnnBatchNorm {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(CudnnBatchNorm {
            own: FusedBatchNorm::new(c)?,
            dtype: c.input_types()[0],
            handles: Handles::of(device_for(c)?.context())?,
            plans: Mutex::default(),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Some(call) = self.own.begin(c)? else { return Ok(()) };
        match self.normalise(&call, c.dims(0)[0])? {
            true => Ok(()),
            false => self.own.normalise(&call),
        }
    }
}

impl Supports for CudnnBatchNorm {
    fn supports(_: &CreateContext<'_>) -> Supported {
        match cudnn::require() {
            Ok(()) => Supported::Yes,
            Err(error) => Supported::No(error.message),
        }
    }
}

impl CudnnBatchNorm {
    /// Normalises by cuDNN; false where it does not support the call.
    fn normalise(&self, call: &Call<'_>, images: i64) -> Result<bool, KernelError> {
        let epsilon = f64::from(self.own.attributes.epsilon);
        // cuDNN accepts no other epsilon.
        if epsilon < 0.0 || epsilon.is_nan() {
            return Ok(false);
        }
        let key = key_of(call, images);
        let Some(plan) = self.plan(key)? else { return Ok(false) };
        let [mean, variance, scale, offset] = call.lists.map(|operand| operand.address);
        let (x, y) = (call.x.address, call.y.address);
        let lists = Lists { x, y, scale, offset, mean, variance };
        // SAFETY: tensors of these sizes, and lists with a float for each channel.
        let done = unsafe { plan.run(&self.handles, call.launch.stream(), lists, epsilon) };
        match done {
            Err(error) if error.code == Code::UNIMPLEMENTED => {
                self.keep(key, None);
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }

    fn plan(&self, key: (Order, Sizes)) -> Result<Option<Arc<Normalisation>>, KernelError> {
        let known = self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let made = match Normalisation::new(key.0, self.dtype, key.1) {
            Ok(made) => Some(Arc::new(made)),
            Err(error) if error.code == Code::UNIMPLEMENTED => None,
            Err(error) => return Err(error),
        };
        self.keep(key, made.clone());
        Ok(made)
    }

    fn keep(&self, key: (Order, Sizes), plan: Option<Arc<Normalisation>>) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(key, plan);
    }
}

/// Channels are last where no dimension follows them.
fn key_of(call: &Call<'_>, images: i64) -> (Order, Sizes) {
    let split = &call.split;
    let (channels, inner) = (split.channels as i64, split.inner as i64);
    match inner {
        1 => (Order::ChannelsLast, [images, channels, split.outer as i64 / images.max(1)]),
        _ => (Order::ChannelsFirst, [images, channels, inner]),
    }
}

register_kernel!("FusedBatchNorm" on "CUDA": CudnnBatchNorm, types = ("T", &[DType::FLOAT]), label = "cudnn",
    priority = -1, numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::FLOAT));

/// Registers the versions in which `x` may be narrower than the statistics.
macro_rules! versions {
    ($($op:literal),*) => {$(
        register_kernel!($op on "CUDA": CudnnBatchNorm, types = ("T", &[DType::FLOAT]),
            types = ("U", &[DType::FLOAT]), label = "cudnn", priority = -1,
            numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::FLOAT));
        register_kernel!($op on "CUDA": CudnnBatchNorm, types = ("T", &[DType::HALF]),
            types = ("U", &[DType::FLOAT]), label = "cudnn", priority = -1,
            numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::FLOAT));
        register_kernel!($op on "CUDA": CudnnBatchNorm, types = ("T", &[DType::BFLOAT16]),
            types = ("U", &[DType::FLOAT]), label = "cudnn", priority = -1,
            numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::FLOAT));
    )*};
}

versions!("FusedBatchNormV2", "FusedBatchNormV3");
