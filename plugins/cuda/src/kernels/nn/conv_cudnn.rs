//! `Conv2D` and `_FusedConv2D` through cuDNN.
//!
//! The filter is transposed first, since cuDNN wants outputs outermost. Where cuDNN has no algorithm for some shapes, the
//! plugin's own kernel computes them.

use super::{call::Call, conv::Conv2d, epilogue::Epilogue};
use crate::{
    compile::{Entry, Source, Variant},
    cudnn::{self, Addresses, Convolution, Ending, Handles, Order, Shapes},
    kernels::dtype::word_of,
    launch::{Grid, Launch, Operand, device_for},
    source,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_sdk::{
    Code, DType, KernelError,
    author::{Knob, Supported},
    fused::EpilogueStep,
    geometry::{Conv2dGeometry, ConvAttributes},
    prelude::*,
    reg::Numerics,
    register_knob,
};

register_knob!(
    "convolution_tf32": BOOL = "false",
    "Whether float convolutions through cuDNN may round their factors to TF32 (10 bits behind the point)."
);

static SOURCE: Source = source!("conv_filter.cu");

pub(super) fn variants() -> Vec<Variant> {
    ["u16", "u32"].iter().map(|word| variant(word)).collect()
}

fn variant(word: &str) -> Variant {
    Variant::new(&SOURCE).define("T", word)
}

fn allows_tf32() -> Result<bool, KernelError> {
    match Knob::read("convolution_tf32")? {
        Knob::Bool(allowed) => Ok(allowed),
        _ => Err(KernelError::internal("knob convolution_tf32 is no truth value")),
    }
}

/// What cuDNN does in the place of these steps, and the places of the bias and of the tensor that is added among their
/// inputs.
fn ending_of(steps: &[EpilogueStep]) -> Option<Ending> {
    use EpilogueStep::{Add, BiasAdd, Relu};
    let of = |other, relu| Some(Ending { bias: true, other, relu });
    match steps {
        [] => Some(Ending::default()),
        [BiasAdd] => of(false, false),
        [BiasAdd, Relu] => of(false, true),
        [BiasAdd, Add] => of(true, false),
        [BiasAdd, Add, Relu] => of(true, true),
        _ => None,
    }
}

/// Places of the inputs of [`ending_of`]'s steps.
const BIAS: usize = 0;
const OTHER: usize = 1;

fn answer(c: &CreateContext<'_>) -> Result<Supported, KernelError> {
    cudnn::require()?;
    if c.attrs().has("use_cudnn_on_gpu") && !c.attr::<bool>("use_cudnn_on_gpu")? {
        return Ok(Supported::No("use_cudnn_on_gpu is false".to_owned()));
    }
    let (attributes, epilogue) = (ConvAttributes::new(c)?, Epilogue::new(c)?);
    let Some(ending) = ending_of(epilogue.steps()) else {
        let names: Vec<&str> = epilogue.steps().iter().map(|step| step.name()).collect();
        let reason = "cuDNN follows a convolution by BiasAdd, then perhaps Add, then perhaps Relu";
        return Ok(Supported::No(format!("{reason}: found {}", names.join(", "))));
    };
    let (input, filter) = (c.input_shape(0), c.input_shape(1));
    let (Some(input), Some(filter)) = (input.full(), filter.full()) else {
        return Ok(Supported::DependsOnShapes);
    };
    let g = Conv2dGeometry::new(&attributes.params(input.dims(), filter.dims()))?;
    Ok(match Shapes::new(&g, c.attr("T")?, false, ending) {
        Ok(_) => Supported::Yes,
        Err(reason) => Supported::No(reason),
    })
}

struct CudnnConv2d {
    own: Conv2d,
    dtype: DType,
    ending: Ending,
    tf32: bool,
    handles: Arc<Handles>,
    transpose: Entry<(u64, u64, u32, u32, u32, u32)>,
    /// What cuDNN does with shapes that were seen; `None` where it has nothing.
    plans: Mutex<HashMap<Shapes, Option<Arc<Convolution>>>>,
}

/// Shapes that are remembered.
const MOST_PLANS: usize = 256;

impl Kernel for CudnnConv2d {
    const HAS_SUPPORTS: bool = true;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let device = device_for(c)?;
        let handles = Handles::of(device.context())?;
        let (word, _) = word_of(c.attr("T")?)?;
        let module = device.modules().get(&variant(word))?;
        let own = Conv2d::new(c)?;
        let ending = ending_of(own.epilogue.steps())
            .ok_or_else(|| KernelError::unimplemented("steps that cuDNN does not have"))?;
        Ok(CudnnConv2d {
            own,
            dtype: c.attr("T")?,
            ending,
            tf32: allows_tf32()?,
            handles,
            // SAFETY: the entry takes two addresses and four numbers.
            transpose: unsafe { module.entry("transpose_filter")? },
            plans: Mutex::default(),
        })
    }

    fn supports(c: &CreateContext<'_>) -> Supported {
        answer(c).unwrap_or_else(|error| Supported::No(error.message))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let own = &self.own;
        let g = Conv2dGeometry::new(&own.attributes.params(c.dims(0), c.dims(1)))?;
        let Some(call) = Call::new(c, &own.epilogue, &g.output_dims(), g.format)? else {
            return Ok(());
        };
        let Call { launch, y, x, filter, inputs } = &call;
        let Some((order, plan)) = self.plan(&g, launch)?.filter(|_| x.elements > 0) else {
            return own.enqueue(&call, &g);
        };
        let transposed = self.transposed(launch, &g, order, filter)?;
        let workspace = match plan.workspace() {
            0 => 0,
            bytes => launch.scratch(bytes)?,
        };
        let at = Addresses {
            x: x.address,
            filter: transposed,
            bias: inputs.at(BIAS),
            other: inputs.at(OTHER),
            y: y.address,
            workspace,
        };
        // SAFETY: tensors of the geometry's shapes, and scratch memory of this call.
        unsafe { plan.run(&self.handles, launch.stream(), at) }
    }
}

