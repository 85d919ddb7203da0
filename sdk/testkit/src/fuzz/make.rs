//! Calls: from an op's definition alone, and from calls that are right, each with something changed.

use super::{Call, bytes::Bytes, values};
use crate::check::Subject;
use std::sync::Arc;
use tenon_framework::{
    DType, Tensor,
    abi::AttrKind,
    attr::{AttrMap, AttrType},
    op::{OpDef, Signature},
};

/// Inputs of a call have at most this many elements together.
const MOST_ELEMENTS: usize = 1 << 17;

/// A call that is right: attributes and inputs.
pub(super) type Seed = (AttrMap, Vec<Tensor>);

/// A call whose attributes and shapes are the bytes' choice, with the subject's types.
pub(super) fn drawn(bytes: &mut Bytes<'_>, subject: &Subject) -> Option<Call> {
    let op = &subject.op;
    let mut attrs = subject.types.clone();
    for def in &op.attrs {
        if !attrs.contains_key(&def.name) {
            let value = values::attr(bytes, def);
            attrs.insert(def.name.clone(), value);
        }
    }
    let signature = Signature::resolve(op, &attrs).ok()?;
    let mut shapes: Vec<Vec<i64>> = Vec::new();
    let mut inputs: Vec<Tensor> = Vec::new();
    for dtype in &signature.inputs {
        let dims = values::dims(bytes, &shapes);
        let tensor = values::tensor(bytes, *dtype, &dims)?;
        // As many inputs as a node may have are small ones.
        if signature.inputs.len() > MOST_ELEMENTS / tensor.elements().max(1) {
            return None;
        }
        inputs.push(tensor);
        shapes.push(dims);
    }
    Some(Call { op: Arc::clone(op), kernel: Arc::clone(&subject.kernel), attrs, inputs })
}

/// A right call with one to three things changed.
pub(super) fn changed(bytes: &mut Bytes<'_>, op: &Arc<OpDef>, seed: &Seed) -> Seed {
    let (mut attrs, mut inputs) = seed.clone();
    for _ in 0..=bytes.below(3) {
        if bytes.below(2) == 0 || inputs.is_empty() {
            change_attr(bytes, op, &mut attrs);
        } else {
            change_input(bytes, &mut inputs);
        }
    }
    (attrs, inputs)
}

/// Types and the numbers of inputs stay, so that the inputs still fit.
fn change_attr(bytes: &mut Bytes<'_>, op: &OpDef, attrs: &mut AttrMap) {
    let free = op.attrs.iter().filter(|def| {
        let counts = op.inputs.iter().any(|arg| arg.number_attr.as_deref() == Some(&*def.name));
        !counts && def.ty.kind != AttrKind::TYPE && def.ty != AttrType::one(AttrKind::TENSOR)
    });
    let free: Vec<_> = free.collect();
    if free.is_empty() {
        return;
    }
    let def = free[bytes.below(free.len())];
    let old = attrs.get(&def.name).filter(|_| bytes.below(2) == 0);
    let spoilt = old.and_then(|old| values::spoilt_attr(bytes, old));
    let value = spoilt.unwrap_or_else(|| values::attr(bytes, def));
    attrs.insert(def.name.clone(), value);
}

fn change_input(bytes: &mut Bytes<'_>, inputs: &mut [Tensor]) {
    let at = bytes.below(inputs.len());
    let is_index = |tensor: &Tensor| matches!(tensor.dtype(), DType::INT32 | DType::INT64);
    let new = match bytes.below(3) {
        0 if is_index(&inputs[at]) => values::spoilt(bytes, &inputs[at]),
        0 | 1 if inputs[at].dtype() == DType::STRING => values::spoilt_text(bytes, &inputs[at]),
        1 => {
            let dims = inputs[at].shape().dims().to_vec();
            values::tensor(bytes, inputs[at].dtype(), &dims)
        }
        _ => {
            let all: Vec<Vec<i64>> = inputs.iter().map(|t| t.shape().dims().to_vec()).collect();
            let dims = values::dims(bytes, &all[at..=at]);
            values::tensor(bytes, inputs[at].dtype(), &dims)
        }
    };
    inputs[at] = new.unwrap_or_else(|| inputs[at].clone());
}
