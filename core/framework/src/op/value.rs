//! Defaults of attributes.
//!
//! Lists are written in brackets, strings in quotes, shapes as `[2,?]` or `?`. Shapes and tensors are read in the
//! text form of their messages too: `{ dim { size: 2 } }`, `{ unknown_rank: true }`,
//! `{ dtype: DT_UINT8 tensor_shape { dim { size: 4 } } int_val: 255 }`.

use super::{
    error::OpError,
    spec::{Cursor, parse_items},
};
use crate::{
    attr::{AttrList, AttrType, AttrValue},
    shape::PartialShape,
    tensor::Tensor,
};
use tenon_abi::{AttrKind, DType};

impl Cursor<'_> {
    /// Text in single or double quotes, with the escapes of C.
    pub(super) fn quoted(&mut self) -> Result<Vec<u8>, OpError> {
        let mut chars = self.rest().char_indices();
        let quote = match chars.next() {
            Some((_, quote @ ('\'' | '"'))) => quote,
            _ => return Err(self.fail("text in quotes")),
        };
        let mut text = Vec::new();
        while let Some((at, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    self.advance(at + 1);
                    return Ok(text);
                }
                '\\' => {
                    let byte = escape(&mut chars);
                    text.push(byte.ok_or_else(|| {
                        self.fail(r#"an escape of \n, \r, \t, \0, \\, \', \" or \xHH"#)
                    })?);
                }
                _ => text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        Err(self.fail(&format!("a closing {quote}")))
    }

    fn float(&mut self) -> Result<f32, OpError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
        let text = &rest[..end.unwrap_or(rest.len())];
        let value = text.parse().map_err(|_| self.fail("a float"))?;
        self.advance(text.len());
        Ok(value)
    }

    fn boolean(&mut self) -> Result<bool, OpError> {
        let word = self.peek_word();
        let value = match word {
            "true" => true,
            "false" => false,
            _ => return Err(self.fail("true or false")),
        };
        self.advance(word.len());
        Ok(value)
    }

    fn shape(&mut self) -> Result<PartialShape, OpError> {
        if self.eat("?") {
            return Ok(PartialShape::UNKNOWN);
        }
        let start = self.fail("a shape of a size that fits 63 bits");
        let mut dims = Some(Vec::new());
        if self.eat("[") {
            if !self.eat("]") {
                parse_items(self, "]", |cursor| {
                    let dim =
                        if cursor.eat("?") { -1 } else { cursor.int("a dimension or '?'")? };
                    dims.get_or_insert_default().push(dim);
                    Ok(())
                })?;
            }
        } else {
            self.expect("{", "a shape such as [2,?], ? or { unknown_rank: true }")?;
            dims = shape_message(self)?;
        }
        match dims {
            Some(dims) => PartialShape::new(&dims).map_err(|_| start),
            None => Ok(PartialShape::UNKNOWN),
        }
    }
}

fn escape(chars: &mut std::str::CharIndices<'_>) -> Option<u8> {
    Some(match chars.next()?.1 {
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        '0' => 0,
        c @ ('\\' | '\'' | '"') => c as u8,
        'x' => {
            let mut digit = || chars.next().and_then(|(_, c)| c.to_digit(16));
            let (high, low) = (digit()?, digit()?);
            (high * 16 + low) as u8
        }
        _ => return None,
    })
}

/// The fields of a message whose `{` is read, up to and with its `}`.
fn fields<'a>(
    cursor: &mut Cursor<'a>,
    mut field: impl FnMut(&mut Cursor<'a>, &str) -> Result<(), OpError>,
) -> Result<(), OpError> {
    while !cursor.eat("}") {
        let name = cursor.peek_word();
        if name.is_empty() {
            return Err(cursor.fail("the name of a field or '}'"));
        }
        cursor.advance(name.len());
        if !cursor.rest().starts_with('{') {
            cursor.expect(":", "':' or '{' after the name of a field")?;
        }
        field(cursor, name)?;
        if !cursor.eat(",") {
            cursor.eat(";");
        }
    }
    Ok(())
}

/// The rest of a `TensorShapeProto`: its dimensions, -1 where unknown; `None` for unknown rank.
fn shape_message(cursor: &mut Cursor<'_>) -> Result<Option<Vec<i64>>, OpError> {
    let mut dims = Vec::new();
    let mut unknown_rank = false;
    fields(cursor, |cursor, name| match name {
        "unknown_rank" => {
            unknown_rank = cursor.boolean()?;
            Ok(())
        }
        "dim" => {
            cursor.expect("{", "'{' after dim")?;
            let mut size = 0;
            fields(cursor, |cursor, name| match name {
                "size" => {
                    size = cursor.int("a dimension")?;
                    Ok(())
                }
                _ => Err(cursor.fail("a value of the field size")),
            })?;
            dims.push(size);
            Ok(())
        }
        _ => Err(cursor.fail("a value of the field dim or unknown_rank")),
    })?;
    Ok((!unknown_rank).then_some(dims))
}