impl CudnnConv2d {
    /// What cuDNN does for a geometry, if anything.
    fn plan(
        &self,
        g: &Conv2dGeometry,
        launch: &Launch<'_>,
    ) -> Result<Option<(Order, Arc<Convolution>)>, KernelError> {
        let Ok(shapes) = Shapes::new(g, self.dtype, self.tf32, self.ending) else {
            return Ok(None);
        };
        let with_order = |plan: Option<Arc<Convolution>>| plan.map(|plan| (shapes.order, plan));
        let plans = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans().get(&shapes) {
            return Ok(with_order(known.clone()));
        }
        let made = match Convolution::new(&shapes, &self.handles, launch.stream()) {
            Ok(made) => Some(Arc::new(made)),
            // A library without one of its parts, too: a lost device is found out by the kernel that comes instead.
            Err(error) if [Code::UNIMPLEMENTED, Code::UNAVAILABLE].contains(&error.code) => None,
            Err(error) => return Err(error),
        };
        let mut plans = plans();
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        Ok(with_order(plans.entry(shapes).or_insert(made).clone()))
    }

    /// The filter with outputs outermost, in scratch memory.
    fn transposed(
        &self,
        launch: &Launch<'_>,
        g: &Conv2dGeometry,
        order: Order,
        filter: &Operand,
    ) -> Result<u64, KernelError> {
        // Sizes that cuDNN takes are below 2^31.
        let taps = (g.height.kernel * g.width.kernel) as u32;
        let (channels, outputs) = (g.filter_channels as u32, g.out_channels as u32);
        let depth = taps * channels;
        let (channels, taps) = match order {
            Order::ChannelsFirst => (channels, taps),
            Order::ChannelsLast => (depth, 1),
        };
        let bytes = filter.elements as usize * self.dtype.size().unwrap_or(1);
        let to = launch.scratch(bytes)?;
        let blocks = u64::from(depth.div_ceil(32)) * u64::from(outputs.div_ceil(32));
        let arguments = (to, filter.address, depth, outputs, channels, taps);
        // SAFETY: reads and writes as many elements as the filter has, all of them once.
        unsafe { launch.run(&self.transpose, Grid::block_each(blocks, 256)?, arguments)? };
        Ok(to)
    }
}

macro_rules! kernels {
    ($($ty:ident, [$absolute:expr, $relative:expr], [$fused:expr, $by:expr];)*) => {$(
        register_kernel!("Conv2D" on "CUDA": CudnnConv2d, types = ("T", &[DType::$ty]),
            label = "cudnn", priority = 1,
            numerics = Numerics::relative($absolute, $relative).accumulation(DType::FLOAT));
        register_kernel!("_FusedConv2D" on "CUDA": CudnnConv2d, types = ("T", &[DType::$ty]),
            label = "cudnn", priority = 1,
            numerics = Numerics::relative($fused, $by).accumulation(DType::FLOAT));
    )*};
}

// As those of the plugin's own kernels.
kernels! {
    FLOAT, [1e-30, 4e-6], [1e-6, 8e-6];
    HALF, [6e-8, 2e-3], [1e-3, 4e-3];
    BFLOAT16, [1e-30, 1.6e-2], [8e-3, 3.2e-2];
}

#[cfg(test)]
mod tests {
    use super::*;
    use EpilogueStep::{Add, BiasAdd, Elu, FusedBatchNorm, Relu};

    #[test]
    fn cudnn_has_a_bias_another_tensor_and_relu_in_this_order() {
        assert_eq!(ending_of(&[]), Some(Ending::default()));
        let all = Ending { bias: true, other: true, relu: true };
        assert_eq!(ending_of(&[BiasAdd, Add, Relu]), Some(all));
        assert_eq!(ending_of(&[BiasAdd, Relu]), Some(Ending { other: false, ..all }));
        for steps in [&[Add, BiasAdd][..], &[BiasAdd, Elu], &[FusedBatchNorm], &[Relu], &[Add]] {
            assert_eq!(ending_of(steps), None, "{steps:?}");
        }
    }
}
