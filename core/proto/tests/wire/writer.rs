//! Writes messages by `fields.txt` alone, without the types under test.
//!
//! The form is the one that prost writes, so that bytes can be compared: fields by number (a oneof
//! at the place of its lowest member), repeated numbers packed, map entries by key, defaults left
//! out. A choice is drawn from `Entropy`: the same choices give the same bytes.

use std::collections::BTreeMap;

use prost::encoding::{WireType, encode_key, encode_varint};

use crate::schema::{Field, Label, Schema, Type};

/// Bytes that choices are drawn from; zeros once they are used up, which is the smallest choice.
pub struct Entropy<'a>(pub &'a [u8]);

impl Entropy<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

/// How a message is filled.
pub enum Fill<'a> {
    /// Every field, taking the member of each oneof that this number picks.
    All(usize),
    /// What the entropy says.
    Drawn(Entropy<'a>),
}

pub struct Writer<'a> {
    pub schema: &'a Schema,
    pub fill: Fill<'a>,
    /// Counts values, so that no two of a filled message are equal.
    serial: u64,
}

impl<'a> Writer<'a> {
    pub fn new(schema: &'a Schema, fill: Fill<'a>) -> Self {
        Writer { schema, fill, serial: 0 }
    }

    /// The encoded form of a message whose sub-messages go `depth` levels down.
    pub fn message(&mut self, name: &str, depth: usize) -> Vec<u8> {
        let schema = self.schema;
        let fields = &schema[name];
        let mut out = Vec::new();
        for field in fields {
            let Label::Oneof(group) = &field.label else {
                self.field(field, depth, &mut out);
                continue;
            };
            let member = |f: &&Field| matches!(&f.label, Label::Oneof(g) if g == group);
            let members: Vec<_> = fields.iter().filter(member).collect();
            if members[0].number == field.number {
                let picked = self.pick(members.len());
                self.single(members[picked], depth, true, &mut out);
            }
        }
        out
    }

    fn pick(&mut self, count: usize) -> usize {
        match &mut self.fill {
            Fill::All(turn) => *turn % count,
            Fill::Drawn(entropy) => usize::from(entropy.byte()) % count,
        }
    }

    /// How many elements, at most three.
    fn count(&mut self) -> usize {
        match &mut self.fill {
            Fill::All(_) => 2,
            Fill::Drawn(entropy) => usize::from(entropy.byte() % 4),
        }
    }

    fn field(&mut self, field: &Field, depth: usize, out: &mut Vec<u8>) {
        if depth == 0 && matches!(field.ty, Type::Message(_)) {
            return;
        }
        match &field.label {
            Label::Repeated => self.repeated(field, depth, out),
            Label::Map(key) => self.map(field, key, depth, out),
            Label::Single | Label::Oneof(_) => {
                if self.count() > 0 {
                    self.single(field, depth, false, out);
                }
            }
        }
    }

    /// One value; a scalar outside a oneof is left out when it is the default.
    fn single(&mut self, field: &Field, depth: usize, oneof: bool, out: &mut Vec<u8>) {
        let (wire_type, value, is_default) = self.value(&field.ty, depth);
        let scalar = matches!(field.ty, Type::Scalar(_) | Type::Enum);
        if oneof || !scalar || !is_default {
            encode_key(field.number, wire_type, out);
            out.extend(value);
        }
    }

    fn repeated(&mut self, field: &Field, depth: usize, out: &mut Vec<u8>) {
        let mut packed = Vec::new();
        for _ in 0..self.count() {
            let (wire_type, value, _) = self.value(&field.ty, depth);
            if wire_type == WireType::LengthDelimited {
                encode_key(field.number, wire_type, out);
                out.extend(value);
            } else {
                packed.extend(value);
            }
        }
        if !packed.is_empty() {
            encode_key(field.number, WireType::LengthDelimited, out);
            delimit(&packed, out);
        }
    }

