//! The way back: attributes to the form that the indexes have.

use crate::text::hex;
use serde_json::{Map, Value, json};
use tenon_framework::{
    PartialShape, Tensor,
    attr::{AttrList, AttrMap, AttrValue, FuncValue},
};

/// Writes attributes in the form that [`attrs`](super::attrs()) reads. `tensor` writes a tensor.
pub fn to_json(attrs: &AttrMap, tensor: &dyn Fn(&Tensor) -> Value) -> Map<String, Value> {
    attrs.iter().map(|(name, value)| (name.clone(), attr(value, tensor))).collect()
}

fn attr(value: &AttrValue, tensor: &dyn Fn(&Tensor) -> Value) -> Value {
    let written = match value {
        AttrValue::Int(value) => json!(value),
        AttrValue::Float(value) => float(*value),
        AttrValue::Bool(value) => json!(value),
        AttrValue::String(value) => bytes(value),
        AttrValue::Type(value) => json!(value.name()),
        AttrValue::Shape(value) => shape(value),
        AttrValue::Tensor(value) => tensor(value),
        AttrValue::Func(value) => function(value),
        AttrValue::List(list) => items(list, tensor),
    };
    json!({ value.attr_type().to_string(): written })
}

fn items(list: &AttrList, tensor: &dyn Fn(&Tensor) -> Value) -> Value {
    match list {
        AttrList::Int(items) => json!(items),
        AttrList::Float(items) => items.iter().map(|item| float(*item)).collect(),
        AttrList::Bool(items) => json!(items),
        AttrList::String(items) => items.iter().map(|item| bytes(item)).collect(),
        AttrList::Type(items) => items.iter().map(|item| json!(item.name())).collect(),
        AttrList::Shape(items) => items.iter().map(shape).collect(),
        AttrList::Tensor(items) => items.iter().map(tensor).collect(),
        AttrList::Func(items) => items.iter().map(function).collect(),
    }
}

/// The shortest number that reads as the same one.
fn float(value: f32) -> Value {
    number(value.to_string().parse().unwrap_or(f64::NAN))
}

/// A number; a value for which JSON has no number is a word.
pub(crate) fn number(value: f64) -> Value {
    if value.is_finite() {
        return json!(value);
    }
    let sign = if value.is_sign_negative() { "-inf" } else { "inf" };
    json!(if value.is_nan() { "nan" } else { sign })
}

pub(crate) fn bytes(value: &[u8]) -> Value {
    match std::str::from_utf8(value) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": hex(value) }),
    }
}

fn shape(value: &PartialShape) -> Value {
    value.dims().map_or(Value::Null, |dims| json!(dims))
}

fn function(value: &FuncValue) -> Value {
    json!({
        "name": value.name, "call": hex(&value.call), "definition": hex(&value.definition),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{attrs, text};
    use super::*;
    use tenon_framework::DType;

    #[test]
    fn what_is_written_is_read_back() {
        let tensor = Tensor::from_strings(&[], &["t"]).unwrap();
        let function = FuncValue { name: "f".into(), call: vec![0, 255], definition: Vec::new() };
        let values: Vec<AttrValue> = vec![
            AttrValue::Int(i64::MIN),
            AttrValue::Float(0.1),
            AttrValue::Float(f32::NEG_INFINITY),
            AttrValue::Bool(true),
            AttrValue::String(vec![0xff, 0]),
            AttrValue::String("é".into()),
            AttrValue::Type(DType::HALF),
            AttrValue::Shape(PartialShape::UNKNOWN),
            AttrValue::Shape(PartialShape::new(&[2, -1]).unwrap()),
            AttrValue::Tensor(tensor.clone()),
            AttrValue::Func(function.clone()),
            AttrValue::List(AttrList::Int(vec![1, 2])),
            AttrValue::List(AttrList::Float(vec![f32::INFINITY, -0.0])),
            AttrValue::List(AttrList::Bool(vec![false])),
            AttrValue::List(AttrList::String(vec![vec![200], b"a".to_vec()])),
            AttrValue::List(AttrList::Type(Vec::new())),
            AttrValue::List(AttrList::Shape(vec![PartialShape::UNKNOWN])),
            AttrValue::List(AttrList::Tensor(vec![tensor])),
            AttrValue::List(AttrList::Func(vec![function])),
        ];
        let named = values.into_iter().enumerate().map(|(at, value)| (format!("a{at:02}"), value));
        let before: AttrMap = named.collect();
        let json = to_json(&before, &|_| json!("t"));
        let json: Map<String, Value> =
            serde_json::from_str(&serde_json::to_string(&json).unwrap()).unwrap();
        let after = attrs(&json, &mut |name| {
            Ok(Tensor::from_strings(&[], &[text(name)?]).expect("a scalar"))
        });
        assert_eq!(format!("{:?}", after.unwrap()), format!("{before:?}"));
    }
}
