//! The grammar of arguments and attributes, as `REGISTER_OP` writes them.
//!
//! ```text
//! argument  = name ":" ( "Ref" "(" sort ")" | sort )
//! sort      = [ attribute "*" ] ( dtype | attribute )
//! attribute = name ":" ( kind | "list" "(" kind ")" ) [ ">=" int ] [ "=" default ]
//! kind      = "int" | "float" | "bool" | "string" | "type" | "shape" | "tensor" | "func"
//!           | "numbertype" | "realnumbertype" | "quantizedtype"
//!           | "{" dtype or group { "," dtype or group } [ "," ] "}"
//!           | "{" quoted { "," quoted } [ "," ] "}"
//! ```

use super::{
    def::{Allowed, ArgDef, ArgType, AttrDef},
    error::OpError,
    value::parse_default,
};
use crate::attr::AttrType;
use tenon_abi::{AttrKind, DType};

/// The types of the group `numbertype`, in TensorFlow's order.
const NUMBER_TYPES: &[DType] = &[
    DType::FLOAT,
    DType::DOUBLE,
    DType::INT32,
    DType::UINT8,
    DType::INT16,
    DType::INT8,
    DType::COMPLEX64,
    DType::INT64,
    DType::QINT8,
    DType::QUINT8,
    DType::QINT32,
    DType::BFLOAT16,
    DType::QINT16,
    DType::QUINT16,
    DType::UINT16,
    DType::COMPLEX128,
    DType::HALF,
    DType::UINT32,
    DType::UINT64,
];

/// The types of the group `realnumbertype`.
const REAL_NUMBER_TYPES: &[DType] = &[
    DType::FLOAT,
    DType::DOUBLE,
    DType::INT32,
    DType::UINT8,
    DType::INT16,
    DType::INT8,
    DType::INT64,
    DType::BFLOAT16,
    DType::UINT16,
    DType::HALF,
    DType::UINT32,
    DType::UINT64,
];

/// The types of the group `quantizedtype`.
const QUANTIZED_TYPES: &[DType] =
    &[DType::QINT8, DType::QUINT8, DType::QINT32, DType::QINT16, DType::QUINT16];

/// A text being read.
pub(super) struct Cursor<'a> {
    op: &'a str,
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(op: &'a str, text: &'a str) -> Cursor<'a> {
        let mut cursor = Cursor { op, text, at: 0 };
        cursor.skip_space();
        cursor
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Byte in the text.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Goes on by `bytes` and over the space behind.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.skip_space();
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.advance(token.len());
        }
        found
    }

    pub(super) fn expect(&mut self, token: &str, expected: &str) -> Result<(), OpError> {
        if self.eat(token) { Ok(()) } else { Err(self.fail(expected)) }
    }

    /// A run of letters, digits and underscores that begins with a letter; may be empty.
    pub(super) fn peek_word(&self) -> &'a str {
        let rest = self.rest();
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return "";
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    }

    pub(super) fn word(&mut self, expected: &str) -> Result<&'a str, OpError> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.fail(expected));
        }
        self.advance(word.len());
        Ok(word)
    }

    pub(super) fn fail(&self, expected: &str) -> OpError {
        self.fail_at(self.at, expected)
    }

    /// What is wrong with a part that was read already.
    pub(super) fn fail_at(&self, position: usize, expected: &str) -> OpError {
        let rest = &self.text[position..];
        let found = if rest.is_empty() {
            "the end".to_owned()
        } else {
            format!("'{}'", rest.chars().take(24).collect::<String>())
        };
        OpError::Spec {
            op: self.op.to_owned(),
            text: self.text.to_owned(),
            position,
            expected: expected.to_owned(),
            found,
        }
    }

    pub(super) fn end(&self, expected: &str) -> Result<(), OpError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.fail(expected)) }
    }

    /// A decimal integer.
    pub(super) fn int(&mut self, expected: &str) -> Result<i64, OpError> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let value = rest[..sign + digits].parse().map_err(|_| self.fail(expected))?;
        self.advance(sign + digits);
        Ok(value)
    }

    /// An element type, as `float` or `DT_FLOAT`.
    pub(super) fn dtype(&mut self) -> Result<DType, OpError> {
        let word = self.peek_word();
        let dtype = dtype_named(word)
            .ok_or_else(|| self.fail("an element type such as float, int32 or DT_FLOAT"))?;
        self.advance(word.len());
        Ok(dtype)
    }
}

fn dtype_named(word: &str) -> Option<DType> {
    match word.strip_prefix("DT_") {
        Some(upper) if !upper.bytes().any(|b| b.is_ascii_lowercase()) => {
            DType::from_name(&upper.to_ascii_lowercase())
        }
        _ => DType::from_name(word),
    }
}

fn group(word: &str) -> Option<&'static [DType]> {
    match word {
        "numbertype" | "numerictype" => Some(NUMBER_TYPES),
        "realnumbertype" | "realnumerictype" => Some(REAL_NUMBER_TYPES),
        "quantizedtype" => Some(QUANTIZED_TYPES),
        _ => None,
    }
}

