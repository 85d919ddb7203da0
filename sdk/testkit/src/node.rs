//! A node without a graph: what a kernel is made for and called through.
//!
//! What it is: an op's definition with attributes, types and what is known of the inputs, all checked, as a
//! session has it when it makes a kernel. The harness, the oracle and the examiner of a check make their calls
//! from it. What it is not: a choice of a kernel; the caller names it.

use std::sync::Arc;
use tenon_framework::{
    Code, KernelError, PartialShape, Tensor,
    attr::AttrMap,
    attr_view::AttrTable,
    device::base::DeviceBase,
    infer::{Symbols, ValueInfo, infer},
    knob::Knobs,
    op::{OpDef, OpError, Signature, check_attrs},
    registry::{KernelDef, SupportAnswer},
};
use tenon_runtime::{
    Runtime,
    host::{
        call::StepEnv,
        devices::PluginDevice,
        instance::{KernelInstance, KernelSpec, call_once},
    },
};

/// Where a case failed or was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The op's definition: attributes, types and number of inputs.
    Definition,
    /// The shape function.
    Shapes,
    /// Choosing a kernel.
    Select,
    /// Making the kernel, or packing constants for it.
    Create,
    /// The call.
    Compute,
    /// The outputs are compared.
    Compare,
}

/// A refusal on the way to the outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where.
    pub stage: Stage,
    /// Canonical code.
    pub code: Code,
    /// Why.
    pub message: String,
}

impl Refusal {
    /// Makes a refusal of a kernel's error at this stage.
    pub fn at(stage: Stage) -> impl FnOnce(KernelError) -> Refusal {
        move |error| Refusal { stage, code: error.code, message: error.message }
    }

    /// Whether it is not a refusal at all but a panic, which the boundary turned into an error.
    pub fn is_panic(&self) -> bool {
        is_panic(self.code, &self.message)
    }

    /// A refusal of the op's definition.
    pub fn definition(error: &OpError) -> Refusal {
        Refusal { stage: Stage::Definition, code: error.code(), message: error.to_string() }
    }
}

/// Whether an error is what the boundary makes of a panic: `INTERNAL` with "the kernel panicked: ...".
pub(crate) fn is_panic(code: Code, message: &str) -> bool {
    code == Code::INTERNAL && message.contains(" panicked: ")
}

/// A node, ready for a kernel.
#[derive(Debug)]
pub struct Node {
    /// The op.
    pub op: Arc<OpDef>,
    /// Name of the node.
    pub name: String,
    /// All attributes.
    pub attrs: AttrTable,
    /// Types and positions of inputs and outputs.
    pub signature: Signature,
    /// What is known of the inputs' shapes.
    pub input_shapes: Vec<PartialShape>,
    /// Values of those inputs that are constants.
    pub constants: Vec<Option<Tensor>>,
}

impl Node {
    /// A node over inputs of known shapes, of which those that `constant` names are constants.
    ///
    /// # Errors
    /// Attributes or inputs that the op's definition does not allow.
    pub fn new(
        op: &Arc<OpDef>,
        name: &str,
        attrs: AttrMap,
        inputs: &[Tensor],
        constant: impl Fn(usize) -> bool,
    ) -> Result<Node, OpError> {
        let attrs = AttrTable::with_defaults(op, attrs)?;
        check_attrs(op, attrs.attrs())?;
        let signature = Signature::resolve(op, attrs.attrs())?;
        let types: Vec<_> = inputs.iter().map(Tensor::dtype).collect();
        signature.check_inputs(op, &types)?;
        let known = |(at, tensor): (usize, &Tensor)| constant(at).then(|| tensor.clone());
        Ok(Node {
            op: Arc::clone(op),
            name: name.to_owned(),
            attrs,
            signature,
            input_shapes: inputs.iter().map(|tensor| PartialShape::from(*tensor.shape())).collect(),
            constants: inputs.iter().enumerate().map(known).collect(),
        })
    }

    /// The same node as long as nothing is known of its inputs.
    pub fn forget_inputs(&mut self) {
        self.input_shapes.fill(PartialShape::UNKNOWN);
        self.constants.fill(None);
    }

    /// Whether all shapes are known.
    pub fn shapes_are_known(&self) -> bool {
        self.input_shapes.iter().all(|shape| shape.full().is_some())
    }

    /// What a kernel is made from, with these values of all knobs.
    pub fn spec<'a>(
        &'a self,
        def: &'a Arc<KernelDef>,
        device: Option<&'a Arc<PluginDevice>>,
        knobs: &'a Arc<Knobs>,
    ) -> KernelSpec<'a> {
        KernelSpec {
            def,
            op: &self.op,
            node: &self.name,
            attrs: &self.attrs,
            signature: &self.signature,
            input_shapes: &self.input_shapes,
            constants: &self.constants,
            device,
            knobs,
        }
    }

    /// What the shape function says of the outputs.
    ///
    /// # Errors
    /// What it refuses.
    pub fn infer(&self) -> Result<Vec<ValueInfo>, Refusal> {
        let mut symbols = Symbols::default();
        let infos: Vec<ValueInfo> = (self.constants.iter().zip(&self.input_shapes))
            .map(|(constant, shape)| match constant {
                Some(tensor) => ValueInfo::of_constant(tensor.clone()),
                None => ValueInfo::of_shape(shape, &mut symbols),
            })
            .collect();
        let inputs: Vec<&ValueInfo> = infos.iter().collect();
        infer(&self.op, &self.attrs, &inputs, &mut symbols).map_err(Refusal::at(Stage::Shapes))
    }

    /// Makes a kernel, without asking any other, and calls it once.
    ///
    /// # Errors
    /// What `supports`, the kernel's creation or the call refuse.
    pub fn call(
        &self,
        def: &Arc<KernelDef>,
        device: Option<&Arc<PluginDevice>>,
        knobs: &Arc<Knobs>,
        inputs: &[Tensor],
        env: &StepEnv,
    ) -> Result<Vec<Tensor>, Refusal> {
        let spec = self.spec(def, device, knobs);
        let answer = spec.supports().map_err(Refusal::at(Stage::Select))?;
        if let SupportAnswer::No(message) = answer {
            return Err(Refusal { stage: Stage::Select, code: Code::UNIMPLEMENTED, message });
        }
        let instance = KernelInstance::create(&spec).map_err(Refusal::at(Stage::Create))?;
        call_once(&instance, inputs, env).map_err(Refusal::at(Stage::Compute))
    }
}

/// The first device of a type.
pub fn device_of(runtime: &Runtime, device_type: &str) -> Option<Arc<PluginDevice>> {
    let devices = runtime.devices().devices();
    devices.iter().find(|device| device.device_type() == device_type).cloned()
}
