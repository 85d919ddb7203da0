//! `Conv2D` and `_FusedConv2D` through cuDNN.
//!
//! Where cuDNN has no algorithm for the shapes and the steps, the plugin's own kernel computes
//! them.

use super::{call::Call, conv::Conv2d, conv_filter::Filters, epilogue::Epilogue};
use crate::{
    cudnn::{self, Addresses, Convolution, Ending, Handles, Order, Shapes},
    device::Library,
    launch::{Launch, device_for},
    settings,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_sdk::{
    Code, DType, KernelError,
    abi::Slot,
    author::{Packed, Supported},
    fused::EpilogueStep,
    geometry::{Conv2dGeometry, ConvAttributes},
    prelude::*,
    reg::Numerics,
};

/// What cuDNN does for these steps; `None` where it does not support them.
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

/// Indices of the bias and of the added tensor among the inputs of [`ending_of`]'s steps.
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
    filters: Filters,
    dtype: DType,
    ending: Ending,
    tf32: bool,
    search: bool,
    handles: Library<Handles>,
    /// Plans by the shapes seen so far; `None` where cuDNN has none.
    plans: Mutex<HashMap<Shapes, Option<Arc<Convolution>>>>,
}

/// Most shapes that are remembered.
const MOST_PLANS: usize = 256;

impl Kernel for CudnnConv2d {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (own, dtype) = (Conv2d::new(c)?, c.attr("T")?);
        let ending = ending_of(own.epilogue.steps())
            .ok_or_else(|| KernelError::unimplemented("steps that cuDNN does not have"))?;
        Ok(CudnnConv2d {
            filters: Filters::new(c, dtype, Order::of(own.attributes.format()))?,
            own,
            dtype,
            ending,
            tf32: settings::convolution_tf32(c.knobs())?,
            search: settings::search_convolutions(c.knobs())?,
            handles: Handles::of(device_for(c)?.context())?,
            plans: Mutex::default(),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let own = &self.own;
        let g = Conv2dGeometry::new(&own.attributes.params(c.dims(0), c.dims(1)))?;
        let Some(mut call) = Call::new(c, &own.epilogue, &g.output_dims(), g.format)? else {
            return Ok(());
        };
        // cuDNN has no tensors without elements.
        let plan = if call.x.elements > 0 { self.plan(&g, &call.launch)? } else { None };
        if let Some(plan) = plan
            && self.convolve(&plan, &call, &g)?
        {
            return Ok(());
        }
        call.filter.address = self.filters.of_op(&call.launch, &g, &call.filter)?;
        own.enqueue(&call, &g)
    }
}

impl Supports for CudnnConv2d {
    fn supports(c: &CreateContext<'_>) -> Supported {
        answer(c).unwrap_or_else(|error| Supported::No(error.message))
    }
}

impl Prepack for CudnnConv2d {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        self.filters.prepack(input, view)
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.filters.attach(input, packed);
    }
}

impl CudnnConv2d {
    /// Computes the convolution by cuDNN; false where none of its algorithms supports all of it.
    fn convolve(
        &self,
        plan: &Convolution,
        call: &Call<'_>,
        g: &Conv2dGeometry,
    ) -> Result<bool, KernelError> {
        if plan.workspace().is_none() {
            return Ok(false);
        }
        let Call { launch, y, x, filter, inputs } = call;
        let at = Addresses {
            x: x.address,
            filter: self.filters.of_cudnn(launch, g, filter)?,
            bias: inputs.at(BIAS),
            other: inputs.at(OTHER),
            y: y.address,
            workspace: 0,
        };
        let scratch = |bytes| if bytes == 0 { Ok(0) } else { launch.scratch(bytes) };
        let (context, stream) = (launch.device().context(), launch.stream());
        if self.search && plan.is_open() && !stream.is_recording()? {
            let at = Addresses { workspace: scratch(plan.most_workspace())?, ..at };
            // SAFETY: tensors of the geometry's shapes, and scratch memory of this call for any
            // algorithm.
            unsafe { plan.search(context, &self.handles, stream, at)? };
        }
        while let Some(bytes) = plan.workspace() {
            let at = Addresses { workspace: scratch(bytes)?, ..at };
            // SAFETY: tensors of the geometry's shapes, and scratch memory of this call.
            if unsafe { plan.run(&self.handles, stream, at, bytes)? } {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// cuDNN's plan for a geometry, if it has one.
    fn plan(
        &self,
        g: &Conv2dGeometry,
        launch: &Launch<'_>,
    ) -> Result<Option<Arc<Convolution>>, KernelError> {
        let Ok(shapes) = Shapes::new(g, self.dtype, self.tf32, self.ending) else {
            return Ok(None);
        };
        let plans = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans().get(&shapes) {
            return Ok(known.clone());
        }
        let made = match Convolution::new(&shapes, &self.handles, launch.stream()) {
            Ok(made) => Some(Arc::new(made)),
            // This includes a library that lacks one of its parts. If the device is lost, the
            // fallback kernel reports that.
            Err(error) if [Code::UNIMPLEMENTED, Code::UNAVAILABLE].contains(&error.code) => None,
            Err(error) => return Err(error),
        };
        let mut plans = plans();
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        Ok(plans.entry(shapes).or_insert(made).clone())
    }
}

convolutions!(CudnnConv2d: "Conv2D", "_FusedConv2D", label = "cudnn", priority = 2);

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
