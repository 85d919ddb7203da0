//! Kernels of the gradients that a classifier's training needs.

use super::Launch;
use std::marker::PhantomData;
use tenon_reference::{Accumulate, LowestFinite, nn};
use tenon_sdk::{
    Code, DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Float, Number},
    geometry::{
        ChannelSplit, Conv2dGeometry, ConvAttributes, DataFormat, Pool2dGeometry, PoolAttributes,
        validate_dims,
    },
    register_kernel,
};

fn check_dims(what: &str, expected: &[i64], found: &[i64]) -> Result<(), KernelError> {
    if expected == found {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!("{what}: expected {expected:?}, found {found:?}")))
}

fn relu_grad<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_dims("features must have the shape of gradients", c.dims(0), c.dims(1))?;
    let launch = Launch::new(c)?;
    let (gradients, features) = (launch.input::<T>(0)?, launch.input::<T>(1)?);
    let backprops = launch.output::<T>(0, c.dims(0))?;
    launch.enqueue("relu_grad", move |memory| {
        let (gradients, features) = (gradients.read(memory)?, features.read(memory)?);
        backprops.write(memory, |to| nn::relu_grad(&gradients, &features, to))
    })
}

register_kernel!("ReluGrad" on "ACCEL": fn relu_grad<T> for "T" in [f32, f64]);

/// `BiasAddGrad`.
struct BiasAddGrad<T> {
    format: DataFormat,
    element: PhantomData<fn() -> T>,
}

impl<T: Accumulate> Kernel for BiasAddGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(BiasAddGrad { format: DataFormat::parse(c.attr("data_format")?)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let split = ChannelSplit::new(c.dims(0), self.format)?;
        let launch = Launch::new(c)?;
        let gradients = launch.input::<T>(0)?;
        let bias = launch.output::<T>(0, &[split.channels as i64])?;
        launch.enqueue("bias_add_grad", move |memory| {
            let gradients = gradients.read(memory)?;
            bias.write(memory, |to| nn::bias_add_grad(&split, &gradients, to))
        })
    }
}

register_kernel!("BiasAddGrad" on "ACCEL": BiasAddGrad<T> for "T" in [f32, f64]);

/// `MaxPoolGrad`.
struct MaxPoolGrad<T> {
    attributes: PoolAttributes,
    element: PhantomData<fn() -> T>,
}

impl<T: Accumulate + LowestFinite> Kernel for MaxPoolGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPoolGrad { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let plan = Pool2dGeometry::max(&self.attributes.params(c.dims(0)))?;
        if plan.depth_window != 1 {
            return Err(KernelError::unimplemented("there is no gradient of a pooling over depth"));
        }
        check_dims("orig_output", &plan.output_dims(), c.dims(1))?;
        check_dims("grad", &plan.output_dims(), c.dims(2))?;
        let launch = Launch::new(c)?;
        let (input, gradients) = (launch.input::<T>(0)?, launch.input::<T>(2)?);
        let backprops = launch.output::<T>(0, c.dims(0))?;
        launch.enqueue("max_pool_grad", move |memory| {
            let (input, gradients) = (input.read(memory)?, gradients.read(memory)?);
            backprops.write(memory, |to| nn::max_pool_grad(&plan, &input, &gradients, to))
        })
    }
}

register_kernel!("MaxPoolGrad" on "ACCEL": MaxPoolGrad<T> for "T" in [f32, f64]);

/// Computes the gradient of a convolution from one of its factors and the gradient of its output.
type Gradient<T> = fn(&Conv2dGeometry, &[T], &[T], &mut [T]);

/// TensorFlow refuses strides over batch or depth as invalid for the gradient by the filter, and as unimplemented for the one
/// by the input.
fn refusal(error: KernelError, is_filter: bool) -> KernelError {
    match error.code {
        Code::UNIMPLEMENTED if is_filter => KernelError::invalid_argument(error.message),
        _ => error,
    }
}

/// `Conv2DBackpropInput`, and `Conv2DBackpropFilter` where `FILTER` is true.
struct Backprop<T, const FILTER: bool> {
    attributes: ConvAttributes,
    element: PhantomData<fn() -> T>,
}

