//! `Conv2DBackpropInput` by Winograd's algorithm: the convolution of the gradient of the outputs with the
//! filter in reverse, whose channels and outputs are exchanged.

use super::{
    blocks::Work,
    contract::{Role, fits, gradient_of, supports},
    kernel::{numerics, transformed},
    transforms::{Four, Transform, Two, TwoOfFive},
};
use crate::{
    kernels::{
        array::turn::turn_into,
        linalg::gemm::isa::{Isa, chosen},
        nn::{
            conv_grad::{Backprop, ByInput},
            volume::planar,
        },
    },
    panels::uninitialised,
};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel, Supported, Supports},
    geometry::Conv2dGeometry,
    register_kernel,
};

struct Gradient<T> {
    backprop: Backprop,
    isa: &'static Isa<f32>,
    /// The ordinary kernel, for shapes that the transformation does not support.
    direct: ByInput<f32>,
    transform: PhantomData<T>,
}

impl<T: Transform> Kernel for Gradient<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let isa = chosen(c.knobs())?.expect("there are tiles of floats");
        let (backprop, direct) = (Backprop::new(c)?, ByInput::new(c)?);
        Ok(Gradient { backprop, isa, direct, transform: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = self.backprop.input_dims(c)?;
        let g = planar(&self.backprop.geometry(c, &dims, c.dims(1))?);
        let Some(g) = g.and_then(|g| gradient_of(&g)).filter(fits::<T>) else {
            return self.direct.compute(c);
        };
        let dx = c.output::<f32>(0, &dims)?.data;
        let (filter, dy) = (c.input::<f32>(1)?.data, c.input::<f32>(2)?.data);
        let turned = reversed(c, &g, filter)?;
        let size = [g.in_channels as usize, g.out_channels as usize];
        let factors = transformed::<T>(c, self.isa, size, turned)?;
        Work::<T>::new(&g, [dy, turned], factors, dx, None).run(c)
    }
}

/// The filter of the gradient's convolution: the taps in reverse, each with a row for every output and a
/// column for every channel of the filter as it is given.
fn reversed<'a>(
    c: &ComputeContext<'a>,
    g: &Conv2dGeometry,
    filter: &[f32],
) -> Result<&'a [f32], KernelError> {
    let (outputs, channels) = (g.in_channels as usize, g.out_channels as usize);
    let memory = uninitialised::<f32>(c, filter.len())?;
    let plane = channels * outputs;
    for (from, to) in filter.chunks_exact(plane).rev().zip(memory.chunks_exact_mut(plane)) {
        turn_into(from, outputs, [channels, outputs], to, channels);
    }
    Ok(memory)
}

impl<T: Transform> Supports for Gradient<T> {
    fn supports(c: &CreateContext<'_>) -> Supported {
        supports::<T>(c, Role::ByInput)
    }
}

register_kernel!("Conv2DBackpropInput" on "CPU": Gradient<Four>, types = ("T", &[DType::FLOAT]),
    label = "winograd4", priority = 2, host_memory = &["input_sizes"], numerics = numerics::<Four>());
register_kernel!("Conv2DBackpropInput" on "CPU": Gradient<Two>, types = ("T", &[DType::FLOAT]),
    label = "winograd2", priority = 1, host_memory = &["input_sizes"], numerics = numerics::<Two>());
register_kernel!("Conv2DBackpropInput" on "CPU": Gradient<TwoOfFive>, types = ("T", &[DType::FLOAT]),
    label = "winograd5", priority = 3, host_memory = &["input_sizes"], numerics = numerics::<TwoOfFive>());
