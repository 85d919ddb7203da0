//! Kernels of neural network ops.

use super::Launch;
use std::marker::PhantomData;
use tenon_reference::{Accumulate, LowestFinite, nn};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Float, Number},
    geometry::{
        ChannelSplit, Conv2dGeometry, ConvAttributes, DataFormat, Pool2dGeometry, PoolAttributes,
    },
    register_kernel,
};

/// `Conv2D`.
struct Conv2d<T> {
    attributes: ConvAttributes,
    element: PhantomData<fn() -> T>,
}

impl<T: Accumulate> Kernel for Conv2d<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Conv2d { attributes: ConvAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let plan = Conv2dGeometry::new(&self.attributes.params(c.dims(0), c.dims(1)))?;
        let launch = Launch::new(c)?;
        let (input, filter) = (launch.input::<T>(0)?, launch.input::<T>(1)?);
        let output = launch.output::<T>(0, &plan.output_dims())?;
        launch.enqueue("conv2d", move |memory| {
            let (input, filter) = (input.read(memory)?, filter.read(memory)?);
            output.write(memory, |output| nn::conv2d(&plan, &input, &filter, output))
        })
    }
}

register_kernel!("Conv2D" on "ACCEL": Conv2d<T> for "T" in [f32, f64]);

/// `MaxPool`.
struct MaxPool<T> {
    attributes: PoolAttributes,
    element: PhantomData<fn() -> T>,
}

impl<T: Number + LowestFinite> Kernel for MaxPool<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPool { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let plan = Pool2dGeometry::max(&self.attributes.params(c.dims(0)))?;
        let launch = Launch::new(c)?;
        let (input, output) = (launch.input::<T>(0)?, launch.output::<T>(0, &plan.output_dims())?);
        launch.enqueue("max_pool", move |memory| {
            let input = input.read(memory)?;
            output.write(memory, |output| nn::max_pool(&plan, &input, output))
        })
    }
}

register_kernel!("MaxPool" on "ACCEL": MaxPool<T> for "T" in [f32, f64]);

/// `BiasAdd`.
struct BiasAdd<T> {
    format: DataFormat,
    element: PhantomData<fn() -> T>,
}

impl<T: Number> Kernel for BiasAdd<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(BiasAdd { format: DataFormat::parse(c.attr("data_format")?)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let split = ChannelSplit::with_vector(c.dims(0), self.format, "bias", c.dims(1))?;
        let launch = Launch::new(c)?;
        let (x, bias) = (launch.input::<T>(0)?, launch.input::<T>(1)?);
        let y = launch.output::<T>(0, c.dims(0))?;
        launch.enqueue("bias_add", move |memory| {
            let (x, bias) = (x.read(memory)?, bias.read(memory)?);
            y.write(memory, |y| nn::bias_add(&split, &x, &bias, y))
        })
    }
}

register_kernel!("BiasAdd" on "ACCEL": BiasAdd<T> for "T" in [f32, f64, i32]);

fn softmax<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let Some(&cols) = c.dims(0).last() else {
        return Err(KernelError::invalid_argument(
            "logits: expected at least one dimension, found none",
        ));
    };
    let cols = usize::try_from(cols).map_err(|_| KernelError::internal("a negative dimension"))?;
    let launch = Launch::new(c)?;
    let (x, y) = (launch.input::<T>(0)?, launch.output::<T>(0, c.dims(0))?);
    launch.enqueue("softmax", move |memory| {
        let x = x.read(memory)?;
        y.write(memory, |y| nn::softmax(cols, &x, y))
    })
}

register_kernel!("Softmax" on "ACCEL": fn softmax<T> for "T" in [f32, f64]);
