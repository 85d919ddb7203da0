//! Attributes as the indexes write them: `{"name": {"kind": value}}`.
//!
//! Reproducers use the same form, with what JSON has no word for written out: numbers that are not finite as
//! `"nan"`, `"inf"` and `"-inf"`, bytes that are not text as `{"hex": "00ff"}`.

mod write;

pub use write::to_json;
pub(crate) use write::{bytes as bytes_json, number as number_json};

use crate::text::unhex;
use serde_json::{Map, Value};
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::{AttrList, AttrMap, AttrValue, FuncValue},
};

/// The problem with an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttrProblem {
    /// What the format says.
    pub expected: String,
    /// The value that was found.
    pub found: String,
}

/// Reads a tensor attribute: the name of an array, or the tensor itself.
pub type ReadTensor<'a> = &'a mut dyn FnMut(&Value) -> Result<Tensor, AttrProblem>;

pub(crate) fn problem(expected: &str, found: &Value) -> AttrProblem {
    AttrProblem { expected: expected.to_owned(), found: found.to_string() }
}

/// Reads the attributes of a case. `tensor` gives the value of a tensor attribute.
///
/// # Errors
/// The name of the attribute, and what is wrong with it.
pub fn attrs(
    json: &Map<String, Value>,
    tensor: ReadTensor<'_>,
) -> Result<AttrMap, (String, AttrProblem)> {
    let read = |(name, value): (&String, &Value)| {
        let value = attr(value, tensor).map_err(|problem| (name.clone(), problem))?;
        Ok((name.clone(), value))
    };
    json.iter().map(read).collect()
}

fn attr(json: &Value, tensor: ReadTensor<'_>) -> Result<AttrValue, AttrProblem> {
    let only = json.as_object().filter(|object| object.len() == 1);
    let Some((kind, value)) = only.and_then(|object| object.iter().next()) else {
        return Err(problem("one kind with its value", json));
    };
    if let Some(kind) = kind.strip_prefix("list(").and_then(|kind| kind.strip_suffix(')')) {
        return Ok(AttrValue::List(list(kind, value, tensor)?));
    }
    Ok(match kind.as_str() {
        "int" => AttrValue::Int(int(value)?),
        "float" => AttrValue::Float(float(value)?),
        "bool" => AttrValue::Bool(boolean(value)?),
        "string" => AttrValue::String(bytes(value)?),
        "type" => AttrValue::Type(dtype(value)?),
        "shape" => AttrValue::Shape(shape(value)?),
        "tensor" => AttrValue::Tensor(tensor(value)?),
        "func" => AttrValue::Func(function(value)?),
        _ => return Err(problem("a kind of attribute", json)),
    })
}

fn list(kind: &str, json: &Value, tensor: ReadTensor<'_>) -> Result<AttrList, AttrProblem> {
    let items = json.as_array().ok_or_else(|| problem("a list", json))?;
    fn all<T>(
        items: &[Value],
        read: impl FnMut(&Value) -> Result<T, AttrProblem>,
    ) -> Result<Vec<T>, AttrProblem> {
        items.iter().map(read).collect()
    }
    Ok(match kind {
        "int" => AttrList::Int(all(items, int)?),
        "float" => AttrList::Float(all(items, float)?),
        "bool" => AttrList::Bool(all(items, boolean)?),
        "string" => AttrList::String(all(items, bytes)?),
        "type" => AttrList::Type(all(items, dtype)?),
        "shape" => AttrList::Shape(all(items, shape)?),
        "tensor" => AttrList::Tensor(all(items, tensor)?),
        "func" => AttrList::Func(all(items, function)?),
        _ => return Err(problem("a list of a kind of attribute", json)),
    })
}

pub(crate) fn int(json: &Value) -> Result<i64, AttrProblem> {
    json.as_i64().ok_or_else(|| problem("an integer", json))
}

/// The indexes give doubles, to be rounded.
fn float(json: &Value) -> Result<f32, AttrProblem> {
    number(json).map(|value| value as f32)
}

