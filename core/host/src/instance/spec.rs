//! The description from which a kernel is created, and queries before that.

use crate::{
    call::{NodeInfo, OutputSpec, functions_of},
    context::PluginContext,
    devices::PluginDevice,
    memory::HostMemory,
    sink::MessageSink,
};
use std::sync::Arc;
use tenon_abi::{Create, DType, Dims, Range, ShapeView, Slot, Str, Strs, Support, slot_flags};
use tenon_framework::{
    KernelError, PartialShape, Tensor,
    attr_view::AttrTable,
    device::base::LocalDevice,
    knob::Knobs,
    op::{OpDef, Signature},
    registry::{KernelDef, SupportAnswer},
    tensor::Memory,
};

/// A node on a device, for which a kernel is created.
#[derive(Clone, Copy)]
pub struct KernelSpec<'a> {
    /// The kernel.
    pub def: &'a Arc<KernelDef>,
    /// The op.
    pub op: &'a Arc<OpDef>,
    /// Name of the node.
    pub node: &'a str,
    /// Attributes of the node, defaults applied.
    pub attrs: &'a AttrTable,
    /// Types and positions of inputs and outputs.
    pub signature: &'a Signature,
    /// Known shapes of the inputs; missing ones are unknown.
    pub input_shapes: &'a [PartialShape],
    /// Values of constant inputs, in host memory; missing ones are not constant.
    pub constants: &'a [Option<Tensor>],
    /// The device; `None` for the host's own memory.
    pub device: Option<&'a Arc<PluginDevice>>,
    /// The values of all knobs in the session.
    pub knobs: &'a Arc<Knobs>,
}

/// The arrays that a [`Create`] points to.
pub(super) struct Parts {
    shapes: Vec<ShapeView>,
    constants: Vec<Slot>,
    input_args: Vec<Str>,
    output_args: Vec<Str>,
    input_types: Vec<DType>,
    output_types: Vec<DType>,
    input_ranges: Vec<Range>,
    output_ranges: Vec<Range>,
    context: Arc<PluginContext>,
}

fn shape_view(shape: Option<&PartialShape>) -> ShapeView {
    let dims = shape.and_then(PartialShape::dims);
    ShapeView { dims: Dims::new(dims.unwrap_or(&[])), unknown_rank: u32::from(dims.is_none()) }
}

fn constant_view(constant: Option<&Option<Tensor>>) -> Slot {
    match constant.and_then(Option::as_ref) {
        Some(tensor) => Slot { flags: slot_flags::CONSTANT, ..tensor.slot() },
        None => Slot::EMPTY,
    }
}

impl<'a> KernelSpec<'a> {
    /// The arrays for the boundary's struct.
    pub(super) fn parts(&self) -> Parts {
        let inputs = 0..self.signature.inputs.len();
        Parts {
            shapes: inputs.clone().map(|at| shape_view(self.input_shapes.get(at))).collect(),
            constants: inputs.map(|at| constant_view(self.constants.get(at))).collect(),
            input_args: self.op.inputs.iter().map(|arg| Str::new(&arg.name)).collect(),
            output_args: self.op.outputs.iter().map(|arg| Str::new(&arg.name)).collect(),
            input_types: self.signature.inputs.clone(),
            output_types: self.signature.outputs.clone(),
            input_ranges: self.signature.input_args.clone(),
            output_ranges: self.signature.output_args.clone(),
            context: PluginContext::new(&self.def.plugin_name, Arc::clone(self.knobs)),
        }
    }

    /// The struct of the boundary, which borrows `self`, `parts` and `sink`.
    pub(super) fn raw(&self, parts: &Parts, sink: &MessageSink) -> Create {
        Create {
            struct_size: size_of::<Create>() as u32,
            input_count: parts.input_types.len() as u32,
            output_count: parts.output_types.len() as u32,
            reserved: 0,
            attrs: self.attrs.as_raw(),
            op: Str::new(&self.op.name),
            node: Str::new(self.node),
            device: Str::new(self.device.map_or("", |device| device.full_name())),
            device_state: self.device.map_or(std::ptr::null_mut(), |device| device.state()),
            input_types: parts.input_types.as_ptr(),
            output_types: parts.output_types.as_ptr(),
            input_shapes: parts.shapes.as_ptr(),
            constants: parts.constants.as_ptr(),
            input_args: Strs::new(&parts.input_args),
            input_ranges: parts.input_ranges.as_ptr(),
            output_args: Strs::new(&parts.output_args),
            output_ranges: parts.output_ranges.as_ptr(),
            context: parts.context.as_raw(),
            sink: sink.as_sink(),
            ext: std::ptr::null(),
        }
    }

