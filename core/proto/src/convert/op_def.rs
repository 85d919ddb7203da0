//! Op definitions.

use tenon_framework::attr::{AttrList, AttrType, AttrValue};
use tenon_framework::op::{Allowed, ArgDef, ArgType, AttrDef, OpDef};

use super::attr::attr_to_proto;
use super::shape::{dtype_from_proto, dtype_to_proto};
use super::{ConvertError, Decoder};
use crate::{ArgDef as ArgProto, AttrDef as AttrDefProto, OpDef as OpProto};

/// The message of an op definition, without shape function and source.
///
/// # Errors
/// A default that has no message.
pub fn op_def_to_proto(op: &OpDef) -> Result<OpProto, ConvertError> {
    Ok(OpProto {
        name: op.name.clone(),
        input_arg: op.inputs.iter().map(arg_to_proto).collect(),
        output_arg: op.outputs.iter().map(arg_to_proto).collect(),
        attr: op.attrs.iter().map(attr_def_to_proto).collect::<Result<_, _>>()?,
        summary: op.summary.clone(),
        description: op.description.clone(),
        is_aggregate: op.aggregate,
        is_stateful: op.stateful,
        is_commutative: op.commutative,
        allows_uninitialized_input: op.allows_uninitialized_input,
        ..OpProto::default()
    })
}

fn arg_to_proto(arg: &ArgDef) -> ArgProto {
    let mut proto = ArgProto {
        name: arg.name.clone(),
        number_attr: arg.number_attr.clone().unwrap_or_default(),
        is_ref: arg.is_ref,
        ..ArgProto::default()
    };
    match &arg.ty {
        ArgType::Fixed(dtype) => proto.r#type = dtype_to_proto(*dtype),
        ArgType::Attr(name) => proto.type_attr = name.clone(),
        ArgType::ListAttr(name) => proto.type_list_attr = name.clone(),
    }
    proto
}

/// The message of the definition of an attribute.
///
/// # Errors
/// A default that has no message.
pub fn attr_def_to_proto(attr: &AttrDef) -> Result<AttrDefProto, ConvertError> {
    let allowed = attr.allowed.as_ref().map(|allowed| match allowed {
        Allowed::Types(types) => AttrList::Type(types.clone()),
        Allowed::Strings(texts) => {
            AttrList::String(texts.iter().map(|text| text.as_bytes().to_vec()).collect())
        }
    });
    Ok(AttrDefProto {
        name: attr.name.clone(),
        r#type: attr.ty.to_string(),
        default_value: attr.default.as_ref().map(attr_to_proto).transpose()?,
        has_minimum: attr.minimum.is_some(),
        minimum: attr.minimum.unwrap_or(0),
        allowed_values: allowed.map(|list| attr_to_proto(&AttrValue::List(list))).transpose()?,
        ..AttrDefProto::default()
    })
}

/// The op that the signature of a function defines. Allowed values are not read: the nodes of the
/// function's body check them.
///
/// # Errors
/// An argument of an unknown type, an attribute of an unknown type or with a default of another.
pub fn function_op_from_proto(proto: &OpProto) -> Result<OpDef, ConvertError> {
    let args = |args: &[ArgProto]| args.iter().map(arg_from_proto).collect::<Result<Vec<_>, _>>();
    let attrs = proto.attr.iter().map(attr_def_from_proto).collect::<Result<Vec<_>, _>>()?;
    let (inputs, outputs) = (args(&proto.input_arg)?, args(&proto.output_arg)?);
    Ok(OpDef::of_function(&proto.name, inputs, outputs, attrs, proto.is_stateful))
}

fn arg_from_proto(proto: &ArgProto) -> Result<ArgDef, ConvertError> {
    let ty = match (proto.type_attr.as_str(), proto.type_list_attr.as_str()) {
        ("", "") => ArgType::Fixed(dtype_from_proto(proto.r#type)?),
        ("", list) => ArgType::ListAttr(list.to_owned()),
        (name, _) => ArgType::Attr(name.to_owned()),
    };
    let number_attr = Some(proto.number_attr.clone()).filter(|name| !name.is_empty());
    Ok(ArgDef { name: proto.name.clone(), ty, number_attr, is_ref: proto.is_ref })
}

fn attr_def_from_proto(proto: &AttrDefProto) -> Result<AttrDef, ConvertError> {
    let ty = AttrType::parse(&proto.r#type).ok_or_else(|| ConvertError::AttrTypeName {
        attr: proto.name.clone(),
        found: proto.r#type.clone(),
    })?;
    let default = proto.default_value.as_ref();
    Ok(AttrDef {
        name: proto.name.clone(),
        ty,
        default: default.map(|value| Decoder::new().attr(value, ty)).transpose()?.flatten(),
        minimum: proto.has_minimum.then_some(proto.minimum),
        allowed: None,
    })
}