impl<T: Accumulate, const FILTER: bool> Kernel for Backprop<T, FILTER> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Backprop { attributes: ConvAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sizes = if FILTER { 1 } else { 0 };
        let dims = self.dims(c)?;
        validate_dims(&dims)?;
        let (input, filter) = if FILTER { (c.dims(0), &dims[..]) } else { (&dims[..], c.dims(1)) };
        let plan = Conv2dGeometry::new(&self.attributes.params(input, filter));
        let plan = plan.map_err(|error| refusal(error.into(), FILTER))?;
        check_dims("out_backprop", &plan.output_dims(), c.dims(2))?;
        let launch = Launch::new(c)?;
        let (factor, gradients) = (launch.input::<T>(1 - sizes)?, launch.input::<T>(2)?);
        let backprops = launch.output::<T>(0, &dims)?;
        let (name, function): (_, Gradient<T>) = match FILTER {
            true => ("conv2d_backprop_filter", nn::conv2d_backprop_filter),
            false => ("conv2d_backprop_input", nn::conv2d_backprop_input),
        };
        launch.enqueue(name, move |memory| {
            let (factor, gradients) = (factor.read(memory)?, gradients.read(memory)?);
            backprops.write(memory, |to| function(&plan, &factor, &gradients, to))
        })
    }
}

impl<T, const FILTER: bool> Backprop<T, FILTER> {
    /// The dimensions of the result. Those of an input may be its rows and columns alone.
    fn dims(&self, c: &ComputeContext<'_>) -> Result<Vec<i64>, KernelError> {
        if FILTER {
            return c.integer_list(1, "filter_sizes");
        }
        let sizes = c.integer_list(0, "input_sizes")?;
        match (&sizes[..], c.dims(2), c.dims(1)) {
            (&[rows, columns], &[batch, ..], &[_, _, channels, _]) => {
                Ok(self.attributes.format().order(batch, rows, columns, channels).to_vec())
            }
            _ => Ok(sizes),
        }
    }
}

type ByInput<T> = Backprop<T, false>;
type ByFilter<T> = Backprop<T, true>;

register_kernel!(
    "Conv2DBackpropInput" on "ACCEL": ByInput<T> for "T" in [f32, f64], host_memory = &["input_sizes"]
);
register_kernel!(
    "Conv2DBackpropFilter" on "ACCEL": ByFilter<T> for "T" in [f32, f64], host_memory = &["filter_sizes"]
);

fn cross_entropy<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.slot(1)?.dtype {
        DType::INT32 => cross_entropy_of::<T, i32>(c),
        _ => cross_entropy_of::<T, i64>(c),
    }
}

fn cross_entropy_of<T: Float, L: Number + Into<i64>>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    let &[rows, classes] = c.dims(0) else {
        let found = c.dims(0);
        let message = format!("features: expected 2 dimensions, found shape {found:?}");
        return Err(KernelError::invalid_argument(message));
    };
    check_dims("labels", &[rows], c.dims(1))?;
    if classes == 0 {
        return Err(KernelError::invalid_argument(
            "features: expected at least 1 class, found none",
        ));
    }
    let launch = Launch::new(c)?;
    let (logits, labels) = (launch.input::<T>(0)?, launch.input::<L>(1)?);
    let (loss, backprops) = (launch.output::<T>(0, &[rows])?, launch.output::<T>(1, c.dims(0))?);
    launch.enqueue("sparse_softmax_cross_entropy", move |memory| {
        let (logits, labels) = (logits.read(memory)?, classes_of(&labels.read(memory)?, classes)?);
        let mut losses = vec![T::ZERO; labels.len()];
        backprops.write(memory, |to| {
            let classes = classes as usize;
            nn::sparse_softmax_cross_entropy(classes, &logits, &labels, &mut losses, to);
        })?;
        loss.write(memory, |to| to.copy_from_slice(&losses))
    })
}

/// The labels, each of which has to be a class.
fn classes_of<L: Copy + Into<i64>>(labels: &[L], classes: i64) -> Result<Vec<usize>, KernelError> {
    let class = |(at, label): (usize, &L)| {
        let label: i64 = (*label).into();
        if (0..classes).contains(&label) {
            return Ok(label as usize);
        }
        let message =
            format!("labels: expected classes in [0, {classes}), found {label} at position {at}");
        Err(KernelError::invalid_argument(message))
    };
    labels.iter().enumerate().map(class).collect()
}

register_kernel!(
    "SparseSoftmaxCrossEntropyWithLogits" on "ACCEL": fn cross_entropy<T> for "T" in [f32, f64]
);
