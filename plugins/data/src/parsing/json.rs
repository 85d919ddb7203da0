//! `DecodeJSONExample`: examples in the JSON form of their messages, as protobuf defines it, become serialised messages.
//!
//! Fields have the names of the message or those in camel case, `null` means that a field is absent. Integers may be texts,
//! bytes are base64, of either alphabet, and numbers that JSON does not have are the texts `NaN`, `Infinity` and `-Infinity`.

use crate::wire::{put_bytes, put_varint};
use serde_json::{Map, Value};
use tenon_sdk::{growth, prelude::*};

/// The tags of field 1 with four bytes, and with a number of variable length. Numbers are not packed, as TensorFlow writes
/// them here.
const FLOAT: u8 = 1 << 3 | 5;
const INTEGER: u8 = 1 << 3;

type Bytes = Result<Vec<u8>, KernelError>;

fn wrong(place: &str, expected: &str, found: &Value) -> KernelError {
    let mut found = found.to_string();
    if let Some((at, _)) = found.char_indices().nth(60) {
        found.truncate(at);
        found.push_str("...");
    }
    KernelError::invalid_argument(format!("{place}: expected {expected}, found {found}"))
}

fn object<'v>(place: &str, value: &'v Value) -> Result<&'v Map<String, Value>, KernelError> {
    value.as_object().ok_or_else(|| wrong(place, "an object", value))
}

/// The members of a message that are there, each with its number among the names. A field has a name or two.
fn members<'v>(
    place: &str,
    value: &'v Value,
    fields: &[&[&str]],
) -> Result<Vec<(usize, &'v Value)>, KernelError> {
    let mut found = Vec::new();
    for (name, value) in object(place, value)? {
        let Some(number) = fields.iter().position(|names| names.contains(&name.as_str())) else {
            let names: Vec<&str> = fields.iter().map(|names| names[0]).collect();
            return Err(KernelError::invalid_argument(format!(
                "{place}: expected fields of {names:?}, found '{name}'"
            )));
        };
        if found.iter().any(|(before, _)| *before == number) {
            return Err(KernelError::invalid_argument(format!(
                "{place}: expected '{}' once, found it under both of its names",
                fields[number][0]
            )));
        }
        if !value.is_null() {
            growth::push(&mut found, (number, value))?;
        }
    }
    Ok(found)
}

/// An example: a message with one field.
fn example(value: &Value) -> Bytes {
    let mut bytes = Vec::new();
    for (_, value) in members("an example", value, &[&["features"]])? {
        put_bytes(&mut bytes, 1, &features(value)?)?;
    }
    Ok(bytes)
}

/// Features: a message with a map from names.
fn features(value: &Value) -> Bytes {
    let mut bytes = Vec::new();
    for (_, map) in members("features", value, &[&["feature"]])? {
        for (name, value) in object("features.feature", map)? {
            let mut entry = Vec::new();
            put_bytes(&mut entry, 1, name.as_bytes())?;
            put_bytes(&mut entry, 2, &feature(name, value)?)?;
            put_bytes(&mut bytes, 1, &entry)?;
        }
    }
    Ok(bytes)
}

/// A feature: one list of three.
fn feature(name: &str, value: &Value) -> Bytes {
    const LISTS: [&[&str]; 3] =
        [&["bytesList", "bytes_list"], &["floatList", "float_list"], &["int64List", "int64_list"]];
    let place = format!("feature '{name}'");
    let lists = members(&place, value, &LISTS)?;
    if lists.len() > 1 {
        return Err(wrong(&place, "one list", value));
    }
    let mut bytes = Vec::new();
    for (kind, list) in lists {
        let mut message = Vec::new();
        for (_, values) in members(&place, list, &[&["value"]])? {
            // A value without an array is one of one, as in protobuf.
            let values = values.as_array().map_or(std::slice::from_ref(values), Vec::as_slice);
            for value in values {
                match kind {
                    0 => put_bytes(&mut message, 1, &base64(&place, value)?)?,
                    1 => {
                        growth::push(&mut message, FLOAT)?;
                        growth::append(&mut message, &float(&place, value)?.to_le_bytes())?;
                    }
                    _ => {
                        growth::push(&mut message, INTEGER)?;
                        put_varint(&mut message, integer(&place, value)? as u64)?;
                    }
                }
            }
        }
        put_bytes(&mut bytes, kind as u64 + 1, &message)?;
    }
    Ok(bytes)
}

