//! Creates the node for a fusion.

use super::{
    matcher::{Binding, Found},
    numbers::single,
};
use crate::{Draft, NewNode};
use std::collections::HashSet;
use tenon_framework::{
    abi::AttrKind,
    attr::{AttrList, AttrType, AttrValue},
    fusion::{Fused, Value},
};
use tenon_graph::{NodeId, Output};

/// The fused node; `None` if an attribute cannot be expressed.
pub(super) fn node(draft: &Draft<'_>, found: &Found, fused: &Fused) -> Option<NewNode> {
    let op = draft.registry().op(&fused.op)?;
    let mut new = NewNode::new(&fused.op);
    for name in &fused.inputs {
        match found.tensors.get(name)? {
            Binding::One(output) => new.inputs.push(*output),
            Binding::Rest(outputs) => new.inputs.extend(outputs),
        }
    }
    for (name, value) in &fused.attrs {
        let value = attr(draft, found, value, op.attr(name)?.ty)?;
        new.attrs.insert(name.clone(), value);
    }
    let control = waits(draft, found, &new.inputs)?;
    Some(new.after(control))
}

/// The control inputs of the pattern's nodes, and the inputs that the fused node does not read, as
/// control inputs.
pub(super) fn waits(draft: &Draft<'_>, found: &Found, inputs: &[Output]) -> Option<Vec<NodeId>> {
    let mut control = Vec::new();
    let inputs: HashSet<Output> = inputs.iter().copied().collect();
    for &id in &found.nodes {
        control.extend(draft.node(id).control_inputs.iter().copied());
        for &input in draft.node(id).inputs.iter().filter(|input| !inputs.contains(input)) {
            if !found.nodes.contains(&input.node) {
                control.extend(draft.anchors(input)?);
            }
        }
    }
    control.retain(|id| !found.nodes.contains(id));
    Some(control)
}

fn attr(draft: &Draft<'_>, found: &Found, value: &Value, ty: AttrType) -> Option<AttrValue> {
    let value = match value {
        Value::Bool(value) => AttrValue::Bool(*value),
        Value::Int(value) if ty.kind == AttrKind::FLOAT => AttrValue::Float(*value as f32),
        Value::Int(value) => AttrValue::Int(*value),
        Value::Float(value) => AttrValue::Float(*value as f32),
        Value::Text(text) => AttrValue::String(text.as_bytes().to_vec()),
        Value::Capture(name) => found.captures.get(name)?.clone(),
        Value::Number(name) => {
            let number = single(draft.constant(found.tensor(name)?)?)?;
            // The attribute has single precision, so a number that it cannot hold exactly would
            // change the result.
            let narrow = number as f32;
            (f64::from(narrow) == number).then_some(AttrValue::Float(narrow))?
        }
        Value::List(items) => return list(found, items, ty),
        Value::Splice(_) => return None,
    };
    (value.attr_type() == ty).then_some(value)
}

fn list(found: &Found, items: &[Value], ty: AttrType) -> Option<AttrValue> {
    let mut texts = Vec::new();
    let mut integers = Vec::new();
    for item in items {
        match item {
            Value::Text(text) => texts.push(text.as_bytes().to_vec()),
            Value::Int(value) => integers.push(*value),
            Value::Capture(name) => match found.captures.get(name)? {
                AttrValue::String(text) => texts.push(text.clone()),
                AttrValue::Int(value) => integers.push(*value),
                _ => return None,
            },
            Value::Splice(name) => match found.captures.get(name)? {
                AttrValue::List(AttrList::String(items)) => texts.extend(items.iter().cloned()),
                AttrValue::List(AttrList::Int(items)) => integers.extend(items),
                _ => return None,
            },
            _ => return None,
        }
    }
    let list = match ty.kind {
        AttrKind::STRING if integers.is_empty() => AttrList::String(texts),
        AttrKind::INT if texts.is_empty() => AttrList::Int(integers),
        _ => return None,
    };
    ty.is_list.then_some(AttrValue::List(list))
}