    fn map(&mut self, field: &Field, key: &str, depth: usize, out: &mut Vec<u8>) {
        let mut entries = BTreeMap::new();
        for _ in 0..self.count() {
            let (order, key) = self.key(key);
            let (wire_type, value, is_default) = self.value(&field.ty, depth);
            let mut entry = key;
            if !is_default {
                encode_key(2, wire_type, &mut entry);
                entry.extend(value);
            }
            entries.insert(order, entry);
        }
        for entry in entries.values() {
            encode_key(field.number, WireType::LengthDelimited, out);
            delimit(entry, out);
        }
    }

    /// A map key: what it is sorted by, and its field in the entry.
    fn key(&mut self, scalar: &str) -> ((i64, String), Vec<u8>) {
        let n = self.draw();
        let mut out = Vec::new();
        let (order, default) = match scalar {
            "string" => ((0, text(n)), text(n).is_empty()),
            "int32" => ((i64::from(n as i32), String::new()), n as i32 == 0),
            "uint32" => ((i64::from(n as u32), String::new()), n as u32 == 0),
            other => panic!("no map has keys of type {other}"),
        };
        if !default {
            let (wire_type, value, _) = scalar_value(scalar, n);
            encode_key(1, wire_type, &mut out);
            out.extend(value);
        }
        (order, out)
    }

    /// Wire type, bytes, and whether proto3 counts the value as the default.
    fn value(&mut self, ty: &Type, depth: usize) -> (WireType, Vec<u8>, bool) {
        match ty {
            Type::Message(name) => {
                let name = name.clone();
                let body = if depth == 0 { Vec::new() } else { self.message(&name, depth - 1) };
                let mut out = Vec::new();
                delimit(&body, &mut out);
                (WireType::LengthDelimited, out, body.is_empty())
            }
            Type::Raw => scalar_value("bytes", self.draw()),
            Type::Enum => scalar_value("int32", self.draw()),
            Type::Scalar(scalar) => scalar_value(scalar, self.draw()),
        }
    }

    /// A number with many bits set when filling, anything when drawing.
    fn draw(&mut self) -> u64 {
        match &mut self.fill {
            Fill::All(_) => {
                self.serial += 1;
                u64::MAX - (self.serial << 33) - self.serial
            }
            Fill::Drawn(entropy) => entropy.word(),
        }
    }
}

fn delimit(body: &[u8], out: &mut Vec<u8>) {
    encode_varint(body.len() as u64, out);
    out.extend(body);
}

fn text(n: u64) -> String {
    if n == 0 { String::new() } else { format!("{n:x}-\u{e4}") }
}

fn scalar_value(scalar: &str, n: u64) -> (WireType, Vec<u8>, bool) {
    let mut out = Vec::new();
    let (varint, default) = match scalar {
        "int32" => (n as i32 as u64, n as i32 == 0),
        "uint32" => (u64::from(n as u32), n as u32 == 0),
        "int64" | "uint64" => (n, n == 0),
        "bool" => (n & 1, n & 1 == 0),
        _ => return other_scalar(scalar, n),
    };
    encode_varint(varint, &mut out);
    (WireType::Varint, out, default)
}

fn other_scalar(scalar: &str, n: u64) -> (WireType, Vec<u8>, bool) {
    let mut out = Vec::new();
    match scalar {
        "string" => delimit(text(n).as_bytes(), &mut out),
        // Never UTF-8 unless empty, so that a string in place of bytes is noticed.
        "bytes" if n == 0 => delimit(&[], &mut out),
        "bytes" => delimit(&[&[0xff], &n.to_le_bytes()[..]].concat(), &mut out),
        // Negative zero counts as the default: prost compares numbers, not bits.
        "float" => {
            let bits = n as u32;
            return (WireType::ThirtyTwoBit, bits.to_le_bytes().into(), bits << 1 == 0);
        }
        "double" => return (WireType::SixtyFourBit, n.to_le_bytes().into(), n << 1 == 0),
        "fixed32" => {
            return (WireType::ThirtyTwoBit, (n as u32).to_le_bytes().into(), n as u32 == 0);
        }
        "fixed64" => return (WireType::SixtyFourBit, n.to_le_bytes().into(), n == 0),
        other => panic!("no scalar type {other}"),
    }
    (WireType::LengthDelimited, out, n == 0)
}
