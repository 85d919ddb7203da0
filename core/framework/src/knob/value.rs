//! Values of knobs.

use std::fmt;
use tenon_abi::{KnobKind, Str};

/// The value of a knob.
#[derive(Debug, Clone, PartialEq)]
pub enum KnobValue {
    /// `true` or `false`
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A 64-bit float.
    Float(f64),
    /// Text.
    String(String),
}

impl KnobValue {
    /// Reads a value; integers may be written as `0x10` and `1_000`, booleans also as `1`, `0`, `on`, `off`.
    /// `None` when `text` is not a value of this kind.
    pub fn parse(kind: KnobKind, text: &str) -> Option<KnobValue> {
        let trimmed = text.trim();
        Some(match kind {
            KnobKind::BOOL => KnobValue::Bool(match trimmed {
                "true" | "1" | "on" => true,
                "false" | "0" | "off" => false,
                _ => return None,
            }),
            KnobKind::INT => KnobValue::Int(parse_int(trimmed)?),
            KnobKind::FLOAT => KnobValue::Float(trimmed.parse().ok()?),
            KnobKind::STRING => KnobValue::String(text.to_owned()),
            _ => return None,
        })
    }

    /// Its kind.
    pub fn kind(&self) -> KnobKind {
        match self {
            KnobValue::Bool(_) => KnobKind::BOOL,
            KnobValue::Int(_) => KnobKind::INT,
            KnobValue::Float(_) => KnobKind::FLOAT,
            KnobValue::String(_) => KnobKind::STRING,
        }
    }

    /// As it crosses the boundary; the text is borrowed from `self`.
    pub fn to_abi(&self) -> tenon_abi::KnobValue {
        let mut value = tenon_abi::KnobValue {
            kind: self.kind(),
            boolean: 0,
            int_value: 0,
            float_value: 0.0,
            text: Str::EMPTY,
        };
        match self {
            KnobValue::Bool(boolean) => value.boolean = u32::from(*boolean),
            KnobValue::Int(int) => value.int_value = *int,
            KnobValue::Float(float) => value.float_value = *float,
            KnobValue::String(text) => value.text = Str::new(text),
        }
        value
    }
}

impl fmt::Display for KnobValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KnobValue::Bool(value) => write!(f, "{value}"),
            KnobValue::Int(value) => write!(f, "{value}"),
            KnobValue::Float(value) => write!(f, "{value}"),
            KnobValue::String(value) => f.write_str(value),
        }
    }
}

fn parse_int(text: &str) -> Option<i64> {
    let plain = text.replace('_', "");
    match plain.strip_prefix("0x") {
        Some(digits) if !digits.starts_with(['+', '-']) => i64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => plain.parse().ok(),
    }
}

/// Name of a kind, for people.
pub fn kind_name(kind: KnobKind) -> &'static str {
    match kind {
        KnobKind::BOOL => "bool (true or false)",
        KnobKind::INT => "int",
        KnobKind::FLOAT => "float",
        KnobKind::STRING => "string",
        _ => "unknown",
    }
}