/// A number, finite or not.
pub(crate) fn number(json: &Value) -> Result<f64, AttrProblem> {
    match json.as_str() {
        Some("nan") => Ok(f64::NAN),
        Some("inf") => Ok(f64::INFINITY),
        Some("-inf") => Ok(f64::NEG_INFINITY),
        _ => json.as_f64().ok_or_else(|| problem("a number", json)),
    }
}

/// Text, or bytes that are not text.
pub(crate) fn bytes(json: &Value) -> Result<Vec<u8>, AttrProblem> {
    match json.get("hex") {
        Some(hex) => hexadecimal(hex),
        None => Ok(text(json)?.as_bytes().to_vec()),
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hexadecimal(json: &Value) -> Result<Vec<u8>, AttrProblem> {
    unhex(text(json)?).ok_or_else(|| problem("pairs of hexadecimal digits", json))
}

fn function(json: &Value) -> Result<FuncValue, AttrProblem> {
    let part = |key| json.get(key).map_or(Ok(Vec::new()), hexadecimal);
    let name = text(json.get("name").unwrap_or(&Value::Null))?.to_owned();
    Ok(FuncValue { name, call: part("call")?, definition: part("definition")? })
}

pub(crate) fn boolean(json: &Value) -> Result<bool, AttrProblem> {
    json.as_bool().ok_or_else(|| problem("true or false", json))
}

pub(crate) fn text(json: &Value) -> Result<&str, AttrProblem> {
    json.as_str().ok_or_else(|| problem("a string", json))
}

/// An element type by TensorFlow's name.
///
/// # Errors
/// No string, or no such type.
pub fn dtype(json: &Value) -> Result<DType, AttrProblem> {
    DType::from_name(text(json)?).ok_or_else(|| problem("a name of an element type", json))
}

/// The dimensions of a known shape.
///
/// # Errors
/// No list of integers.
pub fn dims(json: &Value) -> Result<Vec<i64>, AttrProblem> {
    json.as_array().ok_or_else(|| problem("a list of dimensions", json))?.iter().map(int).collect()
}

fn shape(json: &Value) -> Result<PartialShape, AttrProblem> {
    if json.is_null() {
        return Ok(PartialShape::UNKNOWN);
    }
    PartialShape::new(&dims(json)?).map_err(|_| problem("a shape", json))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<AttrMap, (String, AttrProblem)> {
        let json: Value = serde_json::from_str(json).unwrap();
        attrs(json.as_object().unwrap(), &mut |name| {
            Tensor::from_strings(&[], &[text(name)?]).map_err(|_| unreachable!())
        })
    }

    #[test]
    fn every_kind_is_read() {
        let attrs = read(
            r#"{"a": {"int": -3}, "b": {"float": 0.1}, "c": {"bool": true}, "d": {"string": "é"},
                "e": {"type": "half"}, "f": {"shape": [2, -1]}, "g": {"shape": null},
                "h": {"tensor": "x.value"}, "i": {"list(int)": [1, 2]}, "j": {"list(type)": []}}"#,
        )
        .unwrap();
        let text: Vec<String> = attrs.values().map(|value| format!("{value:?}")).collect();
        assert_eq!(
            text,
            [
                "Int(-3)",
                "Float(0.1)",
                "Bool(true)",
                "String([195, 169])",
                "Type(half)",
                "Shape([2,?])",
                "Shape(<unknown>)",
                "Tensor(Tensor(string [] on host))",
                "List(Int([1, 2]))",
                "List(Type([]))",
            ]
        );
    }

    #[test]
    fn what_is_malformed_is_named() {
        let (name, found) = read(r#"{"a": {"int": 1.5}}"#).unwrap_err();
        assert_eq!((name.as_str(), found.expected.as_str()), ("a", "an integer"));
        for text in [r#"{"a": 1}"#, r#"{"a": {"func": {}}}"#, r#"{"a": {"type": "float9"}}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