    /// Asks whether the kernel supports these attributes and shapes.
    ///
    /// # Errors
    /// `INTERNAL` for an answer that the boundary does not define.
    pub fn supports(&self) -> Result<SupportAnswer, KernelError> {
        if self.def.table.supports.is_none() && self.def.remote.is_none() {
            return Ok(SupportAnswer::Yes);
        }
        let sink = MessageSink::new();
        let parts = self.parts();
        let raw = self.raw(&parts, &sink);
        // SAFETY: the kernel's own entry with a filled struct.
        let answer = unsafe {
            match (&self.def.remote, self.def.table.supports) {
                (Some(remote), _) => remote.supports(&raw),
                (None, Some(supports)) => supports(&raw),
                (None, None) => Support::YES,
            }
        };
        match answer {
            Support::YES => Ok(SupportAnswer::Yes),
            Support::DEPENDS_ON_SHAPES => Ok(SupportAnswer::DependsOnShapes),
            Support::NO => {
                let reason = sink.take().unwrap_or_else(|| "no reason was given".to_owned());
                Ok(SupportAnswer::No(reason))
            }
            Support(other) => Err(KernelError::internal(format!(
                "{}: `supports` answered {other}, expected 0, 1 or 2",
                self.def
            ))),
        }
    }

    /// The memory for a value of the named argument.
    fn memory(&self, arg: Option<&str>, dtype: DType) -> Arc<dyn Memory> {
        let on_host = dtype.needs_drop()
            || arg.is_some_and(|arg| self.def.host_memory.iter().any(|name| name == arg));
        match self.device {
            Some(device) if !on_host => device.ordinary_memory(),
            _ => HostMemory::shared().clone(),
        }
    }

    /// The error of a node, with the name of the argument.
    pub(super) fn naming_inputs(&self, error: KernelError) -> KernelError {
        let shape =
            |at: usize| self.input_shapes.get(at).map_or("?".into(), PartialShape::to_string);
        self.op.naming_inputs(error, &self.signature.input_args, shape)
    }

    /// The data that calls for the node share, for a call record that is created before the kernel.
    pub fn node_info(&self) -> NodeInfo {
        self.places().0
    }

    /// What calls for the node share, and the memory of its inputs.
    pub(super) fn places(&self) -> (NodeInfo, Vec<Arc<dyn Memory>>) {
        let Signature { inputs, outputs, input_args, output_args } = self.signature;
        let input = |(at, &dtype): (usize, &DType)| {
            self.memory(self.signature.input_arg_of(self.op, at), dtype)
        };
        let output = |(at, &dtype): (usize, &DType)| {
            let memory = match &self.def.remote {
                // Outputs of another process are in memory that it can write. Bools are copied from
                // there instead, since later writes could make them invalid.
                Some(remote) if !dtype.needs_drop() && dtype != DType::BOOL => {
                    Arc::clone(remote.memory())
                }
                _ => self.memory(self.signature.output_arg_of(self.op, at), dtype),
            };
            OutputSpec { dtype, memory }
        };
        let host_memory: Arc<dyn Memory> = HostMemory::shared().clone();
        let info = NodeInfo {
            name: self.node.to_owned(),
            op: self.op.name.clone(),
            def: Some(Arc::clone(self.op)),
            outputs: outputs.iter().enumerate().map(output).collect(),
            input_args: input_args.clone(),
            output_args: output_args.clone(),
            functions: functions_of(self.attrs.attrs()),
            device_memory: self
                .device
                .map_or_else(|| host_memory.clone(), |device| device.ordinary_memory()),
            host_memory,
            device: self.device.map_or(std::ptr::null_mut(), |device| device.as_raw()),
            device_state: self.device.map_or(std::ptr::null_mut(), |device| device.state()),
        };
        (info, inputs.iter().enumerate().map(input).collect())
    }
}