fn integer(place: &str, value: &Value) -> Result<i64, KernelError> {
    let number = |value: &Value| {
        let whole = |number: f64| {
            number.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&number)
        };
        let float = || value.as_f64().filter(|&number| whole(number)).map(|number| number as i64);
        value.as_i64().or_else(|| if value.is_u64() { None } else { float() })
    };
    let found = match value {
        Value::String(text) => {
            // A number may be in quotation marks, with nothing around it.
            let parsed = serde_json::from_str(text).ok();
            parsed.filter(|_| text.trim() == text).as_ref().and_then(number)
        }
        value => number(value),
    };
    found.ok_or_else(|| wrong(place, "an int64", value))
}

fn float(place: &str, value: &Value) -> Result<f32, KernelError> {
    let found = match value {
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            text => {
                let parsed: Option<Value> = serde_json::from_str(text).ok();
                let parsed = parsed.filter(|_| text.trim() == text);
                parsed.and_then(|value| value.as_f64()).filter(|&number| fits(number))
            }
        },
        value => value.as_f64().filter(|&number| fits(number)),
    };
    found.map(|number| number as f32).ok_or_else(|| wrong(place, "a float", value))
}

/// Whether a number becomes a finite float.
fn fits(number: f64) -> bool {
    (number as f32).is_finite()
}

/// The bytes of a text in base64, of the standard alphabet or of the one for addresses, with or without padding.
fn base64(place: &str, value: &Value) -> Bytes {
    let bad = || wrong(place, "a text in base64", value);
    let text = value.as_str().ok_or_else(bad)?;
    let digits = text.trim_end_matches('=');
    if digits.len() % 4 == 1 || text.len() - digits.len() > 2 {
        return Err(bad());
    }
    let mut bytes = growth::with_room(digits.len() / 4 * 3 + 2)?;
    let (mut word, mut bits) = (0u32, 0);
    for digit in digits.bytes() {
        let sextet = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return Err(bad()),
        };
        word = word << 6 | u32::from(sextet);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    Ok(bytes)
}

fn decode(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (texts, watch) = (c.strings(0)?, c.watch());
    c.write_texts(0, c.dims(0), |at, to| {
        watch.check()?;
        let value: Value = serde_json::from_slice(texts[at]).map_err(|error| {
            KernelError::invalid_argument(format!(
                "json_examples: expected JSON in element {at}, found an error: {error}"
            ))
        })?;
        growth::append(to, &example(&value)?)
    })
}

register_kernel!("DecodeJSONExample" on "CPU": fn decode);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_bytes_have_several_forms() {
        for value in [json!(-7), json!("-7"), json!(-7.0), json!("-7e0")] {
            assert_eq!(integer("x", &value).unwrap(), -7, "{value}");
        }
        for value in [json!(0.5), json!("7 "), json!(1e30), json!(u64::MAX), json!([1]), json!("")]
        {
            let error = integer("x", &value).unwrap_err();
            assert!(error.message.starts_with("x: expected an int64, found "), "{value}");
        }
        assert!(float("x", &json!("NaN")).unwrap().is_nan());
        assert_eq!(float("x", &json!("-Infinity")).unwrap(), f32::NEG_INFINITY);
        assert_eq!(float("x", &json!("1.5")).unwrap(), 1.5);
        assert_eq!(float("x", &json!(1e39)).unwrap_err().code, Code::INVALID_ARGUMENT);
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8", b"fo"),
            ("Zm9v", b"foo"),
            ("-_8=", &[251, 255]),
        ] {
            assert_eq!(base64("x", &json!(text)).unwrap(), bytes, "{text}");
        }
        for text in ["Z", "Zm9v====", "Zm 9", "Z=g="] {
            assert!(base64("x", &json!(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn an_example_is_its_message() {
        let text = json!({"features": {"feature": {"n": {"int64List": {"value": ["1", 300]}}}}});
        let list = [8, 1, 8, 0xac, 2];
        let expected = [&[0x0a, 14, 0x0a, 12, 0x0a, 1, b'n', 0x12, 7, 0x1a, 5][..], &list].concat();
        assert_eq!(example(&text).unwrap(), expected);
        assert_eq!(example(&json!({"features": null})).unwrap(), b"");
        let feature = |feature: Value| example(&json!({"features": {"feature": {"n": feature}}}));
        let one = json!({"floatList": {"value": 1}});
        assert!(feature(one).unwrap().ends_with(&[0x12, 5, 0x0d, 0, 0, 0x80, 0x3f]));
        for wrong in [json!({"other": 1}), json!([]), json!({"int64List": {"value": {}}})] {
            assert_eq!(feature(wrong).unwrap_err().code, Code::INVALID_ARGUMENT);
        }
        let twice = json!({"int64List": {}, "int64_list": {}});
        assert!(feature(twice).unwrap_err().message.contains("under both of its names"));
        let two = json!({"int64List": {}, "floatList": {}});
        assert!(feature(two).unwrap_err().message.contains("expected one list"));
    }
}
