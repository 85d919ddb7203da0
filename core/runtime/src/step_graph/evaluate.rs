//! Runs kernels before a step, for constant folding.

use super::{Context, choice, placed::PlacedStep};
use crate::{
    executor::deadline_ns,
    run_limits::{RunLimits, Watched},
};
use std::{cell::RefCell, sync::Arc, time::Duration};
use tenon_framework::{
    KernelError, PartialShape, Tensor,
    device::base::DeviceBase,
    registry::{KernelDef, SupportAnswer},
};
use tenon_graph::{Evaluate, Node};
use tenon_host::{
    call::StepEnv,
    devices::PluginDevice,
    instance::{KernelInstance, KernelSpec, call_once},
    resources::Resources,
};

/// Runs nodes on the client device, with the kernels that a step would use there.
pub(super) struct Evaluator<'s> {
    context: Context<'s>,
    /// The client device; absent where no plugin of this process brings a device.
    device: Option<Arc<PluginDevice>>,
    env: RefCell<StepEnv>,
    run_limits: RunLimits,
    /// Connects the run's token to the kernels that run here.
    _watched: Option<Watched>,
}

impl<'s> Evaluator<'s> {
    pub fn new(placed: &PlacedStep<'s>) -> Evaluator<'s> {
        let context = placed.context;
        let pool = Arc::clone(context.runtime.pool());
        // The evaluation has separate resources, since folded nodes have no state.
        let mut env = StepEnv::new(pool, Arc::new(Resources::new()));
        env.keep_denormals = context.options.keep_denormals;
        let device = placed.view.local().get(placed.view.client()).cloned();
        let run_limits = placed.run_limits.clone();
        let _watched = run_limits.watch(&env.cancellation);
        let env = RefCell::new(env);
        Evaluator { context, device, env, run_limits, _watched }
    }
}

impl Evaluate for Evaluator<'_> {
    fn evaluate(&self, node: &Node, inputs: &[Tensor]) -> Result<Vec<Tensor>, KernelError> {
        self.evaluate_until(node, inputs, self.run_limits.left())
    }

    fn evaluate_within(
        &self,
        node: &Node,
        inputs: &[Tensor],
        time: Duration,
    ) -> Result<Vec<Tensor>, KernelError> {
        let left = self.run_limits.left().map_or(time, |left| left.min(time));
        self.evaluate_until(node, inputs, Some(left))
    }
}

impl Evaluator<'_> {
    /// Computes a node with a kernel that is told to stop after this time.
    fn evaluate_until(
        &self,
        node: &Node,
        inputs: &[Tensor],
        time: Option<Duration>,
    ) -> Result<Vec<Tensor>, KernelError> {
        let device = self.device.as_ref().ok_or_else(|| {
            KernelError::unimplemented(
                "no device of this process computes in host memory: expected one, from a plugin",
            )
        })?;
        let shapes: Vec<PartialShape> =
            inputs.iter().map(|input| PartialShape::from(*input.shape())).collect();
        let constants: Vec<Option<Tensor>> = inputs.iter().cloned().map(Some).collect();
        let supports = |kernel: &KernelDef| {
            let def = Arc::new(kernel.clone());
            let answer = self.spec(node, &def, &shapes, &constants).supports();
            answer.unwrap_or_else(|error| SupportAnswer::No(error.message))
        };
        let explanation = choice::explain(
            self.context,
            &node.op.name,
            node.attrs.attrs(),
            device.device_type(),
            &mut { supports },
        );
        let def = explanation.result().map_err(|e| KernelError::unimplemented(e.to_string()))?;
        let instance = KernelInstance::create(&self.spec(node, def, &shapes, &constants))?;
        self.env.borrow_mut().step.deadline_ns = deadline_ns(time);
        call_once(&instance, inputs, &self.env.borrow())
    }

    fn spec<'a>(
        &'a self,
        node: &'a Node,
        def: &'a Arc<KernelDef>,
        input_shapes: &'a [PartialShape],
        constants: &'a [Option<Tensor>],
    ) -> KernelSpec<'a> {
        KernelSpec {
            def,
            op: &node.op,
            node: &node.name,
            attrs: &node.attrs,
            signature: &node.signature,
            input_shapes,
            constants,
            device: self.device.as_ref(),
            knobs: &self.context.version.knobs,
        }
    }
}
