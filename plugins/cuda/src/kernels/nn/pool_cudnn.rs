//! `MaxPool` and `AvgPool` through cuDNN: label `cudnn`, with lower priority than the plugin's own
//! kernels, which move no more bytes (core/docs/decisions/cuda-libraries.md). The plugin's own
//! kernels compute windows that cuDNN does not support.

use super::pool::{Fold, Pool};
use crate::{
    cudnn::{self, Handles, PoolShapes, Pooling},
    device::Library,
    launch::{Launch, device_for},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_sdk::{
    Code, DType, KernelError, author::Supported, geometry::PoolAttributes, prelude::*,
    reg::Numerics,
};

/// Most shapes that are remembered.
const MOST_PLANS: usize = 256;

/// The pooling of a node.
struct CudnnPool {
    own: Pool,
    dtype: DType,
    handles: Library<Handles>,
    /// Plans by shapes. `None`: cuDNN does not support them.
    plans: Mutex<HashMap<PoolShapes, Option<Arc<Pooling>>>>,
}

impl CudnnPool {
    fn new(c: &CreateContext<'_>, fold: Fold) -> Result<CudnnPool, KernelError> {
        Ok(CudnnPool {
            own: Pool::new(c, fold)?,
            dtype: c.attr("T")?,
            handles: Handles::of(device_for(c)?.context())?,
            plans: Mutex::default(),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let params = self.own.attributes.params(c.dims(0));
        let g = self.own.geometry(&params)?;
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, &g.output_dims())?);
        if y.elements == 0 {
            return Ok(());
        }
        if let Ok(shapes) = PoolShapes::new(&g, self.dtype, self.own.fold == Fold::Mean)
            && let Some(plan) = self.plan(&shapes)?
        {
            // SAFETY: tensors of the geometry's shapes.
            match unsafe { plan.run(&self.handles, launch.stream(), x.address, y.address) } {
                Err(error) if error.code == Code::UNIMPLEMENTED => self.keep(shapes, None),
                result => return result,
            }
        }
        self.own.enqueue(&launch, &g, x, y)
    }

    fn plan(&self, shapes: &PoolShapes) -> Result<Option<Arc<Pooling>>, KernelError> {
        let known = self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(shapes).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let made = match Pooling::new(shapes) {
            Ok(made) => Some(Arc::new(made)),
            Err(error) if error.code == Code::UNIMPLEMENTED => None,
            Err(error) => return Err(error),
        };
        self.keep(*shapes, made.clone());
        Ok(made)
    }

    fn keep(&self, shapes: PoolShapes, plan: Option<Arc<Pooling>>) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(shapes, plan);
    }
}

/// Whether cuDNN supports a node.
fn answer(c: &CreateContext<'_>, fold: Fold) -> Result<Supported, KernelError> {
    cudnn::require()?;
    let attributes = PoolAttributes::new(c)?;
    let shape = c.input_shape(0);
    let Some(input) = shape.full() else { return Ok(Supported::DependsOnShapes) };
    let g = fold.geometry(&attributes.params(input.dims()))?;
    Ok(match PoolShapes::new(&g, c.attr("T")?, fold == Fold::Mean) {
        Ok(_) => Supported::Yes,
        Err(reason) => Supported::No(reason),
    })
}

macro_rules! pools {
    ($($name:ident $fold:ident;)*) => {$(
        struct $name(CudnnPool);

        impl Kernel for $name {
            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                CudnnPool::new(c, Fold::$fold).map($name)
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                self.0.compute(c)
            }
        }

        impl Supports for $name {
            fn supports(c: &CreateContext<'_>) -> Supported {
                answer(c, Fold::$fold).unwrap_or_else(|error| Supported::No(error.message))
            }
        }
    )*};
}

pools! {
    MaxPool Greatest;
    AvgPool Mean;
}

const FLOATS: &[DType] = &[DType::HALF, DType::BFLOAT16, DType::FLOAT, DType::DOUBLE];

// The kernels agree for numbers; cuDNN does not specify the result of windows that contain none.
register_kernel!("MaxPool" on "CUDA": MaxPool, types = ("T", FLOATS), label = "cudnn", priority = -1,
    numerics = Numerics::EXACT);
register_kernel!("AvgPool" on "CUDA": AvgPool, types = ("T", &[DType::FLOAT]), label = "cudnn", priority = -1,
    numerics = Numerics::relative(1e-37, 2e-6).accumulation(DType::FLOAT));
register_kernel!("AvgPool" on "CUDA": AvgPool, types = ("T", &[DType::DOUBLE]), label = "cudnn", priority = -1,
    numerics = Numerics::relative(1e-300, 4e-15).accumulation(DType::DOUBLE));
register_kernel!("AvgPool" on "CUDA": AvgPool, types = ("T", &[DType::HALF]), label = "cudnn", priority = -1,
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("AvgPool" on "CUDA": AvgPool, types = ("T", &[DType::BFLOAT16]), label = "cudnn", priority = -1,
    numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));