/// A `TensorProto` of numbers in text form; the last value fills the rest, as TensorFlow's decoder does.
fn tensor(cursor: &mut Cursor<'_>) -> Result<Tensor, OpError> {
    let supported = "a tensor of float, double, int32, int64, int8, uint8 or bool with as many values \
                     as its shape, or fewer";
    let start = cursor.fail(supported);
    cursor.expect("{", "a tensor such as { dtype: DT_FLOAT float_val: 1 }")?;
    let mut dtype = DType::INVALID;
    let mut dims = Some(Vec::new());
    let mut values: Vec<f64> = Vec::new();
    fields(cursor, |cursor, name| {
        match name {
            "dtype" => dtype = cursor.dtype()?,
            "tensor_shape" => {
                cursor.expect("{", "'{' after tensor_shape")?;
                dims = shape_message(cursor)?;
            }
            "float_val" | "double_val" => values.push(f64::from(cursor.float()?)),
            "int_val" | "int64_val" => values.push(cursor.int("an integer")? as f64),
            "bool_val" => values.push(f64::from(u8::from(cursor.boolean()?))),
            _ => {
                return Err(
                    cursor.fail("a value of dtype, tensor_shape or a *_val field of numbers")
                );
            }
        }
        Ok(())
    })?;
    filled(dtype, dims.as_deref(), &values).ok_or(start)
}

/// Numbers are held as `f64`: exact for every integer that fits the element types, but for `int64` beyond
/// 2^53, which the check of the round trip refuses.
fn filled(dtype: DType, dims: Option<&[i64]>, values: &[f64]) -> Option<Tensor> {
    let dims = dims?;
    let count = crate::shape::Shape::new(dims).ok()?.elements();
    if values.len() > count || count > 1 << 16 {
        return None;
    }
    let value = |at: usize| values.get(at).or(values.last()).copied().unwrap_or(0.0);
    macro_rules! of {
        ($ty:ty) => {{
            let exact = (0..count).all(|at| f64::from(value(at) as $ty) == value(at));
            let items: Vec<$ty> = (0..count).map(|at| value(at) as $ty).collect();
            if exact { Tensor::from_slice(dims, &items).ok() } else { None }
        }};
    }
    match dtype {
        DType::FLOAT => of!(f32),
        DType::DOUBLE => of!(f64),
        DType::INT32 => of!(i32),
        DType::INT8 => of!(i8),
        DType::UINT8 => of!(u8),
        DType::INT64 => {
            let exact = (0..count).all(|at| value(at).abs() <= (1u64 << 53) as f64);
            let items: Vec<i64> = (0..count).map(|at| value(at) as i64).collect();
            if exact { Tensor::from_slice(dims, &items).ok() } else { None }
        }
        DType::BOOL => {
            let bytes: Vec<u8> = (0..count).map(|at| value(at) as u8).collect();
            Tensor::from_bytes(dtype, dims, &bytes).ok()
        }
        _ => None,
    }
}

/// Reads a default of this type.
pub(super) fn parse_default(cursor: &mut Cursor<'_>, ty: AttrType) -> Result<AttrValue, OpError> {
    if ty.is_list {
        return parse_list(cursor, ty.kind);
    }
    Ok(match ty.kind {
        AttrKind::INT => AttrValue::Int(cursor.int("an integer that fits 64 bits")?),
        AttrKind::FLOAT => AttrValue::Float(cursor.float()?),
        AttrKind::BOOL => AttrValue::Bool(cursor.boolean()?),
        AttrKind::STRING => AttrValue::String(cursor.quoted()?),
        AttrKind::TYPE => AttrValue::Type(cursor.dtype()?),
        AttrKind::SHAPE => AttrValue::Shape(cursor.shape()?),
        AttrKind::TENSOR => AttrValue::Tensor(tensor(cursor)?),
        _ => return Err(cursor.fail("no default: attributes of type func have none")),
    })
}

fn parse_list(cursor: &mut Cursor<'_>, kind: AttrKind) -> Result<AttrValue, OpError> {
    cursor.expect("[", "'[' before the items of a list")?;
    let mut list = AttrList::empty(kind).ok_or_else(|| cursor.fail("a list of a known kind"))?;
    if cursor.eat("]") {
        return Ok(AttrValue::List(list));
    }
    parse_items(cursor, "]", |cursor| {
        match &mut list {
            AttrList::Int(items) => items.push(cursor.int("an integer that fits 64 bits")?),
            AttrList::Float(items) => items.push(cursor.float()?),
            AttrList::Bool(items) => items.push(cursor.boolean()?),
            AttrList::String(items) => items.push(cursor.quoted()?),
            AttrList::Type(items) => items.push(cursor.dtype()?),
            AttrList::Shape(items) => items.push(cursor.shape()?),
            AttrList::Tensor(items) => items.push(tensor(cursor)?),
            AttrList::Func(_) => return Err(cursor.fail("']': functions have no default")),
        }
        Ok(())
    })?;
    Ok(AttrValue::List(list))
}

