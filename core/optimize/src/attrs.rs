//! Equality of attributes; tensors and floating-point numbers are compared by their bits.

use std::hash::{Hash, Hasher};
use tenon_framework::{
    Tensor,
    attr::{AttrList, AttrMap, AttrValue, FuncValue},
};

/// Attributes that do not affect a node's value.
const IGNORED_ATTRS: &[&str] = &["_class", "_output_shapes", "_XlaInferredShapes"];

/// The number of bytes of a tensor that are hashed at each end.
const HASHED_BYTES: usize = 128;

fn of_value(attrs: &AttrMap) -> impl Iterator<Item = (&String, &AttrValue)> {
    attrs.iter().filter(|(name, _)| !IGNORED_ATTRS.contains(&name.as_str()))
}

/// Whether two nodes of one op with equal inputs have equal values, judged by their attributes.
pub(crate) fn same_attrs(a: &AttrMap, b: &AttrMap) -> bool {
    let (mut a, mut b) = (of_value(a), of_value(b));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some((name, x)), Some((other, y))) if name == other && same_value(x, y) => {}
            _ => return false,
        }
    }
}

/// Hashes the attributes that [`same_attrs`] compares.
pub(crate) fn hash_attrs(attrs: &AttrMap, state: &mut impl Hasher) {
    for (name, value) in of_value(attrs) {
        name.hash(state);
        hash_value(value, state);
    }
}

fn same_value(a: &AttrValue, b: &AttrValue) -> bool {
    match (a, b) {
        (AttrValue::Int(a), AttrValue::Int(b)) => a == b,
        (AttrValue::Float(a), AttrValue::Float(b)) => a.to_bits() == b.to_bits(),
        (AttrValue::Bool(a), AttrValue::Bool(b)) => a == b,
        (AttrValue::String(a), AttrValue::String(b)) => a == b,
        (AttrValue::Type(a), AttrValue::Type(b)) => a == b,
        (AttrValue::Shape(a), AttrValue::Shape(b)) => a == b,
        (AttrValue::Tensor(a), AttrValue::Tensor(b)) => same_tensor(a, b),
        (AttrValue::Func(a), AttrValue::Func(b)) => a == b,
        (AttrValue::List(a), AttrValue::List(b)) => same_list(a, b),
        _ => false,
    }
}

fn same_list(a: &AttrList, b: &AttrList) -> bool {
    let bits =
        |a: &[f32], b: &[f32]| a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()));
    match (a, b) {
        (AttrList::Int(a), AttrList::Int(b)) => a == b,
        (AttrList::Float(a), AttrList::Float(b)) => bits(a, b),
        (AttrList::Bool(a), AttrList::Bool(b)) => a == b,
        (AttrList::String(a), AttrList::String(b)) => a == b,
        (AttrList::Type(a), AttrList::Type(b)) => a == b,
        (AttrList::Shape(a), AttrList::Shape(b)) => a == b,
        (AttrList::Tensor(a), AttrList::Tensor(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_tensor(a, b))
        }
        (AttrList::Func(a), AttrList::Func(b)) => a == b,
        _ => false,
    }
}

/// Whether two tensors have the same bits.
pub(crate) fn same_tensor(a: &Tensor, b: &Tensor) -> bool {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return false;
    }
    if a.buffer().data() == b.buffer().data() {
        return true;
    }
    match (a.as_bytes(), b.as_bytes()) {
        (Ok(a), Ok(b)) => a == b,
        _ => match (a.as_strings(), b.as_strings()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        },
    }
}

fn hash_value(value: &AttrValue, state: &mut impl Hasher) {
    match value {
        AttrValue::Int(value) => value.hash(state),
        AttrValue::Float(value) => value.to_bits().hash(state),
        AttrValue::Bool(value) => value.hash(state),
        AttrValue::String(value) => value.hash(state),
        AttrValue::Type(value) => value.0.hash(state),
        AttrValue::Shape(value) => value.dims().hash(state),
        AttrValue::Tensor(value) => hash_tensor(value, state),
        AttrValue::Func(FuncValue { name, .. }) => name.hash(state),
        AttrValue::List(AttrList::Int(values)) => values.hash(state),
        AttrValue::List(AttrList::Type(values)) => {
            values.iter().for_each(|value| value.0.hash(state));
        }
        // Few nodes have other lists; comparison distinguishes them.
        AttrValue::List(list) => list.len().hash(state),
    }
}

/// Hashes a large tensor at both ends only; comparison detects differences in between.
fn hash_tensor(tensor: &Tensor, state: &mut impl Hasher) {
    tensor.dtype().0.hash(state);
    tensor.shape().dims().hash(state);
    match tensor.as_bytes() {
        Ok(bytes) => {
            bytes[..bytes.len().min(HASHED_BYTES)].hash(state);
            bytes[bytes.len().saturating_sub(HASHED_BYTES)..].hash(state);
        }
        Err(_) => tensor.as_strings().iter().flatten().take(2).for_each(|text| text.hash(state)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::DefaultHasher;
    use tenon_framework::DType;

    fn map(pairs: &[(&str, AttrValue)]) -> AttrMap {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn hashed(attrs: &AttrMap) -> u64 {
        let mut state = DefaultHasher::new();
        hash_attrs(attrs, &mut state);
        state.finish()
    }

    #[test]
    fn attributes_are_equal_by_their_bits() {
        let tensor = |values: &[f32]| AttrValue::from(Tensor::from_slice(&[2], values).unwrap());
        let equal = [
            (map(&[("v", tensor(&[1.0, f32::NAN]))]), map(&[("v", tensor(&[1.0, f32::NAN]))])),
            (
                map(&[("T", DType::FLOAT.into())]),
                map(&[("T", DType::FLOAT.into()), ("_class", 1.into())]),
            ),
        ];
        for (a, b) in &equal {
            assert!(same_attrs(a, b) && hashed(a) == hashed(b), "{a:?} {b:?}");
        }
        let different = [
            (map(&[("v", tensor(&[0.0, 1.0]))]), map(&[("v", tensor(&[-0.0, 1.0]))])),
            (map(&[("f", 0.0f32.into())]), map(&[("f", (-0.0f32).into())])),
            (map(&[("a", 1.into())]), map(&[("b", 1.into())])),
            (map(&[("a", 1.into())]), map(&[("a", true.into())])),
            (map(&[("a", 1.into())]), map(&[])),
        ];
        for (a, b) in &different {
            assert!(!same_attrs(a, b), "{a:?} {b:?}");
        }
    }
}
