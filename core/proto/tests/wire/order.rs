//! Puts the fields of an encoded message into the order in which prost writes them.
//!
//! TensorFlow's Python classes order three things otherwise, none of which a reader may rely on:
//! - entries of a map: TensorFlow by descending number, and a string after those it is a prefix of;
//!   we by ascending key;
//! - key and value of a map entry: TensorFlow writes defaults, we leave them out;
//! - a oneof: TensorFlow by the number of the member that is set, we at the place of its lowest.

use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

use crate::schema::{Field, Label, Schema, Type};

pub struct Found {
    pub number: u32,
    pub wire_type: WireType,
    /// Bytes of the value, without its length.
    pub value: Vec<u8>,
}

/// The fields of an encoded message in the order in which they stand.
pub fn fields(mut rest: &[u8]) -> Vec<Found> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (number, wire_type) = decode_key(&mut rest).expect("a key");
        let length = match wire_type {
            WireType::LengthDelimited => decode_varint(&mut rest).expect("a length") as usize,
            WireType::ThirtyTwoBit => 4,
            WireType::SixtyFourBit => 8,
            WireType::Varint => rest.iter().take_while(|&&byte| byte >= 0x80).count() + 1,
            group => panic!("TensorFlow writes no {group:?}"),
        };
        let (value, after) = rest.split_at(length);
        fields.push(Found { number, wire_type, value: value.to_vec() });
        rest = after;
    }
    fields
}

/// The same message with its fields in our order, at every depth.
pub fn in_our_order(schema: &Schema, message: &str, bytes: &[u8]) -> Vec<u8> {
    let known = &schema[message];
    let mut placed: Vec<_> = fields(bytes)
        .into_iter()
        .map(|mut found| {
            let field = known.iter().find(|f| f.number == found.number).expect("a known field");
            let mut key = (0, Vec::new());
            if let Label::Map(key_type) = &field.label {
                (key, found.value) = entry(schema, key_type, &field.ty, &found.value);
            } else if let Type::Message(nested) = &field.ty {
                found.value = in_our_order(schema, nested, &found.value);
            }
            ((place(known, field), key), found)
        })
        .collect();
    placed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut out = Vec::new();
    placed.iter().for_each(|(_, found)| write(found, &mut out));
    out
}

/// The number by whose place a field is written.
fn place(known: &[Field], field: &Field) -> u32 {
    let same_group = |f: &&Field| matches!(f.label, Label::Oneof(_)) && f.label == field.label;
    known.iter().find(same_group).map_or(field.number, |first| first.number)
}

/// What a map entry is sorted by, and the entry without defaults.
fn entry(schema: &Schema, key: &str, value: &Type, bytes: &[u8]) -> ((i64, Vec<u8>), Vec<u8>) {
    let (mut order, mut out) = ((0, Vec::new()), Vec::new());
    for mut found in fields(bytes) {
        match (found.number, value) {
            (1, _) if key == "string" => order.1 = found.value.clone(),
            (1, _) => order.0 = decode_varint(&mut found.value.as_slice()).expect("a key") as i64,
            (_, Type::Message(nested)) => found.value = in_our_order(schema, nested, &found.value),
            _ => {}
        }
        let is_default = match found.wire_type {
            WireType::LengthDelimited => found.value.is_empty(),
            _ => found.value.iter().all(|&byte| byte == 0),
        };
        if !is_default {
            write(&found, &mut out);
        }
    }
    (order, out)
}

fn write(found: &Found, out: &mut Vec<u8>) {
    encode_key(found.number, found.wire_type, out);
    if found.wire_type == WireType::LengthDelimited {
        encode_varint(found.value.len() as u64, out);
    }
    out.extend(&found.value);
}