/// Whether two values are the same; tensors by type, shape and bytes.
pub(super) fn same_value(a: &AttrValue, b: &AttrValue) -> bool {
    match (a, b) {
        (AttrValue::Tensor(a), AttrValue::Tensor(b)) => same_tensor(a, b),
        (AttrValue::List(AttrList::Tensor(a)), AttrValue::List(AttrList::Tensor(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_tensor(a, b))
        }
        // The text of the other values is complete, and floats are written as they are read.
        _ => format!("{a:?}") == format!("{b:?}"),
    }
}

fn same_tensor(a: &Tensor, b: &Tensor) -> bool {
    let bytes = |t: &Tensor| t.as_bytes().map(<[u8]>::to_vec).ok();
    a.dtype() == b.dtype() && a.shape() == b.shape() && bytes(a).is_some() && bytes(a) == bytes(b)
}

#[cfg(test)]
mod tests {
    use super::super::spec::parse_attr;
    use super::*;

    fn default(text: &str) -> AttrValue {
        parse_attr("Op", text).unwrap().default.unwrap()
    }

    fn error(text: &str) -> String {
        parse_attr("Op", text).unwrap_err().to_string()
    }

    fn shape(text: &str) -> String {
        match default(text) {
            AttrValue::Shape(shape) => shape.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn shapes_are_read_in_both_forms() {
        assert_eq!(shape("s: shape = ?"), "<unknown>");
        assert_eq!(shape("s: shape = { unknown_rank: true }"), "<unknown>");
        assert_eq!(shape("s: shape = [2,?]"), "[2,?]");
        assert_eq!(shape("s: shape = []"), "[]");
        assert_eq!(shape("s: shape = {}"), "[]");
        assert_eq!(shape("s: shape = { dim { size: 2 } dim: { size: -1 } }"), "[2,?]");
        assert!(error("s: shape = 3").contains("expected a shape such as [2,?]"));
        assert!(error("s: shape = [9223372036854775807,2]").contains("fits 63 bits"));
        assert!(error("s: shape = { rank: 3 }").contains("dim or unknown_rank"));
        assert!(error("s: shape = { dim { size: 3 }").contains("found the end"));
    }

    #[test]
    fn lists_of_every_kind_are_read() {
        for text in [
            "l: list(int) = [1, -2]",
            "l: list(float) = [1.5, inf]",
            "l: list(bool) = [true, false]",
            "l: list(string) = ['a', \"b\"]",
            "l: list(type) = [float, DT_INT32]",
            "l: list(shape) = [?, [1,?]]",
        ] {
            match default(text) {
                AttrValue::List(list) => assert_eq!(list.len(), 2, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(matches!(default("l: list(func) = []"), AttrValue::List(AttrList::Func(_))));
        assert!(error("l: list(int) = 3").contains("'[' before the items"));
        assert!(error("l: list(int) = [1").contains("',' or ']'"));
        assert!(error("f: func = 'x'").contains("attributes of type func have none"));
    }

    #[test]
    fn quotes_and_escapes_are_read() {
        assert!(matches!(default(r#"s: string = "it's""#), AttrValue::String(s) if s == b"it's"));
        assert!(
            matches!(default(r"s: string = 'a\n\x41\'é'"), AttrValue::String(s) if s == "a\nA'é".as_bytes())
        );
        assert!(error("s: string = 'a").contains("a closing '"));
        assert!(error(r"s: string = 'a\q'").contains("an escape of"));
        assert!(error(r"s: string = '\x4").contains("an escape of"));
        assert!(error("b: bool = yes").contains("true or false"));
        assert!(error("f: float = 1.2.3").contains("a float"));
    }

    #[test]
    fn a_tensor_default_is_filled_with_its_last_value() {
        let text = "c: tensor = { dtype: DT_UINT8 tensor_shape: { dim { size: 4 } } int_val: 255 int_val: 0 }";
        let AttrValue::Tensor(tensor) = default(text) else { panic!("not a tensor") };
        assert_eq!(tensor.as_slice::<u8>().unwrap(), &[255, 0, 0, 0]);
        assert!(same_value(&default(text), &default(text)));
        let other = default(&text.replace("255", "254"));
        assert!(!same_value(&default(text), &other));
        assert!(
            error("c: tensor = { dtype: DT_UINT8 int_val: 256 }").contains("expected a tensor of")
        );
        assert!(
            error("c: tensor = { dtype: DT_INT32 int_val: 1 int_val: 2 }").contains("or fewer")
        );
        assert!(error("c: tensor = { int_val: 1 }").contains("expected a tensor of"));
    }
}
