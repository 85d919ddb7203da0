//! Lists of registered ops and kernels.

use crate::{buffer::TF_Buffer, fail::Failure, process::runtime, raw::Text, status::TF_Status};
use prost::Message;
use tenon_framework::{
    attr::{AttrList, AttrValue},
    op::OpDef,
    registry::KernelDef,
};
use tenon_proto::{
    AttrValue as AttrProto, OpList,
    convert::{attr_to_proto, op_def_to_proto},
};

/// TensorFlow's `KernelList`.
#[derive(Clone, PartialEq, Message)]
struct KernelListProto {
    #[prost(message, repeated, tag = "1")]
    kernel: Vec<KernelDefProto>,
}

/// TensorFlow's `KernelDef`.
#[derive(Clone, PartialEq, Message)]
struct KernelDefProto {
    #[prost(string, tag = "1")]
    op: String,
    #[prost(string, tag = "2")]
    device_type: String,
    #[prost(message, repeated, tag = "3")]
    constraint: Vec<Constraint>,
    #[prost(string, repeated, tag = "4")]
    host_memory_arg: Vec<String>,
    #[prost(string, tag = "5")]
    label: String,
    #[prost(int32, tag = "6")]
    priority: i32,
}

/// TensorFlow's `KernelDef.AttrConstraint`.
#[derive(Clone, PartialEq, Message)]
struct Constraint {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    allowed_values: Option<AttrProto>,
}

/// The message of op definitions, in the order of their names.
pub(crate) fn op_list<'a>(ops: impl Iterator<Item = &'a OpDef>) -> Result<OpList, Failure> {
    let op = ops.map(op_def_to_proto).collect::<Result<Vec<_>, _>>();
    let mut op = op?;
    op.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(OpList { op })
}

fn kernel(def: &KernelDef) -> Result<KernelDefProto, Failure> {
    let constraint = def.constraints.iter().map(|constraint| {
        let types = AttrValue::List(AttrList::Type(constraint.types.clone()));
        let allowed_values = Some(attr_to_proto(&types)?);
        Ok(Constraint { name: constraint.attr.clone(), allowed_values })
    });
    Ok(KernelDefProto {
        op: def.op.clone(),
        device_type: def.device_type.clone(),
        constraint: constraint.collect::<Result<_, Failure>>()?,
        host_memory_arg: def.host_memory.clone(),
        label: def.label.clone(),
        priority: def.priority,
    })
}

fn kernel_list<'a>(
    kernels: impl Iterator<Item = &'a KernelDef>,
) -> Result<Option<Box<TF_Buffer>>, Failure> {
    let kernel = kernels.map(kernel).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(Box::new(TF_Buffer::of_message(&KernelListProto { kernel })?)))
}

api! {
    /// All registered ops, as an `OpList` in a new buffer; null if the runtime cannot start.
    fn TF_GetAllOpList() -> Option<Box<TF_Buffer>> {
        let registry = runtime().ok()?.registry();
        let list = op_list(registry.ops().map(|op| &**op)).ok()?;
        TF_Buffer::of_message(&list).ok().map(Box::new)
    }

    /// All registered kernels, as a `KernelList` in a new buffer.
    fn TF_GetAllRegisteredKernels(status: Option<&mut TF_Status>) -> Option<Box<TF_Buffer>> [status] {
        kernel_list(runtime()?.registry().kernels().map(|kernel| &**kernel))
    }

    /// The registered kernels of an op, as a `KernelList` in a new buffer.
    fn TF_GetRegisteredKernelsForOp(
        name: Text<'_>,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_Buffer>> [status] {
        let name = name.required("the name of the op")?;
        kernel_list(runtime()?.registry().kernels_of(name).iter().map(|kernel| &**kernel))
    }
}
