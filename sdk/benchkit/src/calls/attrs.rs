//! Attributes as text, and back.

use crate::error::BenchError;
use std::collections::BTreeMap;
use tenon_framework::{
    DType,
    abi::AttrKind,
    attr::{AttrList, AttrMap, AttrValue},
    op::OpDef,
};

/// Attributes in the form in which `--attr` takes them.
pub fn texts(attrs: &AttrMap) -> BTreeMap<String, String> {
    attrs.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// The defaults of an op.
pub fn defaults(op: &OpDef) -> BTreeMap<String, String> {
    let default = |attr: &tenon_framework::op::AttrDef| {
        Some((attr.name.clone(), text(attr.default.as_ref()?)))
    };
    op.attrs.iter().filter_map(default).collect()
}

/// The text of one.
pub fn text(value: &AttrValue) -> String {
    match value {
        AttrValue::Int(value) => value.to_string(),
        AttrValue::Float(value) => value.to_string(),
        AttrValue::Bool(value) => value.to_string(),
        AttrValue::String(bytes) => bytes.escape_ascii().to_string(),
        AttrValue::Type(dtype) => dtype.to_string(),
        AttrValue::Shape(shape) => shape.to_string(),
        AttrValue::Tensor(tensor) => format!("tensor({}{})", tensor.dtype(), tensor.shape()),
        AttrValue::Func(function) => format!("{}()", function.name),
        AttrValue::List(list) => format!("[{}]", items(list).join(",")),
    }
}

fn items(list: &AttrList) -> Vec<String> {
    fn all<T>(items: &[T], text: impl Fn(&T) -> String) -> Vec<String> {
        items.iter().map(text).collect()
    }
    match list {
        AttrList::Int(items) => all(items, i64::to_string),
        AttrList::Float(items) => all(items, f32::to_string),
        AttrList::Bool(items) => all(items, bool::to_string),
        AttrList::String(items) => all(items, |bytes| bytes.escape_ascii().to_string()),
        AttrList::Type(items) => all(items, DType::to_string),
        AttrList::Shape(items) => all(items, ToString::to_string),
        AttrList::Tensor(items) => all(items, |tensor| text(&AttrValue::Tensor(tensor.clone()))),
        AttrList::Func(items) => all(items, |function| format!("{}()", function.name)),
    }
}

/// Reads the text of an attribute, as an op's definition writes a default; quotes around a string may be left out.
///
/// # Errors
/// No such attribute, a text that is not a value of its type.
pub fn parse(op: &OpDef, name: &str, text: &str) -> Result<AttrValue, BenchError> {
    let attr = op
        .attr(name)
        .ok_or_else(|| BenchError::wish(&op.name, format!("has no attribute '{name}'")))?;
    let quoted = text.starts_with(['\'', '"']);
    let text = if attr.ty.kind == AttrKind::STRING && !attr.ty.is_list && !quoted {
        format!("'{text}'")
    } else {
        text.to_owned()
    };
    // The grammar of definitions has all of it.
    let spec = format!("{name}: {} = {text}", attr.ty);
    let read = OpDef::from_spec(&op.name, &[], &[], &[spec.as_str()])?;
    let value = read.attrs.into_iter().next().and_then(|attr| attr.default);
    value.ok_or_else(|| {
        BenchError::wish(&op.name, format!("attribute '{name}' cannot be given as text"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op() -> OpDef {
        let attrs = [
            "T: type = float",
            "flag: bool = false",
            "padding: string",
            "sizes: list(int)",
            "eps: float",
        ];
        OpDef::from_spec("Some", &["x: T"], &["y: T"], &attrs).unwrap()
    }

    #[test]
    fn texts_go_round() {
        let op = op();
        for (name, given) in [
            ("T", "half"),
            ("flag", "true"),
            ("padding", "SAME"),
            ("sizes", "[1,2,2,1]"),
            ("eps", "0.001"),
        ] {
            assert_eq!(text(&parse(&op, name, given).unwrap()), given);
        }
        assert_eq!(text(&parse(&op, "padding", "'a b'").unwrap()), "a b");
        assert_eq!(
            defaults(&op).into_iter().collect::<Vec<_>>(),
            [("T".to_owned(), "float".to_owned()), ("flag".to_owned(), "false".to_owned()),]
        );
    }

    #[test]
    fn what_is_no_value_is_said_with_op_and_attribute() {
        let wrong = |name: &str, text: &str| parse(&op(), name, text).unwrap_err().to_string();
        assert!(
            wrong("flag", "yes").contains("op 'Some': in \"flag: bool = yes\""),
            "{}",
            wrong("flag", "yes")
        );
        assert!(
            wrong("sizes", "3").contains("'['")
                && wrong("none", "1").contains("no attribute 'none'")
        );
    }
}
