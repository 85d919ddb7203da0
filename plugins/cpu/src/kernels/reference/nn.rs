//! Neural networks.

use super::ROUNDED;
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_reference::{
    Accumulate, LowestFinite,
    nn::{self, BatchNormInputs, BatchNormOutputs, BatchNormParams},
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, Float, Number},
    geometry::{
        BatchNormAttributes, ChannelSplit, Conv2dGeometry, ConvAttributes, DataFormat,
        Pool2dGeometry, PoolAttributes,
    },
    reg::Numerics,
    register_kernel,
};

fn softmax<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let Some(&cols) = x.dims.last() else {
        return Err(KernelError::invalid_argument(
            "logits must have at least 1 dimension, found a scalar",
        ));
    };
    nn::softmax(cols as usize, x.data, c.output::<T>(0, x.dims)?.data);
    Ok(())
}

struct BiasAdd<T> {
    format: DataFormat,
    element: PhantomData<T>,
}

impl<T: Number> Kernel for BiasAdd<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let format = DataFormat::parse(c.attr("data_format")?)?;
        Ok(BiasAdd { format, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, bias) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let split = ChannelSplit::with_vector(x.dims, self.format, "bias", bias.dims)?;
        nn::bias_add(&split, x.data, bias.data, c.output::<T>(0, x.dims)?.data);
        Ok(())
    }
}

fn convolve<T: Accumulate>(c: &ComputeContext<'_>, g: &Conv2dGeometry) -> Result<(), KernelError> {
    let (x, filter) = (c.input::<T>(0)?, c.input::<T>(1)?);
    let y = c.output::<T>(0, &g.output_dims())?.data;
    if !y.is_empty() {
        nn::conv2d(g, x.data, filter.data, y);
    }
    Ok(())
}

struct Conv2d<T> {
    attributes: ConvAttributes,
    element: PhantomData<T>,
}

impl<T: Accumulate> Kernel for Conv2d<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Conv2d { attributes: ConvAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        convolve::<T>(c, &Conv2dGeometry::new(&self.attributes.params(c.dims(0), c.dims(1)))?)
    }
}

struct Depthwise<T> {
    attributes: ConvAttributes,
    element: PhantomData<T>,
}

impl<T: Accumulate> Kernel for Depthwise<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Depthwise { attributes: ConvAttributes::depthwise(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        convolve::<T>(c, &Conv2dGeometry::depthwise(&self.attributes.params(c.dims(0), c.dims(1)))?)
    }
}

fn pool<T: Element>(
    c: &ComputeContext<'_>,
    g: &Pool2dGeometry,
    f: fn(&Pool2dGeometry, &[T], &mut [T]),
) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    f(g, x.data, c.output::<T>(0, &g.output_dims())?.data);
    Ok(())
}

struct MaxPool<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: LowestFinite> Kernel for MaxPool<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPool { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        pool::<T>(c, &Pool2dGeometry::max(&self.attributes.params(c.dims(0)))?, nn::max_pool)
    }
}

struct AvgPool<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Accumulate> Kernel for AvgPool<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(AvgPool { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        pool::<T>(c, &Pool2dGeometry::average(&self.attributes.params(c.dims(0)))?, nn::avg_pool)
    }
}

struct FusedBatchNorm<T> {
    attributes: BatchNormAttributes,
    element: PhantomData<T>,
}

impl<T: Float> Kernel for FusedBatchNorm<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedBatchNorm { attributes: BatchNormAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let split = self.attributes.split(std::array::from_fn(|input| c.dims(input)))?;
        let params = BatchNormParams {
            epsilon: self.attributes.epsilon,
            exponential_avg_factor: self.attributes.factor,
            is_training: self.attributes.is_training,
        };
        let given = |input| Ok::<_, KernelError>(c.input::<f32>(input)?.data);
        let inputs = BatchNormInputs {
            x: x.data,
            scale: given(1)?,
            offset: given(2)?,
            mean: given(3)?,
            variance: given(4)?,
        };
        let list =
            |output| Ok::<_, KernelError>(c.output::<f32>(output, &[split.channels as i64])?.data);
        let mut outputs = BatchNormOutputs {
            y: c.output::<T>(0, x.dims)?.data,
            batch_mean: list(1)?,
            batch_variance: list(2)?,
            reserve_space_1: list(3)?,
            reserve_space_2: list(4)?,
        };
        nn::fused_batch_norm(&split, &params, &inputs, &mut outputs);
        c.output::<f32>(5, &[])?.data.fill(0.0);
        Ok(())
    }
}

register_kernel!("Softmax" on "CPU": fn softmax<T> for "T" in [f16, bf16, f32, f64],
    label = "reference", on_request = true, numerics = ROUNDED);
register_kernel!("BiasAdd" on "CPU": BiasAdd<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    label = "reference", on_request = true, numerics = Numerics::EXACT);
register_kernel!("Conv2D" on "CPU": Conv2d<T> for "T" in [i32, f16, bf16, f32, f64],
    label = "reference", on_request = true, numerics = ROUNDED);
register_kernel!("DepthwiseConv2dNative" on "CPU": Depthwise<T> for "T" in [f16, bf16, f32, f64],
    label = "reference", on_request = true, numerics = ROUNDED);
register_kernel!("MaxPool" on "CPU": MaxPool<T>
    for "T" in [i8, i16, i32, i64, u8, u16, f16, bf16, f32, f64],
    label = "reference", on_request = true, numerics = Numerics::EXACT);
register_kernel!("AvgPool" on "CPU": AvgPool<T> for "T" in [f16, bf16, f32, f64],
    label = "reference", on_request = true, numerics = ROUNDED);
register_kernel!("FusedBatchNormV3" on "CPU": FusedBatchNorm<T> for "T" in [f16, bf16, f32],
    types = ("U", &[DType::FLOAT]), label = "reference", on_request = true, numerics = ROUNDED);
