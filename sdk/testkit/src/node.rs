//! A node for one case: what is known when its kernel is made, and the kernel.

use std::{fmt, sync::Arc};
use tenon_framework::{
    Code, KernelError, PartialShape, Tensor,
    attr::AttrMap,
    attr_view::AttrTable,
    infer::{Symbols, ValueInfo, infer},
    op::{OpDef, OpError, Signature, check_attrs},
    registry::KernelDef,
    tensor::Memory,
};
use tenon_runtime::host::{
    devices::PluginDevice,
    instance::{KernelInstance, KernelSpec, PackCache},
    memory::{HostMemory, copy_on_host},
};

/// What is known of a node when its kernel is made, and how the call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Nothing is known of the inputs: shapes are first seen by the call.
    Unknown,
    /// Shapes are known, and the values of inputs that are constants in real graphs.
    Shapes,
    /// All inputs are constants, and packed where the kernel does that.
    Packed,
    /// As `Shapes`, and the inputs' buffers may be taken over for outputs.
    InPlace,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 4] = [Form::Unknown, Form::Shapes, Form::Packed, Form::InPlace];
    /// Those that can refuse a case in different places.
    pub const REFUSING: [Form; 2] = [Form::Unknown, Form::Shapes];
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Unknown => "with unknown shapes",
            Form::Shapes => "with known shapes",
            Form::Packed => "with constant inputs",
            Form::InPlace => "in place",
        })
    }
}

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
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub stage: Stage,
    pub code: Code,
    pub message: String,
}

impl Refusal {
    pub fn kernel(stage: Stage) -> impl FnOnce(KernelError) -> Refusal {
        move |error| Refusal { stage, code: error.code, message: error.message }
    }

    fn definition(error: &OpError) -> Refusal {
        Refusal { stage: Stage::Definition, code: error.code(), message: error.to_string() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused with {}: {}", self.code, self.message)
    }
}

/// A node: checked against the op's definition, ready for a kernel.
pub(crate) struct Node {
    pub name: String,
    pub op: Arc<OpDef>,
    pub attrs: AttrTable,
    pub signature: Signature,
    pub input_shapes: Vec<PartialShape>,
    pub constants: Vec<Option<Tensor>>,
    form: Form,
}

impl Node {
    /// The node of a call on `inputs`, of which `constant` says by its position which are constants in real
    /// graphs.
    pub fn new(
        op: &Arc<OpDef>,
        name: &str,
        attrs: AttrMap,
        inputs: &[Tensor],
        form: Form,
        constant: impl Fn(usize) -> bool,
    ) -> Result<Node, Refusal> {
        let definition = |error: OpError| Refusal::definition(&error);
        let attrs = AttrTable::with_defaults(op, attrs).map_err(definition)?;
        check_attrs(op, attrs.attrs()).map_err(definition)?;
        let signature = Signature::resolve(op, attrs.attrs()).map_err(definition)?;
        let types: Vec<_> = inputs.iter().map(Tensor::dtype).collect();
        signature.check_inputs(op, &types).map_err(definition)?;
        let shape = |tensor: &Tensor| match form {
            Form::Unknown => PartialShape::UNKNOWN,
            _ => PartialShape::from(*tensor.shape()),
        };
        let value = |(at, tensor): (usize, &Tensor)| {
            let known = match form {
                Form::Unknown => false,
                Form::Packed => true,
                Form::Shapes | Form::InPlace => constant(at),
            };
            known.then(|| tensor.clone())
        };
        let input_shapes = inputs.iter().map(shape).collect();
        let constants = inputs.iter().enumerate().map(value).collect();
        let (name, op) = (name.to_owned(), Arc::clone(op));
        Ok(Node { name, op, attrs, signature, input_shapes, constants, form })
    }

    /// What a kernel for it is made from, on a device.
    pub fn spec<'a>(
        &'a self,
        def: &'a Arc<KernelDef>,
        device: &'a Arc<PluginDevice>,
    ) -> KernelSpec<'a> {
        KernelSpec {
            def,
            op: &self.op,
            node: &self.name,
            attrs: &self.attrs,
            signature: &self.signature,
            input_shapes: &self.input_shapes,
            constants: &self.constants,
            device: Some(device),
        }
    }

    /// What the shape function says of the outputs.
    pub fn infer(&self) -> Result<Vec<ValueInfo>, Refusal> {
        let mut symbols = Symbols::default();
        let infos: Vec<ValueInfo> = (self.constants.iter().zip(&self.input_shapes))
            .map(|(constant, shape)| match constant {
                Some(tensor) => ValueInfo::of_constant(tensor.clone()),
                None => ValueInfo::of_shape(shape, &mut symbols),
            })
            .collect();
        let inputs: Vec<&ValueInfo> = infos.iter().collect();
        infer(&self.op, &self.attrs, &inputs, &mut symbols).map_err(Refusal::kernel(Stage::Shapes))
    }

    /// The kernel for it, constants packed where the form says so.
    pub fn instance(
        &self,
        def: &Arc<KernelDef>,
        device: &Arc<PluginDevice>,
    ) -> Result<KernelInstance, Refusal> {
        let refused = || Refusal::kernel(Stage::Create);
        let mut instance = KernelInstance::create(&self.spec(def, device)).map_err(refused())?;
        if self.form == Form::Packed {
            let cache = PackCache::new();
            for (at, constant) in self.constants.iter().enumerate() {
                let Some(constant) = constant else { continue };
                instance.prepack(at as u32, constant, &cache, &self.name).map_err(refused())?;
            }
        }
        Ok(instance)
    }
}

/// A copy in the host's shared memory that nobody else holds.
pub(crate) fn own_copy(tensor: &Tensor) -> Option<Tensor> {
    let memory: Arc<dyn Memory> = HostMemory::shared().clone();
    copy_on_host(tensor, &memory).ok()
}

/// Whether two tensors hold the same: the same bytes, the same strings.
pub(crate) fn same_contents(a: &Tensor, b: &Tensor) -> bool {
    match (a.as_strings(), b.as_strings()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a.as_bytes().ok() == b.as_bytes().ok(),
    }
}
