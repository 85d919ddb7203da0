//! Every field of every message survives being read and written.

use proptest::prelude::*;
use prost::encoding::{WireType, encode_key, encode_varint};

use crate::kinds::kinds;
use crate::schema::{Field, Label, Schema, Type, schema};
use crate::writer::{Entropy, Fill, Writer};

/// Struct names as they stand in errors: a nested message by its own name, but for `Experimental`.
fn rust_name(message: &str) -> String {
    match message.rsplit_once('.') {
        Some((parent, "Experimental")) => format!("{parent}Experimental"),
        Some((_, own)) => own.to_owned(),
        None => message.to_owned(),
    }
}

fn for_each_field(schema: &Schema, mut check: impl FnMut(&str, &Field)) {
    for (message, fields) in schema {
        fields.iter().for_each(|field| check(message, field));
    }
}

#[test]
fn every_message_of_the_format_has_a_type() {
    let kinds = kinds();
    let schema = schema();
    assert!(kinds.keys().copied().eq(schema.keys().map(String::as_str)));
    assert_eq!(schema.len(), 133);
    assert_eq!(schema.values().map(Vec::len).sum::<usize>(), 574);
}

#[test]
fn every_field_survives() {
    let schema = schema();
    for (message, round_trip) in kinds() {
        for turn in 0..10 {
            let bytes = Writer::new(&schema, Fill::All(turn)).message(message, 3);
            let written = round_trip(&bytes).unwrap_or_else(|error| panic!("{message}: {error}"));
            assert_eq!(written, bytes, "{message}, turn {turn}");
        }
    }
}

/// A wrong wire type is refused under the field's TensorFlow name, which shows that the name and
/// the number belong together.
#[test]
fn every_field_has_its_name_and_number() {
    let kinds = kinds();
    for_each_field(&schema(), |message, field| {
        let mut bytes = Vec::new();
        encode_key(field.number, WireType::StartGroup, &mut bytes);
        let error = kinds[message](&bytes).expect_err("no field is a group").to_string();
        let name = match (&field.label, field.name.as_str()) {
            (Label::Oneof(group), _) => group,
            (_, "type") => "r#type",
            (_, name) => name,
        };
        let place = format!("{}.{name}: ", rust_name(message));
        assert!(error.contains(&place), "{message} {}: {error}", field.number);
    });
}

#[test]
fn strings_must_be_utf8_and_bytes_need_not() {
    let kinds = kinds();
    for_each_field(&schema(), |message, field| {
        let (Type::Scalar(_) | Type::Raw, Label::Single | Label::Repeated | Label::Oneof(_)) =
            (&field.ty, &field.label)
        else {
            return;
        };
        let mut bytes = Vec::new();
        encode_key(field.number, WireType::LengthDelimited, &mut bytes);
        bytes.extend([1, 0xff]);
        let result = kinds[message](&bytes);
        match &field.ty {
            Type::Scalar(scalar) if scalar == "string" => {
                let error = result.expect_err("not UTF-8").to_string();
                assert!(error.contains("UTF-8"), "{message}.{}: {error}", field.name);
            }
            Type::Scalar(scalar) if scalar != "bytes" => {}
            _ => assert_eq!(result, Ok(bytes), "{message}.{}", field.name),
        }
    });
}

#[test]
fn a_bool_is_zero_or_one() {
    let kinds = kinds();
    let bool_type = Type::Scalar("bool".into());
    for_each_field(&schema(), |message, field| {
        if field.ty == bool_type && field.label == Label::Single {
            let mut bytes = Vec::new();
            encode_key(field.number, WireType::Varint, &mut bytes);
            let key = bytes.clone();
            encode_varint(2, &mut bytes);
            let expected = [key, vec![1]].concat();
            assert_eq!(kinds[message](&bytes), Ok(expected), "{message}.{}", field.name);
        }
    });
}

#[test]
fn a_present_but_empty_message_stays_present() {
    let kinds = kinds();
    for_each_field(&schema(), |message, field| {
        let embedded = matches!(field.ty, Type::Message(_) | Type::Raw);
        if embedded && !matches!(field.label, Label::Map(_)) {
            let mut bytes = Vec::new();
            encode_key(field.number, WireType::LengthDelimited, &mut bytes);
            bytes.push(0);
            assert_eq!(kinds[message](&bytes), Ok(bytes), "{message}.{}", field.name);
        }
    });
}

/// Old writers do not pack; readers must take both forms.
#[test]
fn unpacked_numbers_are_read() {
    let kinds = kinds();
    for_each_field(&schema(), |message, field| {
        let wire_type = match &field.ty {
            Type::Enum => WireType::Varint,
            Type::Scalar(scalar) => match scalar.as_str() {
                "string" | "bytes" => return,
                "float" => WireType::ThirtyTwoBit,
                "double" => WireType::SixtyFourBit,
                _ => WireType::Varint,
            },
            _ => return,
        };
        if field.label != Label::Repeated {
            return;
        }
        let element: &[u8] = match wire_type {
            WireType::ThirtyTwoBit => &[1, 0, 0, 0],
            WireType::SixtyFourBit => &[1, 0, 0, 0, 0, 0, 0, 0],
            _ => &[1],
        };
        let mut bytes = Vec::new();
        encode_key(field.number, wire_type, &mut bytes);
        bytes.extend(element);
        let mut packed = Vec::new();
        encode_key(field.number, WireType::LengthDelimited, &mut packed);
        packed.push(element.len() as u8);
        packed.extend(element);
        assert_eq!(kinds[message](&bytes), Ok(packed), "{message}.{}", field.name);
    });
}

proptest! {
    #[test]
    fn any_choice_of_fields_survives(
        which in any::<prop::sample::Index>(),
        entropy in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let schema = schema();
        let kinds = kinds();
        let message = *which.get(&kinds.keys().copied().collect::<Vec<_>>());
        let bytes = Writer::new(&schema, Fill::Drawn(Entropy(&entropy))).message(message, 4);
        prop_assert_eq!(kinds[message](&bytes), Ok(bytes), "{}", message);
    }
}