/// Reads an argument. A name that is not an element type is taken for a `type` attribute.
pub(super) fn parse_arg(op: &str, text: &str) -> Result<ArgDef, OpError> {
    let mut cursor = Cursor::new(op, text);
    let rule =
        "the name of an argument: a lower-case letter, then lower-case letters, digits and '_'";
    let name = cursor.peek_word();
    if !name.starts_with(|c: char| c.is_ascii_lowercase())
        || name.bytes().any(|b| b.is_ascii_uppercase())
    {
        return Err(cursor.fail(rule));
    }
    cursor.advance(name.len());
    cursor.expect(":", "':' after the name of the argument")?;
    let is_ref = cursor.peek_word() == "Ref" && cursor.rest()[3..].trim_start().starts_with('(');
    if is_ref {
        cursor.advance(3);
        cursor.expect("(", "'(' after Ref")?;
    }
    let mut sort = cursor.word("an element type or the name of an attribute")?;
    let mut number_attr = None;
    if cursor.eat("*") {
        number_attr = Some(sort.to_owned());
        sort = cursor.word("an element type or the name of a type attribute after '*'")?;
    }
    if is_ref {
        cursor.expect(")", "')' to close 'Ref('")?;
    }
    cursor.end("the end of the argument")?;
    let ty = match dtype_named(sort) {
        Some(dtype) => ArgType::Fixed(dtype),
        None => ArgType::Attr(sort.to_owned()),
    };
    Ok(ArgDef { name: name.to_owned(), ty, number_attr, is_ref })
}

/// Reads an attribute.
pub(super) fn parse_attr(op: &str, text: &str) -> Result<AttrDef, OpError> {
    let mut cursor = Cursor::new(op, text);
    let name = cursor.word("the name of an attribute: a letter, then letters, digits and '_'")?;
    cursor.expect(":", "':' after the name of the attribute")?;
    let is_list = cursor.peek_word() == "list";
    if is_list {
        cursor.advance(4);
        cursor.expect("(", "'(' after list")?;
    }
    let (kind, allowed) = parse_kind(&mut cursor)?;
    if is_list {
        cursor.expect(")", "')' to close 'list('")?;
    }
    let ty = AttrType { kind, is_list };
    let mut minimum = None;
    if (is_list || kind == AttrKind::INT) && cursor.eat(">=") {
        minimum = Some(cursor.int("an integer that fits 64 bits after '>='")?);
    }
    let mut attr = AttrDef { name: name.to_owned(), ty, default: None, minimum, allowed };
    if cursor.eat("=") {
        attr.default = Some(parse_default(&mut cursor, ty)?);
    }
    cursor.end("'>=', '=' or the end of the attribute")?;
    Ok(attr)
}

fn parse_kind(cursor: &mut Cursor<'_>) -> Result<(AttrKind, Option<Allowed>), OpError> {
    if cursor.eat("{") {
        return parse_allowed(cursor);
    }
    let word = cursor.peek_word();
    let kind = match word {
        "int" => AttrKind::INT,
        "float" => AttrKind::FLOAT,
        "bool" => AttrKind::BOOL,
        "string" => AttrKind::STRING,
        "type" => AttrKind::TYPE,
        "shape" => AttrKind::SHAPE,
        "tensor" => AttrKind::TENSOR,
        "func" => AttrKind::FUNC,
        _ => {
            let expected = "int, float, bool, string, type, shape, tensor, func, numbertype, \
                            realnumbertype, quantizedtype, '{' or list(...)";
            let types = group(word).ok_or_else(|| cursor.fail(expected))?;
            cursor.advance(word.len());
            return Ok((AttrKind::TYPE, Some(Allowed::Types(types.to_vec()))));
        }
    };
    cursor.advance(word.len());
    Ok((kind, None))
}

fn parse_allowed(cursor: &mut Cursor<'_>) -> Result<(AttrKind, Option<Allowed>), OpError> {
    if cursor.rest().starts_with(['\'', '"']) {
        let mut texts = Vec::new();
        parse_items(cursor, "}", |cursor| {
            let start = cursor.fail("text of UTF-8");
            texts.push(String::from_utf8(cursor.quoted()?).map_err(|_| start)?);
            Ok(())
        })?;
        return Ok((AttrKind::STRING, Some(Allowed::Strings(texts))));
    }
    let mut types = Vec::new();
    parse_items(cursor, "}", |cursor| {
        let word = cursor.peek_word();
        match group(word) {
            Some(group) => {
                cursor.advance(word.len());
                types.extend_from_slice(group);
            }
            None => types.push(cursor.dtype()?),
        }
        Ok(())
    })?;
    Ok((AttrKind::TYPE, Some(Allowed::Types(types))))
}

