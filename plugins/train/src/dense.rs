//! Updates of whole variables.

use crate::{
    lane::Trained,
    rules::{
        Rule,
        adaptive::{
            Adadelta, CenteredRmsProp, RmsProp,
            adagrad::{Adagrad, AdagradDa, AdagradV2},
            adam::{AdaMax, Adam, Amsgrad},
        },
        descent::{GradientDescent, KerasMomentum, Momentum},
        proximal::{Ftrl, ProximalAdagrad, ProximalGradientDescent},
        sign::{AddSign, PowerSign},
    },
    run,
    variables::{Door, Handle, Inputs, Reference, each, kernels, memory_ns, same_shape},
};
use std::{array, marker::PhantomData};
use tenon_sdk::prelude::*;
use tenon_vectors::split::{Parts, for_elements};

/// Updates all elements of `N` variables by a rule.
struct Dense<D, T, R, const N: usize> {
    inputs: Inputs,
    of: PhantomData<fn(D, T, R)>,
}

impl<D: Door, T: Trained, R: Rule<T::Lane>, const N: usize> Kernel for Dense<D, T, R, N> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Dense { inputs: Inputs::new::<T::Lane, R>(c, N)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variables: [_; N] = each(|at| D::variable(&state, at))?;
        let variables = variables.each_ref();
        let mut locked = state.lock(&variables)?;
        let views = locked.views_mut::<T, N>()?;
        self.inputs.check_shapes(&views.each_ref().map(|view| view.dims))?;
        let gradient = c.input::<T>(self.inputs.gradient)?;
        same_shape(self.inputs.trained(), views[0].dims, "the gradient", gradient.dims)?;
        let rule = self.inputs.rule::<T, R>(c, false)?;
        let parts = views.map(|view| Parts::new(view.data));
        let whole = run::whole_packets::<T>(gradient.data.len());
        for_elements(c, gradient.data.len(), memory_ns::<T>(N) + R::COST_NS, |range| {
            // SAFETY: ranges of one split are disjoint, and the variables differ.
            let part = |at: usize| unsafe { parts[at].part(range.clone()) };
            let gradient = &gradient.data[range.clone()];
            run::update(
                &rule,
                array::from_fn::<_, N, _>(part),
                gradient,
                whole.saturating_sub(range.start),
            );
        })?;
        drop(locked);
        D::finish(&state, variables[0])
    }
}

type Whole<W> = Momentum<W, false>;
type FtrlV1<W> = Ftrl<W, false>;
type FtrlV2<W> = Ftrl<W, true>;

kernels! {
    Dense:
    GradientDescent 1: "ResourceApplyGradientDescent", "ApplyGradientDescent"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    Whole 2: "ResourceApplyMomentum", "ApplyMomentum"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    KerasMomentum 2: "ResourceApplyKerasMomentum" for [f16, bf16, f32, f64, Complex32, Complex64];
    Adagrad 2: "ResourceApplyAdagrad", "ApplyAdagrad"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    AdagradV2 2: "ResourceApplyAdagradV2", "ApplyAdagradV2"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    AdagradDa 3: "ResourceApplyAdagradDA", "ApplyAdagradDA" for [f32, f64];
    Adadelta 3: "ResourceApplyAdadelta", "ApplyAdadelta"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    RmsProp 3: "ResourceApplyRMSProp", "ApplyRMSProp"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    CenteredRmsProp 4: "ResourceApplyCenteredRMSProp", "ApplyCenteredRMSProp"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    Adam 3: "ResourceApplyAdam", "ApplyAdam" for [f16, bf16, f32, f64, Complex32, Complex64];
    Amsgrad 4: "ResourceApplyAdamWithAmsgrad" for [f16, bf16, f32, f64];
    AdaMax 3: "ResourceApplyAdaMax", "ApplyAdaMax" for [f16, f32, f64];
    AddSign 2: "ResourceApplyAddSign", "ApplyAddSign" for [f16, bf16, f32, f64];
    PowerSign 2: "ResourceApplyPowerSign", "ApplyPowerSign" for [f16, bf16, f32, f64];
    FtrlV1 3: "ResourceApplyFtrl", "ApplyFtrl" for [f16, bf16, f32, f64];
    FtrlV2 3: "ResourceApplyFtrlV2", "ApplyFtrlV2" for [f16, bf16, f32, f64];
    ProximalGradientDescent 1: "ResourceApplyProximalGradientDescent", "ApplyProximalGradientDescent"
        for [f32, f64];
    ProximalAdagrad 2: "ResourceApplyProximalAdagrad", "ApplyProximalAdagrad" for [f32, f64];
}
