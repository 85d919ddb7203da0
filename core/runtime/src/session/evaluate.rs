//! Running kernels ahead of a step: for constant folding.

use super::{Current, Inner, compile::Placed, kernels};
use std::sync::Arc;
use tenon_framework::{
    KernelError, PartialShape, Tensor,
    device::base::DeviceBase,
    registry::{KernelDef, SupportAnswer},
};
use tenon_graph::{Evaluate, Node};
use tenon_host::{
    KnobScope,
    call::StepEnv,
    devices::PluginDevice,
    instance::{KernelInstance, KernelSpec, call_once},
    resources::ResourceManager,
};

/// Runs nodes on the device where feeds enter, by the kernels that a step would take there.
pub(super) struct Evaluator<'s> {
    session: &'s Inner,
    current: &'s Current,
    device: Arc<PluginDevice>,
    env: StepEnv,
}

impl<'s> Evaluator<'s> {
    pub fn new(placed: &Placed<'s>) -> Evaluator<'s> {
        let session = placed.session;
        let pool = Arc::clone(session.runtime.pool());
        // Resources of its own: what is folded has no state.
        let mut env = StepEnv::new(pool, Arc::new(ResourceManager::new()));
        env.keep_denormals = session.options.keep_denormals;
        let device = Arc::clone(&placed.view.local()[placed.view.client()]);
        Evaluator { session, current: placed.current, device, env }
    }
}

impl Evaluate for Evaluator<'_> {
    fn evaluate(&self, node: &Node, inputs: &[Tensor]) -> Result<Vec<Tensor>, KernelError> {
        let shapes: Vec<PartialShape> =
            inputs.iter().map(|input| PartialShape::from(*input.shape())).collect();
        let constants: Vec<Option<Tensor>> = inputs.iter().cloned().map(Some).collect();
        let _knobs = KnobScope::enter(&self.current.knobs);
        let supports = |kernel: &KernelDef| {
            let def = Arc::new(kernel.clone());
            let answer = self.spec(node, &def, &shapes, &constants).supports();
            answer.unwrap_or_else(|error| SupportAnswer::No(error.message))
        };
        let explanation = kernels::explain(
            self.session,
            self.current,
            &node.op.name,
            node.attrs.attrs(),
            self.device.device_type(),
            &mut { supports },
        );
        let def = explanation.result().map_err(|e| KernelError::unimplemented(e.to_string()))?;
        let instance = KernelInstance::create(&self.spec(node, def, &shapes, &constants))?;
        call_once(&instance, inputs, &self.env)
    }
}

impl Evaluator<'_> {
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
            device: Some(&self.device),
        }
    }
}