/// One item or more, separated by commas, up to `close`; a comma may precede `close`.
pub(super) fn parse_items<'a>(
    cursor: &mut Cursor<'a>,
    close: &str,
    mut item: impl FnMut(&mut Cursor<'a>) -> Result<(), OpError>,
) -> Result<(), OpError> {
    loop {
        item(cursor)?;
        if cursor.eat(close) {
            return Ok(());
        }
        cursor.expect(",", &format!("',' or '{close}'"))?;
        if cursor.eat(close) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::AttrValue;

    fn attr(text: &str) -> AttrDef {
        parse_attr("Op", text).unwrap()
    }

    fn attr_error(text: &str) -> String {
        parse_attr("Op", text).unwrap_err().to_string()
    }

    #[test]
    fn arguments_of_every_form_are_read() {
        let arg = |text: &str| parse_arg("Op", text).unwrap();
        assert_eq!(arg("x: float").ty, ArgType::Fixed(DType::FLOAT));
        assert_eq!(arg("handle:resource").ty, ArgType::Fixed(DType::RESOURCE));
        assert_eq!(arg(" x : T ").ty, ArgType::Attr("T".into()));
        let many = arg("values: N * T");
        assert_eq!((many.number_attr.as_deref(), many.ty), (Some("N"), ArgType::Attr("T".into())));
        let reference = arg("x: Ref ( N*int32 )");
        assert!(reference.is_ref && reference.ty == ArgType::Fixed(DType::INT32));
        assert_eq!(reference.number_attr.as_deref(), Some("N"));
        assert_eq!(arg("x: Ref").ty, ArgType::Attr("Ref".into()));
    }

    #[test]
    fn bad_arguments_say_where_and_what() {
        let error = |text: &str| parse_arg("Op", text).unwrap_err().to_string();
        assert_eq!(
            error("X: T"),
            "op 'Op': in \"X: T\" at byte 0: expected the name of an argument: a lower-case letter, \
             then lower-case letters, digits and '_', found 'X: T'"
        );
        assert!(error("x T").contains("at byte 2: expected ':' after the name"));
        assert!(
            error("x: Ref(T").contains("at byte 8: expected ')' to close 'Ref(', found the end")
        );
        assert!(error("x: T y").contains("at byte 5: expected the end of the argument, found 'y'"));
        assert!(error("x: N *").contains("after '*', found the end"));
        assert!(error("").contains("found the end"));
        assert!(error("x: é").contains("found 'é'"));
    }

    #[test]
    fn types_groups_and_strings_are_allowed_sets() {
        let types = attr("T: {float, DT_DOUBLE,} = DT_FLOAT");
        assert_eq!(types.allowed, Some(Allowed::Types(vec![DType::FLOAT, DType::DOUBLE])));
        assert_eq!(types.default.unwrap().as_type(), Some(DType::FLOAT));
        let count = |text: &str| match attr(text).allowed {
            Some(Allowed::Types(types)) => types.len(),
            _ => 0,
        };
        assert_eq!(count("T: numbertype"), 19);
        assert_eq!(count("T: realnumbertype"), 12);
        assert_eq!(count("T: quantizedtype"), 5);
        assert_eq!(count("T: {quantizedtype, bool}"), 6);
        assert_eq!(count("T: list({int32,int64}) = [DT_INT32]"), 2);
        let padding = attr("padding: {'SAME', \"VALID\"} = 'SAME'");
        assert_eq!(padding.allowed, Some(Allowed::Strings(vec!["SAME".into(), "VALID".into()])));
        assert_eq!(padding.default.unwrap().as_text(), Some("SAME"));
        assert_eq!(attr("T: type").allowed, None);
    }

    #[test]
    fn minima_and_defaults_are_read() {
        let number = attr("N: int >= -1 = 2");
        assert_eq!((number.minimum, number.default.unwrap().as_int()), (Some(-1), Some(2)));
        let strides = attr("strides: list(int) >= 4 = [1, 1, 1, 1]");
        assert_eq!(strides.ty, AttrType::list(AttrKind::INT));
        assert_eq!(strides.minimum, Some(4));
        assert_eq!(strides.default.unwrap().attr_type(), AttrType::list(AttrKind::INT));
        assert!(matches!(attr("b: bool=false").default, Some(AttrValue::Bool(false))));
        assert!(matches!(attr("e: float = 1e-4").default, Some(AttrValue::Float(v)) if v == 1e-4));
        assert!(matches!(attr("f: func").ty, ty if ty == AttrType::one(AttrKind::FUNC)));
    }

    #[test]
    fn bad_attributes_say_where_and_what() {
        assert!(attr_error("T: floaty").contains("at byte 3: expected int, float"));
        assert!(attr_error("T: {float; double}").contains("at byte 9: expected ',' or '}'"));
        assert!(attr_error("T: {}").contains("expected an element type such as float"));
        assert!(attr_error("T: {DT_float}").contains("expected an element type"));
        assert!(attr_error("b: bool >= 1").contains("expected '>=', '=' or the end"));
        assert!(attr_error("N: int >= x").contains("expected an integer that fits 64 bits"));
        assert!(attr_error("N: int >= 99999999999999999999").contains("fits 64 bits"));
        assert!(attr_error("N: int = 1 2").contains("at byte 11"));
        assert!(attr_error("l: list(int").contains("expected ')' to close 'list('"));
        assert!(attr_error("s: {'a', 3}").contains("expected text in quotes"));
        assert!(attr_error("s: {'\\xff'}").contains("expected text of UTF-8"));
        assert!(attr_error("1x: int").contains("expected the name of an attribute"));
    }
}
